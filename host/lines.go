package host

import (
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/wharf-agent/wharf/engine/hook"
)

// keyLine says where a key of a manifest stands.
type keyLine struct {
	key   string // with its tables, joined by dots
	item  int    // of an array of tables; counts from 0
	value string // what stands behind =, as far as it is on that line
	line  int    // counts from 1
}

var (
	headerLine = regexp.MustCompile(`^\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$`)
	valueLine  = regexp.MustCompile(`^\s*([A-Za-z0-9_."' -]+?)\s*=\s*(.*)$`)
)

// keyLines finds the keys of a manifest without reading it as TOML, so that a
// broken one can be talked about too. It knows what manifests are made of:
// tables, keys and strings of several lines.
func keyLines(text string) []keyLine {
	var all []keyLine
	table, item, until := "", 0, ""
	items := map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		if until != "" { // within a string of several lines
			if strings.Contains(line, until) {
				until = ""
			}
			continue
		}
		if m := headerLine.FindStringSubmatch(line); m != nil {
			table, item = unquoteKey(m[1]), 0
			if strings.HasPrefix(strings.TrimSpace(line), "[[") {
				item = items[table]
				items[table]++
			}
			all = append(all, keyLine{table, item, "", i + 1})
			continue
		}
		if m := valueLine.FindStringSubmatch(line); m != nil {
			key := strings.TrimPrefix(table+"."+unquoteKey(m[1]), ".")
			all = append(all, keyLine{key, item, m[2], i + 1})
			until = opensString(m[2])
		}
	}
	return all
}

func unquoteKey(key string) string {
	return strings.NewReplacer(`"`, "", `'`, "", " ", "").Replace(key)
}

// opensString returns the mark that ends a string of several lines which
// begins in value and does not end there.
func opensString(value string) string {
	for _, mark := range []string{"'''", `"""`} {
		if strings.Count(value, mark) == 1 {
			return mark
		}
	}
	return ""
}

// lineOf returns the line of a key, or of the nearest table around it, or 0.
func lineOf(text, key string, item int) int {
	all := keyLines(text)
	for key != "" {
		for _, k := range all {
			if k.key == key && (k.item == item || item < 0) {
				return k.line
			}
		}
		key = key[:max(strings.LastIndexByte(key, '.'), 0)]
	}
	return 0
}

// salvage reads from a manifest that is not valid what must be known all the
// same: whose it is, and what a guard would have judged. A guard whose points
// cannot be told counts as judging everything that can be denied.
func salvage(text string) *Manifest {
	m := &Manifest{Hooks: map[hook.Point]hook.Handling{}}
	for _, k := range keyLines(text) {
		value := strings.Trim(strings.TrimSpace(strings.SplitN(k.value, "#", 2)[0]), `"'`)
		switch k.key {
		case "name":
			m.Name = value
		case "role":
			m.Guard = value == "guard"
		}
		if rest, ok := strings.CutPrefix(k.key, "hooks."); ok {
			point := hook.Point(strings.SplitN(rest, ".", 2)[0])
			if _, known := hook.Lookup(point); known {
				m.Hooks[point] = hook.Handling{}
			}
		}
	}
	var f struct{ Role any }
	if _, err := checkNesting(text); err == nil && len(text) <= limitManifest {
		if _, err := toml.Decode(text, &f); err == nil && f.Role == "guard" {
			m.Guard = true
		}
	}
	blind := m.Guard && len(m.Hooks) == 0
	for _, info := range hook.Points {
		if _, ok := m.Hooks[info.Point]; ok || blind && info.Denies() {
			m.Hooks[info.Point] = hook.Handling{
				Timeout: DefaultHookTimeout, OnFailure: hook.DefaultOnFailure(m.Guard, info.Point),
			}
		}
	}
	return m
}
