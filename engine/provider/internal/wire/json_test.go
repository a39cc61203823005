package wire

import (
	"strings"
	"testing"

	"github.com/wharf-agent/wharf/engine/session"
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

// Object says of each beginning of a text what IsObject does, however it is cut.
func FuzzObject(f *testing.F) {
	for _, text := range []string{
		`{}`, ` {"a":[1,{"b":"}\\\"{"}]} `, `{"a":1}{"b":2}`, `{"a":1]`, `[]`, `{]`, `}`, `{"a":"\\`, `{} x`, `{"a" 1}`, `{}}`, ``, "\v{}", "\u00a0{}",
	} {
		f.Add(text, 3)
	}
	f.Fuzz(func(t *testing.T, text string, step int) {
		var o Object
		step = min(max(step, 1), 1+len(text))
		for len(text) > 0 {
			n := min(step, len(text))
			o.Add([]byte(text[:n]))
			text = text[n:]
			if got, want := o.Whole(), IsObject(o.Text); got != want {
				t.Fatalf("Whole of %q = %t; want %t", o.Text, got, want)
			}
		}
	})
}

func TestSendableArguments(t *testing.T) {
	tests := []struct{ name, raw, want string }{
		{"an object stays as it is", ` {"a":1}`, ` {"a":1}`},
		{"nothing is an empty object", " \n", `{}`},
		{"what is no object stands within one", `[1]`, `{"_invalid_arguments":"[1]"}`},
		{"white space that JSON does not know makes it none", "\u00a0{}", "{\"_invalid_arguments\":\"\u00a0{}\"}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := SendableArguments(tt.raw); got != tt.want {
				t.Errorf("SendableArguments(%q) = %q; want %q", tt.raw, got, tt.want)
			}
		})
	}
}

func TestSendableID(t *testing.T) {
	tests := []struct {
		id   session.CallID
		want string
	}{
		{"call_1-A", "call_1-A"},
		{"functions.exec:0", "call_58675f5d777bef0403900c91"},
		{"0123456789abcdefg", "call_8378b19d693ee89e2ca594b6"},
		{"", "call_e3b0c44298fc1c149afbf4c8"},
	}
	for _, tt := range tests {
		if got := SendableID(tt.id, 16); got != tt.want {
			t.Errorf("SendableID(%q) = %q; want %q", tt.id, got, tt.want)
		}
	}
}
