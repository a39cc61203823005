package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Memory and processes of a whole command are limited by a control group of the
// kernel, where Wharf may make one. Making and removing one costs as much as
// starting bubblewrap, so groups are kept for later commands; each belongs to
// one command at a time. The keeper removes them when Wharf has ended.

// groupMount is where control groups are mounted on all systems that have them.
const groupMount = "/sys/fs/cgroup"

// groups makes and keeps control groups in one place.
type groups struct {
	parents []string // folders that groups are made in: one, or one for each controller in version 1
	v1      bool

	mu   sync.Mutex
	idle []*group
	made int
}

// group is a control group, with a folder in each of its parents.
type group struct {
	dirs []string
	v1   bool
	seen map[string]int // what its counters said before the command
}

// theGroups are the control groups of this process; nil if it can make none.
var theGroups = sync.OnceValue(func() *groups {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for _, g := range groupPlaces(groupMount, string(text)) {
		g.sweep()
		if made, err := g.take(Limits{Memory: leastMemory, Processes: leastProcesses}); err == nil {
			g.give(made)
			return g
		}
	}
	return nil
})

// groupPlaces returns where groups might be made, by what /proc/self/cgroup
// says: within the own group or beside it for version 2, which forbids
// processes in a group that has others with controllers in it.
func groupPlaces(mount, self string) (places []*groups) {
	own := map[string]string{}
	for line := range strings.Lines(self) {
		if parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3); len(parts) == 3 {
			for name := range strings.SplitSeq(parts[1], ",") {
				own[name] = filepath.Join("/", parts[2])
			}
		}
	}
	if path, ok := own[""]; ok {
		places = append(places, &groups{parents: []string{filepath.Join(mount, path)}})
		if path != "/" {
			places = append(places, &groups{parents: []string{filepath.Join(mount, filepath.Dir(path))}})
		}
	}
	memory, hasMemory := own["memory"]
	pids, hasPids := own["pids"]
	if hasMemory && hasPids {
		places = append(places, &groups{v1: true, parents: []string{
			filepath.Join(mount, "memory", memory), filepath.Join(mount, "pids", pids),
		}})
	}
	return places
}

// sweep removes what processes left that ended without a keeper.
func (g *groups) sweep() {
	for _, parent := range g.parents {
		left, _ := filepath.Glob(filepath.Join(parent, "wharf-*-*"))
		for _, dir := range left {
			pid, err := strconv.Atoi(strings.Split(filepath.Base(dir), "-")[1])
			if err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
				_ = os.Remove(dir) // fails while there are processes in it
			}
		}
	}
}

// takeGroup returns a group for a command, or nil if it is to have none.
func takeGroup(wanted bool, l Limits) (*group, error) {
	if !wanted {
		return nil, nil
	}
	return theGroups().take(l)
}

// take returns an empty group with the limits.
func (g *groups) take(l Limits) (*group, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.idle) > 0 {
		last := g.idle[len(g.idle)-1]
		g.idle = g.idle[:len(g.idle)-1]
		if last.limit(l) == nil { // else somebody removed it
			return last, nil
		}
	}
	return g.makeLocked(l)
}

func (g *groups) makeLocked(l Limits) (*group, error) {
	g.made++
	one := &group{v1: g.v1}
	for _, parent := range g.parents {
		dir := filepath.Join(parent, fmt.Sprintf("wharf-%d-%d", os.Getpid(), g.made))
		if err := os.Mkdir(dir, 0o755); err != nil {
			one.remove()
			return nil, fmt.Errorf("make control group: %w", err)
		}
		one.dirs = append(one.dirs, dir)
	}
	if err := one.limit(l); err != nil {
		one.remove()
		return nil, err
	}
	for _, dir := range one.dirs {
		theKeeper.remember(dir)
	}
	return one, nil
}

// give takes back a group. One in which a process is left, which could not be ended,
// is not for anybody else.
func (g *groups) give(one *group) {
	if !one.empty() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.idle = append(g.idle, one)
}

// setting is a file of a group and what is written to it.
type setting struct {
	file, value string
	optional    bool // not every kernel has it
}

func (g *group) settings(l Limits) []setting {
	memory, processes := strconv.FormatInt(l.Memory, 10), strconv.Itoa(l.Processes)
	if g.v1 {
		return []setting{
			{"memory.memsw.limit_in_bytes", "-1", true}, // it may not be below the next
			{"memory.limit_in_bytes", memory, false},
			{"memory.memsw.limit_in_bytes", memory, true},
			{"pids.max", processes, false},
		}
	}
	return []setting{
		{"memory.max", memory, false},
		{"memory.swap.max", "0", true},
		{"memory.oom.group", "1", true},
		{"pids.max", processes, false},
	}
}

// limit sets the limits of g and looks at its counters.
func (g *group) limit(l Limits) error {
	for _, s := range g.settings(l) {
		file := g.path(s.file)
		f, err := os.OpenFile(file, os.O_WRONLY, 0) // never makes one
		if s.optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			_, err = f.WriteString(s.value)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return fmt.Errorf("limit control group: %w", err)
		}
	}
	g.seen = g.counters()
	return nil
}

// path returns the path of a file of g, which version 1 keeps by controller.
func (g *group) path(file string) string {
	if g.v1 && strings.HasPrefix(file, "pids.") {
		return filepath.Join(g.dirs[1], file)
	}
	return filepath.Join(g.dirs[0], file)
}

// entrances are the files that a process is written to, to enter g.
func (g *group) entrances() (files []string) {
	for _, dir := range g.dirs {
		files = append(files, filepath.Join(dir, "cgroup.procs"))
	}
	return files
}

// empty reports whether no process is in g.
func (g *group) empty() bool {
	for _, file := range g.entrances() {
		if text, err := os.ReadFile(file); err != nil || len(text) > 0 {
			return false
		}
	}
	return true
}

func (g *group) enter(pid int) error { return enterGroups(g.entrances(), pid) }

// enterGroups moves pid, with all that it will start; 0 is the calling process.
func enterGroups(entrances []string, pid int) error {
	for _, file := range entrances {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(strconv.Itoa(pid))
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return fmt.Errorf("enter control group: %w", err)
		}
	}
	return nil
}

// The counters of a group: processes ended for lack of memory, and those that
// were not started.
const (
	countKilled  = "oom_kill"
	countRefused = "max"
)

func (g *group) counters() map[string]int {
	memory := "memory.events"
	if g.v1 {
		memory = "memory.oom_control"
	}
	return map[string]int{
		countKilled:  counter(g.path(memory), countKilled),
		countRefused: counter(g.path("pids.events"), countRefused),
	}
}

// counter reads a number of a file of names and numbers; 0 if it is not there.
func counter(file, name string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if at := slices.Index(fields, name); at >= 0 && at+1 < len(fields) {
		n, _ := strconv.Atoi(fields[at+1])
		return n
	}
	return 0
}

// reached says which limits of g were met since they were set.
func (g *group) reached(l Limits) (notes []string) {
	now := g.counters()
	if now[countKilled] > g.seen[countKilled] {
		notes = append(notes, fmt.Sprintf("a process was ended at the %d MiB memory limit (sandbox.limits.memory)", l.Memory>>20))
	}
	if now[countRefused] > g.seen[countRefused] {
		notes = append(notes, fmt.Sprintf("a process was not started at the limit of %d processes (sandbox.limits.processes)", l.Processes))
	}
	return notes
}

// remove removes the folders of g.
func (g *group) remove() {
	for _, dir := range g.dirs {
		_ = os.Remove(dir)
	}
}
