// Command keep-generated is an example of a hook in Go: it denies edits of
// files that a generator writes, and tells the model what to do instead.
package main

import (
	"path"

	wharf "github.com/wharf-agent/wharf/guest-sdk/go"
)

func init() {
	wharf.BeforeExecuteTool(func(c wharf.ToolCall) wharf.Verdict {
		patterns := []string{"go.sum", "*.pb.go", "*.lock", "package-lock.json"}
		if _, err := wharf.Config("patterns", &patterns); err != nil {
			return wharf.Fail(err)
		}
		for _, pattern := range patterns {
			if ok, _ := path.Match(pattern, path.Base(c.Argument("path"))); ok {
				return wharf.Deny(c.Argument("path") + " is generated: change its source and run the generator")
			}
		}
		return wharf.Verdict{}
	})
}

func main() {}
