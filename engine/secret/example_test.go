package secret_test

import (
	"context"
	"fmt"

	"github.com/wharf-agent/wharf/engine/secret"
)

// A value is known once it was read, and found in any of its forms.
func ExampleScanner_Redact() {
	store, _ := secret.NewStore(secret.Config{
		LookupEnv: func(string) (string, bool) { return "tk-5f0c9a1e77", true },
	})
	_, _ = store.Value(context.Background(), "TOKEN")
	for _, text := range []string{"it is tk-5f0c9a1e77!", "dGstNWYwYzlhMWU3Nw==", "tk%2D5f0c9a1e77"} {
		clean, found := store.Scanner().Redact(text)
		fmt.Println(clean, found)
	}
	// Output:
	// it is [redacted:TOKEN]! true
	// [redacted:TOKEN]w== true
	// [redacted:TOKEN] true
}
