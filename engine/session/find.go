package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Find returns the session that a user means by name: its ID, or a beginning or
// an end of it that no other session's has. The error for a name of several
// says which they are.
func (s *Store) Find(name string) (ID, error) {
	_, missing := s.path(ID(name))
	switch {
	case missing == nil:
		return ID(name), nil
	case !ID(name).valid() || !errors.Is(missing, ErrNotFound):
		return "", missing
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		id := e.Name()
		return !e.IsDir() || !ID(id).valid() || !strings.HasPrefix(id, name) && !strings.HasSuffix(id, name)
	})
	switch len(entries) {
	case 0:
		return "", missing
	case 1:
		return ID(entries[0].Name()), nil
	}
	return "", fmt.Errorf("session %q: there are %d whose names begin or end so: %s: write more of it", name, len(entries), nameSome(entries))
}

// nameSome names sessions, the last made first, and of many the first few.
func nameSome(entries []fs.DirEntry) string {
	const most = 5
	var names []string
	for _, e := range slices.Backward(entries) {
		if len(names) == most {
			names = append(names, "…")
			break
		}
		names = append(names, e.Name())
	}
	return strings.Join(names, ", ")
}
