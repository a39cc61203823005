package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/wharf-agent/wharf/engine/patch"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/secret"
	"github.com/wharf-agent/wharf/engine/tool"
)

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// writeTool writes files. Its function has the spec alone.
type writeTool struct {
	function[writeArgs]
	files *files
}

func (f *files) writeFile() tool.Tool {
	described := define[writeArgs]("write_file",
		"Write a file of the workspace, whole. What was there is replaced; folders are made. A file that is there must have been read, and not have changed since. Its line endings and mode are kept.",
		`"properties":{
			"path":{"type":"string","minLength":1,"description":"relative to the workspace"},
			"content":{"type":"string"}
		},"required":["path","content"]`,
		permission.Writes, 0, nil)
	return writeTool{described.(function[writeArgs]), f}
}

// Run writes a file. A program has its own ways to know what is there.
func (w writeTool) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	a, bad := decode[writeArgs](call)
	if bad != nil {
		return *bad, nil
	}
	f := w.files
	if err := checkMarks("write", a.Path, a.Content); err != nil {
		return tool.Result{}, err
	}
	rel, err := f.root.Writable(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	before, _, err := f.root.ReadAll(a.Path, maxFile)
	content := withMark(withEnds(a.Content, before), before)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = nil
	case err == nil && !call.Program && (string(before) != content || f.hidden(rel)): // else nothing changes
		err = f.known(rel)
	}
	if err != nil {
		return tool.Result{}, err
	}
	if _, err := f.root.Write(a.Path, []byte(content), f.still(rel, before)); err != nil {
		return tool.Result{}, err
	}
	f.saw(rel, []byte(content))
	return text("wrote %d bytes to %s%s", len(content), rel, changes(rel, string(before), content)), nil
}

type editArgs struct {
	Path    string `json:"path"`
	OldText string `json:"old_text"`
	NewText string `json:"new_text"`
	Count   int    `json:"count"`
}

func (f *files) editFile() tool.Tool {
	return define("edit_file",
		"Replace an exact text in a file of the workspace. The text must occur once, or exactly count times. The file must have been read, and not have changed since.",
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
			before, rel, err := f.read(a.Path)
			if err == nil {
				err = f.known(rel)
			}
			if err != nil {
				return tool.Result{}, err
			}
			a.OldText, a.NewText = withEnds(a.OldText, before), withEnds(a.NewText, before)
			after, err := replace(string(before), a)
			if err != nil {
				return tool.Result{}, err
			}
			after = withMark(after, before)
			if err := f.swap(rel, a.Path, before, after); err != nil {
				return tool.Result{}, err
			}
			return text("replaced %d occurrence(s) in %s%s", max(a.Count, 1), rel, changes(rel, string(before), after)), nil
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

// withEnds returns a text with the line endings of a file whose lines all end as in
// Windows: a model is shown no others, and writes none.
func withEnds(text string, file []byte) string {
	n := bytes.Count(file, []byte("\n"))
	if n == 0 || n != bytes.Count(file, []byte("\r\n")) || strings.Contains(text, "\r") {
		return text
	}
	return strings.ReplaceAll(text, "\n", "\r\n")
}

// withMark returns a text with the mark that a file begins with (BOM), once: a model does
// not see it, and some programs cannot do without.
func withMark(text string, file []byte) string {
	if !bytes.HasPrefix(file, []byte(patch.BOM)) {
		return text
	}
	return patch.BOM + strings.TrimLeft(text, patch.BOM)
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

// swap puts after in the place of before, if that is still what is there and
// what the model saw last.
func (f *files) swap(rel, name string, before []byte, after string) error {
	_, err := f.root.Write(name, []byte(after), f.still(rel, before))
	if err == nil {
		f.saw(rel, []byte(after))
	}
	return err
}

// still returns a check that a file holds what it held a moment ago (nil: it was not
// there), and what the model saw last.
func (f *files) still(rel string, before []byte) func(*os.File) error {
	unchanged := f.unchanged(rel)
	return func(now *os.File) error {
		switch {
		case now == nil && before == nil:
			return nil
		case now == nil:
			return fmt.Errorf("%q is gone: somebody removed it", rel)
		case before == nil:
			return fmt.Errorf("%q is there already: somebody made it", rel)
		}
		current, err := io.ReadAll(io.LimitReader(now, maxFile+1))
		if err != nil {
			return err
		}
		if !bytes.Equal(current, before) {
			return fmt.Errorf("%q changed while it was being edited: read it again, then change it", rel)
		}
		if _, err := now.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return unchanged(now)
	}
}

// The most of a change that is shown.
const (
	maxCompared = 1 << 20 // bytes of the two texts
	maxDiff     = 16 << 10
)

// changes shows what became of a file, for the model to see that it is what it meant.
func changes(rel, before, after string) string {
	if before == "" || before == after || len(before)+len(after) > maxCompared || isBinary([]byte(before)) {
		return ""
	}
	name := filepath.Base(rel)
	_, lines, _ := strings.Cut(string(diff.Diff(name, []byte(before), name, []byte(after))), "\n@@")
	lines = "\n@@" + strings.ReplaceAll(lines, "\r\n", "\n")
	if len(lines) > maxDiff {
		lines = lines[:strings.LastIndexByte(lines[:maxDiff], '\n')] + "\n[… the rest of the change is left out …]"
	}
	return strings.TrimSuffix(lines, "\n")
}
