package extism

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// house is a host with a little room.
type house struct {
	room int
	log  []string
}

func (h *house) Config(key string) (string, bool) { return "value of " + key, key == "known" }
func (h *house) Log(level uint32, text []byte) {
	h.log = append(h.log, fmt.Sprint(level, " ", string(text)))
}
func (h *house) Room() int { return h.room }
func (h *house) Call(operation, request []byte) []byte {
	return []byte(fmt.Sprintf("%s(%s)", operation, request))
}

// call calls a function of the ABI as a guest does.
func call(k *Kernel, name string, params ...uint64) (result uint64, fault string) {
	defer func() {
		if f, ok := recover().(*Fault); ok {
			fault = f.Error()
		}
	}()
	stack := append(params, 0)
	env[name].run(k, stack)
	return stack[0], ""
}

func must(t testing.TB, k *Kernel, name string, params ...uint64) uint64 {
	t.Helper()
	result, fault := call(k, name, params...)
	if fault != "" {
		t.Fatalf("%s(%v): %s", name, params, fault)
	}
	return result
}

// put makes a block that holds a text.
func put(t testing.TB, k *Kernel, text string) uint64 {
	t.Helper()
	at := must(t, k, "alloc", uint64(len(text)))
	for i := range text {
		must(t, k, "store_u8", at+uint64(i), uint64(text[i]))
	}
	return at
}

func TestInputAndOutput(t *testing.T) {
	k := New(&house{room: 1 << 20})
	if !k.Begin([]byte("0123456789")) {
		t.Fatal("the input does not fit")
	}
	if n := must(t, k, "input_length"); n != 10 {
		t.Errorf("input_length = %d", n)
	}
	if c := must(t, k, "input_load_u8", 9); c != '9' {
		t.Errorf("input_load_u8(9) = %c", rune(c))
	}
	if w := must(t, k, "input_load_u64", 0); w != 0x3736353433323130 {
		t.Errorf("input_load_u64(0) = %x", w)
	}
	at := put(t, k, "an output")
	must(t, k, "output_set", at, 9)
	if got := string(k.Output()); got != "an output" {
		t.Errorf("Output() = %q", got)
	}
	must(t, k, "error_set", put(t, k, "it broke"))
	if got := k.Failure(); got != "it broke" {
		t.Errorf("Failure() = %q", got)
	}
	k.Begin(nil)
	if len(k.Output()) > 0 || k.Failure() != "" || must(t, k, "input_length") != 0 || must(t, k, "length", at) != 0 {
		t.Error("a new call sees what an earlier one left")
	}
}

func TestConfigVarsAndLog(t *testing.T) {
	h := &house{room: 1 << 20}
	k := New(h)
	if got := string(k.memory.block(must(t, k, "config_get", put(t, k, "known")))); got != "value of known" {
		t.Errorf("config_get = %q", got)
	}
	if at := must(t, k, "config_get", put(t, k, "unknown")); at != 0 {
		t.Errorf("config_get of an unknown key = %d", at)
	}
	must(t, k, "var_set", put(t, k, "n"), put(t, k, "one"))
	k.Begin(nil) // variables outlast a call
	if got := string(k.memory.block(must(t, k, "var_get", put(t, k, "n")))); got != "one" {
		t.Errorf("var_get = %q", got)
	}
	must(t, k, "var_set", put(t, k, "n"), 0)
	if at := must(t, k, "var_get", put(t, k, "n")); at != 0 || k.varCost != 0 {
		t.Errorf("a removed variable is at %d, and costs %d", at, k.varCost)
	}
	must(t, k, "log_warn", put(t, k, "careful"))
	if got := strings.Join(h.log, ","); got != "2 careful" {
		t.Errorf("logged %q", got)
	}
}

// What a guest does with addresses that it made up ends its call, or does nothing.
func TestFaults(t *testing.T) {
	const far = 1 << 63
	tests := []struct {
		name   string
		params []uint64
		want   string
	}{
		{"load_u8", []uint64{far}, "1 bytes at 0x8000000000000000 are in no block of Extism's memory"},
		{"load_u64", []uint64{^uint64(0) - 3}, "8 bytes at 0xfffffffffffffffc are in no block of Extism's memory"},
		{"store_u64", []uint64{1 << 20, 1}, "8 bytes at 0x100000 are in no block of Extism's memory"},
		{"output_set", []uint64{16, 1 << 40}, "1099511627776 bytes at 0x10 are in no block of Extism's memory"},
		{"input_set", []uint64{far, far}, "9223372036854775808 bytes at 0x8000000000000000 are in no block of Extism's memory"},
		{"input_load_u8", []uint64{5}, "1 bytes at 5 are behind the end of the input, which has 5"},
		{"input_load_u64", []uint64{^uint64(0)}, "8 bytes at 18446744073709551615 are behind the end of the input, which has 5"},
		{"http_request", []uint64{0, 0}, "http_request: Extism's own HTTP is off: call wharf_call of extism:host/user with http.fetch, and ask for http in the manifest"},
		{"free", []uint64{far}, ""},
		{"free", []uint64{17}, ""}, // within a block
		{"length", []uint64{far}, ""},
		{"error_set", []uint64{far}, ""},
		{"config_get", []uint64{far}, ""},
		{"log_info", []uint64{far}, ""},
		{"alloc", []uint64{far}, ""},
		{"alloc", []uint64{1 << 32}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := New(&house{room: 4096})
			k.Begin([]byte("input"))
			if _, fault := call(k, tt.name, tt.params...); fault != tt.want {
				t.Errorf("%s(%x): %q\nwant %q", tt.name, tt.params, fault, tt.want)
			}
		})
	}
}

func TestVariablesAreBounded(t *testing.T) {
	k := New(&house{room: 8 << 20})
	big := put(t, k, strings.Repeat("x", 600<<10))
	must(t, k, "var_set", put(t, k, "a"), big)
	must(t, k, "var_set", put(t, k, "a"), big) // replaced, not added
	_, fault := call(k, "var_set", put(t, k, "b"), big)
	if want := "var_set: the variables have more than 1024 KiB: keep large values with wharf_call and kv.set"; fault != want {
		t.Errorf("got  %q\nwant %q", fault, want)
	}
}

// However blocks are allocated and freed, none overlaps another, all are zero
// when new, and together they stay within the room.
func TestBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const room = 64 << 10
		var m memory
		m.reset()
		live := map[uint64]uint64{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(live) > 0 && rapid.Bool().Draw(t, "free") {
				for at := range live {
					m.release(at)
					delete(live, at)
					break
				}
				continue
			}
			n := rapid.Uint64Range(1, 9000).Draw(t, "n")
			at := m.alloc(n, room)
			if at == 0 {
				continue
			}
			for _, c := range m.block(at) {
				if c != 0 {
					t.Fatal("a new block is not empty")
				}
			}
			for i := range m.block(at) {
				m.block(at)[i] = 0xff
			}
			for other, length := range live {
				if at < other+length && other < at+n {
					t.Fatalf("%d bytes at %d overlap %d at %d", n, at, length, other)
				}
			}
			live[at] = n
		}
		if len(m.data) > room {
			t.Fatalf("%d bytes are in use; the room is %d", len(m.data), room)
		}
	})
}

// An error as large as the memory is cut, so that nobody takes long to read it.
func TestFailureIsCut(t *testing.T) {
	k := New(&house{room: 64 << 20})
	must(t, k, "error_set", must(t, k, "alloc", 32<<20))
	if got := len(k.Failure()); got != maxFailure {
		t.Errorf("Failure() has %d bytes; want %d", got, maxFailure)
	}
}
