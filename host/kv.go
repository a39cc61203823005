package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/capability"
)

// The kv operations: what an extension keeps across sessions.
var (
	kvGet = define("kv.get", needKey, func(ctx context.Context, x *instance, in abi.KeyRequest) (out abi.ValueResponse, err error) {
		err = x.store().read(ctx, func(kept map[string]json.RawMessage) { out.Value = kept[in.Key] })
		return out, err
	})
	kvSet = define("kv.set", needKeyAndValue, func(ctx context.Context, x *instance, in abi.KVSetRequest) (abi.Empty, error) {
		var value bytes.Buffer
		if err := json.Compact(&value, in.Value); err != nil {
			return abi.Empty{}, err
		}
		return abi.Empty{}, x.store().change(ctx, func(kept map[string]json.RawMessage) { kept[in.Key] = value.Bytes() })
	})
	kvDelete = define("kv.delete", needKey, func(ctx context.Context, x *instance, in abi.KeyRequest) (abi.Empty, error) {
		return abi.Empty{}, x.store().change(ctx, func(kept map[string]json.RawMessage) { delete(kept, in.Key) })
	})
	kvList = define("kv.list", needPrefix, func(ctx context.Context, x *instance, in abi.KVListRequest) (abi.KVListResponse, error) {
		out := abi.KVListResponse{Keys: []string{}}
		err := x.store().read(ctx, func(kept map[string]json.RawMessage) {
			for _, key := range sortedKeys(kept) {
				if strings.HasPrefix(key, in.Prefix) {
					out.Keys = append(out.Keys, key)
				}
			}
		})
		return out, err
	})
)

func needKey(in abi.KeyRequest) (capability.Need, error) {
	return capability.KV(in.Key), checkKey(in.Key)
}

func needKeyAndValue(in abi.KVSetRequest) (capability.Need, error) {
	if err := checkKey(in.Key); err != nil {
		return capability.Need{}, err
	}
	if len(in.Value) == 0 || string(in.Value) == "null" {
		return capability.Need{}, errors.New(`"value" must be there and not null: kv.delete takes a key away`)
	}
	return capability.KV(in.Key), nil
}

func needPrefix(in abi.KVListRequest) (capability.Need, error) {
	if len(in.Prefix) > 512 {
		return capability.Need{}, errors.New(`"prefix" must have up to 512 bytes`)
	}
	return capability.KV(in.Prefix + "*"), nil
}

// kvStore is one extension's file. Several processes may use it at once: each
// use holds a lock on a file beside it, and a change replaces it as a whole.
type kvStore struct {
	dir, name string
	quota     capability.Size
}

// kvFile is the format on disk.
type kvFile struct {
	Version int                        `json:"version"`
	Entries map[string]json.RawMessage `json:"entries"`
}

func (x *instance) store() kvStore { return x.extension.store() }

func (e *Extension) store() kvStore { return kvStore{e.host.kvDir, e.Manifest.Name, e.Granted.KV} }

func (s kvStore) read(ctx context.Context, look func(map[string]json.RawMessage)) error {
	return s.locked(ctx, unix.LOCK_SH, func() error {
		kept, err := s.load()
		if err != nil {
			return err
		}
		look(kept)
		return nil
	})
}

func (s kvStore) change(ctx context.Context, change func(map[string]json.RawMessage)) error {
	return s.locked(ctx, unix.LOCK_EX, func() error {
		kept, err := s.load()
		if err != nil {
			return err
		}
		before := sizeOf(kept)
		change(kept)
		if after := sizeOf(kept); after > s.quota && after > before {
			return fmt.Errorf("%w: what is kept would be %d bytes, and the grant is kv = %q: delete something, or ask for more",
				errOverLimit, after, s.quota)
		}
		return s.save(kept)
	})
}

func sizeOf(kept map[string]json.RawMessage) (n capability.Size) {
	for key, value := range kept {
		n += capability.Size(len(key) + len(value))
	}
	return n
}

// locked runs do under the store's lock. It gives up when ctx ends.
func (s kvStore) locked(ctx context.Context, how int, do func() error) error {
	if s.dir == "" {
		return errors.New("this host has no folder for what extensions keep")
	}
	lock, err := s.open(".lock", os.O_CREATE|os.O_RDWR)
	if err != nil {
		return storeError(err)
	}
	defer lock.Close() // also unlocks it
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		err := unix.Flock(int(lock.Fd()), how|unix.LOCK_NB)
		if err == nil {
			return do()
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return storeError(err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return errors.New("the store is in use elsewhere")
		}
	}
}

func (s kvStore) path(suffix string) string { return filepath.Join(s.dir, s.name+suffix) }

var errNoFile = errors.New("there is something else in the place of its file: take it away")

// open opens one of the store's files. It follows no link, waits for nothing,
// and takes regular files alone.
func (s kvStore) open(suffix string, flags int) (*os.File, error) {
	file, err := os.OpenFile(s.path(suffix), flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) {
		return nil, errNoFile
	}
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errNoFile, file.Close())
	}
	return file, nil
}

func (s kvStore) load() (map[string]json.RawMessage, error) {
	file, err := s.open(".json", os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]json.RawMessage{}, nil
	}
	if err != nil {
		return nil, storeError(err)
	}
	defer file.Close()
	raw, err := io.ReadAll(file)
	if err != nil {
		return nil, storeError(err)
	}
	f := kvFile{Entries: map[string]json.RawMessage{}}
	if err := decodeStrict(raw, &f); err != nil || f.Version != 1 || f.Entries == nil {
		return nil, fmt.Errorf("the file %s is damaged or from a later version: move it away", filepath.Base(s.path(".json")))
	}
	return f.Entries, nil
}

// save replaces the file: a reader, or a crash, sees the old or the new one.
// The lock is held, so what an earlier crash left of a new one is overwritten.
func (s kvStore) save(kept map[string]json.RawMessage) error {
	raw, err := encodeStore(kept)
	if err != nil {
		return err
	}
	f, err := s.open(".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return storeError(err)
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.path(".json"))
	}
	if err != nil {
		return storeError(errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// encodeStore writes values as they are: escapes would let them grow over the
// quota. What load could not read again is an error.
func encodeStore(kept map[string]json.RawMessage) ([]byte, error) {
	raw, err := encode(kvFile{Version: 1, Entries: kept})
	if err == nil && !json.Valid(raw) {
		err = fmt.Errorf("%w: the value is nested too deeply", errBadRequest)
	}
	return raw, err
}

// storeError keeps the host's paths from the guest.
func storeError(err error) error {
	if errors.Is(err, errNoFile) {
		return fmt.Errorf("the store cannot be used: %w", errNoFile)
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("the store cannot be used: %w", path.Err)
	}
	return errors.New("the store cannot be used")
}
