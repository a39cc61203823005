package wire

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestDelay is what a longer wait is taken for.
const longestDelay = 1000 * 24 * time.Hour

// headerDelay reads how long the server wants to be left alone.
func headerDelay(h http.Header) time.Duration {
	for name, unit := range map[string]time.Duration{"Retry-After-Ms": time.Millisecond, "Retry-After": time.Second} {
		if d, ok := delayOf(h.Get(name), unit); ok {
			return d
		}
	}
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		return max(time.Until(at), 0)
	}
	return resetDelay(h)
}

// resetDelay reads when the limits are reset that are used up: of those that have
// something left, the reset does not matter.
func resetDelay(h http.Header) time.Duration {
	var longest time.Duration
	for name := range h {
		lower := strings.ToLower(name)
		if !strings.Contains(lower, "ratelimit") || !strings.Contains(lower, "reset") {
			continue
		}
		left := strings.TrimSpace(h.Get(strings.Replace(lower, "reset", "remaining", 1)))
		if n, err := strconv.ParseFloat(left, 64); left != "" && (err != nil || n > 0) {
			continue
		}
		longest = max(longest, resetOf(h.Get(name)))
	}
	return longest
}

// resetOf reads a time (of day, or since 1970 in seconds or milliseconds) or a
// duration (6m0s, or seconds).
func resetOf(value string) time.Duration {
	value = strings.TrimSpace(value)
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return clamp(time.Until(at))
	}
	if d, err := time.ParseDuration(value); err == nil {
		return clamp(d)
	}
	n, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil || math.IsNaN(n) || n < 0 || n > 1e14:
		return 0
	case n > 1e11:
		return clamp(time.Until(time.UnixMilli(int64(n))))
	case n > 1e9:
		return clamp(time.Until(time.Unix(int64(n), 0)))
	}
	d, _ := delayOf(value, time.Second)
	return d
}

func clamp(d time.Duration) time.Duration { return min(max(d, 0), longestDelay) }

func delayOf(number string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		return 0, false
	}
	return time.Duration(min(n*float64(unit), float64(longestDelay))), true
}

// fieldDelay reads a wait out of an error's own fields.
func fieldDelay(fields map[string]any) time.Duration {
	for _, f := range []struct {
		name string
		unit time.Duration
	}{
		{"retryDelay", time.Second},
		{"retry_after_ms", time.Millisecond},
		{"retry_after_seconds", time.Second},
		{"retry_after", time.Second},
		{"retryAfter", time.Second},
		{"resets_in_seconds", time.Second},
	} {
		switch value := fields[f.name].(type) {
		case float64:
			return clamp(time.Duration(min(max(value, 0)*float64(f.unit), float64(longestDelay))))
		case string:
			if d, err := time.ParseDuration(value); err == nil {
				return clamp(d)
			}
			if d, ok := delayOf(value, f.unit); ok {
				return d
			}
		}
	}
	for name, value := range fields { // a gateway that quotes the headers it was refused with
		text, _ := value.(string)
		if lower := strings.ToLower(name); text != "" && lower == "x-ratelimit-reset" {
			return resetOf(text)
		}
	}
	if at, ok := fields["resets_at"].(float64); ok {
		return resetOf(strconv.FormatFloat(at, 'f', 0, 64))
	}
	return 0
}

var (
	waitWords = pattern(`(?i)\b(?:again|retry|resets?|wait|available)\b[^.\n]{0,30}?\b(?:in|after|for)?\s*((?:\d{1,6}(?:\.\d{1,9})?\s?(?:` + units + `)\b[\s,]*(?:and\s)?|\d{1,6}(?:\.\d{1,9})?(?:ms|h|m|s))+)`)
	oneWait   = pattern(`(?i)(\d{1,6}(?:\.\d{1,9})?)\s?(` + units + `|ms|h|m|s)`)
)

const units = `milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d`

// spokenDelay finds a wait in a message such as "try again in 1m30s" or "retry
// after 20 seconds".
func spokenDelay(message string) time.Duration {
	found := waitWords().FindStringSubmatch(message)
	if found == nil {
		return 0
	}
	var total time.Duration
	for _, part := range oneWait().FindAllStringSubmatch(found[1], 8) {
		unit := time.Second
		switch word := strings.ToLower(part[2]); {
		case word == "ms", strings.HasPrefix(word, "milli"):
			unit = time.Millisecond
		case word[0] == 'm':
			unit = time.Minute
		case word[0] == 'h':
			unit = time.Hour
		case word[0] == 'd':
			unit = 24 * time.Hour
		}
		d, _ := delayOf(part[1], unit)
		total = clamp(total + d)
	}
	return total
}
