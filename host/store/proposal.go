package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/semver"

	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/capability"
)

// Trust is what the user says of signatures.
type Trust struct {
	Key           Key  // who must have signed it; the zero Key: whoever is pinned
	RequireSigned bool // what is not signed is refused; shipped extensions need no signature
}

// Proposal is what it would change to install a candidate. Nothing has changed yet.
type Proposal struct {
	Candidate
	Old  *Entry         // what is installed under that name; nil: nothing
	Was  *host.Manifest // Old's; nil: it is damaged, or there is none
	New  capability.Set // what it asks for, beyond what Old asks for
	Kept capability.Set // what of Old's grants it asks for, too

	Signer    Key    // whose signature was checked; the zero Key: nobody's
	NewKey    bool   // nobody has named Signer yet, and no key was pinned: the user must agree to it
	Unchecked string // the ID of the key of a signature that nothing could be checked with; else empty

	pinned Key // when this was proposed
}

// Propose says what it would change to install c. It refuses what is not signed as it
// has to be.
func (s *Store) Propose(c Candidate, t Trust) (Proposal, error) {
	l, err := s.readLock()
	if err != nil {
		return Proposal{}, err
	}
	asked := c.Manifest.Capabilities
	p := Proposal{Candidate: c, New: asked, pinned: l.pinned(c.Manifest.Name, origin(c.Source))}
	if i := l.index(c.Manifest.Name); i >= 0 {
		p.Old = &l.entries[i]
		was := p.Old.Granted // of one that is damaged no more is known
		if p.Was, err = s.manifest(*p.Old); err == nil {
			was = p.Was.Capabilities
		}
		p.New, p.Kept = asked.Minus(was), asked.Intersect(p.Old.Granted)
	}
	return p, p.checkSignature(t)
}

func (p *Proposal) checkSignature(t Trust) error {
	if _, shipped := ShippedName(p.Source); shipped {
		if !t.Key.IsZero() {
			return errors.New("it comes with wharf, and is not signed: leave --pubkey out")
		}
		return nil
	}
	name, from := p.Manifest.Name, origin(p.Source)
	key := t.Key
	for _, next := range []Key{p.pinned, p.Offered} {
		if key.IsZero() {
			key = next
		}
	}
	switch {
	case p.Signature == nil && !t.Key.IsZero():
		return fmt.Errorf("it is not signed, and is to be by %s", t.Key)
	case p.Signature == nil && !p.pinned.IsZero():
		return fmt.Errorf("it is not signed, and so far %s from %s was, by %s: get a signed one (wharf ext remove --forget-key %s ends that)", name, from, p.pinned, name)
	case p.Signature == nil && t.RequireSigned:
		return errors.New("it is not signed, and only signed extensions are installed (--require-signed, or require_signed under [install])")
	case p.Signature == nil:
		return nil
	case key.IsZero():
		return p.cannotCheck(t)
	}
	if _, err := key.Verify(p.Wasm, p.Signature); err != nil {
		if key == p.pinned {
			return fmt.Errorf("%w: %s is pinned for %s from %s: if its publisher says to have another key now, name that by --pubkey", err, key, name, from)
		}
		return err
	}
	p.Signer, p.NewKey = key, key != t.Key && key != p.pinned
	return nil
}

// cannotCheck is about a signature for which there is no key. It counts as none.
func (p *Proposal) cannotCheck(t Trust) error {
	s, err := parseSignature(p.Signature)
	if err != nil {
		return err
	}
	p.Unchecked = keyID(s.KeyID)
	if t.RequireSigned {
		return fmt.Errorf("it is signed by the key %s, and there is no key to check that with: name it by --pubkey", p.Unchecked)
	}
	return nil
}

// IsInstalled reports whether exactly this is installed, so that there is nothing to ask.
func (p Proposal) IsInstalled() bool {
	return p.Old != nil && p.Old.Digest == p.Digest && p.Old.Source == p.Source && p.Old.Signer == p.Signer
}

// Older reports whether the version is one before the installed one's, as far as both
// are versions that can be compared.
func (p Proposal) Older() bool {
	if p.Old == nil {
		return false
	}
	was, now := "v"+p.Old.Version, "v"+p.Manifest.Version
	return semver.IsValid(was) && semver.IsValid(now) && semver.Compare(now, was) < 0
}

// ErrChanged reports a store that is not as it was when something was proposed.
var ErrChanged = errors.New("another wharf changed that meanwhile: try again")

// Accept installs what was proposed, grants it what of granted it asks for, and pins
// the key of its signer.
func (s *Store) Accept(p Proposal, granted capability.Set) (Entry, error) {
	m := p.Manifest
	e := Entry{
		Name: m.Name, Version: m.Version, Source: p.Source, Digest: p.Digest, ABI: fmt.Sprint(m.ABIName()), Guard: m.Guard,
		Hooks: m.Points(), Granted: m.Capabilities.Intersect(granted), Signer: p.Signer,
	}
	if !p.Signer.IsZero() {
		e.Signature = string(p.Signature)
	}
	err := s.change(func(l *lock) error {
		i := l.index(m.Name)
		if !p.stillHolds(l, i) {
			return fmt.Errorf("install extension %q: %w", m.Name, ErrChanged)
		}
		if err := s.writeModule(p.Digest, p.Wasm); err != nil {
			return err
		}
		if i >= 0 {
			l.entries[i] = e
		} else {
			l.entries = append(l.entries, e)
		}
		if !p.Signer.IsZero() && p.Signer != p.pinned {
			l.pin(pin{m.Name, origin(p.Source), p.Signer})
		}
		return nil
	})
	return e, err
}

// stillHolds reports whether the lock says of the extension what it said before.
func (p Proposal) stillHolds(l *lock, i int) bool {
	if l.pinned(p.Manifest.Name, origin(p.Source)) != p.pinned {
		return false
	}
	if p.Old == nil || i < 0 {
		return p.Old == nil && i < 0
	}
	return same(*p.Old, l.entries[i])
}

// same reports whether two entries are the same in all that somebody was shown.
func same(a, b Entry) bool {
	return cmp.Or(cmp.Compare(a.Digest, b.Digest), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Granted.String(), b.Granted.String())) == 0 &&
		a.Signer == b.Signer && slices.Equal(a.Hooks, b.Hooks)
}

// Verify checks an installed module: that it is the one that was installed, and that
// its signer signed it.
func (m Module) Verify() error {
	if m.Err != nil {
		return m.Err
	}
	if m.Signer.IsZero() {
		return nil
	}
	_, err := m.Signer.Verify(m.Wasm, []byte(m.Signature))
	return err
}
