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
	shown := func(images []Image, extra json.RawMessage) []Event {
		return []Event{
			UserMessage{Content: "look", Images: images},
			AssistantMessage{Calls: call, Extra: extra},
			ToolCall{CallID: "1", Name: "look"},
			ToolResult{CallID: "1", CallSeq: 2, Images: images},
		}
	}
	with, without := shown(image, extra), shown(nil, nil)
	var a, b, c History
	for i := range with {
		record := Record{Seq: int64(i), Event: with[i]}
		a.Add(record)
		b.Add(Record{Seq: int64(i), Event: without[i]})
		line, err := Encode(record)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		c.Add(again)
		if a.Digest() != c.Digest() {
			t.Errorf("%T: the digest changes on the way through the log", with[i])
		}
	}
	for i, m := range a.Messages() {
		other := b.Messages()[i]
		if Digest(Header{}, []Message{m}) == Digest(Header{}, []Message{other}) {
			t.Errorf("message %d: its image or extra makes no difference to the digest: %+v", i, m)
		}
		if len(m.Images) == 0 && string(m.Extra) != string(extra) {
			t.Errorf("message %d has neither image nor extra: %+v", i, m)
		}
	}
}

func TestImageOf(t *testing.T) {
	tests := []struct{ data, media string }{
		{"\x89PNG\r\n\x1a\n…", "image/png"},
		{"\xff\xd8\xff\xe0", "image/jpeg"},
		{"GIF89a", "image/gif"},
		{"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"},
		{"RIFF\x00\x00\x00\x00WAVE", ""},
		{"<svg/>", ""},
		{"", ""},
	}
	for _, tt := range tests {
		got, ok, err := ImageOf([]byte(tt.data))
		if got.MediaType != tt.media || ok != (tt.media != "") || err != nil {
			t.Errorf("ImageOf(%q) = %q, %t, %v; want %q", tt.data, got.MediaType, ok, err, tt.media)
		}
	}
	large := append([]byte("GIF89a"), make([]byte, MaxImage)...)
	if _, ok, err := ImageOf(large); !ok || err == nil {
		t.Errorf("ImageOf of %d bytes = %t, %v; want an error", len(large), ok, err)
	}
}
