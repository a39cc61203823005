package session

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrInUse reports a session that another process has open.
var ErrInUse = errors.New("session in use")

// lockPatience is how long a lock is waited for: a command that a killed Wharf
// was just starting may hold it for a moment, until its own program begins.
const lockPatience = 300 * time.Millisecond

// lockFile takes the lock that keeps a second process off a session. The
// kernel releases it however this process ends. What stands in the file is only
// for the process that is turned away.
func lockFile(path string) (*os.File, error) {
	f, err := openRegular(path, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	for end := time.Now().Add(lockPatience); err != nil && time.Now().Before(end); {
		time.Sleep(lockPatience / 30)
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		note, _ := io.ReadAll(io.LimitReader(f, 64))
		f.Close()
		return nil, fmt.Errorf("%w by %s: wait for it or end it", ErrInUse, holder(string(note)))
	}
	if err := f.Truncate(0); err == nil {
		_, err = fmt.Fprintln(f, os.Getpid(), time.Now().UTC().Format(time.RFC3339))
		if err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// holder says in words who wrote a lock's note, which is a process and since
// when it has the session.
func holder(note string) string {
	pid, since, _ := strings.Cut(strings.TrimSpace(note), " ")
	n, err := strconv.Atoi(pid)
	if err != nil || n <= 0 {
		return "a process that is not known"
	}
	text := fmt.Sprintf("process %d", n)
	if command := commandOf(n); command != "" {
		text += fmt.Sprintf(" (%q)", command)
	}
	if at, err := time.Parse(time.RFC3339, since); err == nil {
		text += " since " + at.Local().Format("2006-01-02 15:04:05")
	}
	return text
}

// commandOf returns a process's program and the verb after it, such as "wharf
// run", or nothing if that cannot be known. The rest of a command line may be
// anything, secrets too, and is nobody's business.
func commandOf(pid int) string {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	words := strings.SplitN(string(line), "\x00", 3)
	name := filepath.Base(words[0])
	if words[0] == "" {
		return ""
	}
	if len(words) > 1 && words[1] != "" && strings.Trim(words[1], "abcdefghijklmnopqrstuvwxyz") == "" {
		name += " " + words[1]
	}
	return name
}
