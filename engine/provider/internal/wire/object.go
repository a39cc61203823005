package wire

import "encoding/json"

// Object is a text that comes in pieces and is to be one JSON object. It knows when
// it is whole, at a cost of its length alone.
type Object struct {
	Text []byte

	read            int // bytes of Text that were looked at
	depth           int
	quoted, escaped bool
	whole, broken   bool
}

// Add adds a piece.
func (o *Object) Add(piece []byte) { o.Text = append(o.Text, piece...) }

// Whole reports whether the text is one object, as [IsObject] does.
func (o *Object) Whole() bool {
	for ; o.read < len(o.Text) && !o.broken; o.read++ {
		o.take(o.Text[o.read])
		if o.whole && o.depth == 0 && o.Text[o.read] == '}' {
			o.broken = !json.Valid(o.Text[:o.read+1])
		}
	}
	return o.whole && !o.broken
}

// take follows the nesting by one byte.
func (o *Object) take(c byte) {
	switch {
	case o.quoted:
		o.quoted = c != '"' || o.escaped
		o.escaped = c == '\\' && !o.escaped
	case c == ' ' || c == '\t' || c == '\r' || c == '\n':
	case o.whole, o.depth == 0 && c != '{':
		o.broken = true
	case c == '"':
		o.quoted = true
	case c == '{' || c == '[':
		o.depth++
	case c == '}' || c == ']':
		o.depth--
		o.whole = o.depth == 0
		o.broken = o.whole && c != '}'
	}
}
