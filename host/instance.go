package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/extism"
)

// instance is a guest's memory and state. One call at a time runs in it; what
// a call needs of the host is kept here too, and reset at its start.
type instance struct {
	extension *Extension
	session   SessionConfig
	slot      *slot // of the session, if this is its one instance; else nil
	module    api.Module
	alloc     api.Function
	handlers  []handler      // few, so that looking through them is quick
	kernel    *extism.Kernel // of a plugin with Extism's ABI; else nil
	memory    *pluginMemory  // likewise

	starting   bool        // nobody has called yet: it may be made beside other calls
	stack      [2]uint64   // parameters and result of a call
	running    callContext // or the last call
	response   []byte      // of the last host operation, for read
	operations int
	events     int // emitted
	using      use
	log        guestLog
}

// handler is a function that the host calls.
type handler struct {
	export   string
	function api.Function
}

func (x *instance) handler(export string) api.Function {
	for i := range x.handlers {
		if x.handlers[i].export == export {
			return x.handlers[i].function
		}
	}
	return nil
}

// instantiate makes an instance: start function and _initialize run, within
// StartTimeout.
func (e *Extension) instantiate(ctx context.Context, cfg SessionConfig) (*instance, error) {
	x := &instance{extension: e, session: cfg, starting: true}
	x.log = guestLog{extension: e.Manifest.Name, record: cfg.Record, secrets: cfg.Secrets.Scanner(), total: &cfg.logged, over: x.over}
	module := wazero.NewModuleConfig().
		WithName(""). // so that there may be many
		WithStartFunctions(abi.Initialize).
		WithStdout(&x.log.stdout).WithStderr(&x.log.stderr).
		WithRandSource(randomness{x, x.chance()}).
		WithNanosleep(x.sleep)
	module = x.clocks(module)
	x.log.begin()
	err := x.under(ctx, StartTimeout, func(ctx context.Context) (err error) {
		if e.Manifest.Extism {
			x.memory = &pluginMemory{instance: x}
			x.kernel = extism.New(pluginHost{x})
			ctx = experimental.WithMemoryAllocator(ctx, x.memory)
		}
		x.module, err = e.runtime.InstantiateModule(ctx, e.compiled, module)
		if err == nil && x.module.IsClosed() {
			err = errExited
		}
		if err == nil && x.kernel != nil {
			err = x.startPlugin(ctx)
		}
		return err
	})
	if logErr := x.log.end(); err == nil {
		err = logErr
	}
	if err != nil {
		x.close()
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("start the guest: %w", x.scrubError(err))
	}
	x.starting = false
	x.alloc = x.module.ExportedFunction(abi.Alloc)
	for _, name := range e.exports() {
		x.handlers = append(x.handlers, handler{name, x.module.ExportedFunction(name)})
	}
	return x, nil
}

// close frees the instance. It may be called again.
func (x *instance) close() {
	if x.module != nil {
		x.noteMemory()
		_ = x.module.Close(context.Background()) // closing an instance without files cannot fail
		x.module = nil
	}
}

// invoke gives payload to a handler and returns its answer, which lies in the
// guest's memory: copy it before the next call. Whether the instance is still
// good is for usable to say.
func (x *instance) invoke(ctx context.Context, export string, limit time.Duration, payload []byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // nothing ran, so the instance is as good as before
	}
	x.operations, x.events, x.response = 0, 0, nil
	x.log.begin()
	f := x.handler(export)
	var result uint64
	err := x.under(ctx, limit, func(ctx context.Context) (err error) {
		if x.kernel != nil {
			result, err = x.handleInput(ctx, f, payload)
		} else {
			result, err = x.handle(ctx, f, payload)
		}
		return err
	})
	if logErr := x.log.end(); logErr != nil && err == nil {
		err = logErr
	}
	if err != nil {
		x.close() // its memory may be in any state
		return nil, x.scrubError(err)
	}
	if x.kernel != nil {
		return x.takeOutput(uint32(result))
	}
	return x.takeAnswer(result)
}

// handle copies the payload into the guest and calls the handler.
func (x *instance) handle(ctx context.Context, handler api.Function, payload []byte) (uint64, error) {
	var at uint64
	if len(payload) > 0 {
		var err error
		if at, err = x.call(ctx, x.alloc, uint64(len(payload)), 0); err != nil {
			return 0, err
		}
		at = uint64(uint32(at))
		if at == 0 {
			return 0, faultf("%s gave no memory for %d bytes: the limit memory is %s",
				abi.Alloc, len(payload), x.extension.Manifest.Memory)
		}
		if !x.module.Memory().Write(uint32(at), payload) {
			return 0, faultf("%s gave %d bytes at %#x, which is outside the guest's memory", abi.Alloc, len(payload), at)
		}
	}
	return x.call(ctx, handler, at, uint64(len(payload)))
}

// takeAnswer checks what a handler answered, and finds it in the guest's memory.
func (x *instance) takeAnswer(result uint64) ([]byte, error) {
	ptr, length := abi.Unpack(result)
	if length == 0 {
		return nil, nil
	}
	if length > limitOutput {
		return nil, overOutput(int(length))
	}
	view, ok := x.module.Memory().Read(ptr, length)
	if !ok {
		x.close()
		return nil, fmt.Errorf("the answer of %d bytes at %#x is outside the guest's memory", length, ptr)
	}
	return x.checkAnswer(view)
}

// checkAnswer checks the bytes of an answer, and takes the values of secrets out
// of it.
func (x *instance) checkAnswer(answer []byte) ([]byte, error) {
	if len(answer) > limitOutput {
		return nil, overOutput(len(answer))
	}
	if !utf8.Valid(answer) {
		return nil, errors.New("the answer is not UTF-8")
	}
	return x.scrub(answer), nil
}

func overOutput(n int) error {
	return fmt.Errorf("the answer has %d bytes: that is over the limit output, %d", n, limitOutput)
}

// usable reports whether another call may run in x.
func (x *instance) usable() bool { return x != nil && x.module != nil && !x.module.IsClosed() }

// randomness is a guest's source of random bytes. It ends with the call.
type randomness struct {
	*instance
	source io.Reader
}

// chance returns where the instance's random bytes come from.
func (x *instance) chance() io.Reader {
	if t := x.session.Trial; t != nil {
		return t.Random()
	}
	return rand.Reader
}

// Read fills p, in pieces, so that a large one can be interrupted.
func (r randomness) Read(p []byte) (int, error) {
	if r.over() {
		return 0, errTimeout
	}
	return r.source.Read(p[:min(len(p), 64<<10)])
}
