package provider

import (
	"testing"

	"github.com/wharf-agent/wharf/engine/session"
)

func TestWithoutImages(t *testing.T) {
	images := []session.Image{{MediaType: "image/png", Data: []byte("p")}, {MediaType: "image/gif", Data: []byte("g")}}
	req := Request{Messages: []session.Message{
		{Role: session.User, Images: images},
		{Role: session.ToolRole, Content: "a.png", CallID: "1", Images: images[:1]},
		{Role: session.User, Content: "hi"},
	}}
	blind := req.WithoutImages()
	if blind.HasImages() || !req.HasImages() {
		t.Errorf("HasImages = %t without, %t with; want false, true", blind.HasImages(), req.HasImages())
	}
	want := []string{
		"[2 image(s) left out: this model cannot see them]", "a.png\n[1 image(s) left out: this model cannot see them]", "hi",
	}
	for i, m := range blind.Messages {
		if m.Content != want[i] {
			t.Errorf("message %d is %q; want %q", i, m.Content, want[i])
		}
	}
}
