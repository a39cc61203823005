package sandbox

import "syscall"

// unconfined runs commands as they are, in a session of their own: the user's
// word for one run of Wharf. A process that leaves the session outlives it.
type unconfined struct{ env []string }

func (unconfined) rung() Rung { return Unconfined }

func (unconfined) gaps() []string {
	return []string{"commands are not confined at all, by --no-sandbox"}
}

func (u unconfined) launch(c Command) (*launch, error) {
	path, err := lookPath(c.Argv[0], u.env)
	if err != nil {
		return nil, err
	}
	return &launch{path: path, argv: c.Argv, env: u.env, dir: c.Dir, terminal: c.Terminal.shown()}, nil
}

func (unconfined) terminate(ch *child) { ch.signalGroup(syscall.SIGTERM) }

func (unconfined) kill(ch *child) { ch.signalGroup(syscall.SIGKILL) }
