package builtin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/secret"
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

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (f *files) writeFile() tool.Tool {
	return define("write_file",
		"Write a file of the workspace, whole. What was there is replaced; folders are made. A file that changed since it was read is not written over.",
		`"properties":{
			"path":{"type":"string","minLength":1,"description":"relative to the workspace"},
			"content":{"type":"string"}
		},"required":["path","content"]`,
		permission.Writes, 0,
		func(_ context.Context, a writeArgs) (tool.Result, error) {
			if err := checkMarks("write", a.Path, a.Content); err != nil {
				return tool.Result{}, err
			}
			rel, err := f.root.Writable(a.Path)
			if err != nil {
				return tool.Result{}, err
			}
			if _, err := f.root.Write(a.Path, []byte(a.Content), f.unchanged(rel)); err != nil {
				return tool.Result{}, err
			}
			f.saw(rel, []byte(a.Content))
			return text("wrote %d bytes to %s", len(a.Content), rel), nil
		})
}

type editArgs struct {
	Path    string `json:"path"`
	OldText string `json:"old_text"`
	NewText string `json:"new_text"`
	Count   int    `json:"count"`
}

func (f *files) editFile() tool.Tool {
	return define("edit_file",
		"Replace an exact text in a file of the workspace. The text must occur once, or exactly count times. A file that changed since it was read is not edited.",
		`"properties":{
			"path":{"type":"string","minLength":1,"description":"relative to the workspace"},
			"old_text":{"type":"string","minLength":1,"description":"exactly as in the file, without line numbers"},
			"new_text":{"type":"string"},
			"count":{"type":"integer","minimum":1,"description":"how often old_text occurs; 1 if absent. All are replaced."}
		},"required":["path","old_text","new_text"]`,
		permission.Writes, 0,
		func(_ context.Context, a editArgs) (tool.Result, error) {
			if err := checkMarks("edit", a.Path, a.OldText, a.NewText); err != nil {
				return tool.Result{}, err
			}
			content, rel, err := f.read(a.Path)
			if err != nil {
				return tool.Result{}, err
			}
			edited, err := replace(string(content), a)
			if err != nil {
				return tool.Result{}, err
			}
			if err := f.swap(rel, a.Path, content, edited); err != nil {
				return tool.Result{}, err
			}
			return text("replaced %d occurrence(s) in %s", max(a.Count, 1), rel), nil
		})
}

// checkMarks refuses texts with the mark of a secret: the model was not shown
// what the mark stands for, so it would end up in the file.
func checkMarks(verb, name string, texts ...string) error {
	for _, t := range texts {
		if mark, found := secret.Mark(t); found {
			return fmt.Errorf("%s %q: the text holds %s, which stands for a secret: "+
				"leave the lines with it as they are, and change others by edit_file", verb, name, mark)
		}
	}
	return nil
}

// replace applies an edit to a file's content.
func replace(content string, a editArgs) (string, error) {
	want := max(a.Count, 1)
	if a.OldText == a.NewText {
		return "", errors.New("old_text and new_text are the same: there is nothing to change")
	}
	switch got := strings.Count(content, a.OldText); {
	case got == 0:
		return "", fmt.Errorf("old_text does not occur in %q: read the file and copy the text exactly", a.Path)
	case got != want && a.Count == 0:
		return "", fmt.Errorf("old_text occurs %d times in %q: add lines around it until it is unique, or set count to %d to replace all", got, a.Path, got)
	case got != want:
		return "", fmt.Errorf("old_text occurs %d times in %q, not %d", got, a.Path, want)
	}
	return strings.ReplaceAll(content, a.OldText, a.NewText), nil
}

// swap puts edited in the place of content, if that is still what is there and
// what the model saw last.
func (f *files) swap(rel, name string, content []byte, edited string) error {
	unchanged := f.unchanged(rel)
	_, err := f.root.Write(name, []byte(edited), func(now *os.File) error {
		if now == nil {
			return fmt.Errorf("%q is gone: somebody removed it", rel)
		}
		current, err := io.ReadAll(io.LimitReader(now, maxFile+1))
		if err != nil {
			return err
		}
		if !bytes.Equal(current, content) {
			return fmt.Errorf("%q changed while it was being edited: read it again, then change it", rel)
		}
		if _, err := now.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return unchanged(now)
	})
	if err == nil {
		f.saw(rel, []byte(edited))
	}
	return err
}
