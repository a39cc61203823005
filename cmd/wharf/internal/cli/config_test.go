package cli

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// docs/configuration.md shows every key and every variable, and what it shows
// is a configuration.
func TestConfigurationIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(text), "```toml\n")
	example, _, ok := strings.Cut(example, "```\n")
	if !ok {
		t.Fatal("docs/configuration.md has no example")
	}
	l := loader{merged: map[string]any{}, rows: map[string][]string{}}
	if err := l.addFile("/home/me/.config/wharf/config.toml", []byte(example), nil); err != nil {
		t.Fatal(err)
	}
	var missing func(t reflect.Type, table map[string]any) []string
	missing = func(typ reflect.Type, table map[string]any) (keys []string) {
		for i := range typ.NumField() {
			key, ok := typ.Field(i).Tag.Lookup("toml")
			if !ok {
				continue
			}
			value, there := table[key]
			if !there {
				keys = append(keys, key)
			}
			if sub, ok := value.(map[string]any); ok && typ.Field(i).Type.Kind() == reflect.Struct {
				keys = append(keys, missing(typ.Field(i).Type, sub)...)
			}
		}
		return keys
	}
	if keys := missing(reflect.TypeFor[config](), l.merged); len(keys) > 0 {
		t.Errorf("docs/configuration.md does not show the keys %q", keys)
	}
	for name := range variables {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/configuration.md does not name %s", name)
		}
	}
	if cfg, err := l.config(); err != nil || cfg.Extensions["redact"].Path != "redact" || len(cfg.order) != 2 || cfg.Secrets["GITHUB_TOKEN"].File != "/home/me/.config/wharf/github-token" {
		t.Errorf("the example reads as %+v, %v", cfg, err)
	}
}

// A value of a wrong type is told in the words of the configuration.
func TestWrongTypesAreToldInWords(t *testing.T) {
	tests := []struct{ set, want string }{
		{`fallback_models=good`, `--set:1: fallback_models is a list of texts: write fallback_models = ["one", "two"]`},
		{`fallback_models=[1]`, `--set:1: fallback_models is a list of texts: write fallback_models = ["one", "two"]`},
		{`max_steps=1.5`, `--set:1: max_steps is a whole number, without quotes`},
		{`budget.tokens=many`, `--set:1: budget.tokens is a whole number, without quotes`},
		{`budget.cost=much`, `--set:1: budget.cost is a number, without quotes`},
		{`compat.stream_usage="true"`, `--set:1: compat.stream_usage is true or false, without quotes`},
		{`model=3`, `--set:1: model is a text: put it in quotes`},
		{`trust.x=3`, `--set:1: trust.x is a text: put it in quotes`},
		{`retry=3`, `--set:1: retry is a table: write [retry] and what is in it below`},
		{`prices.m=3`, `--set:1: prices.m is a table: write [prices.m] and what is in it below`},
	}
	for _, tt := range tests {
		l := loader{merged: map[string]any{}, rows: map[string][]string{}}
		if err := l.addSetting("--set", tt.set); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v; want %s", tt.set, err, tt.want)
		}
	}
}
