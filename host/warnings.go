package host

import (
	"fmt"
	"strings"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/extism"
)

// Warnings tells what is allowed in an extension that can be loaded, and hardly
// meant: what it asks for and cannot use, and what will never be called.
func (i *Inspection) Warnings() []string {
	m := i.Manifest
	if m == nil {
		return nil
	}
	var all []string
	warn := func(doubtful bool, format string, args ...any) {
		if doubtful {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	warn(len(m.Hooks) == 0 && len(m.Tools) == 0 && !i.lists,
		"it handles no hook point and has no tool, so nothing ever calls it: add a [hooks.POINT] or [[tools]]")
	warn(m.Description == "", "it has no description: whoever installs it wants to know what it is for")
	warn(m.License == "", "it has no license: nobody else may use it")
	i.warnOfReach(warn)
	m.warnOfHooks(warn)
	warn(i.debug > 0, "%d bytes of it are for debuggers: have the linker strip them", i.debug)
	return all
}

// warnOfReach compares what it asks for with what it could use.
func (i *Inspection) warnOfReach(warn func(bool, string, ...any)) {
	m := i.Manifest
	called := abi.ImportModule + "." + abi.ImportCall
	if m.Extism {
		called = extism.User + "." + extism.Call
	}
	asked := m.Capabilities
	asked.Approve = false // that needs no operation
	imported := false
	for _, name := range i.Imports {
		imported = imported || name == called
	}
	warn(!asked.Empty() && !imported, "it asks for capabilities, and does not import %s, without which it can use none of them: take them out", called)
	warn(len(asked.Secrets) > 0 && len(asked.HTTP) == 0, "it asks for secrets, and for no http, with which alone they can be used: add it, or take them out")
	allows := false
	for p := range m.Hooks {
		allows = allows || takes(p, hook.Allow)
	}
	warn(m.Capabilities.Approve && !allows, "it asks for approve, and handles no point at which a hook can allow anything: take it out")
}

// warnOfHooks tells hooks that are never asked, and guards that guard nothing.
func (m *Manifest) warnOfHooks(warn func(bool, string, ...any)) {
	deciding := false
	for _, p := range m.Points() {
		info, _ := hook.Lookup(p)
		deciding = deciding || info.Deciding()
		warn(info.Later, "it handles %s, and this release of Wharf has no such moment yet: wharf run leaves it out", p)
		warn(m.Guard && info.Denies() && m.Hooks[p].OnFailure == hook.Isolate,
			"it is a guard, and on_failure of %s is isolate: when it fails, all is let pass", p)
	}
	warn(m.Guard && !deciding, `it is a guard, and can decide nothing at its hook points: handle one that may deny or block, or make it role = "observer"`)
}

// takes reports whether a hook may answer d at p.
func takes(p hook.Point, d hook.Decision) bool {
	info, _ := hook.Lookup(p)
	for _, known := range info.Decisions {
		if known == d {
			return true
		}
	}
	return false
}

// debugSize is how many bytes of a module are only for debuggers.
func debugSize(all []section) (n int) {
	for _, s := range all {
		if s.id == sectionCustom && strings.HasPrefix(s.name, ".debug_") {
			n += s.end - s.start
		}
	}
	return n
}
