package builtin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// What of a page is converted. The converter takes memory for each cell of a table, as
// often as it says that it spans others, and looks through the rest of a text for each [ in it.
const (
	maxHTML     = 4 << 20   // bytes
	maxCells    = 1 << 20   // of all tables together; a further table comes without its lines
	maxBrackets = 500 << 20 // characters that are looked at; a page with more comes without escapes
)

// markdown returns an HTML page as Markdown, with the links in it as seen from address.
func markdown(ctx context.Context, page, address string) (string, error) {
	if len(page) > maxHTML {
		return "", fmt.Errorf("the page has %d bytes, and %d can be converted", len(page), maxHTML)
	}
	type outcome struct {
		text string
		err  error
	}
	done := make(chan outcome, 1)
	go func() { // the converter cannot be cancelled, and the page is a stranger's
		defer func() {
			if recover() != nil {
				done <- outcome{err: errors.New("the page cannot be converted")}
			}
		}()
		text, err := convert(ctx, page, address)
		done <- outcome{text, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return "", fmt.Errorf("convert the page: %w", o.err)
		}
		return o.text, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// convert is markdown, which cannot be cancelled.
func convert(ctx context.Context, page, address string) (string, error) {
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return "", err
	}
	plainTables(doc)
	escapes := converter.WithEscapeMode("smart")
	if brackets(doc) > maxBrackets {
		escapes = converter.WithEscapeMode("disabled")
	}
	c := converter.NewConverter(escapes, converter.WithPlugins(
		base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(),
		table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal)), // one wide cell would widen all
	))
	text, err := c.ConvertNode(doc, converter.WithDomain(address), converter.WithContext(ctx))
	return string(text), err
}

// brackets returns how many characters are looked at for the sake of each [.
func brackets(doc *html.Node) int {
	found, length := 0, 0
	for n := range doc.Descendants() {
		if n.Type == html.TextNode {
			found += strings.Count(n.Data, "[")
			length += len(n.Data)
		}
	}
	return found * length
}

// plainTables marks tables as mere layout that are too large to be shown as tables.
func plainTables(doc *html.Node) {
	left := maxCells
	for n := range doc.Descendants() {
		if n.DataAtom != atom.Table {
			continue
		}
		if cells := cellsOf(n); cells <= left {
			left -= cells
		} else {
			n.Attr = slices.Insert(n.Attr, 0, html.Attribute{Key: "role", Val: "presentation"})
		}
	}
}

// cellsOf returns the most cells that a table can have with what they span, which are added
// to rows of any length.
func cellsOf(table *html.Node) int {
	rows, width, widest, added := 1, 0, 0, 0
	for n := range table.Descendants() {
		switch n.DataAtom {
		case atom.Tr:
			rows, width = rows+1, 0
		case atom.Td, atom.Th:
			width++
			widest = max(widest, width)
			added = min(added+span(n, "rowspan")*span(n, "colspan")-1, maxCells)
		}
	}
	return (rows + added) * (widest + added)
}

// span returns how many rows or columns a cell says that it takes, up to more than are shown.
func span(cell *html.Node, key string) int {
	for _, a := range cell.Attr {
		if n, err := strconv.Atoi(a.Val); a.Key == key && err == nil {
			return min(max(n, 1), maxCells)
		}
	}
	return 1
}
