package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Process is a command under way. Its methods are safe for concurrent use.
type Process struct {
	by      confiner
	child   *child
	streams *streams
	began   time.Time
	limit   time.Duration

	done   chan struct{}
	result Result // once done is closed, as is err
	err    error

	typing sync.Mutex
	open   bool // the input can be written to
}

// Run runs c, confined, and returns when it and everything that it started has
// ended. A command that fails or reaches its time limit is a Result. The error
// is ErrUnavailable, a mistake in c or a program that is not there: then
// nothing was run; or the cause of ctx, after what was started has been ended,
// or a sandbox that broke down.
func (s *Sandbox) Run(ctx context.Context, c Command) (Result, error) {
	p, err := s.Start(ctx, c)
	if err != nil {
		return Result{}, err
	}
	return p.Wait()
}

// Start starts c, confined. When ctx ends, now or later, the command and everything
// that it started is ended: it is asked to, and after two seconds it must. The errors are
// those of Run, as far as they are known yet; Wait has the others. Wait need not be called.
func (s *Sandbox) Start(ctx context.Context, c Command) (*Process, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := s.complete(&c); err != nil {
		return nil, fmt.Errorf("run command: %w", err)
	}
	by, err := s.choose(ctx)
	if err != nil {
		return nil, err
	}
	if c.guard, err = s.beginGuard(c.Profile); err != nil {
		return nil, unavailable("Refused: " + err.Error() + ". The command was not run.")
	}
	ctx, stop := context.WithCancelCause(ctx)
	size := s.newGrowth()
	ear := &keepLast{}
	ear.listen(&c)
	c.ended = func(res Result, err error) (Result, error) {
		stop(nil)
		err = size.tell(&res, err)
		res.Notes = append(res.Notes, s.endGuard(c.guard)...)
		if err == nil {
			res.Refused = s.refusals(c.Profile, res, ear.text())
		}
		if by.rung() == Landlock && len(c.Network) > 0 {
			res.Notes = append(res.Notes, networkGap)
		}
		return res, settled(err)
	}
	p, err := begin(ctx, by, c)
	if err != nil {
		_, err = c.ended(Result{}, err)
		return nil, err
	}
	if by.rung() != Unconfined {
		go size.watch(p, s.looks, stop)
	}
	return p, nil
}

// settled returns an error of a command, which is ErrUnavailable where there was no
// sandbox to run it in.
func settled(err error) error {
	if nothing, ok := errors.AsType[*notStarted](err); ok && !nothing.program {
		return unavailable("Sandbox unavailable: " + nothing.reason + ". The command was not run.")
	}
	return err
}

// run runs c as by confines it.
func run(ctx context.Context, by confiner, c Command) (Result, error) {
	p, err := begin(ctx, by, c)
	if err != nil {
		return Result{}, err
	}
	return p.Wait()
}

// begin starts c as by confines it.
func begin(ctx context.Context, by confiner, c Command) (*Process, error) {
	p := &Process{by: by, began: time.Now(), limit: c.Timeout, done: make(chan struct{}), open: c.Input || c.Terminal.shown()}
	l, err := by.launch(c)
	if _, ok := errors.AsType[*notStarted](err); ok {
		return nil, err
	}
	if err != nil {
		return nil, &notStarted{reason: err.Error()}
	}
	if p.streams, err = openStreams(c); err != nil {
		l.close()
		return nil, fmt.Errorf("run command: %w", err)
	}
	if p.child, err = start(by, l, p.streams); err != nil {
		p.streams.close()
		l.close()
		return nil, &notStarted{reason: err.Error(), program: by.rung() == Unconfined}
	}
	go p.attend(ctx, c)
	return p, nil
}

// attend sees a command to its end.
func (p *Process) attend(ctx context.Context, c Command) {
	defer close(p.done)
	p.result, p.err = p.end(supervise(ctx, p.by, p.child, p.streams, c.Timeout))
	p.streams.close()
	p.child.close()
	if c.ended != nil {
		p.result, p.err = c.ended(p.result, p.err)
	}
}

// end returns how a command ended; why is for what we ended it.
func (p *Process) end(why error) (Result, error) {
	res := Result{Duration: time.Since(p.began), Rung: p.by.rung(), TimedOut: errors.Is(why, errTimeout)}
	if errors.Is(why, errStuck) {
		return res, fmt.Errorf("run command: process %d did not end within %v of being killed", p.child.process.Pid, gone)
	}
	var err error
	res.Cut = !p.streams.finish()
	res.ExitCode, err = p.child.outcome(why != nil, p.streams.lastWords())
	res.Notes = append(p.child.reached(res.ExitCode, p.limit), p.child.network.refused()...)
	if why != nil && !res.TimedOut {
		err = why
	}
	return res, err
}

// Done is closed when the command and everything that it started has ended, and its
// output has been written.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for that, and returns how it ended, as Run does.
func (p *Process) Wait() (Result, error) {
	<-p.done
	return p.result, p.err
}

// Write writes to the command's input, of which Command.Input or Command.Terminal
// must have told. While the command does not read, it waits, until ctx ends.
func (p *Process) Write(ctx context.Context, text []byte) (int, error) {
	p.typing.Lock()
	defer p.typing.Unlock()
	if !p.open {
		return 0, errors.New("write to command: its input is closed")
	}
	in := p.streams.in
	_ = in.SetWriteDeadline(time.Time{})
	late := make(chan struct{})
	inTime := context.AfterFunc(ctx, func() {
		_ = in.SetWriteDeadline(time.Unix(1, 0))
		close(late)
	})
	n, err := in.Write(text)
	if !inTime() {
		<-late
		err = context.Cause(ctx)
	}
	if err != nil && n < len(text) {
		return n, fmt.Errorf("write to command: %w", err)
	}
	return n, nil
}

// CloseInput ends the command's input. On a terminal it
// types what means the end there, Ctrl-D, as Write does, and the input stays open.
func (p *Process) CloseInput(ctx context.Context) error {
	if p.streams.terminal {
		_, err := p.Write(ctx, []byte{endOfInput})
		return err
	}
	p.typing.Lock()
	defer p.typing.Unlock()
	if !p.open {
		return nil
	}
	p.open = false
	return p.streams.in.Close()
}
