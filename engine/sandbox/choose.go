package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// confiner is one rung of the ladder.
type confiner interface {
	rung() Rung
	// launch prepares a process that runs c confined. The launch is started or closed.
	launch(c Command) (*launch, error)
	// terminate asks the command's processes to end.
	terminate(*child)
	// kill ends all of them, for certain.
	kill(*child)
	// gaps says what the rung leaves open here, for people.
	gaps() []string
}

// unavailable is the error of a command that could not be confined.
type unavailable string

func (u unavailable) Error() string        { return string(u) }
func (u unavailable) Is(target error) bool { return target == ErrUnavailable }

// Choose returns how commands are confined, or an ErrUnavailable. The first
// call tries it with a real process; all later ones answer the same.
func (s *Sandbox) Choose(ctx context.Context) (Rung, error) {
	by, err := s.choose(ctx)
	if err != nil {
		return "", err
	}
	return by.rung(), nil
}

// Notice is what the user is told once when a weaker rung than bubblewrap was
// chosen; empty if none was, or before the choice.
func (s *Sandbox) Notice() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notice
}

// choose climbs the ladder once.
func (s *Sandbox) choose(ctx context.Context) (confiner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chosen == nil && s.chooseErr == nil {
		s.chosen, s.notice, s.chooseErr = s.climb(context.WithoutCancel(ctx))
	}
	return s.chosen, s.chooseErr
}

// climb tries the rungs from the top. The notice says why it is not the best.
func (s *Sandbox) climb(ctx context.Context) (by confiner, notice string, err error) {
	if s.cfg.None {
		return unconfined{env: openEnvironment(os.Getenv, string(Unconfined))}, "", nil
	}
	program := firstProgram(s.bwrapPaths)
	noBwrap := "" // why bubblewrap, which is there, does not work
	if program != "" {
		by, err := s.tryBwrap(ctx, program)
		if err == nil {
			return by, "", nil
		}
		noBwrap = err.Error()
		s.noBwrap = noBwrap
		if fewFiles(noBwrap) { // bubblewrap works here, so no weaker rung is taken
			return nil, "", refusal(noBwrap, "")
		}
	}
	noLandlock := `the configuration requires it (sandbox.require = "bwrap")`
	if s.cfg.Require != Bubblewrap {
		by, err := s.tryLandlock(ctx)
		if err == nil {
			return by, s.weakerNotice(noBwrap), nil
		}
		noLandlock = err.Error()
	}
	return nil, "", refusal(noBwrap, noLandlock)
}

// refusal words why nothing can be run.
func refusal(noBwrap, noLandlock string) error {
	for _, why := range []string{noBwrap, noLandlock} {
		if fewFiles(why) {
			return unavailable("Sandbox unavailable: Wharf may not open as many files as a sandbox needs (" + why +
				"): raise the limit (ulimit -n 1024) and start Wharf again. The command was not run.")
		}
	}
	if noBwrap != "" {
		return unavailable("Sandbox unavailable: this system does not let bubblewrap create user namespaces (" + noBwrap +
			`). On Ubuntu 24.04 and later add the AppArmor profile shown by "wharf doctor". The command was not run.`)
	}
	return unavailable("Sandbox unavailable: bubblewrap is not installed and " + noLandlock +
		". Install bubblewrap (apt install bubblewrap). The command was not run.")
}

// fewFiles reports whether why tells of the limit on open files that Wharf was started with.
func fewFiles(why string) bool { return strings.Contains(strings.ToLower(why), "too many open files") }

// weakerNotice is the sentence said once when Landlock had to do.
func (s *Sandbox) weakerNotice(noBwrap string) string {
	closed := ""
	if len(s.cfg.Network.Allow) > 0 {
		closed = " In it " + networkGap + "."
	}
	if noBwrap != "" {
		return "Sandbox: bubblewrap does not work here (" + noBwrap + `); using the weaker Landlock mode (see "wharf doctor").` + closed
	}
	return `Sandbox: bubblewrap is not installed; using the weaker Landlock mode (see "wharf doctor"). Install bubblewrap for the full one.` + closed
}

// tryBwrap returns bubblewrap with the strictest arguments that work here.
func (s *Sandbox) tryBwrap(ctx context.Context, program string) (confiner, error) {
	var first error
	for _, noNested := range []bool{true, false} { // some kernels cannot; the filter refuses nested namespaces too
		for _, grouped := range groupChoices() {
			b := bwrap{program: program, sandbox: s, noNested: noNested, grouped: grouped}
			err := s.probe(ctx, b)
			if err == nil {
				return b, nil
			}
			if errors.Is(err, errNoAnswer) {
				return nil, err
			}
			if first == nil {
				first = err
			}
		}
	}
	return nil, first
}

// groupChoices are the ways to limit memory and processes, the better one first.
func groupChoices() []bool {
	if theGroups() == nil {
		return []bool{false}
	}
	return []bool{true, false}
}

// tryLandlock returns Landlock, if kernel and program are ready for it.
func (s *Sandbox) tryLandlock(ctx context.Context) (confiner, error) {
	abi := s.landlock()
	if abi < 1 {
		return nil, errors.New("this kernel has no Landlock")
	}
	if !initCalled.Load() {
		return nil, errors.New("this program cannot use Landlock (its main does not begin with sandbox.Init)")
	}
	var first error
	for _, grouped := range groupChoices() {
		l := landlock{sandbox: s, abi: abi, grouped: grouped}
		err := s.probe(ctx, l)
		if err == nil {
			return l, nil
		}
		if first == nil {
			first = errors.New("Landlock does not work here (" + err.Error() + ")")
		}
	}
	return nil, first
}

var errNoAnswer = errors.New("it did not answer")

// probe runs a program that does nothing, confined as any command will be, but
// not in the workspace: commands can make that one unusable, and a rung must not
// be left for it. The error is the short reason why it did not run.
func (s *Sandbox) probe(ctx context.Context, by confiner) error {
	res, err := run(ctx, by, Command{Argv: []string{"/bin/true"}, Dir: "/", Timeout: s.probeTime, Profile: s.cfg.Profile, probe: true})
	if nothing, ok := errors.AsType[*notStarted](err); ok {
		return errors.New(nothing.reason)
	}
	switch {
	case err != nil:
		return err
	case res.TimedOut:
		return fmt.Errorf("%w within %v", errNoAnswer, s.probeTime)
	case res.ExitCode != 0:
		return fmt.Errorf("/bin/true ended with status %d in it", res.ExitCode)
	}
	return nil
}

// firstProgram returns the first of paths that is an executable file, or
// nothing.
func firstProgram(paths []string) string {
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return p
		}
	}
	return ""
}
