package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

const printed = `goos: linux
BenchmarkHook/way=wharf/payload=0-2         	 1740889	       212.2 ns/op	       150.5 cpu-ns/op	       0 B/op
BenchmarkHook/way=wharf/payload=0-2         	 1740889	       912.2 ns/op	       950.5 cpu-ns/op	       0 B/op
BenchmarkHook/way=wharf/payload=0-2         	 1740889	       312.2 ns/op	       155.0 cpu-ns/op	       0 B/op
BenchmarkHook/way=a<b/payload=10KiB         	       2	 51008832 ns/op	  41008832 cpu-ns/op
BenchmarkHookVerdict/way=wharf/payload=0-2  	       2	 1 ns/op	  1 cpu-ns/op
BenchmarkHook/way=node/payload=0-2          	--- SKIP: BenchmarkHook/way=node
PASS
`

// The picture is XML, with the medians in it.
func TestPlot(t *testing.T) {
	var out strings.Builder
	if err := plot(strings.NewReader(printed), &out, "cpu-ns/op"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">Wharf</text>", ">155 ns</text>", ">No payload</text>", ">a&lt;b</text>", ">41 ms</text>", ">Payload of 10 KiB</text>", ">100 ns</text>", ">100 ms</text>"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the picture has no %s", want)
		}
	}
	if strings.Contains(out.String(), ">1 ns</text>") {
		t.Error("the picture holds another benchmark")
	}
	for d := xml.NewDecoder(strings.NewReader(out.String())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestPlotRefuses(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"what is no output of the benchmark", "PASS\n", "the input has no line of BenchmarkHook with ns/op: give it what go test -bench printed"},
		{"a number that is none", "BenchmarkHook/way=a/payload=0 1 NaN ns/op\n", `read "BenchmarkHook/way=a/payload=0 1 NaN ns/op": NaN ns/op has no place on a logarithmic axis`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := plot(strings.NewReader(tt.in), io.Discard, "ns/op"); err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestInWords(t *testing.T) {
	for ns, want := range map[float64]string{0.5: "0.5 ns", 9: "9 ns", 182.4: "182 ns", 1234: "1.2 µs", 999.6: "1.0 µs", 15_400: "15 µs", 1e6: "1 ms", 1.53e9: "1.5 s"} {
		if got := inWords(ns); got != want {
			t.Errorf("inWords(%v) = %q; want %q", ns, got, want)
		}
	}
}
