package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/host"
)

// trust is what the user vouches for of what projects bring: each by its digest, so
// that what changes is not trusted any more.
type trust struct {
	digests []string          // --trust: whatever has one of these, in this run
	used    map[string]bool   // of digests
	paths   map[string]string // [trust] of the user's own configuration, by path
	user    string            // that configuration
	seen    string            // folder of what was trusted last, by path, to tell what changed
}

func addTrustFlag(f *pflag.FlagSet, into *[]string) {
	f.StringArrayVar(into, "trust", nil, "trust the project's wharf.toml, or an extension that it brings, that has this `DIGEST`, in this run; repeatable")
}

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// newTrust returns the trust of flags; that of files is added as they are read.
func newTrust(digests []string, f folders) (*trust, error) {
	for _, d := range digests {
		if !digestForm.MatchString(d) {
			return nil, usagef("--trust %q: it is no digest, which is sha256: and 64 hexadecimal digits: wharf names it where it leaves something out", d)
		}
	}
	return &trust{digests: digests, used: map[string]bool{}, user: f.configFile(), seen: filepath.Join(f.state, "trusted")}, nil
}

// check says why something at a path with that digest is not trusted; text is what is
// worth knowing of it. What is trusted is kept, so that it can be told one day what
// changed.
func (t *trust) check(path, digest, text string) error {
	for _, d := range t.digests {
		if d == digest {
			t.used[d] = true
		}
	}
	if t.used[digest] || t.paths[path] == digest {
		t.keep(path, text)
		return nil
	}
	return fmt.Errorf("to trust what is in it now, add --trust %s, or, for good, to %s under [trust]: %q = %q%s",
		digest, t.user, path, digest, t.changes(path, text))
}

// unused refuses digests that nothing had: what they were to let in is not there.
func (t *trust) unused() error {
	for _, d := range t.digests {
		if !t.used[d] {
			return usagef("--trust %s: nothing here has that digest: look at what changed, or leave it out", d)
		}
	}
	return nil
}

// file is where it is kept what was trusted last at a path.
func (t *trust) file(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(t.seen, hex.EncodeToString(sum[:]))
}

// keep keeps a text, as far as it can: only a later explanation is poorer without it.
func (t *trust) keep(path, text string) {
	file := t.file(path)
	if was, err := os.ReadFile(file); err == nil && string(was) == text {
		return
	}
	if os.MkdirAll(t.seen, 0o700) != nil {
		return
	}
	if whole, err := os.CreateTemp(t.seen, "new-*"); err == nil {
		_, err = whole.WriteString(text)
		if errors.Join(err, whole.Close(), os.Rename(whole.Name(), file)) != nil {
			_ = os.Remove(whole.Name())
		}
	}
}

// maxChanges bounds what is shown of changes, in lines.
const maxChanges = 60

// changes shows what is otherwise than in what was trusted last.
func (t *trust) changes(path, text string) string {
	was, err := os.ReadFile(t.file(path))
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return fmt.Sprintf("\nwhat changed since it was trusted is not known: %v", err)
	}
	name := filepath.Base(path)
	lines := strings.Split(strings.TrimSuffix(string(diff.Diff(name, was, name, []byte(text))), "\n"), "\n")
	if len(lines) <= 3 {
		return "\nit says what it said when you trusted it last"
	}
	if lines = lines[3:]; len(lines) > maxChanges { // without its head
		lines = append(lines[:maxChanges:maxChanges], fmt.Sprintf("… and %d more lines", len(lines)-maxChanges))
	}
	return "\nsince it was trusted, this changed:\n" + strings.Join(lines, "\n")
}

// extensionText is what there is to know of an extension before it is trusted.
func extensionText(m *host.Manifest) string {
	lines := []string{"version " + m.Version, "role " + role(m)}
	for _, asked := range m.Capabilities.Words() {
		lines = append(lines, "asks to "+asked)
	}
	for _, p := range m.Points() {
		lines = append(lines, "hook "+hookLine(p, m.Hooks[p]))
	}
	for _, t := range toolLines(m) {
		lines = append(lines, "tool "+t)
	}
	for i := range lines {
		lines[i] = plainly(lines[i])
	}
	return strings.Join(lines, "\n") + "\n"
}
