package sandbox

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Rating says how much of what the profile promises is held here: all of it, or
// part of it, for the reasons that are returned. It chooses the rung if that was
// not done yet.
func (s *Sandbox) Rating(ctx context.Context) (full bool, reasons []string, err error) {
	by, err := s.choose(ctx)
	if err != nil {
		return false, nil, err
	}
	switch by := by.(type) {
	case bwrap:
		reasons = append(reasons, ageOf(ctx, by.program))
		reasons = append(reasons, by.gaps()...)
	case landlock:
		reasons = append(reasons, "without bubblewrap there are no namespaces; the gaps below stay open")
	default:
		reasons = append(reasons, by.gaps()...)
	}
	if os.Getuid() == 0 && by.rung() != Unconfined {
		reasons = append(reasons, "Wharf is run by root: some of the kernel's checks ask for the user alone; use an ordinary one")
		if !groupedBy(by) {
			reasons = append(reasons, "the number of processes is not limited: that needs a control group, or an ordinary user")
		}
	}
	reasons = slices.DeleteFunc(reasons, func(reason string) bool { return reason == "" })
	return len(reasons) == 0, reasons, nil
}

// groupedBy reports whether a rung limits memory and processes by control groups.
func groupedBy(by confiner) bool {
	switch by := by.(type) {
	case bwrap:
		return by.grouped
	case landlock:
		return by.grouped
	}
	return false
}

// wholeBwrap is the first version, 0.12, that follows no links where it makes the
// places to mount (CVE-2026-87766).
const wholeBwrap = 12

// ageOf says what is amiss with the version of bubblewrap; empty if nothing is.
func ageOf(ctx context.Context, program string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := Trusted(ctx, TrustedCommand{Argv: []string{program, "--version"}})
	if err != nil {
		return "the version of bubblewrap is not known"
	}
	version := strings.TrimPrefix(strings.TrimSpace(string(out.Stdout)), "bubblewrap ")
	if isWhole(version) {
		return ""
	}
	return fmt.Sprintf("bubblewrap %.20s is older than 0.%d: it follows links where it makes places to mount, unless your distribution has mended that; Wharf gives it none to follow", version, wholeBwrap)
}

// isWhole reports whether a version of bubblewrap is at least the one wanted.
func isWhole(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, errMajor := strconv.Atoi(parts[0])
	minor, errMinor := strconv.Atoi(parts[1])
	return errMajor == nil && errMinor == nil && (major > 0 || minor >= wholeBwrap)
}

// explainRating adds how much is held, and what would change that.
func (s *Sandbox) explainRating(ctx context.Context, row func(name, format string, args ...any), by confiner) {
	full, reasons, err := s.Rating(ctx)
	switch {
	case err != nil:
	case full:
		row("rated", "full")
	default:
		row("rated", "partial")
	}
	for _, reason := range reasons {
		if _, isGap := by.(bwrap); !isGap || !slices.Contains(by.gaps(), reason) { // these have rows of their own
			row("because", "%s", reason)
		}
	}
	s.explainRemedy(row)
}

// appArmorProfile lets bubblewrap make user namespaces where AppArmor forbids that
// to programs without a profile, as on Ubuntu since 24.04.
const appArmorProfile = `abi <abi/4.0>,
include <tunables/global>

profile bwrap %s flags=(unconfined) {
  userns,
  include if exists <local/bwrap>
}`

// explainRemedy adds what keeps bubblewrap, which is there, from working, and what
// to do.
func (s *Sandbox) explainRemedy(row func(name, format string, args ...any)) {
	if s.noBwrap == "" {
		return
	}
	row("bubblewrap", "does not work: %s", s.noBwrap)
	for _, line := range strings.Split(remedyFor(firstProgram(s.bwrapPaths), os.ReadFile), "\n") {
		row("", "%s", line)
	}
}

// remedyFor says what keeps a bubblewrap from making user namespaces, by the
// kernel's settings.
func remedyFor(program string, read func(string) ([]byte, error)) string {
	is := func(name, value string) bool {
		text, err := read("/proc/sys/" + name)
		return err == nil && strings.TrimSpace(string(text)) == value
	}
	switch {
	case is("kernel/apparmor_restrict_unprivileged_userns", "1"):
		return "AppArmor forbids user namespaces. As root, write this to /etc/apparmor.d/bwrap, and run apparmor_parser -r /etc/apparmor.d/bwrap:\n" +
			fmt.Sprintf(appArmorProfile, program)
	case is("kernel/unprivileged_userns_clone", "0"):
		return "this system forbids user namespaces: as root, run sysctl -w kernel.unprivileged_userns_clone=1"
	case is("user/max_user_namespaces", "0"):
		return "this system allows no user namespaces: as root, run sysctl -w user.max_user_namespaces=15000"
	}
	return "in a container, user namespaces and the mounting of /proc must be allowed by whoever started it"
}

// explainFull adds what a command of the profile full-access has.
func (s *Sandbox) explainFull(row func(name, format string, args ...any), rung Rung) {
	row("files", "the host's, as your user has them, but for what is hidden")
	for _, path := range s.masked() {
		row("hidden", "%s", path)
	}
	row("environment", "%s", strings.Join(names(openEnvironment(os.Getenv, "")), " "))
	row("network", "the host's")
	row("asked", "about each command, every time")
	if rung == Landlock {
		row("gap", "%s", gapOfFull)
	}
}
