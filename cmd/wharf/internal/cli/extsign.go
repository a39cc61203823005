package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/host"
	"github.com/wharf-agent/wharf/host/store"
)

// passwordVariable holds the password of a secret key where nobody is there to type it.
const passwordVariable = "WHARF_SIGN_PASSWORD"

func extSign(ctx context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("ext sign", pflag.ContinueOnError)
	keyFile := flags.String("key", "", "sign with the secret key in `FILE` (minisign -G makes one)")
	passwordFile := flags.String("password-file", "", "read the key's password from `FILE`; else it is "+passwordVariable+", or asked for")
	if err := parse(io, flags, "ext sign FILE.wasm --key SECRETKEY", args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *keyFile == "" {
		return usagef("ext sign: it takes one file, and --key with the file of a secret key (minisign -G makes one)")
	}
	file := flags.Arg(0)
	wasm, err := host.ReadFile(file)
	if err != nil {
		return fmt.Errorf("sign %s: %w", file, err)
	}
	if _, err := host.ReadManifest(wasm); err != nil {
		return fmt.Errorf("sign %s: %w", file, err)
	}
	key, err := readSecretKey(ctx, io, *keyFile, *passwordFile)
	if err != nil {
		return wrapped(err, "sign "+file)
	}
	comment := fmt.Sprintf("timestamp:%d\tfile:%s\thashed", time.Now().Unix(), plainly(filepath.Base(file)))
	signature, err := key.Sign(wasm, comment)
	if err != nil {
		return fmt.Errorf("sign %s: %w", file, err)
	}
	beside := store.SignatureFile(file)
	if err := replaceFile(beside, signature); err != nil {
		return fmt.Errorf("sign %s: %w", file, err)
	}
	fmt.Fprintf(io.out, "%s\nsigned by %s: users check it with --pubkey, or put minisign.pub beside it\n", beside, key.Public())
	return nil
}

// replaceFile writes a file whole, or not at all.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // once it is renamed there is none of that name
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// readSecretKey reads a secret key, whose password may have to be asked for.
func readSecretKey(ctx context.Context, io stdio, file, passwordFile string) (store.SecretKey, error) {
	text, err := host.ReadFile(file)
	if err != nil {
		return store.SecretKey{}, err
	}
	password := ""
	if store.IsEncrypted(text) {
		if password, err = signPassword(ctx, io, passwordFile); err != nil {
			return store.SecretKey{}, err
		}
	}
	key, err := store.ParseSecretKey(text, password)
	if err != nil {
		return store.SecretKey{}, fmt.Errorf("%s: %w", file, err)
	}
	return key, nil
}

func signPassword(ctx context.Context, io stdio, file string) (string, error) {
	if file != "" {
		text, err := host.ReadFile(file)
		return strings.TrimRight(string(text), "\r\n"), err
	}
	if password, ok := os.LookupEnv(passwordVariable); ok {
		return password, nil
	}
	if !io.canAsk() {
		return "", usagef("the key has a password, and nobody is there to type it: set %s, or add --password-file FILE", passwordVariable)
	}
	return io.password(ctx, "Password of the key")
}

func extVerify(_ context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("ext verify", pflag.ContinueOnError)
	pubkey := flags.String("pubkey", "", "check the signature of a file by this `KEY`, or file of one")
	if err := parse(io, flags, "ext verify [NAME…] | FILE.wasm --pubkey KEY", args); err != nil {
		return err
	}
	if *pubkey != "" {
		if flags.NArg() != 1 {
			return usagef("ext verify: with --pubkey it takes one file, whose signature lies beside it as FILE.minisig")
		}
		return verifyFile(io, flags.Arg(0), *pubkey)
	}
	for _, name := range flags.Args() {
		if isFile(name) {
			return usagef("ext verify: to check the signature of %s, say by --pubkey whose it must be", name)
		}
	}
	return verifyInstalled(io, flags.Args())
}

func verifyFile(io stdio, file, pubkey string) error {
	key, err := readKey(pubkey)
	if err != nil {
		return usagef("ext verify: --pubkey: %w", err)
	}
	data, err := host.ReadFile(file)
	if err != nil {
		return fmt.Errorf("verify %s: %w", file, err)
	}
	signature, err := host.ReadFile(store.SignatureFile(file))
	if err != nil {
		return fmt.Errorf("verify %s: %w", file, err)
	}
	comment, err := key.Verify(data, signature)
	if err != nil {
		return fmt.Errorf("verify %s: %w", file, err)
	}
	fmt.Fprintf(io.out, "%s is signed by %s (%s)\n", printable(file), key, quoted(comment))
	return nil
}

// verifyInstalled checks what is installed, all of it if no names are given.
func verifyInstalled(io stdio, names []string) error {
	f, err := findFolders()
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := f.store().Find(name); err != nil {
			return wrapped(notThere(err), "verify")
		}
	}
	modules, err := f.store().Read()
	if err != nil {
		return err
	}
	bad := 0
	for _, m := range modules {
		if len(names) > 0 && len(missing([]string{m.Name}, names)) > 0 {
			continue
		}
		if err := m.Verify(); err != nil {
			bad++
			fmt.Fprintf(io.err, "wharf: verify %s: %s\n", m.Name, printable(err.Error()))
			continue
		}
		signed := "not signed"
		if !m.Signer.IsZero() {
			signed = "signed by " + m.Signer.String()
		} else if _, shipped := store.ShippedName(m.Source); shipped {
			signed = shippedText
		}
		fmt.Fprintf(io.out, "%s %s is what was installed, %s\n", m.Name, m.Version, signed)
	}
	if bad > 0 {
		return exitError{code: exitFailed} // why has been shown
	}
	return nil
}
