package provider

import (
	"net/http"
	"strings"
)

// ClassOf sorts a status of HTTP, also one that a server names inside a reply.
// A status that it does not know is Invalid below 500 and Server from there on.
func ClassOf(status int) Class {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Auth
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		return Timeout
	case status == http.StatusPaymentRequired:
		return Quota
	case status == http.StatusTooManyRequests:
		return RateLimit
	case status >= 500:
		return Server
	default:
		return Invalid
	}
}

// overflows are what servers say, in lower case, of a request that is longer than the
// model takes.
var overflows = []string{
	"context_length_exceeded", "exceed_context_size", "context_window_exceeded", "model_context_window", "maximum context length",
	"context length exceeded", "exceeds the context", "exceed the context", "exceed context limit", "exceeds the available context size",
	"exceeds the model's max", "exceeds model's max", "context window exceed", "exceeds the context window", "greater than the context length",
	"context overflows", "longer than the maximum model length", "longer than the model's context", "longer than context",
	"prompt is too long", "prompt too long", "input is too long for", "input too long", "maximum prompt length", "exceeded model token limit",
	"exceeds the maximum number of tokens allowed", "reduce the length of the messages", "reduce your prompt", "string_above_max_length",
	"`inputs` tokens + `max_new_tokens`", "range of input length should be",
}

// IsOverflow reports whether what a server said, in its codes or its words, is that the
// request is longer than the model takes. A limit of tokens a minute is something else.
func IsOverflow(said string) bool {
	said = strings.ToLower(said)
	if strings.Contains(said, "per minute") || strings.Contains(said, "per day") {
		return false
	}
	for _, words := range overflows {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}
