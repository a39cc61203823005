package cli

import "testing"

func TestSize(t *testing.T) {
	tests := []struct {
		text string
		want size
		err  string
	}{
		{"512MiB", 512 << 20, ""},
		{"2GiB", 2 << 30, ""},
		{"1KiB", 1 << 10, ""},
		{"200TiB", 200 << 40, ""},
		{"999999999TiB", 0, `"999999999TiB" is more than any machine has`},
		{"2GB", 0, `"2GB" is no size such as "512MiB" or "2GiB"`},
		{"2147483648", 0, `"2147483648" is no size such as "512MiB" or "2GiB"`},
		{"-1MiB", 0, `"-1MiB" is no size such as "512MiB" or "2GiB"`},
		{"", 0, `"" is no size such as "512MiB" or "2GiB"`},
	}
	for _, tt := range tests {
		var got size
		err := got.UnmarshalText([]byte(tt.text))
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%q is %d, %v; want %d, %q", tt.text, got, err, tt.want, tt.err)
		}
	}
}
