// Package sandbox confines what a permitted command can do.
//
// [New] checks a [Config]; [Sandbox.Run] runs a command under it. How it is
// confined is a rung, taken once and kept: bubblewrap with every namespace of
// its own, else Landlock with a system call filter, else nothing runs at all
// ([ErrUnavailable]). Nothing is ever run unconfined because confining failed;
// [Config.None] alone does that, by the user's word.
//
// Under every rung a command sees the workspace, the system's programs and the
// toolchains on PATH, a private temporary folder and home, an environment made
// from nothing, no network, no terminal and no descriptor but its three
// streams; and its whole process tree ends with it.
//
// Whether a command may run is decided before, by package permission. The list
// of paths that must not be written even inside the workspace is here
// ([Protected]), and so is the one door for Wharf's own children ([Trusted]):
// no other package starts processes.
package sandbox
