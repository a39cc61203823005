package host

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	extism "github.com/extism/go-sdk"
)

// sdkModules returns the folder of the plugins that come with Extism's SDK for
// Go: made by others, with several toolchains.
func sdkModules(t testing.TB) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "wasm")
}

// reference runs an export in the SDK.
func reference(t testing.TB, wasm []byte, config map[string]string, export string, inputs []string) []string {
	t.Helper()
	p, err := extism.NewPlugin(t.Context(), extism.Manifest{
		Wasm: []extism.Wasm{extism.WasmData{Data: wasm}}, Config: config, Timeout: 5000,
	}, extism.PluginConfig{EnableWasi: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(context.WithoutCancel(t.Context()))
	var all []string
	for _, input := range inputs {
		_, out, err := p.Call(export, []byte(input))
		if err != nil {
			out = []byte("failed : " + err.Error())
		}
		all = append(all, string(out))
	}
	return all
}

// Real plugins do here what they do in Extism's own SDK.
func TestPluginsAsInTheSDK(t *testing.T) {
	dir := sdkModules(t)
	tests := []struct {
		file, export string
		config       map[string]string
		inputs       []string
	}{
		{"count_vowels.wasm", "count_vowels", nil, []string{`{"a":"hello"}`, `{}`, `{"b":"aeiou"}`}},
		{"hello.wasm", "run_test", nil, []string{`{}`}},
		{"fail.wasm", "run_test", nil, []string{`{}`, `{}`}},
		{"var.wasm", "run_test", nil, []string{`{}`, `{}`, `{}`}},
		{"config.wasm", "run_test", map[string]string{"thing": "now"}, []string{`{}`}},
		{"input_offset.wasm", "input_offset_length", nil, []string{`{"a":"12345678901234567890"}`}},
		{"noop.wasm", "run_test", nil, []string{`{}`}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			wasm, err := os.ReadFile(filepath.Join(dir, tt.file))
			if err != nil {
				t.Fatal(err)
			}
			manifest := fmt.Sprintf("name = \"sdk\"\nversion = \"1\"\nabi = \"extism\"\n[[tools]]\nname = \"x\"\nexport = %q\ndescription = \"x\"\ninput_schema = '{\"type\":\"object\"}'\ninstance = \"session\"\n", tt.export)
			config := map[string]any{}
			for key, value := range tt.config {
				config[key] = value
			}
			e, err := shared.LoadBytes(t.Context(), tt.file, embed(t, wasm, manifest), Options{Config: config})
			if err != nil {
				t.Fatal(err)
			}
			s := joinExtension(t, e, &journal{})
			want := reference(t, wasm, tt.config, tt.export, tt.inputs)
			for i, input := range tt.inputs {
				if got := run(t, s, "x", input); got != want[i] {
					t.Errorf("call %d with %s\n got %q\nwant %q", i, input, got, want[i])
				}
			}
		})
	}
}

// Plugins that would not end, that reach for the network, or that sleep, are ended.
func TestPluginsOfTheSDKAreConfined(t *testing.T) {
	dir := sdkModules(t)
	tests := []struct{ file, export, want string }{
		{"sleep.wasm", "run_test", "failed TOOL_TIMEOUT"},
		{"http.wasm", "run_test", "failed : tool x of extension sdk: http_request: Extism's own HTTP is off"},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			wasm, err := os.ReadFile(filepath.Join(dir, tt.file))
			if err != nil {
				t.Fatal(err)
			}
			manifest := fmt.Sprintf("name = \"sdk\"\nversion = \"1\"\nabi = \"extism\"\n[[tools]]\nname = \"x\"\nexport = %q\ndescription = \"x\"\ninput_schema = '{\"type\":\"object\"}'\ntimeout = \"500ms\"\n", tt.export)
			e, err := shared.LoadBytes(t.Context(), tt.file, embed(t, wasm, manifest), Options{Config: map[string]any{"duration": "30"}})
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			if got := run(t, joinExtension(t, e, &journal{}), "x", "{}"); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %s\nwant %s…", got, tt.want)
			}
			if took := time.Since(begin); took > 3*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// Modules that somebody else made, in a folder that a variable names, load, list
// their tools and can be called, or are refused with a reason.
func TestPluginsOfOthers(t *testing.T) {
	dir := os.Getenv("WHARF_TEST_PLUGINS")
	if dir == "" {
		t.Skip("WHARF_TEST_PLUGINS names no folder with plugins")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.wasm"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no .wasm files in %s: %v", dir, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			e, err := shared.Load(t.Context(), file, Options{})
			if err != nil {
				t.Log(err)
				return
			}
			s, err := e.Session(t.Context(), SessionConfig{})
			if err != nil {
				t.Log(err)
				return
			}
			defer s.Close()
			for _, tl := range s.Tools() {
				t.Logf("%s: %s", tl.Spec().Name, run(t, s, tl.Spec().Name, "{}"))
			}
		})
	}
}
