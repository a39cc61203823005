// Command plot draws what "go test -bench BenchmarkHook ./host" printed: a bar for
// each way in which a hook can be asked, in a group for each size of the payload,
// on a logarithmic axis. It reads the output from standard input and writes an SVG
// to standard output. Of what was measured more than once, the median counts.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	metric := flag.String("metric", "cpu-ns/op", "draw this `metric`, in nanoseconds")
	flag.Parse()
	if err := plot(os.Stdin, os.Stdout, *metric); err != nil {
		fmt.Fprintf(os.Stderr, "plot: %v\n", err)
		os.Exit(1)
	}
}

func plot(in io.Reader, out io.Writer, metric string) error {
	groups, err := read(in, metric)
	if err != nil {
		return err
	}
	if len(groups) == 0 {
		return errors.New("the input has no line of BenchmarkHook with " + metric + ": give it what go test -bench printed")
	}
	_, err = io.WriteString(out, draw(groups))
	return err
}
