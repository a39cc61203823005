package egress_test

import (
	"fmt"

	"github.com/wharf-agent/wharf/engine/egress"
)

// What two patterns both allow is a pattern again.
func ExamplePattern_Intersect() {
	asked, _ := egress.ParsePattern("* https://*.example.com/*")
	granted, _ := egress.ParsePattern("GET https://api.example.com/v1/*")
	both, _ := asked.Intersect(granted)
	fmt.Println(both)
	fmt.Println(asked.Covers(both), granted.Covers(asked))
	// Output:
	// GET https://api.example.com/v1/*
	// true false
}

// A URL is brought into one form, or refused.
func ExampleParseURL() {
	for _, text := range []string{"HTTPS://Example.com:443", "http://0x7f.1/", "https://example.com/%2e%2e/x"} {
		u, err := egress.ParseURL(text)
		fmt.Println(u, err)
	}
	// Output:
	// https://example.com/ <nil>
	// <nil> url: "0x7f.1" is no address: write its four numbers in decimal
	// <nil> url: its path has a dot segment
}

// A list names hosts; an address of one's own opens with its port.
func ExampleParseEntry() {
	for _, text := range []string{"*.pypi.org", "127.0.0.1:8080", "https://pypi.org", "127.0.0.1"} {
		fmt.Println(egress.ParseEntry(text))
	}
	// Output:
	// *.pypi.org <nil>
	// 127.0.0.1:8080 <nil>
	//  "https://pypi.org": write the host alone, without https:// and without a path
	//  "127.0.0.1": an address needs its port: write 127.0.0.1:8080
}
