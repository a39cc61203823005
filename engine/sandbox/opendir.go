package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// openFolder is a folder that is open to be written in.
type openFolder struct {
	*os.Root
	above *openFolder // if it was not there
	made  string      // its name in the one above, if it was made here and not by somebody else meanwhile
}

// openDir opens the folder rel, making what is missing of it, and makes sure
// that it is the one that was resolved.
func (r *Root) openDir(rel string) (*openFolder, error) {
	root, err := r.root.OpenRoot(rel)
	if err == nil {
		return r.checked(&openFolder{Root: root}, rel)
	}
	if !errors.Is(err, fs.ErrNotExist) || rel == "." {
		return nil, err
	}
	above, err := r.openDir(path.Dir(rel))
	if err != nil {
		return nil, err
	}
	d, err := above.make(path.Base(rel))
	if err != nil {
		above.close(false)
		return nil, err
	}
	return r.checked(d, rel)
}

// make makes a folder in another, or opens the one that somebody made there meanwhile.
func (d *openFolder) make(name string) (*openFolder, error) {
	made := name
	err := d.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrExist) {
		made, err = "", nil
	}
	if err != nil {
		return nil, err
	}
	root, err := d.OpenRoot(name)
	if err != nil && made != "" {
		_ = rmdir(d.Root, made)
	}
	return &openFolder{root, d, made}, err
}

// checked returns a folder if it is the one at rel, and else closes it.
func (r *Root) checked(d *openFolder, rel string) (*openFolder, error) {
	f, err := d.Open(".")
	if err == nil {
		err = r.unmoved(f, rel)
		f.Close()
	}
	if err != nil {
		d.close(false)
		return nil, err
	}
	return d, nil
}

// close closes the folder. If what it was opened for failed, it and those above it that
// were made for that are removed, as far as they are empty.
func (d *openFolder) close(done bool) {
	d.Root.Close()
	if d.above == nil {
		return
	}
	if !done && d.made != "" {
		_ = rmdir(d.above.Root, d.made)
	}
	d.above.close(done)
}

// rmdir removes a folder if it is empty. The folder that it is in is held open, so it is
// removed there, whatever its path leads to by now.
func rmdir(in *os.Root, name string) error {
	f, err := in.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return os.NewSyscallError("rmdir", unix.Unlinkat(int(f.Fd()), name, unix.AT_REMOVEDIR))
}
