// Command bench-go is a hook for benchmarks: it reads the payload's JSON and
// has no opinion, or denies one command.
package main

import wharf "github.com/wharf-agent/wharf/guest-sdk/go"

func init() {
	wharf.BeforeExecuteTool(func(c wharf.ToolCall) wharf.Verdict {
		if c.Argument("command") == "rm -rf build" {
			return wharf.Deny("this command is not allowed here")
		}
		return wharf.Verdict{}
	})
}

func main() {}
