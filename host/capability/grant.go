package capability

import (
	"fmt"
	"slices"
	"strings"
)

// Grant is what the user lets an extension have of what it asks for. The zero
// Grant is nothing.
type Grant struct {
	all   bool
	keys  []string // these, as asked for
	table Set      // and at most these
}

// All grants whatever is asked for.
func All() Grant { return Grant{all: true} }

// Only grants at most what is in s.
func Only(s Set) Grant { return Grant{table: s} }

// ParseWords reads the values of --grant: "all", "none", or keys of
// [capabilities], each as the manifest asks for it.
func ParseWords(words []string) (Grant, error) {
	var g Grant
	for _, word := range words {
		switch {
		case word == "all" && len(words) == 1:
			return All(), nil
		case word == "none" && len(words) == 1:
			return Grant{}, nil
		case word == "all" || word == "none":
			return Grant{}, fmt.Errorf("grant %q: it stands alone: leave out the other grants", word)
		case !slices.Contains(Keys, word):
			return Grant{}, fmt.Errorf("grant %q: no such capability: there are all, none, %s", word, strings.Join(Keys, ", "))
		}
		g.keys = append(g.keys, word)
	}
	return g, nil
}

// ParseValue reads grant under [extensions.NAME]: "all", "none", or a table
// like [capabilities].
func ParseValue(value any) (Grant, error) {
	switch v := value.(type) {
	case string:
		if v == "all" || v == "none" {
			return ParseWords([]string{v})
		}
	case map[string]any:
		s, err := FromTable(v)
		if err != nil {
			return Grant{}, fmt.Errorf("grant: %w", err)
		}
		return Only(s), nil
	}
	return Grant{}, fmt.Errorf(`grant: %v is neither "all", "none" nor a table like [capabilities]`, value)
}

// Effective is what an extension may reach. It is constant, and the zero
// Effective reaches nothing.
type Effective struct {
	extension string
	asked     Set
	remedy    func(key, line string) string
	Set       // what was asked for and granted
}

// Remedied returns e with other words for what the user has to do to grant what was
// refused: remedy gets the key of [capabilities] and the line that would grant it.
func (e Effective) Remedied(remedy func(key, line string) string) Effective {
	e.remedy = remedy
	return e
}

// Effective returns what counts for an extension that asks for asked.
func (g Grant) Effective(extension string, asked Set) Effective {
	e := Effective{extension: extension, asked: asked}
	if g.all {
		e.Set = asked
		return e
	}
	granted := g.table
	for _, key := range g.keys {
		granted.take(key, asked)
	}
	e.Set = asked.Intersect(granted)
	return e
}

// take copies one key of from into s.
func (s *Set) take(key string, from Set) {
	switch key {
	case "http":
		s.HTTP = from.HTTP
	case "secrets":
		s.Secrets = from.Secrets
	case "fs":
		s.FS = from.FS
	case "kv":
		s.KV = from.KV
	case "exec":
		s.Exec = from.Exec
	case "tools":
		s.Tools = from.Tools
	case "session":
		s.Session = from.Session
	case "llm":
		s.LLM = from.LLM
	case "env":
		s.Env = from.Env
	case "events":
		s.Events = from.Events
	case "approve":
		s.Approve = from.Approve
	}
}
