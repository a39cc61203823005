package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wharf-agent/wharf/engine/egress"
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/sandbox"
	"github.com/wharf-agent/wharf/engine/secret"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/engine/tool"
)

// Session is an extension's part in one session of the engine. It is the
// session's hook, and gives its tools. Call is called by one goroutine at a
// time, as the engine does; tools may run beside it. Calls into its one
// instance wait for each other; one that is made in the course of another is
// refused.
type Session struct {
	extension *Extension
	cfg       SessionConfig
	slot      *slot     // held by whoever uses instance
	instance  *instance // nil until a call needs it
	tools     []ManifestTool
	limits    []limit        // of the hook points; few, so that looking through them is quick
	answer    []byte         // of the last Call
	calls     sync.WaitGroup // tool calls with an instance of their own, and making a spare

	mu     sync.Mutex
	closed bool      // written with the slot held too
	spare  *instance // for the next such call; nil while there is none
	making func()    // ends the making of a spare; nil while none is made
}

// limit is how long a hook may take.
type limit struct {
	point   hook.Point
	timeout time.Duration
}

var _ hook.Hook = (*Session)(nil)

// SessionConfig says what an extension meets in a session; the zero value is a
// session in which nothing can be reached.
type SessionConfig struct {
	// Record writes an event to the session's log, and must be safe for
	// concurrent use; its error fails the guest's call. Nil drops events.
	Record func(session.Event) error
	Gate   Gate                             // to the engine; nil makes the operations that need it fail
	Root   *sandbox.Root                    // the workspace, for fs; nil makes those operations fail
	Env    func(name string) (string, bool) // the environment, for env.get; nil has no variables

	Secrets *secret.Store       // go into requests, and are kept out of all else; nil has none
	Network egress.ClientConfig // how http.fetch reaches the network; how large a response may be is the host's to say
	Trial   *Trial              // what a test of the extension decides; nil in real life
	Tape    func(Taped)         // hears each call when it is answered, and must be safe for concurrent use; nil: nobody listens

	*account                // what the instances of an extension have used in the session
	client   *egress.Client // of all of them; nil if no http was granted
}

// account is what a session counts. It is safe for concurrent use.
type account struct {
	calls   atomic.Int64 // that were numbered
	written atomic.Int64 // bytes in files
	audited atomic.Int64 // bytes in the audit
	logged  atomic.Int64 // bytes of guests' logs
	memory  atomic.Int64 // bytes, of the largest instance

	asking  sync.Mutex // held while it is seen what is left of the tokens
	pending int64      // tokens that calls beside may spend
}

// Session joins a session. A first instance is made now, so that an extension
// that cannot start is found out: the error is a [*LoadError]. Close the
// Session with the session.
func (e *Extension) Session(ctx context.Context, cfg SessionConfig) (*Session, error) {
	if cfg.Record == nil {
		cfg.Record = func(session.Event) error { return nil }
	}
	cfg.account = &account{}
	cfg.Record = cfg.scrubbing(cfg.Record)
	cfg.client = e.newClient(cfg.Network)
	s := &Session{extension: e, cfg: cfg, slot: newSlot()}
	for point, handling := range e.Manifest.Hooks {
		s.limits = append(s.limits, limit{point, handling.Timeout})
	}
	x, err := e.instantiate(ctx, cfg)
	if err != nil {
		return nil, &LoadError{Name: e.Manifest.Name, Manifest: e.Manifest, Err: err}
	}
	if s.tools, err = e.tools(ctx, x); err != nil {
		x.close()
		return nil, &LoadError{Name: e.Manifest.Name, Manifest: e.Manifest, Err: err}
	}
	if e.sharesInstance() {
		s.instance, x.slot = x, s.slot
	} else {
		s.spare = x
	}
	return s, nil
}

// sharesInstance reports whether anything runs in the session's instance.
func (e *Extension) sharesInstance() bool {
	for _, t := range e.Manifest.Tools {
		if t.PerSession {
			return true
		}
	}
	return len(e.Manifest.Hooks) > 0 || e.list != ""
}

// tools returns the tools of the manifest, or those that a plugin lists.
func (e *Extension) tools(ctx context.Context, x *instance) ([]ManifestTool, error) {
	if e.list == "" {
		return e.Manifest.Tools, nil
	}
	answer, err := x.invoke(ctx, e.list, StartTimeout, e.dialect.list())
	if err != nil {
		return nil, fmt.Errorf("list its tools: %w", err)
	}
	return e.dialect.parseList(answer)
}

// Close waits for calls that still run and frees the instance. Calls after it
// fail.
func (s *Session) Close() {
	_ = s.slot.take(context.Background(), math.MaxInt64)
	s.mu.Lock()
	s.closed = true
	if s.making != nil {
		s.making()
	}
	s.mu.Unlock()
	if s.instance != nil {
		s.instance.close()
	}
	s.slot.leave()
	s.calls.Wait()
	if s.spare != nil {
		s.spare.close()
	}
	if s.cfg.client != nil {
		s.cfg.client.Close()
	}
}

// Name returns the extension's name.
func (s *Session) Name() string { return s.extension.Manifest.Name }

// Handles says whether and how the extension handles p.
func (s *Session) Handles(p hook.Point) (hook.Handling, bool) {
	h, ok := s.extension.Manifest.Hooks[p]
	return h, ok
}

// Call asks the extension at p. The answer is the guest's own bytes, UTF-8
// and valid until the next call. An error says how the guest failed; if ctx
// ended, it is ctx's cause.
func (s *Session) Call(ctx context.Context, p hook.Point, payload []byte) ([]byte, error) {
	limit, ok := s.limit(p)
	if !ok {
		return nil, nil
	}
	s.answer = s.answer[:0]
	err := s.within(ctx, limit, func(limit time.Duration, x *instance) error {
		answer, err := x.invoke(ctx, string(p), limit, payload)
		s.answer = append(s.answer, answer...)
		return err
	})
	if s.cfg.Tape != nil {
		s.cfg.Tape(Taped{Point: p, In: payload, Out: s.answer, Err: err})
	}
	if err != nil || len(s.answer) == 0 {
		return nil, err
	}
	return s.answer, nil
}

func (s *Session) limit(p hook.Point) (time.Duration, bool) {
	for i := range s.limits {
		if s.limits[i].point == p {
			return s.limits[i].timeout, true
		}
	}
	return 0, false
}

// Tools returns the extension's tools. They may be called side by side.
func (s *Session) Tools() []tool.Tool {
	var tools []tool.Tool
	for _, t := range s.tools {
		tools = append(tools, &guestTool{session: s, manifest: t})
	}
	return tools
}

var errClosed = errors.New("the session is closed")

// within runs use on the session's instance as soon as no other call does,
// and tells it how much of limit the wait left.
func (s *Session) within(ctx context.Context, limit time.Duration, use func(time.Duration, *instance) error) error {
	limit, err := s.acquire(ctx, limit)
	if err != nil {
		return err
	}
	defer s.slot.leave()
	if s.closed {
		return errClosed
	}
	if !s.instance.usable() { // the last call broke it
		if s.instance, err = s.extension.instantiate(ctx, s.cfg); err != nil {
			return err
		}
		s.instance.slot = s.slot
	}
	return use(limit, s.instance)
}

// acquire takes the slot and returns how much of limit that left.
func (s *Session) acquire(ctx context.Context, limit time.Duration) (time.Duration, error) {
	if s.slot.try() {
		return limit, nil
	}
	if holds(ctx, s.slot) {
		return 0, errBusy
	}
	begin := time.Now()
	err := s.slot.take(ctx, limit)
	return max(limit-time.Since(begin), time.Nanosecond), err
}

// alone runs use on an instance that no other call sees. It is the spare, if
// there is one.
func (s *Session) alone(ctx context.Context, use func(*instance) error) error {
	if !s.enter() {
		return errClosed
	}
	defer s.calls.Done()
	x := s.takeSpare()
	if x == nil {
		var err error
		if x, err = s.extension.instantiate(ctx, s.cfg); err != nil {
			return err
		}
	}
	defer s.makeSpare(ctx)
	defer x.close()
	return use(x)
}

func (s *Session) takeSpare() *instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.spare
	s.spare = nil
	return x
}

// makeSpare begins to make an instance for the next call, unless there is one
// already. If it cannot be made, the next call will tell why.
func (s *Session) makeSpare(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.spare != nil || s.making != nil || s.cfg.Trial != nil { // in a trial, each call starts its own
		return
	}
	ctx, s.making = context.WithCancel(context.WithoutCancel(ctx)) // the call's own context may be over
	s.calls.Go(func() {
		x, _ := s.extension.instantiate(ctx, s.cfg)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.making()
		s.spare, s.making = x, nil
	})
}

// enter counts a call that Close waits for. It reports whether the session is
// still open.
func (s *Session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.calls.Add(1)
	}
	return !s.closed
}

var errBusy = errors.New("it is busy: this happens in the course of a call of its own")

// holding marks a context as within a call that holds a slot.
type holding struct {
	slot  *slot
	outer *holding
}

type holdingKey struct{}

// outward returns the context of what a guest has the engine do: what comes
// round to the guest's own instance must not wait for it.
func (x *instance) outward(ctx context.Context) context.Context {
	if x.slot == nil {
		return ctx
	}
	outer, _ := ctx.Value(holdingKey{}).(*holding)
	return context.WithValue(ctx, holdingKey{}, &holding{x.slot, outer})
}

// holds reports whether ctx is within a call that holds slot.
func holds(ctx context.Context, slot *slot) bool {
	h, _ := ctx.Value(holdingKey{}).(*holding)
	for ; h != nil; h = h.outer {
		if h.slot == slot {
			return true
		}
	}
	return false
}
