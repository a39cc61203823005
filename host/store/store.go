// Package store keeps the extensions that the user installed, and what the user
// granted them.
//
// A [Store] is a folder: the modules under extensions/, each named by its SHA-256,
// and beside them wharf.lock, which says which of them are installed, where they
// come from, who signed them and what they may reach. The lock is replaced as a
// whole, under a lock of the kernel's, after what it names has been written: whoever
// is killed in between, the old state or the new one is there. A module is hashed
// whenever it is read, and one of another digest than the lock's is not given out.
//
// Installing has two halves. A [Candidate] is what was found at a source; what it
// would change is a [Proposal], which can be shown to somebody. [Store.Accept] makes
// it so, unless the store has changed meanwhile.
//
// The package asks nobody, prints nothing and compiles nothing: that is for who
// has a terminal and a host.
package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/capability"
)

// Store is a folder of installed extensions. It is safe for concurrent use, also
// by several processes.
type Store struct{ dir string }

// New returns the store in dir, which is made when the first extension is installed.
func New(dir string) *Store { return &Store{dir} }

// LockFile returns the path of wharf.lock.
func (s *Store) LockFile() string { return filepath.Join(s.dir, lockName) }

// Entry is an installed extension, as the lock has it.
type Entry struct {
	Name      string
	Version   string
	Source    string // a URL, the path of a file, or shipped:NAME
	Digest    string // SHA-256 of the module, hexadecimal
	ABI       string // "1", or "extism"
	Guard     bool
	Hooks     []hook.Point // that it handles
	Granted   capability.Set
	Signer    Key    // whose signature was checked; the zero Key: nobody's
	Signature string // in minisign's format
}

// Module is an installed extension with its module.
type Module struct {
	Entry
	Wasm []byte
	Err  error // why there is no Wasm: the file is gone, or is another than was installed
}

// ErrNotInstalled reports a name that is not in the store.
var ErrNotInstalled = errors.New("it is not installed")

func notInstalled(name string) error {
	return fmt.Errorf("extension %q: %w: wharf ext list shows what is", name, ErrNotInstalled)
}

// DigestError is a module that is not the one that was installed.
type DigestError struct{ Entry, Found string } // digests

// Error names both digests.
func (e *DigestError) Error() string {
	return fmt.Sprintf("its file has the digest sha256:%s, and sha256:%s was installed: it was changed, or the disk is damaged", e.Found, e.Entry)
}

// List returns what is installed, in the order of installing, without looking at
// the modules.
func (s *Store) List() ([]Entry, error) {
	l, err := s.readLock()
	return l.entries, err
}

// Find returns the extension of that name.
func (s *Store) Find(name string) (Entry, error) {
	l, err := s.readLock()
	if err != nil {
		return Entry{}, err
	}
	i := l.index(name)
	if i < 0 {
		return Entry{}, notInstalled(name)
	}
	return l.entries[i], nil
}

// Read returns what is installed, with the modules. One that is damaged is there
// with its Err.
func (s *Store) Read() ([]Module, error) {
	if entries, err := s.List(); err != nil || len(entries) == 0 {
		return nil, err
	}
	unlock, err := s.lockShared()
	if err != nil {
		return nil, err
	}
	defer unlock()
	entries, err := s.List()
	modules := make([]Module, len(entries))
	for i, e := range entries {
		wasm, err := s.module(e.Digest)
		modules[i] = Module{e, wasm, err}
	}
	return modules, err
}

// module reads the module with that digest.
func (s *Store) module(digest string) ([]byte, error) {
	wasm, err := host.ReadFile(s.path(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("its file is not in the store (%s): it was deleted, or wharf.lock comes from elsewhere", s.path(digest))
	}
	if err != nil {
		return nil, err
	}
	if found := digestOf(wasm); found != digest {
		return nil, &DigestError{Entry: digest, Found: found}
	}
	return wasm, nil
}

func digestOf(wasm []byte) string {
	sum := sha256.Sum256(wasm)
	return hex.EncodeToString(sum[:])
}

// Failure is m's Err as the host would report it, so that what stands in for a guard
// that cannot be loaded is what it was installed as.
func (m Module) Failure() *host.LoadError {
	manifest := &host.Manifest{Name: m.Name, Guard: m.Guard, Hooks: map[hook.Point]hook.Handling{}}
	for _, p := range m.Hooks {
		manifest.Hooks[p] = hook.Handling{Timeout: host.DefaultHookTimeout, OnFailure: hook.DefaultOnFailure(m.Guard, p)}
	}
	return &host.LoadError{Name: m.Name, Manifest: manifest, Err: fmt.Errorf("%w: wharf ext install %s", m.Err, installArgument(m.Source))}
}

// Remove takes an extension out. What it kept stays, and so do the keys that are pinned
// for its name, unless forget says otherwise.
func (s *Store) Remove(name string, forget bool) error {
	return s.change(func(l *lock) error {
		i := l.index(name)
		if i < 0 && !(forget && l.forget(name)) {
			return notInstalled(name)
		}
		if i >= 0 {
			l.entries = slices.Delete(l.entries, i, i+1)
		}
		if forget {
			l.forget(name)
		}
		return nil
	})
}

// SetGrants makes what an extension is granted what next says of it, and returns
// that. next is given the entry and what its manifest asks for.
func (s *Store) SetGrants(name string, next func(e Entry, asked capability.Set) capability.Set) (granted capability.Set, err error) {
	err = s.change(func(l *lock) error {
		i := l.index(name)
		if i < 0 {
			return notInstalled(name)
		}
		e := &l.entries[i]
		m, err := s.manifest(*e)
		if err != nil {
			return fmt.Errorf("extension %q: %w", name, err)
		}
		granted = m.Capabilities.Intersect(next(*e, m.Capabilities))
		e.Granted = granted
		return nil
	})
	return granted, err
}

// manifest returns the manifest of an installed extension.
func (s *Store) manifest(e Entry) (*host.Manifest, error) {
	wasm, err := s.module(e.Digest)
	if err != nil {
		return nil, err
	}
	text, err := host.ReadManifest(wasm)
	if err != nil {
		return nil, err
	}
	return host.ParseManifest(text)
}

// change has edit change the lock, while nobody else does, and writes it. If edit
// fails, nothing is changed.
func (s *Store) change(edit func(*lock) error) error {
	unlock, err := s.lockAlone()
	if err != nil {
		return err
	}
	defer unlock()
	l, err := s.readLock()
	if err != nil {
		return err
	}
	if _, missing := os.Lstat(s.LockFile()); missing != nil {
		err = s.writeLock(l) // before the first module
	}
	if err == nil {
		err = edit(&l)
	}
	if err == nil {
		err = s.writeLock(l)
	}
	if now, bad := s.readLock(); bad == nil {
		s.sweep(now) // what is needed no more, was written in vain, or a process that was killed left
	}
	return err
}
