package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/extensions"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/capability"
	"github.com/wharf-agent/wharf/host/exttest"
)

// tried is the output of ext run --json.
type tried struct {
	Extension  string              `json:"extension"`
	Point      hook.Point          `json:"point,omitempty"`
	Tool       string              `json:"tool,omitempty"`
	Payload    any                 `json:"payload"`           // a string where it is none of JSON
	Verdict    map[string]any      `json:"verdict,omitempty"` // of a hook; absent: no opinion
	Result     map[string]any      `json:"result,omitempty"`  // of a tool
	Error      string              `json:"error,omitempty"`   // how the handler failed
	Log        []exttest.LogLine   `json:"log"`
	Operations []exttest.Operation `json:"operations"`
	Emitted    []exttest.Emitted   `json:"emitted"`
	TimeMS     float64             `json:"time_ms"`
	Memory     int64               `json:"memory_bytes"`
}

// trial is one call of a handler.
type trial struct {
	file    string
	point   hook.Point
	tool    string
	payload []byte // as it was given; nil: nothing was
	grants  []string
}

func extRun(ctx context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("ext run", pflag.ContinueOnError)
	var t trial
	payload := flags.String("payload", "", "read the payload from `FILE` instead of standard input")
	flags.StringVar(&t.tool, "tool", "", "call `TOOL` instead of a hook, with its arguments as the payload")
	flags.StringArrayVar(&t.grants, "grant", nil, "grant it `all`, or what it asks for under a key of [capabilities]; repeatable")
	asJSON := flags.Bool("json", false, "print one JSON object")
	if err := parse(io, flags, "ext run [flags] FILE.wasm|DIR POINT|--tool TOOL [< payload.json]", args); err != nil {
		return err
	}
	if flags.NArg() != 2 && (t.tool == "" || flags.NArg() != 1) || flags.NArg() == 2 && t.tool != "" {
		return usagef("ext run: it takes a file or a folder, or the name of a shipped extension (%s), and a hook point or --tool TOOL", strings.Join(extensions.Names(), ", "))
	}
	var err error
	if t.file, err = builtIn(flags.Arg(0), newProgress(io.err, false)); err != nil {
		return usagef("run %w", err)
	}
	t.point = hook.Point(flags.Arg(1))
	if err := t.read(io.in, *payload); err != nil {
		return err
	}
	out, err := t.run(ctx)
	if err != nil {
		return err
	}
	if *asJSON {
		err = printJSON(io, out)
	} else {
		_, err = fmt.Fprint(io.out, printable(out.text()))
	}
	if err == nil && out.Error != "" {
		err = exitError{code: exitFailed} // what failed has been shown
	}
	return err
}

// maxPayload is the most that the engine itself would give a guest, and more.
const maxPayload = 4 << 20

// read reads the payload. Nothing on standard input is none.
func (t *trial) read(in io.Reader, file string) error {
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return usagef("ext run: read the payload: %w", err)
		}
		defer f.Close()
		in = f
	} else if isTerminal(in) {
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxPayload+1))
	switch {
	case err != nil:
		return fmt.Errorf("ext run: read the payload: %w", err)
	case len(raw) > maxPayload:
		return usagef("ext run: the payload has more than %d MiB", maxPayload>>20)
	case len(bytes.TrimSpace(raw)) > 0:
		t.payload = raw
	}
	return nil
}

// run loads the extension and calls its handler in a session of its own. What
// it keeps by kv is kept in a folder that is thrown away.
func (t *trial) run(ctx context.Context) (*tried, error) {
	kept, err := os.MkdirTemp("", "wharf-kv-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(kept)
	f, err := findFolders()
	if err != nil {
		return nil, err
	}
	h, err := host.Open(host.Config{CacheDir: compiledCache(f), KVDir: kept, Compiler: Compiler})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	ext, cfg, err := t.load(ctx, h, f)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", t.file, err)
	}
	payload, err := t.complete(ext.Manifest)
	if err != nil {
		return nil, err
	}
	var recorder exttest.Recorder
	world, closeWorld, err := t.world(cfg, &recorder)
	if err != nil {
		return nil, err
	}
	defer closeWorld()
	for _, granted := range ext.Granted.Secrets { // known from the start, as in wharf run; one that is not to be had fails whoever needs it
		_, _ = world.Secrets.Value(ctx, granted.Name)
	}
	s, err := ext.Session(ctx, world)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", t.file, err)
	}
	defer s.Close()
	return t.call(ctx, s, &recorder, payload)
}

// load loads the extension with what the flags and the configuration say of it.
func (t *trial) load(ctx context.Context, h *host.Host, f folders) (*host.Extension, config, error) {
	cfg, _, err := loadConfig(f, "", "", nil, nil)
	if err != nil {
		return nil, cfg, err
	}
	flag := extensionFlag{path: t.file, grants: t.grants}
	flag.read()
	options, err := flag.options(cfg)
	if err != nil {
		return nil, cfg, err
	}
	options.Remedy = remedyByFlag
	ext, err := flag.load(ctx, h, options)
	return ext, cfg, err
}

// remedyByFlag says what grants more in ext run and ext bench.
func remedyByFlag(key, _ string) string { return "add --grant " + key }

// complete checks the payload of a hook and fills in what may be left out. One
// that was not given is made up.
func (t *trial) complete(m *host.Manifest) ([]byte, error) {
	if t.tool != "" {
		if t.payload == nil {
			return []byte("{}"), nil
		}
		return t.payload, nil
	}
	info, known := hook.Lookup(t.point)
	if _, handled := m.Hooks[t.point]; !known || !handled {
		return nil, usagef("run %s: %w", t.file, notHandled(m, t.point))
	}
	if t.payload == nil {
		return bytes.TrimRight(samplePayload(t.point, m.Hooks[t.point]), " "), nil
	}
	payload, err := exttest.ParsePayload(info, t.payload)
	if err == nil {
		err = exttest.Asked(info, m.Hooks[t.point], payload)
	}
	if err != nil {
		return nil, usagef("run %s: the payload: %w", t.file, err)
	}
	return payload, nil
}

// notHandled says what an extension handles instead of a point.
func notHandled(m *host.Manifest, p hook.Point) error {
	var points []string
	for _, handled := range m.Points() {
		points = append(points, string(handled))
	}
	var tools []string
	for _, t := range m.Tools {
		tools = append(tools, t.Name)
	}
	has := "no hook"
	if len(points) > 0 {
		has = strings.Join(points, ", ")
	}
	if len(tools) > 0 {
		has += "; its tools are " + strings.Join(tools, ", ") + " (--tool)"
	}
	return fmt.Errorf("the extension %q does not handle %q, but %s%s", m.Name, p, has, didYouMean(string(p), points))
}

// world is what the guest reaches: the folder it is called in, the environment
// and the network, as far as that is granted. There is no agent.
func (t *trial) world(cfg config, recorder *exttest.Recorder) (host.SessionConfig, func(), error) {
	dir, err := os.Getwd()
	if err != nil {
		return host.SessionConfig{}, nil, err
	}
	secrets, err := newSecrets(cfg)
	if err != nil {
		return host.SessionConfig{}, nil, err
	}
	world := host.SessionConfig{Record: recorder.Record, Gate: lonely{dir}, Env: os.LookupEnv, Secrets: secrets}
	closeWorld := func() {}
	if root, err := sandbox.OpenRoot(dir); err == nil { // a home folder is no workspace: then fs has none
		world.Root, closeWorld = root, func() { root.Close() }
	}
	return world, closeWorld, nil
}

func (t *trial) call(ctx context.Context, s *host.Session, recorder *exttest.Recorder, payload []byte) (*tried, error) {
	payload = bytes.TrimSpace(payload)
	out := &tried{Extension: s.Name(), Point: t.point, Tool: t.tool, Payload: string(payload)}
	if json.Valid(payload) {
		out.Payload = json.RawMessage(payload)
	}
	var got exttest.Outcome
	if t.tool == "" {
		got = recorder.CallHook(ctx, s, t.point, payload)
		out.Verdict = got.Answer
	} else {
		var err error
		if got, err = recorder.CallTool(ctx, s, t.tool, payload); err != nil {
			return nil, usagef("run %s: %w", t.file, err)
		}
		out.Result = got.Answer
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	out.Error, out.Log, out.Operations, out.Emitted = got.Error, orEmpty(got.Log), orEmpty(got.Operations), orEmpty(got.Emitted)
	out.TimeMS, out.Memory = milliseconds(got.Took), s.Memory()
	return out, nil
}

// orEmpty has JSON show an empty list as one.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// text shows a person what the call did.
func (t *tried) text() string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("payload", "%s", t.Payload)
	switch {
	case t.Error != "":
		row("failed", "%s", t.Error)
	case t.Tool != "":
		row("result", "%s", compact(t.Result))
	case t.Verdict == nil:
		row("verdict", "none: it has no opinion")
	default:
		row("verdict", "%s", compact(t.Verdict))
	}
	for _, line := range t.Log {
		row("log", "%s: %s", line.Level, line.Text)
	}
	for _, op := range t.Operations {
		name, reason := "did", ""
		if !op.Allowed {
			name, reason = "refused", ": "+op.Reason
		}
		row(name, "%s%s", strings.TrimSpace(op.Name+" "+op.Target), reason)
	}
	for _, e := range t.Emitted {
		row("emitted", "%s %s", e.Name, e.Data)
	}
	row("time", "%v", time.Duration(t.TimeMS*float64(time.Millisecond)))
	row("memory", "%v", capability.Size(t.Memory))
	return b.String()
}

// compact shows a value as JSON in one line.
func compact(value any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// lonely is the gate where no agent is.
type lonely struct{ dir string }

var errLonely = errors.New("there is no agent in ext run, to judge and do this: answer it in a case of ext test")

func (lonely) Call(context.Context, string, tool.Call) (tool.Result, error) {
	return tool.Result{}, errLonely
}

func (l lonely) Info() abi.SessionInfo     { return abi.SessionInfo{ID: "trial", Cwd: l.dir, Turn: 1} }
func (lonely) Messages() []session.Message { return nil }
func (lonely) Tokens(string) int64         { return 0 }
func (lonely) Complete(context.Context, string, session.CallID, abi.CompleteRequest, int64) (abi.CompleteResponse, error) {
	return abi.CompleteResponse{}, errLonely
}
