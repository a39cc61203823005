package provider

import "testing"

func TestIsOverflow(t *testing.T) {
	tests := []struct {
		said string
		want bool
	}{
		{"context_length_exceeded ", true},
		{"This model's maximum context length is 16384 tokens. However, your request has 20500 input tokens.", true},
		{"prompt is too long: 210000 tokens > 200000 maximum", true},
		{"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", true},
		{"the request exceeds the available context size, try increasing it", true},
		{"The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).", true},
		{"Your input exceeds the context window of this model. Please adjust your input and try again.", true},
		{"Input is too long for requested model.", true},
		{"Please reduce the length of the messages or completion.", true},
		{"Request too large for model x on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce the length of the messages", false},
		{"max_tokens must be at most 8192", false},
		{"the file context.md is too long", false},
		{"", false},
	}
	for _, tt := range tests {
		if got := IsOverflow(tt.said); got != tt.want {
			t.Errorf("IsOverflow(%q) = %t; want %t", tt.said, got, tt.want)
		}
	}
}
