// Command wharf runs AI agents whose every effect is confined and on record.
package main

import (
	"os"

	"github.com/wharf-agent/wharf/cmd/wharf/internal/cli"
)

func main() { os.Exit(cli.Main()) }
