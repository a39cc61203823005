package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/capability"
	"github.com/wharf-agent/wharf/host/store"
)

// This file holds what somebody reads before they install an extension. What stands
// there comes from a stranger, and must neither look like a line of Wharf's nor push one
// out of sight.

// The most that is shown.
const (
	shownLines = 24  // of what it asks for, and of each other list
	shownWidth = 200 // characters of a line
)

// leftOut tells why runs would leave an extension out, beside the others that are
// installed.
func leftOut(p store.Proposal, others []store.Module) (all []string) {
	m := p.Manifest
	all = shadowed(m)
	for _, point := range m.Points() {
		if info, _ := hook.Lookup(point); info.Later {
			all = append(all, fmt.Sprintf("it handles %s, and this release of Wharf has no such moment yet: wharf run leaves it out, so take [hooks.%s] and the export out", point, point))
		}
	}
	for _, other := range others {
		if other.Name == m.Name {
			continue
		}
		for _, t := range manifestOf(other).Tools {
			if slices.ContainsFunc(m.Tools, func(own host.ManifestTool) bool { return own.Name == t.Name }) {
				all = append(all, fmt.Sprintf("its tool %q is one of the installed extension %q, too, and nothing is shadowed: wharf run leaves it out, unless you remove that one", t.Name, other.Name))
			}
		}
	}
	return all
}

// proposalText tells what it would change to install something. whole says whether all
// that it asks for stands there.
func proposalText(p store.Proposal) (text string, whole bool) {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-13s %s\n", name, fmt.Sprintf(format, args...))
	}
	m := p.Manifest
	row("name", "%s %s (ABI %v, %s)", m.Name, m.Version, m.ABIName(), role(m))
	row("description", "%s", quoted(m.Description))
	row("source", "%s", plainly(p.Source))
	row("digest", "sha256:%s", p.Digest)
	row("signed", "%s", signedText(p))
	tellParts(row, p)
	what := "asks to"
	if p.Old != nil {
		what = "asks anew to"
		tellUpgrade(row, p)
	}
	whole = describeAsked(row, what, p.New)
	return b.String(), whole
}

// tellParts tells what there is to be called; of an upgrade, what is otherwise.
func tellParts(row func(string, string, ...any), p store.Proposal) {
	m, was := p.Manifest, p.Was
	if was == nil {
		was = &host.Manifest{}
	}
	before, after := hookLines(was), hookLines(m)
	for _, point := range m.Points() {
		if h := m.Hooks[point]; !slices.Contains(before, hookLine(point, h)) {
			line, _ := shortened(describeHook(point, h), 2*shownWidth)
			row("hook", "%s", line)
		}
	}
	listed(row, "no more", "hook ", missing(before, after))
	var tools []string
	for _, t := range m.Tools {
		if !slices.Contains(toolLines(was), toolLine(t)) {
			tools = append(tools, t.Name+": "+quoted(t.Description))
		}
	}
	listed(row, "tool", "", tools)
	listed(row, "no more", "tool ", missing(toolNames(was), toolNames(m)))
	if m.Extism && len(m.Tools) == 0 {
		row("tool", "those that it lists itself when it starts, if any")
	}
}

// listed makes rows of lines, as many as can be read.
func listed(row func(string, string, ...any), name, kind string, lines []string) {
	for n, line := range lines {
		if n == shownLines {
			row(name, "%s… and %d more", kind, len(lines)-n)
			return
		}
		line, _ := shortened(line, 2*shownWidth)
		row(name, "%s%s", kind, line)
	}
}

// tellUpgrade tells what is otherwise than in what is installed.
func tellUpgrade(row func(string, string, ...any), p store.Proposal) {
	old := p.Old
	row("installed", "%s, sha256:%s", old.Version, old.Digest)
	if p.Older() {
		row("warning", "it is older than what is installed: %s, and that is %s", p.Manifest.Version, old.Version)
	}
	if old.Version == p.Manifest.Version && old.Digest != p.Digest {
		row("warning", "it is another file of the same version as what is installed")
	}
	if old.Source != p.Source {
		row("warning", "it comes from elsewhere than what is installed: that is from %s", plainly(old.Source))
	}
	if !old.Signer.IsZero() && old.Signer != p.Signer {
		by := "is not signed"
		if !p.Signer.IsZero() {
			by = "by " + p.Signer.String()
		}
		row("warning", "what is installed is signed by %s, and this %s", old.Signer, by)
	}
	if old.Guard && !p.Manifest.Guard {
		row("warning", "what is installed is a guard, and this is not: where it fails, all goes on")
	}
	if lost := missing(old.Hooks, p.Manifest.Points()); len(lost) > 0 && old.Guard {
		row("warning", "the guard is not asked any more at %s", strings.Join(lost, ", "))
	}
	if !p.Kept.Empty() {
		row("keeps", "what was granted: %s", strings.Join(keysOf(p.Kept), ", "))
	}
}

// missing returns what of before is not in after.
func missing[T ~string](before, after []T) (lost []string) {
	have := map[T]bool{}
	for _, a := range after {
		have[a] = true
	}
	for _, b := range before {
		if !have[b] {
			lost = append(lost, string(b))
		}
	}
	return lost
}

// shippedText is what takes the place of a signature.
const shippedText = "it comes with wharf"

// signedText says who vouches for it.
func signedText(p store.Proposal) string {
	_, shipped := store.ShippedName(p.Source)
	switch {
	case shipped:
		return shippedText
	case p.NewKey:
		return fmt.Sprintf("by %s, a key that lies beside it: anybody could have put it there", p.Signer)
	case !p.Signer.IsZero():
		return fmt.Sprintf("by %s", p.Signer)
	case p.Unchecked != "":
		return fmt.Sprintf("not known: there is a signature by the key %s, and no key to check it with (--pubkey)", p.Unchecked)
	}
	return "no: nobody vouches for it"
}

// describeAsked says in plain words what an extension asks for, and whether all of it
// could be shown.
func describeAsked(row func(string, string, ...any), name string, asked capability.Set) (whole bool) {
	words := asked.Words()
	if len(words) == 0 {
		row(name, "nothing")
	}
	whole = true
	for n, line := range words {
		if n == shownLines {
			row(name, "… and %s more, not shown here", count(len(words)-n, "thing"))
			return false
		}
		line, all := shortened(plainly(line), shownWidth)
		whole = whole && all
		row(name, "%s", line)
	}
	return whole
}

// plainly returns text in ASCII: a letter of another alphabet may look like one of
// ours, and is shown by its number.
func plainly(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r >= ' ' && r <= '~' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	return b.String()
}

// quoted returns what an extension says of itself, as a quotation in one line.
func quoted(text string) string {
	if text == "" {
		return "none"
	}
	return fmt.Sprintf("%q", oneLine(text, shownWidth))
}

// shortened returns a text of at most n characters, and whether that is all of it.
func shortened(text string, n int) (string, bool) {
	short := oneLine(text, n)
	return short, len([]rune(text)) <= n
}

// difference tells what is otherwise in a candidate than in what is installed.
func difference(old, now *host.Inspection, sizes [2]int) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-13s %s\n", name, fmt.Sprintf(format, args...))
	}
	changed := func(name, was, is string) {
		if was != is {
			row(name, "%s → %s", was, is)
		}
	}
	was, is := old.Manifest, now.Manifest
	changed("version", was.Version, is.Version)
	changed("description", quoted(was.Description), quoted(is.Description))
	changed("license", quoted(was.License), quoted(is.License))
	changed("abi", fmt.Sprint(was.ABIName()), fmt.Sprint(is.ABIName()))
	changed("role", role(was), role(is))
	changed("memory", was.Memory.String(), is.Memory.String())
	changed("size", fmt.Sprintf("%d bytes", sizes[0]), fmt.Sprintf("%d bytes", sizes[1]))
	changed("digest", "sha256:"+old.Digest, "sha256:"+now.Digest)
	for _, side := range []struct {
		what     string
		from, to *host.Inspection
	}{{"no more", now, old}, {"new", old, now}} {
		tell := func(kind string, lines []string) {
			for i := range lines {
				lines[i] = plainly(lines[i])
			}
			listed(row, side.what, kind+" ", lines)
		}
		tell("asks to", side.to.Manifest.Capabilities.Minus(side.from.Manifest.Capabilities).Words())
		tell("hook", missing(hookLines(side.to.Manifest), hookLines(side.from.Manifest)))
		tell("tool", missing(toolLines(side.to.Manifest), toolLines(side.from.Manifest)))
		tell("import", missing(side.to.Imports, side.from.Imports))
		tell("export", missing(side.to.Exports, side.from.Exports))
	}
	return b.String()
}

// hookLines are the hooks, each with all that may be otherwise.
func hookLines(m *host.Manifest) (lines []string) {
	for _, p := range m.Points() {
		lines = append(lines, hookLine(p, m.Hooks[p]))
	}
	return lines
}

func hookLine(p hook.Point, h hook.Handling) string {
	line := fmt.Sprintf("%s (timeout %v, on_failure %s", p, h.Timeout, h.OnFailure)
	if len(h.Tools) > 0 {
		line += ", only for " + strings.Join(h.Tools, " ")
	}
	return line + ")"
}

// toolLines are the tools, each with all that may be otherwise.
func toolLines(m *host.Manifest) (lines []string) {
	for _, t := range m.Tools {
		lines = append(lines, toolLine(t))
	}
	return lines
}

func toolLine(t host.ManifestTool) string {
	schema := strings.Join(strings.Fields(string(t.InputSchema)), " ")
	return fmt.Sprintf("%s: %q (timeout %v, parallel %t) %s", t.Name, t.Description, t.Timeout, t.Parallel, schema)
}

func toolNames(m *host.Manifest) (names []string) {
	for _, t := range m.Tools {
		names = append(names, t.Name)
	}
	return names
}
