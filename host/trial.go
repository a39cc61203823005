package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/capability"
)

// Trial is what a test of an extension decides, and in real life the machine:
// time, chance and misfortune. It grants nothing and skips no check. Its
// functions must be safe for concurrent use.
type Trial struct {
	Now    func() time.Time                           // what guests see of the time
	Slept  func(time.Duration)                        // a guest slept: no time passes, but what it has of its own is less
	Random func() io.Reader                           // random bytes, for each instance its own; must not end
	Fault  func(operation, target string) *TrialFault // asked before an operation that is allowed is done; nil: it goes on
}

// TrialFault is how an operation fails in a [Trial].
type TrialFault struct {
	Code    string // FAILED, OVER_LIMIT, DENIED, or TIMEOUT: it takes all the time that the call has
	Message string
}

// TimedOut is the code of a [TrialFault] after which the guest's time is over.
const TimedOut = "TIMEOUT"

// clocks gives a module the time: the machine's, or a trial's.
func (x *instance) clocks(cfg wazero.ModuleConfig) wazero.ModuleConfig {
	t := x.session.Trial
	if t == nil {
		return cfg.WithSysWalltime().WithSysNanotime()
	}
	return cfg.WithWalltime(func() (int64, int32) {
		now := t.Now()
		return now.Unix(), int32(now.Nanosecond())
	}, sys.ClockResolution(time.Microsecond)).WithNanotime(func() int64 { return t.Now().UnixNano() }, sys.ClockResolution(1))
}

// pass has a guest sleep without a wait.
func (x *instance) pass(d time.Duration) {
	d = max(0, min(d, x.running.left()))
	x.session.Trial.Slept(d)
	x.running.deadline -= d
}

// misfortune has an operation that is allowed fail, where a trial wants that.
func (x *instance) misfortune() error {
	t := x.session.Trial
	if t == nil {
		return nil
	}
	fault := t.Fault(x.using.operation, x.using.target)
	if fault == nil {
		return nil
	}
	switch fault.Code {
	case TimedOut:
		x.running.deadline = clock()
		return errTimeout
	case abi.Denied:
		denied := &denial{cmp.Or(fault.Message, "denied by the case")}
		return errors.Join(denied, x.audit(denied))
	case abi.OverLimit.Code():
		return fmt.Errorf("%w: %s", errOverLimit, cmp.Or(fault.Message, "the case has it so"))
	default:
		return errors.New(cmp.Or(fault.Message, "the case has it fail"))
	}
}

// Memory returns the most bytes of memory that an instance of the session had.
// No call may be under way.
func (s *Session) Memory() int64 {
	if s.instance != nil {
		s.instance.noteMemory()
	}
	return s.cfg.memory.Load()
}

// noteMemory remembers how much memory the instance has.
func (x *instance) noteMemory() {
	if x.module == nil {
		return
	}
	size := int64(x.memory.size())
	if x.kernel != nil {
		size += int64(x.kernel.Size())
	} else if m := x.module.Memory(); m != nil {
		size = int64(m.Size())
	}
	for {
		most := x.session.memory.Load()
		if size <= most || x.session.memory.CompareAndSwap(most, size) {
			return
		}
	}
}

// Kept returns what the extension keeps from one session to the next.
func (e *Extension) Kept(ctx context.Context) (map[string]json.RawMessage, error) {
	var all map[string]json.RawMessage
	err := e.store().read(ctx, func(kept map[string]json.RawMessage) { all = kept })
	return all, err
}

// Keep puts entries, whose values are compact JSON, in the place of all that the
// extension keeps. No grant limits what its owner gives it.
func (e *Extension) Keep(ctx context.Context, entries map[string]json.RawMessage) error {
	store := e.store()
	store.quota = capability.Size(limitModule)
	return store.change(ctx, func(kept map[string]json.RawMessage) {
		clear(kept)
		for key, value := range entries {
			kept[key] = value
		}
	})
}
