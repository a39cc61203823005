// Package export turns a session's events into something that people read: one
// page of HTML ([HTML]), or a text ([Markdown]).
//
// What stands in a log comes from models, from tools and from whoever wrote what
// those have read, so nothing of it is taken for markup. The page has no script and
// refers to nothing outside itself, and its content security policy forbids both.
// What happened is told as the log has it; what it means is left to the reader.
package export

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strconv"

	"golang.org/x/net/html"

	"github.com/wharf-agent/wharf/engine/session"
)

//go:embed page.css
var pageCSS string

// HTML writes a session as one page.
func HTML(w io.Writer, records []session.Record) error {
	c := read(records)
	page := &html.Node{Type: html.DocumentNode}
	page.AppendChild(&html.Node{Type: html.DoctypeNode, Data: "html"})
	page.AppendChild(el("html", attrs{"lang", "en"}, c.head(), c.body()))
	return html.Render(w, page)
}

// A page is a tree of nodes, which the library writes: what is a text there can
// never be taken for markup. Names of elements and attributes are only ever ours.

// attrs are names and values of attributes, in turns.
type attrs []string

// el returns an element with what is in it. Children that are nil are left out.
func el(name string, a attrs, children ...*html.Node) *html.Node {
	n := &html.Node{Type: html.ElementNode, Data: name}
	for i := 0; i+1 < len(a); i += 2 {
		n.Attr = append(n.Attr, html.Attribute{Key: a[i], Val: a[i+1]})
	}
	for _, child := range children {
		if child != nil {
			n.AppendChild(child)
		}
	}
	return n
}

// text returns a text, without the characters that a page had better not have.
func text(s string) *html.Node { return &html.Node{Type: html.TextNode, Data: clean(s)} }

func class(name string) attrs { return attrs{"class", name} }

// anchor is the class and the place of what shows an event.
func anchor(name string, seq int64) attrs {
	return attrs{"class", name, "id", fmt.Sprintf("e%d", seq)}
}

func good(yes bool) string {
	if yes {
		return "good"
	}
	return "bad"
}

func (c *conversation) head() *html.Node {
	sum := sha256.Sum256([]byte(pageCSS))
	policy := fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; img-src data:; base-uri 'none'; form-action 'none'",
		base64.StdEncoding.EncodeToString(sum[:]))
	return el("head", nil,
		el("meta", attrs{"charset", "utf-8"}),
		el("meta", attrs{"http-equiv", "Content-Security-Policy", "content", policy}),
		el("meta", attrs{"name", "viewport", "content", "width=device-width, initial-scale=1"}),
		el("meta", attrs{"name", "referrer", "content", "no-referrer"}),
		el("title", nil, text("Session "+string(c.Start.ID))),
		el("style", nil, &html.Node{Type: html.TextNode, Data: pageCSS}))
}

func (c *conversation) body() *html.Node {
	facts := el("dl", nil)
	for _, f := range c.Facts() {
		facts.AppendChild(el("div", nil, el("dt", nil, text(f.Name)), el("dd", nil, text(f.Value))))
	}
	main := el("main", nil)
	for _, i := range c.Between {
		main.AppendChild(i.node())
	}
	for _, t := range c.Turns {
		main.AppendChild(t.node())
	}
	return el("body", nil,
		el("header", nil, el("p", class("brand"), text("Wharf session")), el("h1", nil, text(string(c.Start.ID))), facts, c.nav()),
		main)
}

// nav leads to the turns, if there are several.
func (c *conversation) nav() *html.Node {
	if len(c.Turns) < 2 {
		return nil
	}
	nav := el("nav", nil)
	for _, t := range c.Turns {
		name := strconv.Itoa(t.Number)
		nav.AppendChild(el("a", attrs{"href", "#turn-" + name, "class", good(t.Good())}, text("turn "+name)))
	}
	return nav
}

func (t *turn) node() *html.Node {
	measure := t.Measure()
	if t.Origin != "user" {
		measure += ", from " + t.Origin
	}
	name := strconv.Itoa(t.Number)
	section := el("section", attrs{"id", "turn-" + name},
		el("h2", nil, text("Turn "+name+" "), el("span", class("state "+good(t.Good())), text(t.State())), text(" "), el("small", nil, text(measure))),
		t.timeline())
	for _, i := range t.Items {
		section.AppendChild(i.node())
	}
	if t.Error != "" {
		section.AppendChild(el("p", class("error"), text(t.Error)))
	}
	return section
}

// timeline shows what ran when, a lane each.
func (t *turn) timeline() *html.Node {
	if len(t.Lanes) == 0 {
		return nil
	}
	line := el("div", class("timeline"))
	for _, b := range t.Bars() {
		line.AppendChild(el("a", attrs{"href", fmt.Sprintf("#e%d", b.Seq), "class", "lane"},
			el("span", nil, text(b.Label)),
			el("svg", attrs{"viewBox", fmt.Sprintf("0 0 %d 10", laneWidth), "preserveAspectRatio", "none", "aria-hidden", "true"},
				el("rect", attrs{"class", b.Kind, "x", strconv.Itoa(b.X), "width", strconv.Itoa(b.Width), "y", "0", "height", "10", "rx", "1"})),
			el("small", nil, text(took(b.Took)))))
	}
	return line
}

func (i *item) node() *html.Node {
	switch i.Kind {
	case "step":
		return el("p", anchor("step", i.Seq), el("span", nil, text(i.Title)))
	case "note":
		return i.note()
	case "call":
		return i.call()
	}
	about := "at " + at(i.At)
	if tokens := i.Tokens(); tokens != "" {
		about += ", tokens: " + tokens
	}
	message := el("article", anchor("message "+i.Kind, i.Seq), el("h3", nil, text(i.Title+" "), el("small", nil, text(about))))
	if i.Reasoning != "" {
		message.AppendChild(el("details", nil, el("summary", nil, text("reasoning")), el("div", class("text"), text(i.Reasoning))))
	}
	if i.Text != "" {
		message.AppendChild(el("div", class("text"), text(i.Text)))
	}
	addImages(message, i.Images)
	return message
}

func (i *item) note() *html.Node {
	return el("p", anchor("note", i.Seq), el("b", nil, text(i.Title)), text(" "+i.Text))
}

// longResult is how long a result is that is folded at first.
const longResult = 1500

func (i *item) call() *html.Node {
	c := i.Call
	article := el("article", anchor("call "+good(c.Good()), i.Seq),
		el("h3", nil, el("code", nil, text(c.Name)), text(" "), el("span", class("state "+good(c.Good())), text(c.State())),
			text(" "), el("small", nil, text("at "+at(i.At)))),
		el("pre", class("arguments"), text(c.Arguments)))
	for _, note := range c.Notes {
		article.AppendChild(note.note())
	}
	if !c.Done {
		return article
	}
	var open attrs
	if len(c.Result) < longResult {
		open = attrs{"open", ""}
	}
	result := el("details", open, el("summary", nil, text("result")), el("pre", nil, text(c.Result)))
	addImages(result, c.Images)
	article.AppendChild(result)
	return article
}

// addImages shows images, but for those of a kind that a browser may take for a document.
func addImages(to *html.Node, images []session.Image) {
	for _, i := range images {
		if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, i.MediaType) {
			to.AppendChild(el("p", class("note"), text("an image of type "+i.MediaType)))
			continue
		}
		data := "data:" + i.MediaType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
		to.AppendChild(el("img", attrs{"src", data, "alt", "an image that the model was shown"}))
	}
}
