//go:build wasip1

// Work for benchmarks, as a Go guest does it. Each function does its work n
// times over and returns a checksum.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"regexp"
	"sort"
)

func main() {}

var block = func() []byte {
	b := make([]byte, 4096)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}()

//go:wasmexport sha256
func hash(n uint32) uint32 {
	var sum [32]byte
	for range n {
		sum = sha256.Sum256(block)
	}
	return uint32(sum[0])<<8 | uint32(sum[1])
}

type record struct {
	ID   int                `json:"id"`
	Name string             `json:"name"`
	Tags []string           `json:"tags"`
	At   map[string]float64 `json:"at"`
}

//go:wasmexport json
func roundTrip(n uint32) uint32 {
	text := []byte(`{"id":17,"name":"a \"quoted\" name","tags":["one","two","three"],"at":{"x":1.5,"y":-20}}`)
	for range n {
		var r record
		if json.Unmarshal(text, &r) != nil {
			return 0
		}
		text, _ = json.Marshal(r)
	}
	return uint32(len(text))
}

//go:wasmexport sort
func sortInts(n uint32) uint32 {
	values, seed, sum := make([]int, 2000), uint32(1), 0
	for range n {
		for i := range values {
			seed = seed*1664525 + 1013904223
			values[i] = int(seed >> 4)
		}
		sort.Ints(values)
		sum += values[77]
	}
	return uint32(sum)
}

//go:wasmexport bytes
func byteLoop(n uint32) uint32 {
	h := uint32(2166136261)
	for range n {
		for _, b := range block {
			h = (h ^ uint32(b)) * 16777619
		}
	}
	return h
}

var words = regexp.MustCompile(`\b[a-z]+_[0-9]{2,4}\b`)

//go:wasmexport regexp
func match(n uint32) uint32 {
	text, found := "some text with name_12 and other_4567 in it, and more_99999 than that", 0
	for range n {
		found += len(words.FindAllString(text, -1))
	}
	return uint32(found)
}

//go:wasmexport fib
func fibs(n uint32) uint32 {
	sum := uint32(0)
	for range n {
		sum += fib(15)
	}
	return sum
}

//go:noinline
func fib(n uint32) uint32 {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}
