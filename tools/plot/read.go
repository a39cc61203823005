package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// group holds the bars for one size of the payload.
type group struct {
	payload string
	bars    []bar
}

// bar is one way, and the nanoseconds that it took each time.
type bar struct {
	way   string
	times []float64
}

// median returns the middle one of the times.
func (b bar) median() float64 {
	sorted := slices.Sorted(slices.Values(b.times))
	return sorted[len(sorted)/2]
}

var line = regexp.MustCompile(`^BenchmarkHook/way=([^/\s]+)/payload=([^/\s]+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// read takes a metric out of the output of a benchmark. Groups and bars stand in
// the order in which they come first.
func read(in io.Reader, metric string) ([]group, error) {
	var groups []group
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		m := line.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		value, found, err := find(strings.Fields(m[3]), metric)
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", lines.Text(), err)
		}
		if found {
			groups = add(groups, m[2], m[1], value)
		}
	}
	return groups, lines.Err()
}

// find looks for a metric in values that each stand before their unit.
func find(fields []string, metric string) (float64, bool, error) {
	for i := 1; i < len(fields); i += 2 {
		if fields[i] == metric {
			value, err := strconv.ParseFloat(fields[i-1], 64)
			if err == nil && !(value > 0) {
				err = fmt.Errorf("%s %s has no place on a logarithmic axis", fields[i-1], metric)
			}
			return value, true, err
		}
	}
	return 0, false, nil
}

func add(groups []group, payload, way string, value float64) []group {
	i := slices.IndexFunc(groups, func(g group) bool { return g.payload == payload })
	if i < 0 {
		i, groups = len(groups), append(groups, group{payload: payload})
	}
	g := &groups[i]
	j := slices.IndexFunc(g.bars, func(b bar) bool { return b.way == way })
	if j < 0 {
		j, g.bars = len(g.bars), append(g.bars, bar{way: way})
	}
	g.bars[j].times = append(g.bars[j].times, value)
	return groups
}
