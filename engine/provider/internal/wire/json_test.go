package wire

import (
	"strings"
	"testing"
)

func TestSendableName(t *testing.T) {
	tests := []struct{ name, want string }{
		{"read_file", "read_file"},
		{"fs.read-1", "fs_read-1"},
		{"\x1b[2Jé\x00", "__2J__"},
		{strings.Repeat("n", 1000), strings.Repeat("n", 64)},
	}
	for _, tt := range tests {
		if got := SendableName(tt.name); got != tt.want {
			t.Errorf("SendableName(%q) = %q; want %q", tt.name, got, tt.want)
		}
	}
}
