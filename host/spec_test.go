package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// wazero brings WebAssembly's own test suites, in files of JSON beside modules.

type specCommand struct {
	Type       string `json:"type"`
	Line       int    `json:"line"`
	Name       string `json:"name"`
	Filename   string `json:"filename"`
	As         string `json:"as"`
	ModuleType string `json:"module_type"`
	Text       string `json:"text"`
	Action     struct {
		Type   string      `json:"type"`
		Field  string      `json:"field"`
		Module string      `json:"module"`
		Args   []specValue `json:"args"`
	} `json:"action"`
	Expected []specValue `json:"expected"`
}

type specValue struct {
	Type  string `json:"type"`
	Lane  string `json:"lane_type"`
	Value any    `json:"value"` // a string, or strings for lanes
}

// lanes returns a value's lanes and their type.
func (v specValue) lanes() ([]string, string) {
	switch value := v.Value.(type) {
	case []any:
		var all []string
		for _, l := range value {
			all = append(all, l.(string))
		}
		return all, v.Lane
	case string:
		return []string{value}, v.Type
	default:
		return []string{"null"}, v.Type
	}
}

func laneBits(kind string) int {
	bits, err := strconv.Atoi(strings.TrimLeft(kind, "if"))
	if err != nil {
		return 64 // a reference
	}
	return bits
}

// bits packs a value into the form of wazero's calls.
func (v specValue) bits() []uint64 {
	lanes, kind := v.lanes()
	width := laneBits(kind)
	out := make([]uint64, max(1, len(lanes)*width/64))
	for i, text := range lanes {
		n := laneValue(text, kind)
		out[i*width/64] |= n << (i * width % 64)
	}
	return out
}

func laneValue(text, kind string) uint64 {
	width := laneBits(kind)
	if text == "null" {
		return 0
	}
	if strings.HasPrefix(text, "-") {
		n, _ := strconv.ParseInt(text, 10, width)
		return uint64(n) & (1<<(width-1)<<1 - 1)
	}
	n, _ := strconv.ParseUint(text, 10, 64)
	if kind == "externref" {
		n++ // wazero's null is 0
	}
	return n
}

// matches compares a result with what is expected, where any NaN will do for one.
func (v specValue) matches(got []uint64) bool {
	lanes, kind := v.lanes()
	width := laneBits(kind)
	if v.Value == nil && strings.HasSuffix(v.Type, "ref") {
		return true
	}
	for i, text := range lanes {
		lane := got[i*width/64] >> (i * width % 64) & (1<<(width-1)<<1 - 1)
		switch {
		case !strings.HasPrefix(text, "nan"):
			if lane != laneValue(text, kind) {
				return false
			}
		case width == 32 && math.IsNaN(float64(math.Float32frombits(uint32(lane)))):
		case width == 64 && math.IsNaN(math.Float64frombits(lane)):
		default:
			return false
		}
	}
	return true
}

// specRun is one file of the suite while it runs.
type specRun struct {
	runtime wazero.Runtime
	dir     string
	modules map[string]api.Module
	last    api.Module
}

// load rewrites a module, so that each check yields, and instantiates it.
func (s *specRun) load(ctx context.Context, file, as string) (api.Module, error) {
	wasm, err := os.ReadFile(filepath.Join(s.dir, file))
	if err != nil {
		return nil, err
	}
	m, err := parseModule(wasm)
	if err != nil {
		return nil, err
	}
	rewritten, err := m.count(0, 1)
	if err != nil {
		return nil, err
	}
	compiled, err := s.runtime.CompileModule(watched(ctx), rewritten)
	if err != nil {
		return nil, err
	}
	return s.runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(as))
}

// act runs a command's action.
func (s *specRun) act(ctx context.Context, c specCommand) ([]uint64, error) {
	m := s.last
	if c.Action.Module != "" {
		m = s.modules[c.Action.Module]
	}
	if c.Action.Type == "get" {
		return []uint64{m.ExportedGlobal(c.Action.Field).Get()}, nil
	}
	var args []uint64
	for _, a := range c.Action.Args {
		args = append(args, a.bits()...)
	}
	return m.ExportedFunction(c.Action.Field).Call(ctx, args...)
}

// run runs one command and says what is wrong.
func (s *specRun) run(ctx context.Context, c specCommand, as string) string {
	switch c.Type {
	case "module":
		m, err := s.load(ctx, c.Filename, as)
		if err != nil {
			return err.Error()
		}
		s.last = m
		if c.Name != "" {
			s.modules[c.Name] = m
		}
	case "assert_return", "action":
		got, err := s.act(ctx, c)
		if err != nil {
			return err.Error()
		}
		for _, want := range c.Expected {
			n := len(want.bits())
			if !want.matches(got[:n]) {
				return fmt.Sprintf("%s: got %x; want %v", c.Action.Field, got, c.Expected)
			}
			got = got[n:]
		}
	case "assert_trap", "assert_exhaustion":
		_, err := s.act(ctx, c)
		if !trapped(err) {
			return fmt.Sprintf("%s: %v; want %s", c.Action.Field, err, c.Text)
		}
	case "assert_malformed", "assert_invalid", "assert_unlinkable", "assert_uninstantiable":
		if c.ModuleType == "text" {
			return ""
		}
		// wazero keeps an instance whose elements did not fit, as the tests before it need it.
		if _, err := s.load(ctx, c.Filename, ""); err == nil && c.Text != "out of bounds table access" {
			return c.Filename + " is accepted; want " + c.Text
		}
	}
	return ""
}

func trapped(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "wasm error") || strings.Contains(err.Error(), "stack overflow") || errors.Is(err, errTooDeep))
}

// yields is a context that counts how often it is asked for the running call.
type yields struct {
	*callContext
	n int
}

func (y *yields) Value(key any) any {
	if key == (callKey{}) {
		y.n++
	}
	return y.callContext.Value(key)
}

// The specification's own tests pass when each check of the rewritten modules
// yields; what is invalid stays refused.
func TestSpecification(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "internal", "integration_test", "spectest")
	host, err := os.ReadFile(filepath.Join(root, "testdata", "spectest.wasm"))
	if err != nil {
		missing(t, "wazero's copy of the test suite", "go mod download")
	}
	for suite, features := range map[string]api.CoreFeatures{"v1": api.CoreFeaturesV1, "v2": api.CoreFeaturesV2} {
		files, _ := filepath.Glob(filepath.Join(root, suite, "testdata", "*.json"))
		if len(files) < 50 {
			t.Fatalf("%s has %d files", suite, len(files))
		}
		for i, file := range files {
			if os.Getenv("WHARF_TEST_SPEC") != "all" && i%(4+slowdown) != 0 {
				continue
			}
			t.Run(suite+"/"+filepath.Base(file), func(t *testing.T) { runSpec(t, file, host, features) })
		}
	}
}

func runSpec(t *testing.T, file string, host []byte, features api.CoreFeatures) {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var base struct {
		Commands []specCommand `json:"commands"`
	}
	if err := json.Unmarshal(raw, &base); err != nil {
		t.Fatal(err)
	}
	x := &instance{}
	x.running = callContext{t.Context(), x, math.MaxInt64}
	ctx := &yields{callContext: &x.running}
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCoreFeatures(features))
	defer r.Close(ctx)
	if _, err := r.InstantiateWithConfig(ctx, host, wazero.NewModuleConfig()); err != nil {
		t.Fatal(err)
	}
	s := &specRun{runtime: r, dir: filepath.Dir(file), modules: map[string]api.Module{}}
	for i, c := range base.Commands {
		as := ""
		if i+1 < len(base.Commands) && base.Commands[i+1].Type == "register" {
			as = base.Commands[i+1].As
		}
		if wrong := s.run(ctx, c, as); wrong != "" {
			t.Errorf("line %d: %s: %s", c.Line, c.Type, wrong)
		}
	}
	t.Log(ctx.n, "yields")
}
