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

const trapsInZig = `const std = @import("std");
const wharf = @import("wharf");

comptime {
    wharf.hooks(.{ .before_execute_tool = judge });
}

fn judge(call: wharf.BeforeExecuteTool) wharf.Verdict {
    const length: u8 = @intCast(call.tool.len);
    if (std.mem.eql(u8, call.tool, "index")) return .deny(call.tool[length..][0..1]);
    if (std.mem.eql(u8, call.tool, "sum")) return .deny(wharf.print("{d}", .{length + 253}));
    while (true) (wharf.allocator.alloc(u8, 1 << 20) catch unreachable)[0] = length;
}
`

// What would be undefined in Zig is a trap that fails the call, and the log says
// why.
func TestZigTraps(t *testing.T) {
	needLanguage(t, "zig")
	s, events := join(t, buildText(t, map[string]string{build.ManifestFile: hookManifest + "\n[limits]\nmemory = \"4MiB\"\n", "main.zig": trapsInZig}))
	for _, tt := range []struct{ tool, want string }{
		{"index", "error: index out of bounds: index 6, len 5"},
		{"sum", "error: integer overflow"},
		{"memory", "error: out of memory"},
	} {
		*events = nil
		_, err := s.Call(t.Context(), hook.BeforeExecuteTool, []byte(`{"tool":"`+tt.tool+`","arguments":{}}`))
		if err == nil || !strings.Contains(err.Error(), "the guest trapped: unreachable") {
			t.Errorf("%s: the call fails with %v", tt.tool, err)
		}
		if got := logged(*events); got != tt.want {
			t.Errorf("%s: logged %q; want %q", tt.tool, got, tt.want)
		}
	}
}

// A guard in Rust or AssemblyScript that has no memory left to read what it judges
// fails, and the next call is judged again.
func TestOutOfMemory(t *testing.T) {
	for language, files := range map[string]map[string]string{
		"rust": {"lib.rs": "wharf::hooks!(before_execute_tool);\n\nfn before_execute_tool(call: wharf::ToolCall) -> wharf::Verdict {\n" +
			"    if call.arguments.str(\"command\").contains(\"rm\") {\n        return wharf::Verdict::deny(\"no\");\n    }\n    wharf::Verdict::none()\n}\n"},
		"assemblyscript": {"index.ts": "import { ToolCall, Verdict } from \"wharf/assembly\";\n\nexport function before_execute_tool(call: ToolCall): Verdict | null {\n" +
			"  return call.arguments.str(\"command\").includes(\"rm\") ? Verdict.deny(\"no\") : null;\n}\n"},
	} {
		t.Run(language, func(t *testing.T) {
			needLanguage(t, language)
			files[build.ManifestFile] = hookManifest + "\n[limits]\nmemory = \"1MiB\"\n"
			s, _ := join(t, buildText(t, files))
			for _, length := range []int{1000, 700_000, 10} {
				payload := `{"tool":"exec","arguments":{"command":"\n` + strings.Repeat("x", length) + `rm"}}`
				answer, err := s.Call(t.Context(), hook.BeforeExecuteTool, []byte(payload))
				switch {
				case length > 1000 && err == nil:
					t.Errorf("%d bytes: it answers %s", length, answer)
				case length <= 1000 && (err != nil || string(answer) != `{"decision":"deny","reason":"no"}`):
					t.Errorf("%d bytes: %s, %v", length, answer, err)
				}
			}
		})
	}
}
