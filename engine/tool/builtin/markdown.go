package builtin

import (
	"context"
	"errors"
	"fmt"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
)

// maxHTML bounds what is converted, in bytes.
const maxHTML = 4 << 20

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
		c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
		text, err := c.ConvertString(page, converter.WithDomain(address), converter.WithContext(ctx))
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
