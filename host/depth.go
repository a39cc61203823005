package host

// This file decides which calls count how deep they are. A call by which the
// code can come back to where it is does, and so does each call on a long way
// of calls without any such. Thus the sum of all that is on the stack is
// bounded, and most calls cost nothing.

// limitDepth bounds how many of those calls are open at once.
const limitDepth = 20_000

// levelBytes is how much stack there may be, about, between two such calls.
const levelBytes = 1 << 10

// indirect stands for whatever may be called through a table.
const indirect = ^uint32(0)

// callGraph is who calls whom. Its nodes are the module's own functions; the
// last one stands for a call through a table.
type callGraph struct {
	imported int
	bodies   []*body
	targets  []int // of calls through a table
	state    []byte
	done     []int // nodes in the order in which all that they call was seen
}

const (
	unseen = iota
	open   // calls of it are being followed
	seen
)

// countLevels marks the calls that count.
func countLevels(s *space, bodies []*body) {
	g := &callGraph{imported: len(s.imported), bodies: bodies, state: make([]byte, len(bodies)+1)}
	for i := range bodies {
		if s.reachable[g.imported+i] {
			g.targets = append(g.targets, i)
		}
	}
	g.follow(len(bodies)) // first, so that each way back to it is a call
	for i := range bodies {
		g.follow(i)
	}
	g.spread()
}

// node returns what a mark calls.
func (g *callGraph) node(m mark) int {
	if m.n == indirect {
		return len(g.bodies)
	}
	return int(m.n) - g.imported
}

// step is a place in a walk along the calls of a node.
type step struct{ node, next int }

// follow walks along all calls from a node, and marks those that lead back to
// a node from which it came.
func (g *callGraph) follow(start int) {
	if g.state[start] != unseen {
		return
	}
	g.state[start] = open
	way := []step{{node: start}}
	for len(way) > 0 {
		at := &way[len(way)-1]
		callee, ok := g.next(at)
		switch {
		case !ok:
			g.state[at.node] = seen
			g.done = append(g.done, at.node)
			way = way[:len(way)-1]
		case g.state[callee] == unseen:
			g.state[callee] = open
			way = append(way, step{node: callee})
		}
	}
}

// next returns the next callee of a step's node.
func (g *callGraph) next(s *step) (int, bool) {
	if s.node == len(g.bodies) {
		if s.next == len(g.targets) {
			return 0, false
		}
		s.next++
		return g.targets[s.next-1], true
	}
	marks := g.bodies[s.node].marks
	for ; s.next < len(marks); s.next++ {
		m := &marks[s.next]
		if m.kind != markCall {
			continue
		}
		callee := g.node(*m)
		m.level = m.level || g.state[callee] == open
		s.next++
		return callee, true
	}
	return 0, false
}

// spread marks calls on a long way without marks, callers before callees.
func (g *callGraph) spread() {
	stack := make([]int, len(g.bodies)+1) // about, on the way to each node since a call that counts
	for i := len(g.done) - 1; i >= 0; i-- {
		node := g.done[i]
		if node == len(g.bodies) {
			for _, t := range g.targets {
				stack[t] = max(stack[t], stack[node])
			}
			continue
		}
		f := g.bodies[node]
		here := stack[node] + f.frame()
		for j := range f.marks {
			m := &f.marks[j]
			if m.kind != markCall || m.level {
				continue
			}
			callee := g.node(*m)
			if m.level = here > levelBytes; !m.level {
				stack[callee] = max(stack[callee], here)
			}
		}
	}
}

// frame estimates what a call of the function takes on the stack.
func (f *body) frame() int {
	return 48 + 8*int(f.params) + 8*int(f.locals)/2 + len(f.data)/16
}
