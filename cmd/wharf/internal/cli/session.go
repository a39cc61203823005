package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"github.com/wharf-agent/wharf/engine/session"
)

func sessionCommand(ctx context.Context, io stdio, args []string) error {
	return choose(ctx, io, "session: ", []command{
		{"list", "", "every session, the last one first", sessionList},
		{"show", "ID", "what was said and done in it", sessionShow},
		{"verify", "ID", "was each request what the log says?", sessionVerify},
		{"resume", "ID [flags of run] [PROMPT]", "mend what a crash left; with a prompt, go on", sessionResume},
		{"compact", "ID", "put a summary in the place of older messages", sessionCompact},
		{"fork", "ID", "copy it, up to the end of a turn", sessionFork},
		{"export", "ID", "write it as JSON Lines, Markdown or a page", sessionExport},
		{"replay", "ID", "run the engine anew over it, without effects", sessionReplay},
	}, args)
}

// sessionArgs parses the flags of a session command that takes an id, and
// returns the store and that id.
func sessionArgs(io stdio, flags *pflag.FlagSet, synopsis string, args []string) (*session.Store, session.ID, error) {
	if err := parse(io, flags, synopsis, args); err != nil {
		return nil, "", err
	}
	if flags.NArg() != 1 {
		return nil, "", usagef("%s: it takes one session: see \"wharf session list\"", flags.Name())
	}
	return namedSession(io, flags.Arg(0))
}

// namedSession returns the store, and the session in it that the user means.
func namedSession(io stdio, name string) (*session.Store, session.ID, error) {
	store, err := openStore()
	if err != nil {
		return nil, "", err
	}
	dir, err := realFolder("")
	if err != nil {
		return nil, "", err
	}
	id, err := findSession(store, dir, name, newProgress(io.err, false))
	return store, id, err
}

// lastSession is the name of the last session of the folder.
const lastSession = "last"

// findSession returns the session that a user means by name: the last one of the
// folder dir, or one that [session.Store.Find] knows.
func findSession(store *session.Store, dir, name string, view *progress) (session.ID, error) {
	if name != lastSession {
		return store.Find(name)
	}
	id, skipped, err := store.Latest(dir)
	for _, bad := range skipped {
		view.notice("a later session of this folder is left out: %v", bad)
	}
	return id, err
}

func openStore() (*session.Store, error) {
	f, err := findFolders()
	if err != nil {
		return nil, err
	}
	return session.NewStore(f.sessions(), version, "")
}

// listedSession is a session in the output of list --json.
type listedSession struct {
	ID      session.ID     `json:"id"`
	Cwd     string         `json:"cwd"`
	Title   string         `json:"title"`
	Started time.Time      `json:"started"`
	Turns   int            `json:"turns"`
	Reason  session.Reason `json:"reason"`
	Parent  session.ID     `json:"parent,omitempty"`
	Forked  session.ID     `json:"forked_from,omitempty"`
	Problem string         `json:"problem,omitempty"`
}

func sessionList(_ context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("session list", pflag.ContinueOnError)
	asJSON := flags.Bool("json", false, "print one JSON array")
	if err := parse(io, flags, "session list [--json]", args); err != nil {
		return err
	}
	store, err := openStore()
	if err != nil {
		return err
	}
	sums, err := store.List()
	if err != nil {
		return err
	}
	if *asJSON {
		list := make([]listedSession, len(sums))
		for i, s := range sums {
			list[i] = listedSession{s.ID, s.Cwd, s.Title, s.Started, s.Turns, s.Reason, s.Parent, s.ForkedFrom, s.Problem}
		}
		return printJSON(io, list)
	}
	if len(sums) == 0 {
		fmt.Fprintln(io.err, "wharf: there are no sessions yet: start one with \"wharf run PROMPT\"")
		return nil
	}
	w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tSTARTED\tTURNS\tLAST TURN\tFOLDER\tTITLE")
	for _, s := range sums {
		if s.Problem != "" {
			fmt.Fprintf(w, "%s\t\t\tcannot be read\t\t%s\n", s.ID, oneLine(s.Problem, 200))
			continue
		}
		reason := s.Reason
		if reason == "" && s.Turns > 0 {
			reason = "open"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", s.ID, s.Started.Local().Format("2006-01-02 15:04"),
			s.Turns, oneLine(string(reason), 50), oneLine(s.Cwd, 200), oneLine(s.Title, 50)+relation(s.Parent, s.ForkedFrom, 0))
	}
	return w.Flush()
}

// relation says which session another one comes from. The names are what a log
// has, which may be anything.
func relation(parent, forkedFrom session.ID, at int) string {
	from := oneLine(string(cmp.Or(parent, forkedFrom)), 64)
	switch {
	case parent != "":
		return fmt.Sprintf(" (subagent of %s)", from)
	case forkedFrom != "" && at > 0:
		return fmt.Sprintf(" (fork of %s after turn %d)", from, at)
	case forkedFrom != "":
		return fmt.Sprintf(" (fork of %s)", from)
	}
	return ""
}

func printJSON(io stdio, value any) error {
	enc := json.NewEncoder(io.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}

func sessionShow(_ context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("session show", pflag.ContinueOnError)
	asJSON := flags.Bool("json", false, "print the events as they are, a line each; with --context one object")
	where := flags.String("context", "", "show what the model saw in the request of `STEP`, or TURN.STEP, and what was replaced in it")
	store, id, err := sessionArgs(io, flags, "session show [--json] [--context STEP] ID", args)
	if err != nil {
		return err
	}
	records, torn, err := store.Read(id)
	if *where != "" && err == nil {
		return showContext(io, records, *where, *asJSON)
	}
	for _, r := range records { // also those before a corrupt one
		if *asJSON {
			line, err := session.Encode(r)
			if err != nil {
				return err
			}
			if _, err := io.out.Write(line); err != nil {
				return err
			}
		} else if text := showEvent(r); text != "" {
			if _, err := fmt.Fprintln(io.out, printable(text)); err != nil {
				return err
			}
		}
	}
	if torn > 0 {
		fmt.Fprintf(io.err, "wharf: the last line is torn (%d bytes); resuming the session cuts it off\n", torn)
	}
	return err
}

// describeVerdict says in a line what a hook answered.
func describeVerdict(e session.HookVerdict) string {
	words := []string{fmt.Sprintf("%s at %s:", e.Extension, e.Point)}
	if e.Decision != "" {
		words = append(words, e.Decision)
	}
	if e.Reason != "" {
		words = append(words, e.Reason)
	}
	if e.Replaced != nil {
		words = append(words, "replaced "+string(e.Replaced))
	}
	if len(words) == 1 {
		words = append(words, "added a context or a message")
	}
	return strings.Join(words, " ")
}

func useKind(e session.ExtensionUsed) string {
	if e.Allowed {
		return "used"
	}
	return "refused"
}

// clip returns text without its middle if it is longer than n bytes.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n/2], "") + "\n[…]\n" + strings.ToValidUTF8(text[len(text)-n/2:], "")
}

func sessionVerify(_ context.Context, io stdio, args []string) error {
	flags := pflag.NewFlagSet("session verify", pflag.ContinueOnError)
	store, id, err := sessionArgs(io, flags, "session verify ID", args)
	if err != nil {
		return err
	}
	report, err := verifySession(store, id)
	if err != nil {
		return err
	}
	for _, problem := range report.Problems {
		fmt.Fprintln(io.out, printable(problem))
	}
	if len(report.Problems) > 0 {
		return fmt.Errorf("session %s does not hold: %s", id, count(len(report.Problems), "problem"))
	}
	fmt.Fprintf(io.out, "session %s holds: %s, %s, and what the log says is what was sent in %s\n",
		id, count(report.Events, "event"), count(report.Turns, "turn"), count(report.Requests, "request"))
	return nil
}

func verifySession(store *session.Store, id session.ID) (session.Report, error) {
	records, torn, err := store.Read(id)
	if err != nil {
		return session.Report{}, err
	}
	report := session.Verify(records)
	report.Problems = append(report.Problems, store.VerifyLinks(records)...)
	if torn > 0 {
		report.Problems = append(report.Problems, fmt.Sprintf("the last line is torn (%d bytes): resume the session to cut it off", torn))
	}
	return report, nil
}

// sessionResume repairs a session and, given a prompt, goes on with it.
func sessionResume(ctx context.Context, io stdio, args []string) error {
	if len(args) > 0 && (args[0] == "-h" || args[0] == "--help") {
		return parse(io, resumeFlags(), "session resume ID [flags of run] [PROMPT]", args)
	}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return usagef("session resume: name the session first: wharf session resume ID [flags of run] [PROMPT]")
	}
	if len(args) > 1 {
		return runCommand(ctx, io, append([]string{"--resume", args[0]}, args[1:]...))
	}
	store, id, err := namedSession(io, args[0])
	if err != nil {
		return err
	}
	log, err := store.Resume(id, nil)
	if err != nil {
		return err
	}
	if len(log.Repairs()) == 0 {
		fmt.Fprintf(io.out, "session %s is whole\n", log.ID())
	}
	for _, repair := range log.Repairs() {
		fmt.Fprintf(io.out, "session %s was repaired: %s\n", log.ID(), repair)
	}
	fmt.Fprintln(io.out, goOn(log))
	return log.Close()
}

// resumeFlags are the flags of run that mean something beside a session's name.
func resumeFlags() *pflag.FlagSet {
	flags := new(runOptions).flags()
	flags.Init("session resume", pflag.ContinueOnError)
	for _, name := range []string{"continue", "resume"} {
		_ = flags.MarkHidden(name) // the session is named
	}
	return flags
}
