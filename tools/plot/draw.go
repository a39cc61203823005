package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// names says what the ways are called in the picture; another keeps its name.
var names = map[string]string{
	"wharf":        "Wharf",
	"wharf-extism": "Wharf, Extism plugin",
	"wharf-go":     "Wharf, guest in Go",
	"wazero-bare":  "wazero, unprotected",
	"wazero-close": "wazero, ends with context",
	"extism-sdk":   "Extism’s Go SDK",
	"sh":           "spawned sh",
	"python3":      "spawned python3",
	"node":         "spawned node",
}

// The picture's measures, in pixels.
const (
	width  = 800
	left   = 190 // where the axis begins
	right  = 70  // room for the numbers behind the longest bars
	top    = 64
	row    = 19
	head   = 30 // of a group
	bottom = 40
)

// axis is logarithmic, from a power of ten to another.
type axis struct{ from, to int }

func axisOf(groups []group) axis {
	least, most := math.Inf(1), math.Inf(-1)
	for _, g := range groups {
		for _, b := range g.bars {
			least, most = min(least, b.median()), max(most, b.median())
		}
	}
	from := int(math.Floor(math.Log10(least)))
	return axis{from, max(from+1, int(math.Ceil(math.Log10(most))))}
}

func (a axis) at(ns float64) float64 {
	return left + (math.Log10(ns)-float64(a.from))/float64(a.to-a.from)*(width-left-right)
}

// draw makes the picture. Its background is its own, so that it can be read on a
// dark page too.
func draw(groups []group) string {
	height := top + bottom
	for _, g := range groups {
		height += head + row*len(g.bars)
	}
	a := axisOf(groups)
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, sans-serif" font-size="12" fill="#24292f">
<title>CPU time of one hook call without an opinion</title>
<rect x="0.5" y="0.5" width="%d" height="%d" rx="8" fill="#ffffff" stroke="#d0d7de"/>
<text x="20" y="28" font-size="16" font-weight="600">One hook call, no opinion: CPU time by size of the payload</text>
<text x="20" y="47" fill="#57606a">Logarithmic: each line is ten times the one before. Shorter is better.</text>
`, width, height, width, height, width-1, height-1)
	drawGrid(&s, a, height)
	y := top
	for _, g := range groups {
		y = drawGroup(&s, a, g, y)
	}
	s.WriteString("</svg>\n")
	return s.String()
}

func drawGrid(s *strings.Builder, a axis, height int) {
	for power := a.from; power <= a.to; power++ {
		ns := math.Pow10(power)
		fmt.Fprintf(s, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#eaeef2"/>`+"\n", a.at(ns), top, a.at(ns), height-bottom+6)
		fmt.Fprintf(s, `<text x="%.1f" y="%d" text-anchor="middle" fill="#57606a">%s</text>`+"\n", a.at(ns), height-bottom+22, inWords(ns))
	}
}

// drawGroup draws a group below y, and returns where the next begins.
func drawGroup(s *strings.Builder, a axis, g group, y int) int {
	fmt.Fprintf(s, `<text x="20" y="%d" font-weight="600">%s</text>`+"\n", y+head-9, html.EscapeString(title(g.payload)))
	y += head
	for _, b := range g.bars {
		name, color, weight := b.way, "#8c959f", "400"
		if known, ok := names[b.way]; ok {
			name = known
		}
		if strings.HasPrefix(b.way, "wharf") {
			color, weight = "#0969da", "600"
		}
		end := max(a.at(b.median()), left+2)
		fmt.Fprintf(s, `<text x="%d" y="%d" text-anchor="end" font-weight="%s">%s</text>`+"\n", left-8, y+13, weight, html.EscapeString(name))
		fmt.Fprintf(s, `<rect x="%d" y="%d" width="%.1f" height="%d" rx="2" fill="%s"/>`+"\n", left, y+3, end-left, row-6, color)
		fmt.Fprintf(s, `<text x="%.1f" y="%d" font-weight="%s">%s</text>`+"\n", end+6, y+13, weight, inWords(b.median()))
		y += row
	}
	return y
}

func title(payload string) string {
	if payload == "0" {
		return "No payload"
	}
	digits := strings.TrimRight(payload, "BKMGi")
	return "Payload of " + digits + " " + strings.TrimPrefix(payload, digits)
}

// inWords writes a time with two digits that count.
func inWords(ns float64) string {
	unit := "ns"
	for _, larger := range []string{"µs", "ms", "s"} {
		if ns < 999.5 {
			break
		}
		ns, unit = ns/1000, larger
	}
	if ns < 9.95 && ns != math.Trunc(ns) {
		return fmt.Sprintf("%.1f %s", ns, unit)
	}
	return fmt.Sprintf("%.0f %s", ns, unit)
}
