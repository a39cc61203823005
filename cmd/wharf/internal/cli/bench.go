package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/extensions"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/capability"
)

// measured is a row of ext bench.
type measured struct {
	What   string  `json:"what"`
	Calls  int     `json:"calls"`
	Median float64 `json:"median_us"`
	P99    float64 `json:"p99_us"`
	Note   string  `json:"note,omitempty"`
}

// bencher measures what an extension costs the engine.
type bencher struct {
	ext     *host.Extension
	grant   capability.Grant
	payload []byte        // in the place of the sample; nil if there is none
	tool    string        // the tool to call, if any
	time    time.Duration // for each row
	rows    []measured
}

func extBench(ctx context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("ext bench", pflag.ContinueOnError)
	payload := flags.String("payload", "", "call its hooks with the payload in `FILE` instead of a sample of 260 bytes")
	toolName := flags.String("tool", "", "measure `TOOL` too, with the arguments in --payload")
	limit := flags.Duration("time", time.Second, "measure each thing for this long")
	asJSON := flags.Bool("json", false, "print an array of objects")
	grants := flags.StringArray("grant", nil, "grant it `all`, or what it asks for under a key of [capabilities]; repeatable")
	if err := parse(io, flags, "ext bench [flags] FILE.wasm", args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return usagef("ext bench: it takes one file, or the name of a shipped extension: %s", strings.Join(extensions.Names(), ", "))
	}
	b := bencher{tool: *toolName, time: *limit}
	grant, err := capability.ParseWords(*grants)
	if err != nil {
		return usagef("ext bench: %w", err)
	}
	b.grant = grant
	if *payload != "" {
		raw, err := os.ReadFile(*payload)
		if err != nil {
			return fmt.Errorf("ext bench: %w", err)
		}
		b.payload = raw
	}
	file, err := builtIn(flags.Arg(0), newProgress(io.err, false))
	if err != nil {
		return fmt.Errorf("bench %w", err)
	}
	wasm, err := readModule(file)
	if err == nil {
		err = b.run(ctx, flags.Arg(0), wasm)
	}
	if err != nil {
		return fmt.Errorf("bench %s: %w", flags.Arg(0), err)
	}
	if *asJSON {
		return printJSON(io, b.rows)
	}
	fmt.Fprintf(io.out, "%-26s %10s %14s %14s\n", "", "calls", "median", "99 % within")
	for _, r := range b.rows {
		fmt.Fprintf(io.out, "%-26s %10d %11.2f µs %11.2f µs  %s\n", printable(r.What), r.Calls, r.Median, r.P99, printable(r.Note))
	}
	return nil
}

func (b *bencher) run(ctx context.Context, name string, wasm []byte) error {
	h, closeHost, err := ownHost()
	if err != nil {
		return err
	}
	defer closeHost()
	if b.ext, err = h.LoadBytes(ctx, name, wasm, host.Options{Grant: b.grant, Remedy: remedyByFlag}); err != nil {
		return err
	}
	s, err := b.ext.Session(ctx, host.SessionConfig{})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := b.measure(ctx, "an instance", "", func() error { return b.instance(ctx) }); err != nil {
		return err
	}
	for _, p := range b.ext.Manifest.Points() {
		if err := b.hook(ctx, s, p); err != nil {
			return err
		}
	}
	if b.tool == "" {
		return nil
	}
	return b.callTool(ctx, s)
}

func (b *bencher) instance(ctx context.Context) error {
	s, err := b.ext.Session(ctx, host.SessionConfig{})
	if err == nil {
		s.Close()
	}
	return err
}

func (b *bencher) hook(ctx context.Context, s *host.Session, p hook.Point) error {
	payload := b.payload
	if payload == nil {
		payload = samplePayload(p, b.ext.Manifest.Hooks[p])
	}
	answer, err := s.Call(ctx, p, payload)
	if err == nil {
		_, err = hook.ParseVerdict(p, answer)
	}
	note := "it has no opinion"
	switch {
	case err != nil:
		note = "it fails: " + err.Error()
	case len(answer) > 0:
		note = fmt.Sprintf("it answers %d bytes", len(answer))
	}
	return b.measure(ctx, string(p), note, func() error {
		_, err := s.Call(ctx, p, payload)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_ = err // a hook that fails costs what it costs; the note says so
		return nil
	})
}

func (b *bencher) callTool(ctx context.Context, s *host.Session) error {
	arguments := b.payload
	if arguments == nil {
		arguments = []byte("{}")
	}
	var reg tool.Registry
	for _, t := range s.Tools() {
		if err := reg.Add(t); err != nil {
			return err
		}
	}
	target, bad := reg.Lookup(b.tool)
	if bad != nil {
		return usagef("ext bench: %s", bad.Content)
	}
	arguments, bad = reg.Check(b.tool, string(arguments))
	if bad != nil {
		return usagef("ext bench: %s: name a file with them by --payload", bad.Content)
	}
	return b.measure(ctx, "tool "+b.tool, "", func() error {
		_, err := target.Run(ctx, tool.Call{ID: "bench", Name: b.tool, Arguments: arguments})
		return err
	})
}

// maxSamples bounds what measuring keeps.
const maxSamples = 1 << 20

// measure calls what again and again until the time is up. Very short calls are
// timed in batches, since reading the clock takes as long as they do.
func (b *bencher) measure(ctx context.Context, what, note string, call func() error) error {
	batch := 1
	var samples []float64
	calls := 0
	for end := time.Now().Add(b.time); len(samples) < 10 || time.Now().Before(end) && len(samples) < maxSamples; {
		begin := time.Now()
		for range batch {
			if err := call(); err != nil {
				return err
			}
		}
		took := time.Since(begin)
		calls += batch
		if took < 10*time.Microsecond && batch < 1000 {
			batch *= 2 // the ones before are thrown away: they warmed up
			samples = samples[:0]
			continue
		}
		samples = append(samples, float64(took.Nanoseconds())/float64(batch)/1000)
	}
	slices.Sort(samples)
	b.rows = append(b.rows, measured{what, calls, samples[len(samples)/2], samples[len(samples)*99/100], note})
	return ctx.Err()
}

// samplePayload makes a payload of a point as large as those of most tool calls,
// about a tool that the handling is for.
func samplePayload(p hook.Point, h hook.Handling) []byte {
	info, _ := hook.Lookup(p)
	if info.Raw {
		return []byte("a few words of an answer")
	}
	object := map[string]any{"session_id": "20261130-090000-abcdef", "turn": 3, "step": 7}
	for _, key := range info.Keys {
		object[key.Name] = sampleValue(key)
	}
	if info.Has("tool") && !h.Covers("exec") {
		object["tool"] = strings.ReplaceAll(h.Tools[0], "*", "") // a star stands for nothing, too
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	const usual = 260
	return append(raw, bytes.Repeat([]byte(" "), max(usual-len(raw), 0))...)
}

// sampleValue is what a key may well hold.
func sampleValue(key hook.Key) any {
	switch {
	case key.Name == "arguments":
		return map[string]any{"command": "go test ./...", "timeout_seconds": 60}
	case key.Name == "result" && key.Type == hook.Object:
		return map[string]any{"content": "ok", "is_error": false}
	case key.Name == "tool":
		return "exec"
	case key.Name == "call_id":
		return "call_0123456789abcdef"
	}
	return map[hook.Type]any{
		hook.Text: "a text", hook.Integer: 1, hook.Number: 0.5, hook.Boolean: true,
		hook.Object: map[string]any{}, hook.List: []any{}, hook.Any: nil,
	}[key.Type]
}
