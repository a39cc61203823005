package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// descendants returns the pids of all processes below pid, as /proc shows them
// now.
func descendants(pid int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, e := range entries {
		if child, err := strconv.Atoi(e.Name()); err == nil {
			parent := parentOf(child)
			children[parent] = append(children[parent], child)
		}
	}
	below := children[pid]
	for i := 0; i < len(below); i++ { // below grows while it is walked
		below = append(below, children[below[i]]...)
	}
	return below
}

// parentOf returns the parent of pid, or 0 if there is no such process.
func parentOf(pid int) int {
	parent, err := strconv.Atoi(statField(pid, 4))
	if err != nil {
		return 0
	}
	return parent
}

// statField returns a field of what /proc tells of pid, counted from 1 as in the
// manual; it is empty if there is no such process. The third is the first that
// can be had.
func statField(pid, n int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The name in parentheses may hold anything; the fields follow the last one.
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < n-2 {
		return ""
	}
	return fields[n-3]
}

// identity is a process, told from a later one that has its pid.
type identity struct {
	pid  int
	born string // by the kernel's clock; empty if there is no such process
}

func identify(pid int) identity { return identity{pid, statField(pid, 22)} }

// lives reports whether the process has not been waited for.
func (i identity) lives() bool { return i.born != "" && identify(i.pid) == i }

// isBelow reports whether pid descends from ancestor.
func isBelow(pid, ancestor int) bool {
	for range 1000 { // longer than any honest chain
		if pid = parentOf(pid); pid == ancestor {
			return true
		}
		if pid <= 1 {
			return false
		}
	}
	return false
}

// signalIf signals pid if still holds once the process is held: a pid that was
// given to another process in between is left alone.
func signalIf(pid int, sig syscall.Signal, still func() bool) {
	p, err := os.FindProcess(pid) // holds the process by descriptor
	if err != nil {
		return
	}
	if still() {
		_ = p.Signal(sig)
	}
	_ = p.Release()
}

// lookPath returns the path of a program, looked for as a shell with the
// environment env does. A name with a slash is the path already.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, v := range env {
		list, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			path := filepath.Join(dir, name)
			if filepath.IsAbs(dir) && firstProgram([]string{path}) != "" {
				return path, nil
			}
		}
	}
	return "", cannotRun(name, "not found on its PATH")
}

// cannotRun says that the program of a command could not be run.
func cannotRun(name, why string) *notStarted {
	return &notStarted{program: true, reason: fmt.Sprintf("program %q cannot be run in the sandbox: %s", name, why)}
}
