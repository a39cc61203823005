package abi

import "testing"

func TestPack(t *testing.T) {
	tests := []struct {
		name      string
		high, low uint32
		want      uint64
	}{
		{"nothing is zero", 0, 0, 0},
		{"the address is in the upper half", 0x1000, 12, 0x0000_1000_0000_000c},
		{"both halves reach to the top", 0xffff_ffff, 0xffff_ffff, 0xffff_ffff_ffff_ffff},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Pack(tt.high, tt.low); got != tt.want {
				t.Errorf("Pack(%#x, %#x) = %#x; want %#x", tt.high, tt.low, got, tt.want)
			}
			if high, low := Unpack(tt.want); high != tt.high || low != tt.low {
				t.Errorf("Unpack(%#x) = %#x, %#x; want %#x, %#x", tt.want, high, low, tt.high, tt.low)
			}
		})
	}
}

// The words are written to logs and answered to guests, so they never change.
func TestWords(t *testing.T) {
	codes := []string{"OK", "NOT_GRANTED", "BAD_REQUEST", "FAILED", "OVER_LIMIT", "UNKNOWN_OPERATION", "FAILED"}
	for i, want := range codes {
		if got := Status(i).Code(); got != want {
			t.Errorf("Status(%d).Code() = %q; want %q", i, got, want)
		}
	}
	levels := []string{"debug", "info", "warning", "error", "error"}
	for i, want := range levels {
		if got := Level(i).String(); got != want {
			t.Errorf("Level(%d).String() = %q; want %q", i, got, want)
		}
	}
}
