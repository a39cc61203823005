package cli

import (
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/host/exttest"
)

// The sample of every point is a payload that the engine could send, and that
// the handling is asked about.
func TestSamplePayload(t *testing.T) {
	for _, info := range hook.Points {
		for _, tools := range [][]string{nil, {"exec"}, {"write_*", "x"}} {
			h := hook.Handling{Tools: tools}
			payload := samplePayload(info.Point, h)
			if _, err := exttest.ParsePayload(info, payload); err != nil {
				t.Errorf("%s: %s: %v", info.Point, payload, err)
			}
			if err := exttest.Asked(info, h, payload); err != nil {
				t.Errorf("%s: %v", info.Point, err)
			}
			if !info.Raw && !strings.HasPrefix(string(payload), "{") {
				t.Errorf("%s: %s", info.Point, payload)
			}
		}
	}
}
