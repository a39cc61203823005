package engine

import (
	"github.com/wharf-agent/wharf/engine/provider"
	"github.com/wharf-agent/wharf/engine/session"
)

// byImages is what replaces a message whose images the model cannot see.
const byImages = "images"

// leaveOutImages takes the images out of what the model is shown, from here on and
// for good, and reports whether there were any: the server refused them, and would
// again.
func (t *turn) leaveOutImages() (found bool, err error) {
	var replaced []session.ContextReplaced
	add := func(seq int64, m session.Message) {
		if len(m.Images) > 0 {
			replaced = append(replaced, session.ContextReplaced{
				Targets: []int64{seq}, By: byImages, Content: provider.WithoutImages(m).Content,
			})
		}
	}
	t.cfg.Log.View(func(h *session.History) {
		for _, b := range h.Blocks() {
			add(b.Seq, b.Message)
			for _, r := range b.Results {
				add(r.Seq, r.Message)
			}
		}
	})
	for _, e := range replaced {
		if err := t.record(e); err != nil {
			return false, err
		}
	}
	return len(replaced) > 0, nil
}
