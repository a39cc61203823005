// Command compiler compiles modules for tests: see package hosttest.
package main

import (
	"fmt"
	"os"

	"github.com/wharf-agent/wharf/host"
)

func main() {
	host.Init()
	fmt.Fprintln(os.Stderr, "compiler: a host starts this")
	os.Exit(2)
}
