package host

import (
	"bytes"
	"slices"
	"testing"
)

// oneFunction is a module with one function.
func oneFunction(body []byte) *module {
	code := append(appendU32([]byte{1}, uint32(len(body))), body...)
	return &module{
		types: []signature{{}}, funcs: []uint32{0},
		sections: []section{{id: sectionType, data: []byte{1, 0x60, 0, 0}}, {id: sectionFunction, data: []byte{1, 0}}, {id: sectionCode, data: code}},
	}
}

func TestCodeRefused(t *testing.T) {
	deep := func(n int, op, more byte) []byte {
		return slices.Concat(bytes.Repeat([]byte{op, 0x40}, n), bytes.Repeat([]byte{opEnd}, n), []byte{more})
	}
	tests := []struct {
		name, want string
		body       []byte
	}{
		{"a large body", "function 0: it has 1048577 bytes, and 1048576 is the most: that is over the limit code, since it would take too long to compile", make([]byte, 1<<20+1)},
		{"many variables", "function 0: it has 5001 local variables, and 5000 is the most: that is over the limit code, since it would take too long to compile", append(appendU32([]byte{1}, 5001), 0x7f, opEnd)},
		{"more variables than numbers", "function 0: it has 8589934590 local variables, and 5000 is the most: that is over the limit code, since it would take too long to compile", []byte{2, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, opEnd}},
		{"loops in loops with many variables", "function 0: it has 2000 local variables and 11 loops within each other, whose product may be 20000: that is over the limit code, since it would take too long to compile", append(append(appendU32([]byte{1}, 2000), 0x7f), deep(11, opLoop, opEnd)...)},
		{"deep blocks", "function 0: it has more than 20000 blocks within each other: that is over the limit code, since it would take too long to compile", append([]byte{0}, deep(20_000, opBlock, opEnd)...)},
		{"a large table of branches", "function 0: its tables have more than 50000 branches: that is over the limit code, since it would take too long to compile", append(append(appendU32([]byte{0, opBrTable}, 50_001), make([]byte, 50_002)...), opEnd)},
		{"an instruction of a proposal", "function 0: it has an instruction 18, which this host does not know: build it for WebAssembly 2.0 without proposals", []byte{0, 0x12, 0, opEnd}},
		{"a body without end", "function 0: " + errMalformed.Error(), []byte{0, opBlock, 0x40, opEnd}},
		{"code behind the end", "function 0: " + errMalformed.Error(), []byte{0, opEnd, opEnd}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := oneFunction(tt.body).rewrite()
			if err == nil || err.Error() != tt.want {
				t.Errorf("rewrite: %x, %v\nwant %s", got, err, tt.want)
			}
		})
	}
	as := append(append(appendU32([]byte{1}, 2000), 0x7f), deep(10, opLoop, opEnd)...)
	if _, err := oneFunction(as).rewrite(); err != nil {
		t.Errorf("just within the limit: %v", err)
	}
}
