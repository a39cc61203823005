package exttest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/BurntSushi/toml"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/capability"
)

// File is a file of cases. ParseFile makes it.
type File struct {
	Name   string // as it is shown
	Cases  []*Case
	layout *layout
}

// Case is a few calls in one session, and the world that the session is in.
type Case struct {
	Name  string
	Line  int // counts from 1
	Steps []*Step

	world worldForm
	grant capability.Grant
	share string // the same for cases that share a loaded extension
	env   map[string]string
}

// Step is one call of a handler, and what is expected of it.
type Step struct {
	Line int
	path string // in the file
	form stepForm

	hook    hook.Info // of a hook
	payload []byte    // or a tool's arguments
}

// ReadDir reads the files of cases in a folder, NAME.toml each. There must be one.
func ReadDir(dir string, m *host.Manifest) ([]*File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []*File
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".toml" {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		text, err := host.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f, err := ParseFile(path, string(text), m)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there are no cases in %s: write a NAME.toml there, with a [[case]]", dir)
	}
	return all, nil
}

// ParseFile reads a file of cases for an extension with that manifest. It is
// strict, and the error has the line; name is for messages.
func ParseFile(name, text string, m *host.Manifest) (*File, error) {
	f, err := parseFile(name, text, m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

func parseFile(name, text string, m *host.Manifest) (*File, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("it has more than %d MiB: make several of it", maxFile>>20)
	}
	l, err := readLayout(text)
	if err != nil {
		return nil, err
	}
	var form fileForm
	meta, err := toml.Decode(text, &form)
	if err != nil {
		return nil, tomlError(err)
	}
	p := &parser{file: &File{Name: name, layout: l}, manifest: m}
	if unknown := slices.DeleteFunc(meta.Undecoded(), free); len(unknown) > 0 {
		return nil, p.unknown(unknown[0])
	}
	if err := p.tables(text); err != nil {
		return nil, err
	}
	if len(form.Cases) == 0 {
		return nil, errors.New("it has no [[case]]")
	}
	for i, c := range form.Cases {
		if err := p.add(form, i, c); err != nil {
			return nil, err
		}
	}
	return p.file, nil
}

// free reports whether a key is within a value that may hold any keys: of those
// the library does not know whether they were read.
func free(key toml.Key) bool {
	return slices.ContainsFunc(key[:len(key)-1], func(table string) bool {
		return slices.Contains([]string{"grant", "config", "payload", "arguments", "verdict", "result", "kept", "keeps", "emits"}, table)
	})
}

// typeError is how the TOML library words a value of the wrong type.
var typeError = regexp.MustCompile(`^toml: line (\d+) \(last key "([^"]*)"\): (.*)$`)

func tomlError(err error) error {
	if parse, ok := errors.AsType[toml.ParseError](err); ok {
		return fmt.Errorf("line %d: %s", parse.Position.Line, parse.Message)
	}
	if m := typeError.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("line %s: %s: %s", m[1], m[2], m[3])
	}
	return err
}
