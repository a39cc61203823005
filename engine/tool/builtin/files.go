package builtin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// The limits of the file tools.
const (
	maxFile     = 10 << 20 // bytes of a file that is read, searched or edited
	maxShown    = 128_000  // bytes of a file that one read shows
	maxLine     = 2_000    // bytes of a line that are shown
	defaultRead = 2_000    // lines
)

type digest [sha256.Size]byte

// files is what the file tools of a session share: the workspace, and what the
// model last saw of each file in it.
type files struct {
	root   *sandbox.Root
	hidden func(path string) bool // from a search

	mu   sync.Mutex
	seen map[string]digest // by resolved path
}

func (f *files) saw(rel string, content []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[rel] = sha256.Sum256(content)
}

// known refuses a file that the model never saw: who has not would change what it does
// not know.
func (f *files) known(rel string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.seen[rel]; !known {
		return fmt.Errorf("%q was not read in this session: read it, then change it", rel)
	}
	return nil
}

// unchanged returns a check that what is at rel is still what the model saw
// last. A file that it never saw passes.
func (f *files) unchanged(rel string) func(*os.File) error {
	f.mu.Lock()
	last, known := f.seen[rel]
	f.mu.Unlock()
	return func(now *os.File) error {
		if !known || now == nil {
			return nil
		}
		content, err := io.ReadAll(io.LimitReader(now, maxFile+1))
		if err != nil {
			return err
		}
		if sha256.Sum256(content) != last {
			return fmt.Errorf("%q changed since it was read: read it again, then change it", rel)
		}
		return nil
	}
}

// read reads a text file whole.
func (f *files) read(name string) ([]byte, string, error) {
	content, rel, err := f.root.ReadAll(name, maxFile)
	if err != nil {
		return nil, "", err
	}
	if err := checkText(name, content); err != nil {
		return nil, "", err
	}
	return content, rel, nil
}

func checkText(name string, content []byte) error {
	if isBinary(content) {
		return fmt.Errorf("%q is no text (%d bytes of binary data)", name, len(content))
	}
	return nil
}

// shown is the result of reading an image.
func shown(name string, image session.Image, err error) (tool.Result, error) {
	if err != nil {
		return tool.Result{}, fmt.Errorf("%q cannot be shown: %w", name, err)
	}
	result := text("[%s, %d bytes]", image.MediaType, len(image.Data))
	result.Images = []session.Image{image}
	return result, nil
}

// isBinary is git's rule, a zero byte early on, and more: text is UTF-8.
func isBinary(content []byte) bool {
	return bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0 || !utf8.Valid(content)
}

type readArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

func (f *files) readFile() tool.Tool {
	return define("read_file",
		"Read a text file of the workspace, whose lines come with their numbers, or an image (PNG, JPEG, GIF, WebP), which is shown.",
		`"properties":{
			"path":{"type":"string","minLength":1,"description":"relative to the workspace"},
			"offset":{"type":"integer","minimum":1,"description":"the first line, from 1"},
			"limit":{"type":"integer","minimum":1,"description":"how many lines; 2000 if absent"}
		},"required":["path"]`,
		permission.Reads, 0,
		func(_ context.Context, a readArgs) (tool.Result, error) {
			content, rel, err := f.root.ReadAll(a.Path, maxFile)
			if err != nil {
				return tool.Result{}, err
			}
			if image, ok, err := session.ImageOf(content); ok {
				if err == nil {
					f.saw(rel, content)
				}
				return shown(a.Path, image, err)
			}
			if err := checkText(a.Path, content); err != nil {
				return tool.Result{}, err
			}
			f.saw(rel, content)
			return text("%s", number(string(content), max(a.Offset, 1), a.Limit)), nil
		})
}

// number returns lines of content with their numbers, and says what it left out.
func number(content string, first, limit int) string {
	if content == "" {
		return "[the file is empty]"
	}
	if limit == 0 {
		limit = defaultRead
	}
	limit = min(limit, len(content)) // no more lines than that, and no overflow
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	if first > len(lines) {
		return fmt.Sprintf("[the file has %d lines]", len(lines))
	}
	var b strings.Builder
	next := first
	for ; next <= len(lines) && next < first+limit && b.Len() < maxShown; next++ {
		fmt.Fprintf(&b, "%6d\t%s\n", next, cutLine(strings.TrimSuffix(lines[next-1], "\r")))
	}
	if next <= len(lines) {
		fmt.Fprintf(&b, "[lines %d to %d of %d; read on with offset %d]\n", first, next-1, len(lines), next)
	}
	return b.String()
}

// cutLine returns a line cut to what is shown of one.
func cutLine(line string) string {
	if len(line) <= maxLine {
		return line
	}
	return strings.ToValidUTF8(line[:maxLine], "") + fmt.Sprintf(" […%d bytes more]", len(line)-maxLine)
}
