package sandbox

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Bubblewrap's first process inside is tied to the life of bubblewrap only when
// it has built the file system. Where bubblewrap is killed before, as it is
// together with Wharf, that process stays, and runs the command with nobody to
// end it. A command can also undo the tie, since it may trace that process. So a
// keeper, which is Wharf's own program started again, outlives Wharf and ends
// the first processes that it was told of, and what bears Wharf's mark: the name
// by which bubblewrap is started, which all processes of its own keep until the
// command begins.
const keeperName = "wharf-sandbox-keeper"

const keeperOrders = 3 // the keeper's descriptor, which ends with Wharf

// The keeper's orders are lines: one of these, or a first process.
const (
	orderBusy = "busy" // bubblewrap is at work
	orderIdle = "idle" // nothing is left of any

	orderGroup = "group " // and a control group, to be removed at the end
)

const kept = time.Minute // for the keeper to end what was left

// keeping is the keeper of this process. It is started with the first command
// and ends with the process.
type keeping struct {
	mark string

	mu      sync.Mutex
	running int      // commands
	groups  []string // control groups that Wharf made
	cmd     *exec.Cmd
	orders  *os.File
}

var theKeeper = keeping{mark: "sandbox-" + randomName()}

func randomName() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// begin is called before bubblewrap is started, and end after it has ended. A
// program that never called Init has no keeper.
func (k *keeping) begin() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running == 0 && initCalled.Load() && !k.tellLocked(orderBusy) {
		if err := k.startLocked(); err != nil {
			return fmt.Errorf("start the keeper: %w", err)
		}
	}
	k.running++
	return nil
}

func (k *keeping) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running--; k.running == 0 {
		k.tellLocked(orderIdle)
	}
}

// watch tells the keeper of the first process of a command.
func (k *keeping) watch(pid int) {
	first := identify(pid)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tellLocked(fmt.Sprint(first.pid, " ", first.born))
}

// remember has the keeper remove a control group in the end.
func (k *keeping) remember(dir string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.groups = append(k.groups, dir)
	k.tellLocked(orderGroup + dir)
}

// tellLocked gives the keeper an order, and reports whether there is one to
// take it.
func (k *keeping) tellLocked(order string) bool {
	if k.orders == nil {
		return false
	}
	_, err := k.orders.WriteString(order + "\n")
	return err == nil
}

// startLocked starts a keeper, which is told that there is work, in the place
// of one that has ended.
func (k *keeping) startLocked() error {
	if k.orders != nil {
		_ = k.orders.Close()
		_ = k.cmd.Wait()
		k.orders = nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	k.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{keeperName, k.mark, strconv.Itoa(os.Getpid())}, Env: []string{}, Dir: "/",
		ExtraFiles: []*os.File{r}, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	sealDescriptors()
	if err := k.cmd.Start(); err != nil {
		_ = w.Close()
		return err
	}
	k.orders = w
	if !k.tellLocked(orderBusy) {
		return errors.New("it ended at once")
	}
	for _, dir := range k.groups {
		k.tellLocked(orderGroup + dir)
	}
	return nil
}

// keep is the keeper: it waits for Wharf to be gone and then ends what is left
// of its commands.
func keep(mark, parent string) int {
	wharf, err := strconv.Atoi(parent)
	if err != nil {
		return 1
	}
	busy, firsts, groups := takeOrders(os.NewFile(keeperOrders, "orders"))
	code := 0
	if busy {
		code = endAll(mark, wharf, firsts)
	}
	removeGroups(groups)
	return code
}

// endAll ends what is left of Wharf's commands.
func endAll(mark string, wharf int, firsts []identity) int {
	for _, first := range firsts {
		signalIf(first.pid, syscall.SIGKILL, first.lives)
	}
	late := time.After(kept)
	for quiet := 0; quiet < 2; { // one look may come just before a process starts another
		left := killMarked(mark)
		if quiet++; left > 0 || os.Getppid() == wharf { // its descriptors close before its children are told
			quiet = 0
		}
		select {
		case <-late:
			return 1
		case <-time.After(time.Millisecond):
		}
	}
	return 0
}

// removeGroups removes control groups, which can be done a moment after the last
// process in them was killed.
func removeGroups(groups []string) {
	late := time.After(kept)
	for len(groups) > 0 {
		groups = slices.DeleteFunc(groups, func(dir string) bool {
			err := os.Remove(dir)
			return err == nil || errors.Is(err, fs.ErrNotExist)
		})
		select {
		case <-late:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// takeOrders reads orders until they end with Wharf, and returns whether there
// was work then, the first processes of that work, of which some may have ended,
// and the control groups that were made.
func takeOrders(orders io.Reader) (busy bool, firsts []identity, groups []string) {
	lines := bufio.NewScanner(orders)
	for lines.Scan() {
		switch line := lines.Text(); line {
		case orderBusy:
			busy = true
		case orderIdle:
			busy, firsts = false, nil
		default:
			if dir, ok := strings.CutPrefix(line, orderGroup); ok {
				groups = append(groups, dir)
				continue
			}
			var first identity
			if _, err := fmt.Sscan(line, &first.pid, &first.born); err == nil {
				firsts = append(firsts, first)
			}
			if len(firsts)%256 == 0 {
				firsts = slices.DeleteFunc(firsts, func(i identity) bool { return !i.lives() })
			}
		}
	}
	return busy, firsts, groups
}

// killMarked kills all processes that were started by the name mark, and
// returns how many there were.
func killMarked(mark string) (found int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !isMarked(pid, mark) {
			continue
		}
		found++
		signalIf(pid, syscall.SIGKILL, func() bool { return isMarked(pid, mark) })
	}
	return found
}

// isMarked reports whether the process pid was started by the name mark.
func isMarked(pid int, mark string) bool {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	name, _, _ := bytes.Cut(line, []byte{0})
	return err == nil && string(name) == mark
}
