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
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name in parentheses may hold anything; the state and the parent follow the last one.
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return parent
}

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
