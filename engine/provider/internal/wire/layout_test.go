package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/session"
)

func TestPieces(t *testing.T) {
	calls := func(ids ...session.CallID) (all []session.Call) {
		for _, id := range ids {
			all = append(all, session.Call{ID: id, Name: "f"})
		}
		return all
	}
	const layout = `{"api":{"model":"m","parts":[{"item":{"r":1}},{"text":3,"with":{"id":"a"}},{"item":{"r":2}},{"call":"1","with":{"id":"b"}},{"text":4},{"call":"2"},{"item":{"r":3}}]}}`
	tests := []struct {
		name, model, text string
		calls             []session.Call
		extra             string
		want              string
	}{
		{"without a layout, text and then calls", "m", "one two", calls("1"), "", "text=one two call=1"},
		{"in the order in which it came, without an item at the end", "m", "one two", calls("1", "2"), layout, `{"r":1} text=one+{"id":"a"} {"r":2} call=1+{"id":"b"} text= two call=2`},
		{"of another model", "n", "one two", calls("1", "2"), layout, "text=one two call=1 call=2"},
		{"a text that was changed since stands where the first stood", "m", "other", calls("1", "2"), layout, `{"r":1} text=other+{"id":"a"} {"r":2} call=1+{"id":"b"} call=2`},
		{"a call that was left out since", "m", "one two", calls("2"), layout, `{"r":1} text=one+{"id":"a"} text= two call=2`},
		{"ids that were made since", "m", "one two", calls("x", "y"), layout, `{"r":1} text=one+{"id":"a"} {"r":2} call=x+{"id":"b"} text= two call=y`},
		{"all calls were left out", "m", "one two", nil, layout, `{"r":1} text=one+{"id":"a"} text= two`},
		{"nothing left", "m", "", nil, layout, ""},
		{"a layout that is none", "m", "one", calls("1"), `{"api":[]}`, "text=one call=1"},
		{"lengths that are lies", "m", "one", nil, `{"api":{"model":"m","parts":[{"text":-5},{"text":8,"with":{}}]}}`, "text=one+{}"},
		{"a blank text", "m", " \n", calls("1"), "", "call=1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, p := range Pieces("api", tt.model, session.Message{Content: tt.text, Calls: tt.calls, Extra: json.RawMessage(tt.extra)}) {
				s := string(p.Item)
				if p.Text != "" {
					s = "text=" + p.Text
				}
				if p.Call != nil {
					s = fmt.Sprintf("call=%s", p.Call.ID)
				}
				if p.With != nil {
					s += "+" + string(p.With)
				}
				got = append(got, s)
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("Pieces = %s; want %s", s, tt.want)
			}
		})
	}
}

func TestStrictSchema(t *testing.T) {
	tests := []struct {
		schema string
		want   bool
	}{
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, true},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, false},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, false},
		{`{"type":"array","items":{"type":"object"}}`, false},
		{`{"type":"string"}`, true},
		{`{`, false},
	}
	for _, tt := range tests {
		if got := StrictSchema(json.RawMessage(tt.schema)); got != tt.want {
			t.Errorf("StrictSchema(%s) = %t; want %t", tt.schema, got, tt.want)
		}
	}
}
