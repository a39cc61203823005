package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// complaint is what a server says about a failure, in whatever form.
type complaint struct {
	message    string
	status     int    // of HTTP, if the body names one
	words      string // its codes and types, in lower case
	retryAfter time.Duration
}

// readComplaint finds the message in a body: JSON of several shapes, HTML, or
// plain text.
func readComplaint(body []byte) complaint {
	body = bytes.TrimSpace(body)
	var c complaint
	var v any
	switch {
	case len(body) > 0 && body[0] == '<':
		c.message = htmlText(body)
	case !crowded(body) && json.Unmarshal(body, &v) == nil:
		if c.message = say(v); c.message == "" {
			c.message = string(body)
		}
		c.codes(v, 0)
	default:
		c.message = string(body)
	}
	if c.retryAfter == 0 {
		c.retryAfter = spokenDelay(c.message)
	}
	return c
}

// say returns the first text under the names that servers use, the clearest
// name first.
func say(v any) string {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v)
	case []any:
		for _, item := range v {
			if s := say(item); s != "" {
				return s
			}
		}
	case map[string]any:
		if where := place(v["loc"]); where != "" {
			return where + ": " + say(v["msg"])
		}
		for _, name := range []string{
			"message", "error", "detail", "msg", "error_description", "title", "reason", "status", "type", "code",
		} {
			if s := say(v[name]); s != "" {
				return s
			}
		}
	}
	return ""
}

// place returns the field that a list of path elements leads to, as validators
// write it; "" for the body itself.
func place(loc any) string {
	list, _ := loc.([]any)
	var path []string
	for _, element := range list {
		path = append(path, fmt.Sprint(element))
	}
	if len(path) > 0 && path[0] == "body" {
		path = path[1:]
	}
	return strings.Join(path, ".")
}

// codes collects what a program may go by, from v and a few levels below.
func (c *complaint) codes(v any, depth int) {
	if depth > 4 {
		return
	}
	if list, ok := v.([]any); ok {
		for _, item := range list {
			c.codes(item, depth+1)
		}
	}
	fields, ok := v.(map[string]any)
	if !ok {
		return
	}
	for _, name := range []string{"code", "status", "status_code", "type"} {
		switch value := fields[name].(type) {
		case float64:
			c.statusIs(value)
		case string:
			n, _ := strconv.ParseFloat(value, 64)
			c.statusIs(n)
			c.words += strings.ToLower(value) + " "
		}
	}
	c.retryAfter = cmp.Or(c.retryAfter, fieldDelay(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		c.codes(fields[name], depth+1)
	}
}

func (c *complaint) statusIs(n float64) {
	if c.status == 0 && n >= 400 && n < 600 {
		c.status = int(n)
	}
}

// pattern returns a pattern that is compiled when it is first asked for: most
// runs meet no error, and should not start later for it.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

var (
	htmlTitle = pattern(`(?is)<title[^>]*>(.*?)</title>`)
	htmlNoise = pattern(`(?is)<(?:script|style)\b.*?</(?:script|style)>|<!--.*?-->|<[^>]*>`)
)

// htmlText returns a page's title, or else its text.
func htmlText(page []byte) string {
	if found := htmlTitle().FindSubmatch(page); found != nil && len(bytes.TrimSpace(found[1])) > 0 {
		page = found[1]
	}
	return html.UnescapeString(htmlNoise().ReplaceAllString(string(page), " "))
}

// excerpt makes s fit for one line of a message: no control characters, no runs
// of space, not long.
func excerpt(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s[:min(len(s), maxErrorBody)])
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > 500 {
		return strings.TrimSpace(string(runes[:500])) + "…"
	}
	return string(runes)
}
