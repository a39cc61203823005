package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	return capability.Need{Key: "kv", Target: in.Key}, checkKey(in.Key)
}

func needKeyAndValue(in abi.KVSetRequest) (capability.Need, error) {
	if err := checkKey(in.Key); err != nil {
		return capability.Need{}, err
	}
	if len(in.Value) == 0 || string(in.Value) == "null" {
		return capability.Need{}, errors.New(`"value" must be there and not null: kv.delete takes a key away`)
	}
	return capability.Need{Key: "kv", Target: in.Key}, nil
}

func needPrefix(in abi.KVListRequest) (capability.Need, error) {
	if len(in.Prefix) > 512 {
		return capability.Need{}, errors.New(`"prefix" must have up to 512 bytes`)
	}
	return capability.Need{Key: "kv", Target: in.Prefix + "*"}, nil
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

func (x *instance) store() kvStore {
	return kvStore{x.extension.host.kvDir, x.extension.Manifest.Name, x.extension.Granted.KV}
}

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
	lock, err := os.OpenFile(filepath.Join(s.dir, s.name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
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

func (s kvStore) path() string { return filepath.Join(s.dir, s.name+".json") }

func (s kvStore) load() (map[string]json.RawMessage, error) {
	raw, err := os.ReadFile(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]json.RawMessage{}, nil
	}
	if err != nil {
		return nil, storeError(err)
	}
	f := kvFile{Entries: map[string]json.RawMessage{}}
	if err := decodeStrict(raw, &f); err != nil || f.Version != 1 || f.Entries == nil {
		return nil, fmt.Errorf("the file %s is damaged or from a later version: move it away", filepath.Base(s.path()))
	}
	return f.Entries, nil
}

// save replaces the file: a reader, or a crash, sees the old or the new one.
func (s kvStore) save(kept map[string]json.RawMessage) (err error) {
	raw, err := json.Marshal(kvFile{Version: 1, Entries: kept})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, s.name+".*.tmp") // mode 0600
	if err != nil {
		return storeError(err)
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.path())
	}
	if err != nil {
		return storeError(errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// storeError keeps the host's paths from the guest.
func storeError(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("the store cannot be used: %w", path.Err)
	}
	return errors.New("the store cannot be used")
}
