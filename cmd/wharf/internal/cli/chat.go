package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/wharf-agent/wharf/engine"
	"github.com/wharf-agent/wharf/engine/session"
)

// chat is a session that a person talks in, a turn for each line.
type chat struct {
	runOptions
	io         stdio
	input      prompter
	keys       *keyboard // nil: nobody sits there
	view       *progress
	plan       plan
	parts      *parts
	interrupts <-chan os.Signal
	spent      session.Usage
	said       string        // of the reply that arrives
	shown      chan struct{} // a question's turn has come
	last       engine.Result
}

// prompter reads what is said next: a line, or several that were pasted.
type prompter interface {
	// prompt returns io.EOF at the end, errInterrupted if the line was given up, and
	// errLongLine if it was cut.
	prompt(ctx context.Context) (string, error)
}

var errInterrupted = errors.New("interrupted")

func chatCommand(ctx context.Context, io stdio, args []string) error {
	c := &chat{io: io, view: newProgress(io.err, true), shown: make(chan struct{}, 64)}
	flags := c.flags()
	flags.Init("chat", 0)
	for _, name := range []string{"output-format", "output-schema", "image", "goal", "verbose"} {
		_ = flags.MarkHidden(name) // they are for a single turn
	}
	if err := parse(io, flags, "chat [flags of run]", args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return usagef("chat: it takes no prompt: say it there, or use wharf run")
	}
	if flags.Changed("output-format") || flags.Changed("output-schema") || flags.Changed("image") {
		return usagef("chat: --output-format, --output-schema and --image are for wharf run")
	}
	if flags.Changed("goal") {
		return usagef("chat: a goal is given there, by /goal: --goal is for wharf run")
	}
	c.view.streamed = true
	if c.keys = newKeyboard(io.in); c.keys != nil {
		c.input = &editor{keys: c.keys, in: io.in.(*os.File), out: io.err} // a keyboard is a terminal's
	} else {
		scanner := bufio.NewScanner(io.in)
		scanner.Buffer(nil, maxPrompt)
		c.input = &lines{scanner}
	}
	var err error
	if c.plan, err = c.runOptions.plan(c.view); err != nil {
		return err
	}
	c.plan.approver = newApprover(c.io, c.plan, c.keys, c.shown)
	err = c.begin(ctx)
	if err == nil {
		if c.keys != nil { // until here, Ctrl-C ends it
			c.interrupts = takeInterrupts(ctx)
		}
		err = c.talk(ctx)
	}
	if failure := c.end(ctx); err == nil {
		err = failure
	}
	return err
}

// begin opens the session.
func (c *chat) begin(ctx context.Context) (err error) {
	// The view is shown events by show, between the pieces of a reply.
	if c.parts, err = c.build(ctx, c.plan, c.view, func(session.Record) {}); err != nil {
		return err
	}
	return c.parts.engine.Start(ctx, c.plan.source())
}

// end leaves the session, if there is one.
func (c *chat) end(ctx context.Context) error {
	if c.parts == nil {
		return nil
	}
	ctx, done := c.interruptible(ctx)
	defer done()
	err := c.parts.engine.End(context.WithoutCancel(ctx), "exit")
	if c.parts.log.Turns() > 0 {
		c.view.notice("to go on: wharf chat --resume %s%s", c.parts.log.ID(), c.repeat())
	}
	err = errors.Join(err, c.parts.close())
	c.parts = nil
	return err
}

// talk takes one line after the other, until there are no more.
func (c *chat) talk(ctx context.Context) error {
	for gaveUp := false; ; {
		line, err := c.input.prompt(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return c.outcome()
		case errors.Is(err, errInterrupted) && gaveUp:
			return exitError{code: exitINT}
		case errors.Is(err, errInterrupted):
			gaveUp = true
			c.view.notice("Ctrl-C again, or Ctrl-D, leaves the chat")
			continue
		case errors.Is(err, errLongLine):
			c.view.notice("%v", err)
			continue
		case err != nil:
			return err
		}
		gaveUp = false
		text := strings.TrimSpace(line)
		switch {
		case text == "":
		case !utf8.ValidString(line):
			c.view.notice("that is no UTF-8 text: put the data into a file and name that")
		case strings.HasPrefix(text, "/"):
			switch over, err := c.command(ctx, text); {
			case err != nil:
				return err
			case over:
				return c.outcome()
			}
		default:
			c.turn(ctx, engine.Input{Text: line})
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// outcome is how the chat ends where nobody sits: as its last turn did.
func (c *chat) outcome() error {
	if c.keys != nil || c.last.Reason == "" {
		return nil
	}
	if code := status(c.last.Reason, nil); code != exitOK {
		return exitError{code: code} // why has been shown
	}
	return nil
}

// turn runs a turn, and shows the answer as it arrives. SIGINT ends it; a second one
// ends the process.
func (c *chat) turn(ctx context.Context, in engine.Input) {
	ctx, done := c.interruptible(ctx)
	defer done()
	c.said = ""
	for len(c.shown) > 0 {
		<-c.shown // of a question that was given up
	}
	for event, err := range c.parts.engine.Run(ctx, in) {
		if err != nil {
			c.view.notice("%v", err)
			break
		}
		c.show(event)
	}
}

// interruptible returns a context that the first SIGINT ends; the second one ends the
// process. Call done once that is over.
func (c *chat) interruptible(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	for len(c.interrupts) > 0 {
		<-c.interrupts // from before
	}
	over := make(chan struct{})
	go c.listen(cancel, over)
	return ctx, func() { close(over); cancel(nil) }
}

func (c *chat) listen(cancel context.CancelCauseFunc, done <-chan struct{}) {
	for first := true; ; first = false {
		select {
		case s := <-c.interrupts:
			if !first {
				os.Exit(signalStatus(s)) // what it runs dies with it
			}
			cancel(signalled{s})
		case <-done:
			return
		}
	}
}

// show shows what happens in a turn, in its order.
func (c *chat) show(event engine.Event) {
	if event.Event == nil {
		c.said += event.Text
		fmt.Fprint(c.io.out, printable(event.Text))
		return
	}
	switch e := event.Event.(type) {
	case session.AssistantMessage:
		if len(e.Calls) > 0 && c.said != "" { // else it may be the answer
			fmt.Fprintln(c.io.out)
			c.said = ""
		}
	case session.TurnEnded:
		if e.Text != c.said { // hooks made it another one, or held it back until now
			fmt.Fprint(c.io.out, printable(e.Text))
		}
		if e.Text+c.said != "" {
			fmt.Fprintln(c.io.out)
		}
		c.spent = c.spent.Add(e.Usage)
		c.last = engine.Result{Reason: e.Reason}
	}
	c.view.event(event.Record)
	if _, asked := event.Event.(session.ApprovalAsked); asked {
		c.shown <- struct{}{}
	}
}

// lines are prompts where nobody sits: one a line.
type lines struct{ *bufio.Scanner }

func (l *lines) prompt(context.Context) (string, error) {
	if l.Scan() {
		return l.Text(), nil
	}
	if err := l.Err(); err != nil {
		return "", fmt.Errorf("read the next line: %w", err)
	}
	return "", io.EOF
}
