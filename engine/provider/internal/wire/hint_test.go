package wire

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wharf-agent/wharf/engine/provider"
)

// A wait is read wherever a server puts it, and what it means follows from how
// long it is.
func TestHints(t *testing.T) {
	now := time.Now()
	tests := []struct {
		name, headers, body string
		want                time.Duration
		class               provider.Class
	}{
		{"seconds in a header", "Retry-After: 7", "", 7 * time.Second, provider.RateLimit},
		{"a fraction of them", "Retry-After: 0.5", "", 500 * time.Millisecond, provider.RateLimit},
		{"milliseconds in a header", "Retry-After-Ms: 1500", "", 1500 * time.Millisecond, provider.RateLimit},
		{"a date in a header", "Retry-After: " + now.Add(time.Minute).UTC().Format(http.TimeFormat), "", time.Minute, provider.RateLimit},
		{"a date that is over", "Retry-After: " + now.Add(-time.Hour).UTC().Format(http.TimeFormat), "", 0, provider.RateLimit},
		{"a negative number", "Retry-After: -5", "", 0, provider.RateLimit},
		{"no number", "Retry-After: soon", "", 0, provider.RateLimit},
		{"a huge number", "Retry-After: 1e300", "", longestDelay, provider.RateLimit},
		{"the reset of what is used up, not of what is left", "X-RateLimit-Remaining-Requests: 5\nX-RateLimit-Reset-Requests: 6m0s\nX-RateLimit-Remaining-Tokens: 0\nX-RateLimit-Reset-Tokens: 7.66s", "", 7660 * time.Millisecond, provider.RateLimit},
		{"milliseconds since 1970", fmt.Sprintf("X-RateLimit-Remaining: 0\nX-RateLimit-Reset: %d", now.Add(time.Minute).UnixMilli()), "", time.Minute, provider.RateLimit},
		{"seconds since 1970", fmt.Sprintf("X-RateLimit-Reset: %d", now.Add(time.Minute).Unix()), "", time.Minute, provider.RateLimit},
		{"a time of day", "Anthropic-RateLimit-Requests-Remaining: 0\nAnthropic-RateLimit-Requests-Reset: " + now.Add(time.Minute).UTC().Format(time.RFC3339), "", time.Minute, provider.RateLimit},
		{"a delay in the details", "", `{"error":{"code":429,"details":[{"@type":"x/google.rpc.RetryInfo","retryDelay":"2.601s"}],"message":"You exceeded your current quota"}}`, 2601 * time.Millisecond, provider.RateLimit},
		{"seconds as a field", "", `{"error":{"message":"usage","type":"usage_limit_reached","resets_in_seconds":5400}}`, 90 * time.Minute, provider.Quota},
		{"a quoted header", "", fmt.Sprintf(`{"error":{"message":"Rate limit","metadata":{"headers":{"X-RateLimit-Reset":"%d"}}}}`, now.Add(time.Minute).UnixMilli()), time.Minute, provider.RateLimit},
		{"hours and minutes in words", "", `{"error":{"message":"Your quota resets in 9h05m."}}`, 9*time.Hour + 5*time.Minute, provider.Quota},
		{"minutes and seconds in words", "", `{"error":{"message":"Limit 100000, used 99000. Please try again in 7m12.48s. Visit us"}}`, 7*time.Minute + 12480*time.Millisecond, provider.RateLimit},
		{"written out", "", `{"error":{"message":"Please retry after 20 seconds."}}`, 20 * time.Second, provider.RateLimit},
		{"written out, in two parts", "", `Try again in 1 hour and 30 minutes`, 90 * time.Minute, provider.RateLimit},
		{"days", "", `{"error":{"message":"Usage limit reached, it will reset in 3 days"}}`, 72 * time.Hour, provider.Quota},
		{"a number that is no wait", "", `{"error":{"message":"at most 20 requests in 60 s are allowed, again"}}`, 0, provider.RateLimit},
		{"a used-up quota without a time", "", `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`, 0, provider.Quota},
		{"a quota of a minute", "Retry-After: 30", `{"error":{"message":"quota exceeded for requests per minute"}}`, 30 * time.Second, provider.RateLimit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			for line := range strings.Lines(tt.headers) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
				h.Set(name, value)
			}
			e := statusError(&http.Response{StatusCode: 429, Header: h}, []byte(tt.body))
			if off := (tt.want - e.RetryAfter).Abs(); off > 2*time.Second || e.Class != tt.class {
				t.Errorf("statusError = class %s, wait %s; want %s, %s", e.Class, e.RetryAfter, tt.class, tt.want)
			}
		})
	}
}

func TestQuotaIsToldFromTheRest(t *testing.T) {
	tests := []struct {
		status int
		body   string
		want   provider.Class
	}{
		{402, `{"error":{"message":"Insufficient Balance"}}`, provider.Quota},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}`, provider.Quota},
		{403, `{"error":{"message":"billing_hard_limit_reached"}}`, provider.Quota},
		{429, `{"error":{"type":"exceeded_current_quota_error","message":"check your plan"}}`, provider.Quota},
		{429, `{"error":{"code":"1113","message":"no resource package"}}`, provider.Quota},
		{429, `{"error":{"type":"rate_limit_reached_error","message":"max RPM: 3"}}`, provider.RateLimit},
		{429, ``, provider.RateLimit},
		{400, `{"error":{"message":"no such field quota"}}`, provider.Invalid},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, provider.Server},
		{401, `{"error":{"message":"no such key"}}`, provider.Auth},
	}
	for _, tt := range tests {
		if got := statusError(&http.Response{StatusCode: tt.status, Header: http.Header{}}, []byte(tt.body)); got.Class != tt.want {
			t.Errorf("status %d with %s: class %s; want %s", tt.status, tt.body, got.Class, tt.want)
		}
	}
}

func TestErrorsInsideAStream(t *testing.T) {
	tests := []struct {
		body string
		want provider.Class
	}{
		{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, provider.Server},
		{`{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`, provider.Server},
		{`{"type":"error","error":{"type":"invalid_request_error","message":"bad"}}`, provider.Invalid},
		{`{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`, provider.RateLimit},
		{`{"type":"error","error":{"type":"authentication_error","message":"bad key"}}`, provider.Auth},
		{`{"error":{"message":"boom","code":502}}`, provider.Server},
		{`{"error":"who knows"}`, provider.Server},
	}
	for _, tt := range tests {
		if got := Complain([]byte(tt.body)); got.Class != tt.want {
			t.Errorf("%s: class %s; want %s", tt.body, got.Class, tt.want)
		}
	}
}

func TestARefusalOfImages(t *testing.T) {
	tests := []struct {
		status  int
		message string
		want    bool
	}{
		{400, "At most 0 image(s) may be provided in one prompt.", true},
		{404, "No endpoints found that support image input", true},
		{422, "messages[0]: unknown variant `image_url`, expected `text`", true},
		{400, "messages[0].content must be a string", true},
		{500, "image input is not supported - hint: you may need to provide the mmproj", true},
		{400, "Bad Request", true},
		{404, "Not Found", false},
		{400, "maximum context length is 4096 tokens", false},
		{500, "boom", false},
		{401, "no image for you", false},
	}
	for _, tt := range tests {
		if got := refusesImages(&provider.Error{Status: tt.status, Message: tt.message}); got != tt.want {
			t.Errorf("refusesImages(%d, %q) = %t; want %t", tt.status, tt.message, got, tt.want)
		}
	}
}
