package main

import (
	"fmt"
	"strings"

	wharf "github.com/wharf-agent/wharf/guest-sdk/go"
)

func init() {
	wharf.BeforeExecuteTool(judge)
}

func judge(call wharf.ToolCall) wharf.Verdict {
	command := call.Argument("command")
	if !strings.Contains(command, "git push") {
		return wharf.Verdict{} // no opinion
	}
	var remote string
	if found, err := wharf.Config("remote", &remote); err == nil && found && strings.Contains(command, remote) {
		return wharf.Verdict{}
	}
	const reason = "pushing is the user's: say what you would push"
	times, err := count()
	if err != nil { // it has no memory, and refuses all the same
		wharf.Logf(wharf.Warning, "not counted: %v", err)
		return wharf.Deny(reason)
	}
	return wharf.Deny(fmt.Sprintf("%s (refused %d times)", reason, times))
}

// count counts a refusal, in this and all earlier sessions.
func count() (int, error) {
	var times int
	if _, err := wharf.KVGet("refused", &times); err != nil {
		return 0, err
	}
	times++
	return times, wharf.KVSet("refused", times)
}

func main() {}
