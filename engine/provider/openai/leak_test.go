package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
	"github.com/wharf-agent/wharf/engine/session"
)

var leakTools = []session.Tool{
	{Name: "read_file", InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"}}}`)},
	{Name: "exec"},
}

// readLeak returns text and calls of an answer that comes in pieces of so many bytes.
func readLeak(t testing.TB, answer, finish string, step int) string {
	var body strings.Builder
	for i := 0; i < len(answer); i += step {
		content, err := json.Marshal(answer[i:min(i+step, len(answer))])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&body, "data: {\"choices\":[{\"delta\":{\"content\":%s}}]}\n\n", content)
	}
	fmt.Fprintf(&body, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", finish)
	var text, rest strings.Builder
	err := wire.ReadAll(t.Context(), strings.NewReader(body.String()), &leakReader{tools: leakTools}, func(d provider.Delta) bool {
		text.WriteString(d.Text)
		if d.Call != nil {
			fmt.Fprintf(&rest, "|%s %s", d.Call.Name, d.Call.Arguments)
		}
		if d.Finish != "" {
			fmt.Fprintf(&rest, "|%s", d.Finish)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String() + rest.String()
}

func TestCallsInTheText(t *testing.T) {
	const read = `|read_file {"path":"a.txt"}|tool_calls`
	same := func(text string) string { return text + "|stop" }
	const broken = `<tool_call>{"name":"read_file"}</x_tool_call> done`
	tests := []struct{ name, answer, want string }{
		{"no markup", "Just <b>text</b> and [a list].", same("Just <b>text</b> and [a list].")},
		{"Hermes", "I look.\n<tool_call>\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a.txt\"}}\n</tool_call>", "I look.\n" + read},
		{"two of them", `<tool_call>{"name":"exec","arguments":{}}</tool_call><tool_call>{"name":"exec","arguments":{"a":1}}</tool_call>`, `|exec {}|exec {"a":1}|tool_calls`},
		{"arguments as a text", `<tool_call>{"name":"read_file","arguments":"{\"path\":\"a.txt\"}"}</tool_call>`, read},
		{"Qwen's coder", "<tool_call>\n<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=limit>\n5\n</parameter>\n</function>\n</tool_call>", `|read_file {"limit":5,"path":"a.txt"}|tool_calls`},
		{"the same without the outer marks", "<function=read_file><parameter=path>a.txt</parameter></function>", read},
		{"Llama's function", `<function=read_file>{"path":"a.txt"}</function>`, read},
		{"Llama's tag", `<|python_tag|>{"name":"read_file","parameters":{"path":"a.txt"}}`, read},
		{"nothing but JSON", `{"name":"read_file","parameters":{"path":"a.txt"}}`, read},
		{"JSON that is an answer", `{"name":"Ada","parameters":{}}`, same(`{"name":"Ada","parameters":{}}`)},
		{"Mistral's list", `[TOOL_CALLS][{"name":"read_file","arguments":{"path":"a.txt"}}]`, read},
		{"Mistral's newer form", `[TOOL_CALLS]read_file[ARGS]{"path":"a.txt"}`, read},
		{"GLM", "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.txt</arg_value>\n</tool_call>", read},
		{"DeepSeek", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n{\"path\":\"a.txt\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", read},
		{"DeepSeek's newer form", `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path":"a.txt"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`, read},
		{"DeepSeek's newest", "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"read_file\">\n<｜DSML｜parameter name=\"path\" string=\"true\">a.txt</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>", read},
		{"Kimi", `<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{"path":"a.txt"}<|tool_call_end|><|tool_calls_section_end|>`, read},
		{"MiniMax", "<minimax:tool_call>\n<invoke name=\"read_file\">\n<parameter name=\"path\">a.txt</parameter>\n</invoke>\n</minimax:tool_call>", read},
		{"Phi", `<|tool_call|>[{"name":"read_file","arguments":{"path":"a.txt"}}]<|/tool_call|>`, read},
		{"text behind a call", `<tool_call>{"name":"exec","arguments":{}}</tool_call> and more`, ` and more|exec {}|tool_calls`},
		{"marks that do not match", broken, same(broken)},
		{"a tool that is not on offer", `<tool_call>{"name":"rm","arguments":{}}</tool_call>`, same(`<tool_call>{"name":"rm","arguments":{}}</tool_call>`)},
		{"one call in order and one not: neither", `<tool_call>{"name":"exec","arguments":{}}</tool_call><tool_call>{"name":"exec","arg`, same(`<tool_call>{"name":"exec","arguments":{}}</tool_call><tool_call>{"name":"exec","arg`)},
		{"arguments that are no object", `<tool_call>{"name":"exec","arguments":[1]}</tool_call>`, same(`<tool_call>{"name":"exec","arguments":[1]}</tool_call>`)},
		{"the beginning of a mark at the end", "a <tool_", same("a <tool_")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, step := range []int{1 << 20, 7} {
				if step == 7 && strings.ContainsFunc(tt.answer, func(r rune) bool { return r > 0x7f }) {
					continue // half a character has no JSON form
				}
				if diff := cmp.Diff(tt.want, readLeak(t, tt.answer, "stop", step)); diff != "" {
					t.Errorf("%d bytes a piece (-want +got):\n%s", step, diff)
				}
			}
		})
	}
	if got := readLeak(t, `<tool_call>{"name":"exec","arguments":{}}</tool_call>`, "length", 100); got != `<tool_call>{"name":"exec","arguments":{}}</tool_call>|length` {
		t.Errorf("a reply that was cut at the output limit = %s; want text", got)
	}
}

// FuzzMarkup: whatever a model writes, calls are of tools on offer, with objects as
// arguments.
func FuzzMarkup(f *testing.F) {
	f.Add(`<tool_call>{"name":"exec","arguments":{}}</tool_call>`)
	f.Add("<function=exec><parameter=a>1</parameter></function>")
	f.Add("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>exec<｜tool▁sep｜>{}<｜tool▁call▁end｜>")
	f.Fuzz(func(t *testing.T, text string) {
		m := markup{tools: leakTools, text: text}
		if m.read() && len(m.calls) == 0 {
			t.Errorf("%q was read, without a call", text)
		}
		for _, call := range m.calls {
			if call.Name != "exec" && call.Name != "read_file" || !wire.IsObject([]byte(call.Arguments)) {
				t.Errorf("%q gave the call %+v", text, call)
			}
		}
	})
}
