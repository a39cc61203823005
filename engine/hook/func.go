package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Func handles a hook point in Go. The payload is what a Wasm guest gets at that
// point: JSON with the keys that [Points] names, or raw text; it is the Func's only
// until it returns. The zero Verdict is no opinion. An error or a panic is a failure
// of the hook. ctx ends at the hook's time-out, and a Func must return soon after:
// nothing can interrupt Go code from outside.
type Func func(ctx context.Context, payload []byte) (Verdict, error)

// Funcs is a [Hook] made of Go functions, for programs that embed the engine. What
// it answers is checked and merged as any extension's answer is: it narrows what is
// allowed and never widens it, unless Approve says so.
type Funcs struct {
	ID      string         // its name, which is named in every denial
	On      map[Point]Func // what it handles
	Tools   []string       // globs over the tools' names, at the tool points; empty means all
	Timeout time.Duration  // for one call; 0 means a second
	Guard   bool           // its failures deny, where a hook can, and end the turn elsewhere
	Approve bool           // its allow may skip a question to the user
}

var _ Hook = Funcs{}

// Name returns the ID.
func (f Funcs) Name() string { return f.ID }

// Handles reports the points of On.
func (f Funcs) Handles(p Point) (Handling, bool) {
	_, ok := f.On[p]
	timeout := f.Timeout
	if timeout <= 0 {
		timeout = time.Second
	}
	return Handling{Tools: f.Tools, Timeout: timeout, OnFailure: DefaultOnFailure(f.Guard, p), Approve: f.Approve}, ok
}

// Call asks the function of the point.
func (f Funcs) Call(ctx context.Context, p Point, payload []byte) (answer []byte, err error) {
	handling, ok := f.Handles(p)
	if !ok {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, handling.Timeout)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			answer, err = nil, fmt.Errorf("it broke down: %v", r)
		}
	}()
	v, err := f.On[p](ctx, payload)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil: // late does not count
		return nil, fmt.Errorf("it took longer than %v", handling.Timeout)
	case v.Decision == "" && v.Reason == "" && v.Context == "" && v.Message == "" && v.Error == "" && len(v.Replace) == 0:
		return nil, nil
	}
	return json.Marshal(v)
}
