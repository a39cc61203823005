//go:build !wasip1

package wharf

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wharf-agent/wharf/host/abi"
)

// text returns a pointer to s.
func text(s string) *string { return &s }

// Each function sends what the host reads, and reads what the host sends.
func TestAgentOperations(t *testing.T) {
	raw := []byte{0xff, 0}
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	message := json.RawMessage(`{"role":"assistant","content":"c","calls":[{"call_id":"1","name":"grep","arguments":"{}"}],"call_id":"2","is_error":true}`)
	tests := []struct {
		op       string
		request  any // the host's type, decoded from what was sent
		want     any
		response any
		call     func() (any, error)
		result   any
	}{
		{
			"tool.call", &abi.ToolCallRequest{}, &abi.ToolCallRequest{Name: "grep", Arguments: []byte(`{"pattern":"x"}`)},
			abi.ToolCallResponse{Content: "a", IsError: true, Code: "DENIED"},
			func() (any, error) { return CallTool("grep", map[string]string{"pattern": "x"}) },
			ToolResult{Content: "a", IsError: true, Code: "DENIED"},
		},
		{
			"tool.call", &abi.ToolCallRequest{}, &abi.ToolCallRequest{Name: "list_dir", Arguments: []byte(`{}`)},
			abi.ToolCallResponse{},
			func() (any, error) { return CallTool("list_dir", nil) },
			ToolResult{},
		},
		{
			"exec.run", &abi.ExecRequest{}, &abi.ExecRequest{Command: "gofmt -l", TimeoutMS: 2},
			abi.ExecResponse{Exit: 3, Stdout: "o", Stderr: "e"},
			func() (any, error) { return Exec("gofmt -l", 1500*time.Microsecond) },
			Output{3, "o", "e"},
		},
		{
			"fs.read", &abi.ReadRequest{}, &abi.ReadRequest{Path: "a", Offset: 2, Limit: 3},
			abi.ReadResponse{ContentBase64: &raw, Size: 9},
			func() (any, error) { part, size, err := ReadFileAt("a", 2, 3); return []any{part, size}, err },
			[]any{raw, int64(9)},
		},
		{
			"fs.list", &abi.PathRequest{}, &abi.PathRequest{Path: "a"},
			abi.ListResponse{Entries: []abi.Entry{{Name: "b", Kind: "file"}}},
			func() (any, error) { return ListDir("a") },
			[]Entry{{"b", "file"}},
		},
		{
			"fs.stat", &abi.PathRequest{}, &abi.PathRequest{Path: "a"},
			abi.StatResponse{Size: 3, Mode: "-rw-r--r--", MTime: at.Format(time.RFC3339Nano)},
			func() (any, error) { return StatFile("a") },
			FileInfo{3, "-rw-r--r--", at},
		},
		{
			"fs.write", &abi.WriteRequest{}, &abi.WriteRequest{Path: "a", Content: "<b>"},
			abi.Empty{},
			func() (any, error) { return nil, WriteFile("a", "<b>") }, nil,
		},
		{
			"session.info", &abi.Empty{}, &abi.Empty{},
			abi.SessionInfo{ID: "s", Cwd: "/w", Model: "m", Turn: 2},
			func() (any, error) { return SessionInfo() },
			Session{"s", "/w", "m", 2},
		},
		{
			"session.messages", &abi.MessagesRequest{}, &abi.MessagesRequest{Last: 1},
			abi.MessagesResponse{Messages: []json.RawMessage{message}, Dropped: 4},
			func() (any, error) { return Messages(1) },
			[]Message{{Role: "assistant", Content: "c", Calls: []MessageCall{{"1", "grep", "{}"}}, CallID: "2", IsError: true}},
		},
		{
			"llm.complete", &abi.CompleteRequest{}, &abi.CompleteRequest{Prompt: "p", MaxTokens: 7},
			abi.CompleteResponse{Text: "t", Usage: abi.Usage{InputTokens: 1, OutputTokens: 2}},
			func() (any, error) { answer, usage, err := Complete("p", 7); return []any{answer, usage}, err },
			[]any{"t", Usage{InputTokens: 1, OutputTokens: 2}},
		},
		{
			"env.get", &abi.EnvRequest{}, &abi.EnvRequest{Name: "LANG"},
			abi.EnvResponse{Value: text("")},
			func() (any, error) { value, set, err := Env("LANG"); return []any{value, set}, err },
			[]any{"", true},
		},
		{
			"env.get", &abi.EnvRequest{}, &abi.EnvRequest{Name: "LANG"},
			abi.EnvResponse{},
			func() (any, error) { value, set, err := Env("LANG"); return []any{value, set}, err },
			[]any{"", false},
		},
		{
			"event.emit", &abi.EmitRequest{}, &abi.EmitRequest{Name: "n", Data: []byte(`[1]`)},
			abi.Empty{},
			func() (any, error) { return nil, Emit("n", []int{1}) }, nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.op, func(t *testing.T) {
			fresh(t)
			fakeHost = func(op string, request []byte) (uint32, []byte) {
				strict := json.NewDecoder(bytes.NewReader(request))
				strict.DisallowUnknownFields()
				if err := strict.Decode(tt.request); err != nil || op != tt.op {
					t.Errorf("%s got %s: %v", op, request, err)
				}
				response, err := json.Marshal(tt.response)
				if err != nil {
					t.Fatal(err)
				}
				return 0, response
			}
			got, err := tt.call()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, tt.request); diff != "" {
				t.Errorf("the request (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.result, got); diff != "" {
				t.Errorf("the result (-want +got):\n%s", diff)
			}
		})
	}
}

// A file that is larger than one call gives is read in pieces.
func TestReadFile(t *testing.T) {
	fresh(t)
	content := strings.Repeat("größe", 10)
	fakeHost = func(_ string, request []byte) (uint32, []byte) {
		var in abi.ReadRequest
		if err := json.Unmarshal(request, &in); err != nil {
			t.Error(err)
		}
		part := []byte(content)[in.Offset:]
		part = part[:min(len(part), 10)]
		response, _ := json.Marshal(abi.ReadResponse{ContentBase64: &part, Size: int64(len(content))})
		return 0, response
	}
	if got, err := ReadFile("a"); string(got) != content || err != nil {
		t.Errorf("ReadFile = %q, %v", got, err)
	}
	if err := WriteFile("a", "\xff"); err == nil || err.Error() != "fs.write: the content is no UTF-8 text" {
		t.Errorf("WriteFile of what is no text: %v", err)
	}
	fakeHost = func(string, []byte) (uint32, []byte) { return 1, []byte(`{"code":"DENIED","message":"no"}`) }
	if got, err := ReadFile("a"); err == nil || err.Error() != "no" || got != nil {
		t.Errorf("refused: %q, %v", got, err)
	}
}
