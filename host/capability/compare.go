package capability

import (
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine/egress"
)

// Includes reports whether s reaches all that other reaches. Each item of a
// list of other's must lie within one item of s.
func (s Set) Includes(other Set) bool { return other.Minus(s).Empty() }

// Minus returns what s asks for in addition to old: each item of a list that
// does not lie within one of old's, a size that is larger, a switch that is
// new. It is what an upgrade has to be granted.
func (s Set) Minus(old Set) Set {
	more := Set{
		HTTP:    beyond(s.HTTP, old.HTTP, egress.Pattern.Covers),
		Secrets: beyond(s.Secrets, old.Secrets, equal),
		FS:      beyond(s.FS, old.FS, Folder.includes),
		Exec:    beyond(s.Exec, old.Exec, commandIncludes),
		Tools:   beyond(s.Tools, old.Tools, equal),
		Session: s.Session && !old.Session,
		Env:     beyond(s.Env, old.Env, equal),
		Events:  s.Events && !old.Events,
		Approve: s.Approve && !old.Approve,
	}
	if s.KV > old.KV {
		more.KV = s.KV
	}
	if s.LLM > old.LLM {
		more.LLM = s.LLM
	}
	return more
}

// Intersect returns what s and other both reach. Of two items, what they have
// in common counts; of two commands that only overlap, neither does. Of two
// sizes the smaller counts.
func (s Set) Intersect(other Set) Set {
	return Set{
		HTTP:    meet(s.HTTP, other.HTTP, egress.Pattern.Intersect, egress.Pattern.Covers),
		Secrets: meet(s.Secrets, other.Secrets, narrower(equal[Secret]), equal),
		FS:      meet(s.FS, other.FS, Folder.meet, Folder.includes),
		KV:      min(s.KV, other.KV),
		Exec:    meet(s.Exec, other.Exec, narrower(commandIncludes), commandIncludes),
		Tools:   meet(s.Tools, other.Tools, narrower(equal[string]), equal),
		Session: s.Session && other.Session,
		LLM:     min(s.LLM, other.LLM),
		Env:     meet(s.Env, other.Env, narrower(equal[string]), equal),
		Events:  s.Events && other.Events,
		Approve: s.Approve && other.Approve,
	}
}

// beyond returns the items that do not lie within one of old's.
func beyond[T any](items, old []T, includes func(outer, inner T) bool) []T {
	var more []T
	for _, item := range items {
		if !within(item, old, includes) {
			more = append(more, item)
		}
	}
	return more
}

func within[T any](item T, outer []T, includes func(outer, inner T) bool) bool {
	for _, o := range outer {
		if includes(o, item) {
			return true
		}
	}
	return false
}

// meet returns what the items of a and b have in common, two at a time,
// without what lies within another item of the answer.
func meet[T any](a, b []T, both func(a, b T) (T, bool), includes func(outer, inner T) bool) []T {
	var all []T
	for _, x := range a {
		for _, y := range b {
			if item, ok := both(x, y); ok {
				all = append(all, item)
			}
		}
	}
	var widest []T
	for i, item := range all {
		if !within(item, widest, includes) && !within(item, beyond(all[i+1:], []T{item}, includes), includes) {
			widest = append(widest, item)
		}
	}
	return widest
}

// narrower returns a function that gives the one of two items that lies within
// the other.
func narrower[T any](includes func(outer, inner T) bool) func(a, b T) (T, bool) {
	return func(a, b T) (T, bool) {
		if includes(b, a) {
			return a, true
		}
		return b, includes(a, b)
	}
}

func equal[T comparable](a, b T) bool { return a == b }

// includes reports whether inner is f or lies in it, and is not written to
// where f is only read.
func (f Folder) includes(inner Folder) bool {
	return f.holds(inner.Path) && (f.Write || !inner.Write)
}

func (f Folder) holds(path string) bool {
	return f.Path == "." || f.Path == path || strings.HasPrefix(path, f.Path+"/")
}

// meet returns the inner one of two folders, written to if both may be.
func (f Folder) meet(other Folder) (Folder, bool) {
	inner := other
	if other.holds(f.Path) {
		inner = f
	}
	return Folder{inner.Path, f.Write && other.Write}, f.holds(inner.Path) && other.holds(inner.Path)
}

// Plus returns what s and other reach together: each item of other's lists that
// does not lie within one of s's is added. Of two sizes the larger counts.
func (s Set) Plus(other Set) Set {
	more := other.Minus(s)
	return Set{
		HTTP:    slices.Concat(s.HTTP, more.HTTP),
		Secrets: slices.Concat(s.Secrets, more.Secrets),
		FS:      slices.Concat(s.FS, more.FS),
		KV:      max(s.KV, other.KV),
		Exec:    slices.Concat(s.Exec, more.Exec),
		Tools:   slices.Concat(s.Tools, more.Tools),
		Session: s.Session || other.Session,
		LLM:     max(s.LLM, other.LLM),
		Env:     slices.Concat(s.Env, more.Env),
		Events:  s.Events || other.Events,
		Approve: s.Approve || other.Approve,
	}
}

// Without returns s without what is under these keys.
func (s Set) Without(keys ...string) Set {
	for _, key := range keys {
		s.take(key, Set{})
	}
	return s
}
