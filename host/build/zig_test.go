package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Zig is what PATH has under that name, or else Python's package, if it can be
// started.
func TestZigIsFound(t *testing.T) {
	tests := []struct {
		name    string
		scripts map[string]string
		want    string
	}{
		{"zig itself", map[string]string{"zig": "exit 0", "python3": "exit 0"}, "DIR/zig"},
		{"Python's package", map[string]string{"python3": `test "$*" = "-m ziglang version"`}, "DIR/python3 -m ziglang"},
		{"a Python without it", map[string]string{"python3": "exit 1"}, "zig is not installed: pip install ziglang"},
		{"neither", nil, "zig is not installed: pip install ziglang"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, script := range tt.scripts {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			argv, err := zigTool.Command(t.Context(), []string{"PATH=" + dir})
			got := strings.ReplaceAll(strings.Join(argv, " "), dir, "DIR")
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
