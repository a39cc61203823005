package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/session/export"
)

// sessionExport writes a session in a format of others, to standard output or to
// a file, which is there whole or not at all.
func sessionExport(_ context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("session export", pflag.ContinueOnError)
	format := flags.String("format", "jsonl", "jsonl (the log as it is), md (a text to read) or html (one page with a timeline)")
	output := flags.StringP("output", "o", "", "write to `FILE` instead of standard output")
	store, id, err := sessionArgs(io, flags, "session export [--format jsonl|md|html] [-o FILE] ID", args)
	if err != nil {
		return err
	}
	write, known := exporters[*format]
	if !known {
		return usagef("session export: --format %q: not one of jsonl, md, html", *format)
	}
	var content bytes.Buffer
	if err := write(&content, store, id); err != nil {
		return err
	}
	if *output == "" {
		_, err = io.out.Write(content.Bytes())
		return err
	}
	if err := keepOut(*output); err != nil {
		return err
	}
	if err := writeOutput(*output, content.Bytes()); err != nil {
		return err
	}
	fmt.Fprintf(io.err, "wharf: session %s is written to %s\n", id, printable(*output))
	return nil
}

// exporters write a session, by the format's name.
var exporters = map[string]func(io.Writer, *session.Store, session.ID) error{
	"jsonl": exportLog,
	"md":    exportWith(export.Markdown),
	"html":  exportWith(export.HTML),
}

func exportLog(w io.Writer, store *session.Store, id session.ID) error {
	content, err := store.Raw(id)
	if err == nil {
		_, err = w.Write(content)
	}
	return err
}

func exportWith(write func(io.Writer, []session.Record) error) func(io.Writer, *session.Store, session.ID) error {
	return func(w io.Writer, store *session.Store, id session.ID) error {
		records, _, err := store.Read(id)
		if err != nil {
			return err
		}
		return write(w, records)
	}
}

// writeOutput writes the file of -o, which is there whole or not at all. A link is
// followed; what is no file, such as a device, is written to and stays what it is.
func writeOutput(path string, content []byte) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return writeWhole(path, content)
	case err != nil:
		return err
	case info.IsDir():
		return usagef("session export: -o %q: it is a folder: name a file", path)
	case !info.Mode().IsRegular():
		return os.WriteFile(path, content, 0)
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	return writeWhole(target, content)
}

// keepOut refuses a file among the sessions: it might be one of their logs.
func keepOut(path string) error {
	f, err := findFolders()
	if err != nil {
		return err
	}
	store, err := filepath.EvalSymlinks(f.sessions())
	if err != nil {
		return err
	}
	for dir := path; ; dir = filepath.Dir(dir) {
		target, err := filepath.EvalSymlinks(dir)
		if errors.Is(err, os.ErrNotExist) && dir != filepath.Dir(dir) {
			continue // it is about to be made
		}
		if err != nil {
			return err
		}
		if target, err = filepath.Abs(target); err != nil {
			return err
		}
		if within, err := filepath.Rel(store, target); err == nil && filepath.IsLocal(within) {
			return usagef("session export: -o %q: that is where sessions are kept: name a file elsewhere", path)
		}
		return nil
	}
}

// writeWhole writes a file aside and gives it its name once all is in it.
func writeWhole(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("write %q: %w", path, bare(err))
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %q: %w", path, errors.Join(bare(err), os.Remove(f.Name())))
	}
	return nil
}

// bare returns the cause of an error without the name of the file that it was
// about, where that is none that the user knows.
func bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}
