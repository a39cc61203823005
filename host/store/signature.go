package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"aead.dev/minisign"
)

// Key is a public key of minisign's. The zero Key is nobody's; keys can be compared.
type Key struct{ text string } // base64, in the one form in which minisign prints it

// The most that a file of a key or a signature may have, in bytes.
const maxSignature = 8 << 10

// ParseKey reads a public key: the line that begins with RW, or minisign's file of it.
func ParseKey(text string) (Key, error) {
	var k minisign.PublicKey
	if len(text) > maxSignature || k.UnmarshalText([]byte(strings.TrimSpace(text))) != nil {
		return Key{}, errors.New("it is no public key of minisign's: it is 56 characters that begin with RW, or the file with them (minisign.pub)")
	}
	return Key{k.String()}, nil
}

// IsZero reports whether k is no key.
func (k Key) IsZero() bool { return k == Key{} }

// String returns k in the one line in which it is handed out.
func (k Key) String() string { return k.text }

// ErrSignature reports a signature that is not that key's of that file.
var ErrSignature = errors.New("bad signature")

// Verify checks that signature, in minisign's format, is k's of data. It returns the
// trusted comment, which the signer wrote and signed.
func (k Key) Verify(data, signature []byte) (comment string, err error) {
	s, err := parseSignature(signature)
	if err != nil {
		return "", err
	}
	var public minisign.PublicKey
	if err := public.UnmarshalText([]byte(k.text)); err != nil {
		return "", err
	}
	if s.KeyID != public.ID() {
		return "", fmt.Errorf("%w: it is by the key %s, and not by %s", ErrSignature, keyID(s.KeyID), k)
	}
	if !minisign.Verify(public, data, signature) {
		return "", fmt.Errorf("%w: the file is not what the key %s signed: it was changed, or the signature is of another one", ErrSignature, k)
	}
	return s.TrustedComment, nil
}

// parseSignature reads a signature of minisign's format.
func parseSignature(text []byte) (s minisign.Signature, err error) {
	odd := func(r rune) bool { return r != '\n' && r != '\r' && r != '\t' && !unicode.IsPrint(r) }
	if len(text) > maxSignature || bytes.ContainsFunc(text, odd) || s.UnmarshalText(text) != nil {
		return s, fmt.Errorf("%w: it is not in minisign's format", ErrSignature)
	}
	return s, nil
}

// keyID names a key of which no more is known, as minisign does.
func keyID(id uint64) string { return fmt.Sprintf("%016X", id) }

// SecretKey signs.
type SecretKey struct{ key minisign.PrivateKey }

// ErrPassword reports a secret key that the password does not open.
var ErrPassword = errors.New("the password is wrong, or the key is damaged")

// IsEncrypted reports whether a secret key needs a password.
func IsEncrypted(text []byte) bool { return minisign.IsEncrypted(bytes.TrimSpace(text)) }

// ParseSecretKey reads minisign's file of a secret key. No error quotes any of it.
func ParseSecretKey(text []byte, password string) (SecretKey, error) {
	text = bytes.TrimSpace(text)
	var k SecretKey
	var err error
	if minisign.IsEncrypted(text) {
		if k.key, err = minisign.DecryptKey(password, text); err != nil {
			return SecretKey{}, ErrPassword
		}
		return k, nil
	}
	if k.key.UnmarshalText(text) != nil {
		return SecretKey{}, errors.New("it is no secret key of minisign's: minisign -G makes one")
	}
	return k, nil
}

// Public returns the key that verifies what k signs.
func (k SecretKey) Public() Key {
	public, _ := k.key.Public().(minisign.PublicKey)
	return Key{public.String()}
}

// Sign returns k's signature of data, in the format that minisign writes and reads.
// comment is signed too.
func (k SecretKey) Sign(data []byte, comment string) ([]byte, error) {
	r := minisign.NewReader(bytes.NewReader(data))
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, err
	}
	return r.SignWithComments(k.key, comment, "signature from wharf ext sign"), nil
}
