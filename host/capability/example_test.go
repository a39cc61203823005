package capability_test

import (
	"fmt"

	"github.com/wharf-agent/wharf/host/capability"
)

// A refusal names the line that would allow it.
func ExampleEffective_Allow() {
	asked, _ := capability.FromTable(map[string]any{"exec": []any{"gofmt *"}})
	granted := capability.All().Effective("style", asked)
	for _, command := range []string{"gofmt -l main.go", "go vet"} {
		need, _ := capability.Exec(command)
		fmt.Println(granted.Allow(need))
	}
	// Output:
	// <nil>
	// capability not granted: exec: the manifest does not ask for it: add "go vet" to exec under [capabilities], and grant it
}

// An upgrade is asked about what is new alone.
func ExampleSet_Minus() {
	before, _ := capability.FromTable(map[string]any{"kv": "1MiB", "exec": []any{"gofmt *"}})
	after, _ := capability.FromTable(map[string]any{"kv": "4MiB", "exec": []any{"gofmt -l *", "go vet *"}})
	fmt.Println(after.Minus(before))
	// Output:
	// kv = "4MiB"
	// exec = ["go vet *"]
}
