// Command bench-go is a hook for benchmarks: it reads the payload's JSON and
// has no opinion, unless the session's id begins with a d.
package main

import (
	"strings"

	wharf "github.com/wharf-agent/wharf/guest-sdk/go"
)

func init() {
	wharf.BeforeExecuteTool(func(c wharf.ToolCall) wharf.Verdict {
		if strings.HasPrefix(c.SessionID, "d") {
			return wharf.Deny("this command is not allowed here")
		}
		return wharf.Verdict{}
	})
}

func main() {}
