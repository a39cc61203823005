package guestsdk_test

import (
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/host/build"
)

// A guard in C that has no memory left to read what it judges does not let it
// pass: its answer is a failure, whatever it says.
func TestCOutOfMemory(t *testing.T) {
	needLanguage(t, "c")
	s, _ := join(t, buildText(t, map[string]string{
		build.ManifestFile: hookManifest + "\n[limits]\nmemory = \"512KiB\"\n",
		"main.c": "#include \"wharf.h\"\n\nWHARF_HOOK(before_execute_tool, call)\n{\n" +
			"\treturn wharf_contains(wharf_argument(call, \"command\"), \"rm\") ? wharf_deny(\"no\") : WHARF_NO_OPINION;\n}\n",
	}))
	for name, tt := range map[string]struct {
		length int
		want   string
	}{
		"a command that fits":         {1000, `{"decision":"deny","reason":"no"}`},
		"a command that does not fit": {300_000, `{"error":"out of memory"}`},
		"a short command":             {10, `{"decision":"deny","reason":"no"}`},
	} {
		payload := `{"tool":"exec","arguments":{"command":"\n` + strings.Repeat("x", tt.length) + `rm"}}`
		answer, err := s.Call(t.Context(), hook.BeforeExecuteTool, []byte(payload))
		if err != nil || string(answer) != tt.want {
			t.Errorf("%s: %s, %v; want %s", name, answer, err, tt.want)
		}
	}
}

// What would be undefined in Zig is a trap that fails the call, and the log says
// why.
func TestZigTraps(t *testing.T) {
	needLanguage(t, "zig")
	for name, tt := range map[string]struct{ body, want string }{
		"an index":      {"    const numbers = [_]u8{ 1, 2 };\n    return .deny(wharf.print(\"{d}\", .{numbers[call.tool.len]}));", "error: index out of bounds: index 4, len 2"},
		"a sum":         {"    const n: u8 = @intCast(call.tool.len);\n    return .deny(wharf.print(\"{d}\", .{n + 253}));", "error: integer overflow"},
		"out of memory": {"    while (true) (wharf.allocator.alloc(u8, 1 << 20) catch unreachable)[0] = call.tool[0];", "error: out of memory"},
	} {
		s, events := join(t, buildText(t, map[string]string{
			build.ManifestFile: hookManifest,
			"main.zig": "const wharf = @import(\"wharf\");\n\ncomptime {\n    wharf.hooks(.{ .before_execute_tool = judge });\n}\n\n" +
				"fn judge(call: wharf.BeforeExecuteTool) wharf.Verdict {\n" + tt.body + "\n}\n",
		}))
		_, err := s.Call(t.Context(), hook.BeforeExecuteTool, []byte(`{"tool":"exec","arguments":{}}`))
		if err == nil || !strings.Contains(err.Error(), "the guest trapped: unreachable") {
			t.Errorf("%s: the call fails with %v", name, err)
		}
		if got := logged(*events); got != tt.want {
			t.Errorf("%s: logged %q; want %q", name, got, tt.want)
		}
	}
}
