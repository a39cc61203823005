package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
	"unicode/utf8"

	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/capability"
)

// The fs operations. The grant is checked twice: of the path as the guest
// writes it, and of where that leads when links in it were followed.
var (
	fsRead  = define("fs.read", needRead, readFile)
	fsList  = define("fs.list", needPath, listFolder)
	fsStat  = define("fs.stat", needPath, statFile)
	fsWrite = judged(define("fs.write", needWrite, writeFile))
)

func needRead(in abi.ReadRequest) (capability.Need, error) {
	if in.Offset < 0 || in.Limit < 0 || in.Limit > limitRead {
		return capability.Need{}, fmt.Errorf(`"offset" must be 0 or more, and "limit" 0 to %d`, limitRead)
	}
	return capability.File(in.Path, false)
}

func needPath(in abi.PathRequest) (capability.Need, error) { return capability.File(in.Path, false) }

func needWrite(in abi.WriteRequest) (capability.Need, error) { return capability.File(in.Path, true) }

// resolve returns the workspace and where a path leads in it: the grant covers
// that too, and it is not protected.
func (x *instance) resolve(name string, write bool) (*sandbox.Root, string, error) {
	root := x.session.Root
	if root == nil {
		return nil, "", errors.New("this host has no workspace")
	}
	rel, err := root.Resolve(name)
	if err != nil {
		return nil, "", x.refusedPath(err)
	}
	need, err := capability.File(rel, write)
	if err != nil {
		return nil, "", err
	}
	if refused := x.extension.Granted.Allow(need); refused != nil {
		refused = fmt.Errorf("%q leads to %q: %w", name, rel, refused)
		return nil, "", errors.Join(refused, x.audit(refused))
	}
	if write {
		_, err := root.Writable(rel)
		return root, rel, x.refusedPath(err)
	}
	if pattern, protected := sandbox.Protected(rel, sandbox.LooksLikeHome(root.Dir())); protected {
		return nil, "", x.refusedPath(fmt.Errorf("%w: %s is protected (%s)", sandbox.ErrRefused, rel, pattern))
	}
	return root, rel, nil
}

// refusedPath writes the audit of a path that the sandbox refuses.
func (x *instance) refusedPath(err error) error {
	if !errors.Is(err, sandbox.ErrRefused) {
		return err
	}
	denied := &denial{err.Error()}
	return errors.Join(denied, x.audit(denied))
}

func readFile(_ context.Context, x *instance, in abi.ReadRequest) (abi.ReadResponse, error) {
	root, rel, err := x.resolve(in.Path, false)
	if err != nil {
		return abi.ReadResponse{}, err
	}
	f, opened, err := root.Open(rel)
	if err != nil {
		return abi.ReadResponse{}, x.refusedPath(err)
	}
	defer f.Close()
	if err := x.unmoved(rel, opened); err != nil {
		return abi.ReadResponse{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return abi.ReadResponse{}, pathCause(err)
	}
	limit := in.Limit
	if limit == 0 {
		limit = limitRead
	}
	content, err := io.ReadAll(io.NewSectionReader(f, in.Offset, limit))
	if err != nil {
		return abi.ReadResponse{}, pathCause(err)
	}
	return readResponse(content, in.Offset, info.Size()), nil
}

// unmoved makes sure that what was opened is what the grant was checked for:
// somebody may have put a link into the path since.
func (x *instance) unmoved(rel, opened string) error {
	if opened == rel {
		return nil
	}
	return x.refusedPath(fmt.Errorf("%w: %q changed while it was being opened", sandbox.ErrRefused, rel))
}

// readResponse gives text as text, without a character at its end of which the
// rest is still to be read.
func readResponse(content []byte, offset, size int64) abi.ReadResponse {
	text := content
	if offset+int64(len(content)) < size {
		for i := 1; i < utf8.UTFMax && i <= len(content); i++ {
			if tail := content[len(content)-i:]; utf8.RuneStart(tail[0]) {
				if !utf8.FullRune(tail) && i < len(content) {
					text = content[:len(content)-i]
				}
				break
			}
		}
	}
	if utf8.Valid(text) && escaped(text) <= limitOutput {
		whole := string(text)
		return abi.ReadResponse{Content: &whole, Size: size}
	}
	return abi.ReadResponse{ContentBase64: &content, Size: size}
}

// escaped returns about how long a text is as JSON.
func escaped(text []byte) int {
	n := len(text)
	for _, c := range text {
		switch {
		case c < ' ' && c != '\n' && c != '\t' && c != '\r':
			n += 5
		case c < ' ' || c == '"' || c == '\\':
			n++
		}
	}
	return n
}

func listFolder(_ context.Context, x *instance, in abi.PathRequest) (abi.ListResponse, error) {
	root, rel, err := x.resolve(in.Path, false)
	if err != nil {
		return abi.ListResponse{}, err
	}
	entries, opened, err := root.ReadDir(rel)
	if err != nil {
		return abi.ListResponse{}, x.refusedPath(err)
	}
	if err := x.unmoved(rel, opened); err != nil {
		return abi.ListResponse{}, err
	}
	if len(entries) > limitEntries {
		return abi.ListResponse{}, fmt.Errorf("%w: the folder has %d entries, and the limit entries is %d", errOverLimit, len(entries), limitEntries)
	}
	out := abi.ListResponse{Entries: make([]abi.Entry, len(entries))}
	for i, e := range entries {
		out.Entries[i] = abi.Entry{Name: e.Name(), Kind: kindOf(e.Type())}
	}
	return out, nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "folder"
	case mode.IsRegular():
		return "file"
	case mode&fs.ModeSymlink != 0:
		return "link"
	default:
		return "other"
	}
}

func statFile(_ context.Context, x *instance, in abi.PathRequest) (abi.StatResponse, error) {
	root, rel, err := x.resolve(in.Path, false)
	if err != nil {
		return abi.StatResponse{}, err
	}
	info, opened, err := root.Stat(rel)
	if err != nil {
		return abi.StatResponse{}, x.refusedPath(err)
	}
	if err := x.unmoved(rel, opened); err != nil {
		return abi.StatResponse{}, err
	}
	return abi.StatResponse{Size: info.Size(), Mode: info.Mode().String(), MTime: info.ModTime().UTC().Format(time.RFC3339Nano)}, nil
}

// writeArguments are those of the tool write_file.
type writeArguments struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// writeFile writes a file by the tool write_file, whole or not at all.
func writeFile(ctx context.Context, x *instance, in abi.WriteRequest) (abi.Empty, error) {
	_, rel, err := x.resolve(in.Path, true)
	if err != nil {
		return abi.Empty{}, err
	}
	size := int64(len(in.Content))
	if total := x.session.written.Add(size); total > limitWritten {
		x.session.written.Add(-size)
		return abi.Empty{}, fmt.Errorf("%w: it would have written %d bytes in this session, and the limit written is %d", errOverLimit, total, limitWritten)
	}
	result, err := x.request(ctx, "write_file", writeArguments{rel, in.Content})
	if err == nil && result.IsError {
		err = errors.New(result.Content)
	}
	if err != nil {
		x.session.written.Add(-size)
	}
	return abi.Empty{}, err
}

// pathCause keeps the host's paths from the guest.
func pathCause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
