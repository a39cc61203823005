package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/wharf-agent/wharf/engine/patch"
	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/tool"
)

type patchArgs struct {
	Patch  string `json:"patch"`
	DryRun bool   `json:"dry_run"`
}

func (f *files) applyPatch() tool.Tool {
	return define("apply_patch",
		"Change several files of the workspace at once, or none of them if anything does not fit. The patch begins with *** Begin Patch and ends with *** End Patch. Between them: "+
			"*** Add File: PATH, then each line with + before it; *** Delete File: PATH; *** Update File: PATH, perhaps *** Move to: PATH, then for each change @@ and, if "+
			"needed to tell the place, a line that comes before it; then lines that stay (a blank before them), go (-) or come (+). Lines that stay and go must be in the file exactly, at one place. "+
			"A file that changed since it was read is not changed.",
		`"properties":{
			"patch":{"type":"string","minLength":1},
			"dry_run":{"type":"boolean","description":"only say what would be changed"}
		},"required":["patch"]`,
		permission.Writes, 0,
		func(ctx context.Context, a patchArgs) (tool.Result, error) {
			parts, err := patch.Parse(a.Patch)
			if err != nil {
				return tool.Result{}, err
			}
			all, err := f.prepareAll(ctx, parts)
			if err != nil {
				return tool.Result{}, fmt.Errorf("nothing was changed: %w", err)
			}
			if a.DryRun {
				return text("this would be changed:\n%s", summaries(all)), nil
			}
			if err := f.apply(ctx, all); err != nil {
				return tool.Result{}, err
			}
			return text("%s", summaries(all)), nil
		})
}

// edit is what a patch does to one file.
type edit struct {
	patch.File
	rel, to       string   // resolved
	folders       []string // that are made for it, the innermost first
	before, after []byte
}

// prepareAll finds out what a patch would do. What is deleted comes last: it comes back
// least like it was.
func (f *files) prepareAll(ctx context.Context, parts []patch.File) (all []*edit, err error) {
	named := map[string]string{}
	for _, part := range parts {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		e, err := f.prepare(ctx, part)
		if err != nil {
			return nil, err
		}
		for rel, name := range map[string]string{e.rel: part.Path, e.to: part.MoveTo} {
			if other, twice := named[rel]; twice && rel != "" {
				return nil, fmt.Errorf("%q and %q are the same file: put all changes to it into one part", other, name)
			}
			named[rel] = name
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b *edit) int { return deletes(a) - deletes(b) })
	return all, nil
}

func deletes(e *edit) int {
	if e.Kind == patch.Delete {
		return 1
	}
	return 0
}

// prepare finds out what a part of a patch would do, and changes nothing.
func (f *files) prepare(ctx context.Context, part patch.File) (*edit, error) {
	e := &edit{File: part}
	for _, named := range []struct {
		name string
		into *string
	}{{part.Path, &e.rel}, {part.MoveTo, &e.to}} {
		if named.name == "" {
			continue
		}
		var err error
		if *named.into, err = f.root.Writable(named.name); err != nil {
			return nil, err
		}
	}
	if part.Kind == patch.Add {
		e.after, e.folders = []byte(part.Content), f.missing(e.rel)
		return e, errors.Join(f.absent(part.Path), checkMarks("patch", part.Path, part.Content))
	}
	if f.hidden(e.rel) {
		return nil, fmt.Errorf("%q is not to be read, and so not to be patched", part.Path)
	}
	var err error
	if e.before, _, err = f.read(part.Path); err != nil {
		return nil, err
	}
	if part.Kind == patch.Delete {
		return e, nil
	}
	after, err := part.Apply(ctx, string(e.before))
	e.after = []byte(after)
	for _, h := range part.Hunks {
		for _, line := range h.Lines {
			if err == nil && line.Op == '+' {
				err = checkMarks("patch", part.Path, line.Text)
			}
		}
	}
	if err == nil && part.MoveTo != "" {
		e.folders = f.missing(e.to)
		err = f.absent(part.MoveTo)
	}
	return e, err
}

// missing returns the folders above a path that are not there.
func (f *files) missing(rel string) (all []string) {
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		if _, _, err := f.root.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			break
		}
		all = append(all, dir)
	}
	return all
}

// absent refuses the name of something that is there.
func (f *files) absent(name string) error {
	if _, _, err := f.root.Stat(name); errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return fmt.Errorf("%q is there already: update it, or take another name", name)
}

// apply does all edits, or undoes those that it did.
func (f *files) apply(ctx context.Context, all []*edit) error {
	for n, e := range all {
		err := f.do(ctx, e)
		if err == nil {
			continue
		}
		kept := ""
		for _, done := range slices.Backward(all[:n]) {
			if failed := f.undo(done); failed != nil {
				kept += fmt.Sprintf("; %s stays as it was made, since it could not be undone: %v", done.rel, failed)
			}
		}
		if kept != "" {
			return fmt.Errorf("the patch was not applied as a whole: %w%s", err, kept)
		}
		return fmt.Errorf("nothing was changed: %w", err)
	}
	return nil
}

func (f *files) do(ctx context.Context, e *edit) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case e.Kind == patch.Add:
		_, err := f.root.Write(e.Path, e.after, f.still(e.rel, nil))
		if err == nil {
			f.saw(e.rel, e.after)
		}
		return err
	case e.Kind == patch.Delete:
		_, err := f.root.Remove(e.Path, f.still(e.rel, e.before))
		return err
	}
	if err := f.swap(e.rel, e.Path, e.before, string(e.after)); err != nil || e.to == "" {
		return err
	}
	if err := f.root.Rename(e.Path, e.MoveTo); err != nil {
		return errors.Join(err, f.swap(e.rel, e.Path, e.after, string(e.before)))
	}
	f.saw(e.to, e.after)
	return nil
}

// undo puts back what do changed, unless somebody changed it since. A file that was
// deleted comes back with the mode of a new one.
func (f *files) undo(e *edit) error {
	switch e.Kind {
	case patch.Add:
		_, err := f.root.Remove(e.rel, f.still(e.rel, e.after))
		f.unmake(e.folders)
		return err
	case patch.Delete:
		_, err := f.root.Write(e.rel, e.before, f.still(e.rel, nil))
		return err
	}
	if e.to != "" {
		if err := f.root.Rename(e.to, e.rel); err != nil {
			return err
		}
		f.unmake(e.folders)
	}
	return f.swap(e.rel, e.rel, e.after, string(e.before))
}

// unmake removes folders that were made. One that is not empty is somebody else's too by
// now, and stays.
func (f *files) unmake(folders []string) {
	for _, dir := range folders {
		_ = f.root.RemoveDir(dir)
	}
}

func summaries(all []*edit) string {
	var b strings.Builder
	for _, e := range all {
		switch {
		case e.Kind == patch.Add:
			fmt.Fprintf(&b, "added %s (%d bytes)\n", e.rel, len(e.after))
		case e.Kind == patch.Delete:
			fmt.Fprintf(&b, "deleted %s\n", e.rel)
		case e.to != "":
			fmt.Fprintf(&b, "moved %s to %s%s\n", e.rel, e.to, changes(e.to, string(e.before), string(e.after)))
		default:
			fmt.Fprintf(&b, "changed %s%s\n", e.rel, changes(e.rel, string(e.before), string(e.after)))
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
