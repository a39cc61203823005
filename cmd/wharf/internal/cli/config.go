package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/wharf-agent/wharf/engine/egress"
	"github.com/wharf-agent/wharf/engine/permission"
)

// config is the effective configuration. Zero means the default.
type config struct {
	Provider    string                 `toml:"provider"`
	Model       string                 `toml:"model"`
	API         string                 `toml:"api"` // of the provider openai: chat or responses
	BaseURL     string                 `toml:"base_url"`
	IdleTimeout duration               `toml:"idle_timeout"` // the longest silence of a server
	Parameters  map[string]any         `toml:"parameters"`   // of each request, as the server names them
	ToolChoice  string                 `toml:"tool_choice"`  // auto, none, required, or a tool's name
	SingleCalls bool                   `toml:"single_calls"` // at most one call a reply
	Compat      compatConfig           `toml:"compat"`       // what a server of Chat Completions wants otherwise
	MaxSteps    int                    `toml:"max_steps"`
	Parallel    int                    `toml:"parallel_calls"`
	Approve     string                 `toml:"approve"`
	Fallbacks   []string               `toml:"fallback_models"`
	Retry       retryConfig            `toml:"retry"`
	Budget      budgetConfig           `toml:"budget"` // of a turn
	Prices      map[string]priceConfig `toml:"prices"` // by model, for a million tokens
	Repeat      repeatConfig           `toml:"repeat"` // calls that go nowhere
	Goal        goalConfig             `toml:"goal"`   // of a turn, where the user gives it one

	RequestTimeout duration `toml:"request_timeout"` // for one reply, from the request to its end

	Context contextConfig `toml:"context"` // what the model takes
	Sandbox sandboxConfig `toml:"sandbox"`
	Log     logConfig     `toml:"log"`

	WebSearch searchConfig `toml:"web_search"`

	Permissions permissionsConfig          `toml:"permissions"` // of the last layer; rules has those of all
	Extensions  map[string]extensionConfig `toml:"extensions"`
	Install     installConfig              `toml:"install"`
	Secrets     map[string]secretConfig    `toml:"secrets"` // of the user's own file alone
	Trust       map[string]string          `toml:"trust"`   // what projects bring, by path: "sha256:…"

	order   []string            // the extensions' names as they were configured
	rows    map[string][]string // the files in which each extension has a row
	brought map[string]string   // the extensions' files that the project names
	user    string              // the user's own file
	project string              // the project's, if it is trusted
	rules   []permission.Rule   // of all layers
	hosts   []egress.Entry      // that commands may reach, by the configuration and by flags
	trust   *trust
}

type compatConfig struct {
	SystemRole         string `toml:"system_role"`
	ToolRole           string `toml:"tool_role"`
	AssistantAfterTool bool   `toml:"assistant_after_tool"`
	TextCalls          bool   `toml:"text_calls"`
	StreamUsage        *bool  `toml:"stream_usage"` // nil means true
	Reasoning          string `toml:"reasoning"`
}

type logConfig struct {
	Sync string `toml:"sync"`
}

// installConfig says what wharf ext install and update take.
type installConfig struct {
	RequireSigned bool `toml:"require_signed"`
}

// duration is a time such as "90s" in TOML.
type duration time.Duration

func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is no duration such as \"90s\" or \"2m\"", text)
	}
	*d = duration(v)
	return nil
}

// variables are the environment's settings, by the key that each sets.
var variables = map[string]string{
	"WHARF_PROVIDER": "provider", "WHARF_MODEL": "model", "WHARF_BASE_URL": "base_url",
	"WHARF_MAX_STEPS": "max_steps", "WHARF_APPROVE": "approve",
	"WHARF_SANDBOX_PROFILE": "sandbox.profile", "WHARF_SANDBOX_REQUIRE": "sandbox.require",
	"WHARF_LOG_SYNC": "log.sync",
}

// loader puts a configuration together from its layers, each of which
// overrides the ones before, key by key.
type loader struct {
	user    string // the user's own file
	project string // the project's, if it is trusted
	merged  map[string]any
	order   []string            // the extensions' names, in the order of their first mention
	rows    map[string][]string // where each of them is mentioned
	brought map[string]string   // the extensions' files that the project names
	notices []string            // for the user, once
	rules   []permission.Rule
	trust   *trust
}

// loadConfig reads the user's file (or the one named by file), the project's
// if it is trusted, by that file or one of digests, the environment, and sets.
func loadConfig(f folders, file, workspace string, sets, digests []string) (config, []string, error) {
	trust, err := newTrust(digests, f)
	if err != nil {
		return config{}, nil, err
	}
	l := loader{user: f.configFile(), merged: map[string]any{}, trust: trust}
	path := cmp.Or(file, l.user)
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		err = l.addFile(path, text, nil)
	case errors.Is(err, os.ErrNotExist) && file == "":
		err = nil
	default:
		err = fmt.Errorf("read the configuration: %w", err)
	}
	if err == nil {
		err = l.addProject(workspace)
	}
	if err == nil {
		err = l.addEnvironment()
	}
	for _, set := range sets {
		if err == nil {
			err = l.addSetting("--set", set)
		}
	}
	if err != nil {
		return config{}, nil, exitError{exitUsage, err}
	}
	cfg, err := l.config()
	if err != nil {
		return config{}, nil, exitError{exitUsage, err}
	}
	return cfg, l.notices, nil
}

func (l *loader) addEnvironment() error {
	for name, key := range variables {
		if value := os.Getenv(name); value != "" {
			if key != "max_steps" && !strings.ContainsRune(`"'`, rune(value[0])) {
				value = quote(value)
			}
			if err := l.addSetting(name, key+"="+value); err != nil {
				return err
			}
		}
	}
	return nil
}

// bareWord is what needs no quotes in a setting: words, paths, and durations such as 90s.
var bareWord = regexp.MustCompile(`^([A-Za-z_./~:][A-Za-z0-9_./:~+-]*|[0-9]+(\.[0-9]+)?(ms|s|m|h))$`)

// addSetting adds key=value, where value is a TOML value, or a word that needs
// no quotes.
func (l *loader) addSetting(from, set string) error {
	key, value, ok := strings.Cut(set, "=")
	if !ok {
		return fmt.Errorf("%s %q: it has no \"=\": write key=value, as in --set model='\"some-model\"'", from, set)
	}
	if strings.ContainsAny(set, "\r\n") {
		return fmt.Errorf("%s %q: a setting is one line: it sets one key", from, set)
	}
	value = strings.TrimSpace(value)
	if value != "true" && value != "false" && bareWord.MatchString(value) {
		value = quote(value)
	}
	if key = strings.TrimSpace(key); strings.HasPrefix(key, "#") {
		return fmt.Errorf("%s %q: a comment sets nothing", from, set)
	}
	return l.add(from, key+" = "+value+"\n", nil)
}

// quote returns text as a TOML string.
func quote(text string) string {
	quoted, _ := json.Marshal(text) // JSON's strings are TOML's too
	return string(quoted)
}

// addFile adds a file that check, unless nil, has nothing against. ${VAR} in it
// stands for the environment's variables; the paths of extensions and of secrets are
// relative to the file.
func (l *loader) addFile(path string, text []byte, check func(map[string]any) error) error {
	return l.add(path, string(text), func(layer map[string]any) error {
		if check != nil {
			if err := check(layer); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		if err := expand(layer, os.LookupEnv); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		rows, _ := layer["extensions"].(map[string]any)
		for _, row := range rows {
			row, _ := row.(map[string]any)
			if file, ok := row["path"].(string); ok && isFile(file) {
				row["path"] = absolute(file, filepath.Dir(path))
			}
		}
		box, _ := layer["sandbox"].(map[string]any)
		for _, key := range []string{"read", "write"} {
			absolutePaths(box, key, filepath.Dir(path))
		}
		secrets, _ := layer["secrets"].(map[string]any)
		for _, source := range secrets {
			source, _ := source.(map[string]any)
			if file, ok := source["file"].(string); ok && file != "" {
				source["file"] = absolute(file, filepath.Dir(path))
			}
		}
		return nil
	})
}

// absolute returns file as an absolute path: below the home folder if it
// begins with ~/, else below dir.
func absolute(file, dir string) string {
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// add checks one layer by itself, has complete, unless nil, fill it in, and
// merges it.
func (l *loader) add(from, text string, complete func(map[string]any) error) error {
	var alone config
	md, err := toml.Decode(text, &alone)
	if err != nil {
		return tomlError(from, err)
	}
	unknown := slices.DeleteFunc(md.Undecoded(), free)
	if len(unknown) > 0 {
		key := unknown[0]
		return fmt.Errorf("%s:%d: unknown key %q%s", from, lineOf(text, key), key, didYouMean(key[len(key)-1], knownKeys(key)))
	}
	if err := checkTables(from, text, md); err != nil {
		return err
	}
	l.noteRows(from, md.Keys())
	layer := map[string]any{}
	if _, err := toml.Decode(text, &layer); err != nil {
		return tomlError(from, err)
	}
	if complete != nil {
		if err := complete(layer); err != nil {
			return err
		}
	}
	rules, err := alone.Permissions.rules(from)
	if err != nil {
		return err
	}
	l.rules = append(l.rules, rules...) // no layer takes away what another forbids
	merge(l.merged, layer)
	return nil
}

// free reports whether key stands in a table whose keys are not Wharf's to know.
func free(key toml.Key) bool {
	return len(key) > 1 && key[0] == "parameters" ||
		len(key) > 3 && key[0] == "extensions" && (key[2] == "config" || key[2] == "grant")
}

// config decodes what the layers add up to.
func (l *loader) config() (config, error) {
	var text bytes.Buffer
	if err := toml.NewEncoder(&text).Encode(l.merged); err != nil {
		return config{}, err
	}
	cfg := config{order: l.order, rows: l.rows, brought: l.brought, user: l.user, project: l.project, rules: l.rules, trust: l.trust}
	if _, err := toml.Decode(text.String(), &cfg); err != nil {
		return config{}, err
	}
	if cfg.trust != nil { // a test's loader has none
		cfg.trust.paths = cfg.Trust
	}
	return cfg, nil
}

func tomlError(from string, err error) error {
	var syntax toml.ParseError
	if errors.As(err, &syntax) {
		return fmt.Errorf("%s:%d: %s: this is TOML, where a text needs quotes", from, syntax.Position.Line, syntax.Message)
	}
	if found := wrongType.FindStringSubmatch(err.Error()); found != nil {
		return fmt.Errorf("%s:%s: %s is %s", from, found[1], found[2], inWords(found[2], typeAt(strings.Split(found[2], "."))))
	}
	return fmt.Errorf("%s: %w", from, err)
}

// wrongType is how the TOML library says that a value is of another type than its key.
var wrongType = regexp.MustCompile(`^toml: line (\d+) \(last key "(.+)"\): (?:incompatible types|type mismatch)`)

// inWords says what a key's value has to be.
func inWords(key string, t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Slice:
		return fmt.Sprintf(`a list of texts: write %s = ["one", "two"]`, key)
	case reflect.Struct, reflect.Map:
		return fmt.Sprintf("a table: write [%s] and what is in it below", key)
	case reflect.Bool:
		return "true or false, without quotes"
	case reflect.Int, reflect.Int64:
		return "a whole number, without quotes"
	case reflect.Float64:
		return "a number, without quotes"
	default:
		return "a text: put it in quotes"
	}
}

// lineOf returns the line that defines key: the first up to which the text
// defines it. It is only asked on the way to an error.
func lineOf(text string, key toml.Key) int {
	lines := strings.SplitAfter(text, "\n")
	for n := range lines {
		var any map[string]any
		md, err := toml.Decode(strings.Join(lines[:n+1], ""), &any)
		if err == nil && md.IsDefined(key...) {
			return n + 1
		}
	}
	return len(lines)
}

// typeAt returns the type of what stands at key; that of anything below what may be
// anything is an interface.
func typeAt(key toml.Key) reflect.Type {
	t := reflect.TypeFor[config]()
	for _, part := range key {
		switch t.Kind() {
		case reflect.Struct:
			for i := range t.NumField() {
				if t.Field(i).Tag.Get("toml") == part {
					t = t.Field(i).Type
					break
				}
			}
		case reflect.Map:
			t = t.Elem()
		}
	}
	return t
}

// checkTables refuses what is not a table where one is wanted of keys that are not ours
// to know: the TOML library passes it over.
func checkTables(from, text string, md toml.MetaData) error {
	for _, key := range md.Keys() {
		if typeAt(key).Kind() == reflect.Map && md.Type(key...) != "Hash" {
			return fmt.Errorf("%s:%d: %s is a table: write [%s] and what is in it below", from, lineOf(text, key), key, key)
		}
	}
	return nil
}

// knownKeys returns the keys that could stand where key does.
func knownKeys(key toml.Key) []string {
	t := typeAt(key[:len(key)-1])
	if t.Kind() != reflect.Struct {
		return nil
	}
	var known []string
	for i := range t.NumField() {
		if name, ok := t.Field(i).Tag.Lookup("toml"); ok {
			known = append(known, name)
		}
	}
	return known
}

// merge puts layer over base, table by table.
func merge(base, layer map[string]any) {
	for key, value := range layer {
		over, isTable := value.(map[string]any)
		under, wasTable := base[key].(map[string]any)
		if isTable && wasTable {
			merge(under, over)
		} else {
			base[key] = value
		}
	}
}

var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces ${VAR} in every text of a decoded TOML table.
func expand(table map[string]any, lookup func(string) (string, bool)) error {
	var missing error
	var walk func(value any) any
	walk = func(value any) any {
		switch v := value.(type) {
		case string:
			return reference.ReplaceAllStringFunc(v, func(ref string) string {
				text, ok := lookup(ref[2 : len(ref)-1])
				if !ok {
					missing = errors.Join(missing, fmt.Errorf("%s stands for an environment variable that is not set: set it or take it out", ref))
				}
				return text
			})
		case map[string]any:
			for key, item := range v {
				v[key] = walk(item)
			}
		case []any:
			for i, item := range v {
				v[i] = walk(item)
			}
		case []map[string]any:
			for _, item := range v {
				walk(item)
			}
		}
		return value
	}
	walk(table)
	return missing
}

// parameters returns the request's parameters as a JSON object, or nil.
func (c config) parameters() (json.RawMessage, error) {
	if len(c.Parameters) == 0 {
		return nil, nil
	}
	for _, key := range []string{"model", "messages", "tools", "stream"} {
		if _, ok := c.Parameters[key]; ok {
			return nil, fmt.Errorf("%q is Wharf's to set: take it out", key)
		}
	}
	return json.Marshal(c.Parameters)
}
