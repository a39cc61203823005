package session

import (
	"encoding/json"
	"strings"
	"testing"
)

// What is new in a message is not there unless it is used: requests of old logs
// keep their digests.
func TestWhatIsNewInAMessageIsLeftOutWhereUnused(t *testing.T) {
	for _, v := range []any{Message{Role: User, Content: "hi"}, UserMessage{Content: "hi"}, ToolResult{}, AssistantMessage{}, Header{}} {
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"images", "extra", "tool_choice", "single_calls", "output_schema"} {
			if strings.Contains(string(line), field) {
				t.Errorf("%T encodes as %s; want no %s", v, line, field)
			}
		}
	}
}

// Images and what a server attached are shown to the model, so they count in the
// request's digest.
func TestImagesAndExtrasAreInTheHistory(t *testing.T) {
	image := []Image{{MediaType: "image/png", Data: []byte("png")}}
	extra := json.RawMessage(`{"anthropic":{}}`)
	call := []Call{{ID: "1", Name: "look", Arguments: "{}"}}
	with := []Event{UserMessage{Images: image}, AssistantMessage{Calls: call, Extra: extra}, ToolResult{CallID: "1", Images: image}}
	without := []Event{UserMessage{}, AssistantMessage{Calls: call}, ToolResult{CallID: "1"}}
	for i := range with {
		var a, b History
		a.Add(with[i])
		b.Add(without[i])
		if a.Digest() == b.Digest() {
			t.Errorf("%T: its image or extra makes no difference to the digest", with[i])
		}
		if m := a.Messages()[0]; len(m.Images) == 0 && string(m.Extra) != string(extra) {
			t.Errorf("%T became the message %+v", with[i], m)
		}
		record := Record{Seq: 0, Event: with[i]}
		line, err := Encode(record)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Decode(line); err != nil {
			t.Errorf("Decode(%s) error = %v", line, err)
		} else {
			var c History
			c.Add(again.Event)
			if c.Digest() != a.Digest() {
				t.Errorf("%T: the digest changes on the way through the log", with[i])
			}
		}
	}
}
