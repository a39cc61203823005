package host_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	sdk "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/host"
)

// This file holds the ways in which the same hook can be asked: Wharf's, and
// those that it is compared with.

// asking asks a hook once.
type asking func(ctx context.Context, payload []byte) ([]byte, error)

// ways lists the ways, the first of them first; open skips where something is missing.
var ways = []struct {
	name string
	open func(b *testing.B) asking
}{
	{"wharf", func(b *testing.B) asking { return throughWharf(b, guest(b, "C")) }},
	{"wharf-extism", func(b *testing.B) asking { return throughWharf(b, plugin(b)) }},
	{"wharf-go", func(b *testing.B) asking { return throughWharf(b, guest(b, "Go")) }},
	{"wazero-bare", func(b *testing.B) asking { return throughWazero(b, false) }},
	{"wazero-close", func(b *testing.B) asking { return throughWazero(b, true) }},
	{"extism-sdk", throughSDK},
	{"sh", throughShell},
	{"python3", func(b *testing.B) asking {
		return throughProcess(b, "-c", pythonHook, "python3", "-c", "import sys; print(sys.executable, end='')")
	}},
	{"node", func(b *testing.B) asking {
		return throughProcess(b, "-e", nodeHook, "node", "-p", "process.stdout.write(process.execPath), ''")
	}},
}

const verdictText = `{"decision":"deny","reason":"this command is not allowed here"}`

func throughWharf(b *testing.B, wasm []byte) asking {
	s, err := load(b, open(b, ""), wasm).Session(b.Context(), host.SessionConfig{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		return s.Call(ctx, hook.BeforeExecuteTool, payload)
	}
}

// plugin returns the hook for Extism's ABI, with a manifest.
func plugin(b *testing.B) []byte {
	b.Helper()
	wasm, err := host.EmbedManifest(barePlugin(b), "name = \"bench-extism\"\nversion = \"1\"\nabi = \"extism\"\n[hooks.before_execute_tool]\n")
	if err != nil {
		b.Fatal(err)
	}
	return wasm
}

func barePlugin(b *testing.B) []byte {
	b.Helper()
	wasm, err := os.ReadFile("testdata/extism-bench.wasm")
	if err != nil {
		b.Fatal(err)
	}
	return wasm
}

// throughWazero calls the guest in C as it was built: without any protection,
// or so that wazero ends it when a context does, of which each call has its own.
func throughWazero(b *testing.B, ends bool) asking {
	module, err := bare(b, wazero.NewRuntimeConfigCompiler().WithCloseOnContextDone(ends), guest(b, "C"))(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	alloc, handler, memory := module.ExportedFunction("wharf_v1_alloc"), module.ExportedFunction("before_execute_tool"), module.Memory()
	var stack [2]uint64
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		if ends {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
		}
		stack[0] = uint64(len(payload))
		if err := alloc.CallWithStack(ctx, stack[:]); err != nil {
			return nil, err
		}
		memory.Write(uint32(stack[0]), payload)
		stack[1] = uint64(len(payload))
		if err := handler.CallWithStack(ctx, stack[:]); err != nil {
			return nil, err
		}
		answer, _ := memory.Read(uint32(stack[0]>>32), uint32(stack[0]))
		return answer, nil
	}
}

// bare compiles a module for wazero alone, and returns what makes an instance.
func bare(b *testing.B, cfg wazero.RuntimeConfig, wasm []byte) func(context.Context) (api.Module, error) {
	b.Helper()
	r := wazero.NewRuntimeWithConfig(b.Context(), cfg)
	b.Cleanup(func() { _ = r.Close(context.Background()) })
	wasi_snapshot_preview1.MustInstantiate(b.Context(), r)
	_, err := r.NewHostModuleBuilder("wharf_v1").
		NewFunctionBuilder().WithFunc(func(_, _, _, _ uint32) uint64 { return 0 }).Export("call").
		NewFunctionBuilder().WithFunc(func(uint32) {}).Export("read").
		NewFunctionBuilder().WithFunc(func(_, _, _ uint32) {}).Export("log").
		Instantiate(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	compiled, err := r.CompileModule(b.Context(), wasm)
	if err != nil {
		b.Fatal(err)
	}
	return func(ctx context.Context) (api.Module, error) {
		return r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").WithSysNanotime())
	}
}

// throughSDK calls the plugin in Extism's own SDK, with a time limit.
func throughSDK(b *testing.B) asking {
	p, err := sdk.NewPlugin(b.Context(), sdk.Manifest{Wasm: []sdk.Wasm{sdk.WasmData{Data: barePlugin(b)}}, Timeout: 1000},
		sdk.PluginConfig{EnableWasi: true}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.Close(context.Background()) })
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		_, answer, err := p.CallWithContext(ctx, "before_execute_tool", payload)
		return answer, err
	}
}

const (
	pythonHook = `import sys, json
text = sys.stdin.read()
if text.strip() and json.loads(text)["session_id"].startswith("d"): print(json.dumps({"decision": "deny", "reason": "this command is not allowed here"}))`
	nodeHook = `const text = require("fs").readFileSync(0, "utf8")
if (text.trim() && JSON.parse(text).session_id.startsWith("d")) console.log(JSON.stringify({decision: "deny", reason: "this command is not allowed here"}))`
)

// throughShell spawns a shell. Its read takes a system call a byte, and so is the
// quickest for what is short alone.
func throughShell(b *testing.B) asking {
	const judge = `; case $line in '{"session_id":"d'*) echo '` + verdictText + `';; esac`
	short, long := spawning(b, "sh", "-c", "read -r line"+judge), spawning(b, "sh", "-c", "line=$(cat)"+judge)
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		if len(payload) > 1<<10 {
			return long(ctx, payload)
		}
		return short(ctx, payload)
	}
}

// throughProcess spawns an interpreter with a script. The one that is in PATH says
// which it is, since that may be a script itself.
func throughProcess(b *testing.B, flag, script, name string, who ...string) asking {
	program, err := exec.Command(name, who...).Output()
	if err != nil {
		b.Skipf("%s is missing: install it", name)
	}
	return spawning(b, string(bytes.TrimSpace(program)), flag, script)
}

func spawning(b *testing.B, program string, args ...string) asking {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Stdin = bytes.NewReader(append(payload, '\n'))
		answer, err := cmd.Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			b.Fatalf("%s: %s", program, exit.Stderr)
		}
		return answer, err
	}
}
