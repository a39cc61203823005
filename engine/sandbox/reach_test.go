package sandbox

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reach is what a probe does that reaches for something by a system call of its
// own; whatever it gets of it, it prints.
func reach(how string, args []string) int {
	runtime.LockOSThread()
	pid, _ := strconv.Atoi(slices.Concat(args, []string{""})[0])
	switch how {
	case "handle":
		byHandle(args[0])
	case "root":
		tell("chroot", errors.Join(unix.Chroot(args[0]), show(args[1])))
	case "trace":
		tell("attach", unix.PtraceAttach(pid))
		tell("seize", unix.PtraceSeize(pid))
	case "memory":
		byMemory(pid, args[1])
	case "shared":
		byShared(pid)
	case "type":
		tell("type", unix.IoctlSetPointerInt(0, unix.TIOCSTI, 'x'))
	case "other-table":
		otherTable()
	case "files":
		openMany(pid)
	case "ask":
		tell("ask", ask(strings.Join(args, " ")))
	case "hello":
		tell("hello", hello(args[0], args[1]))
	default:
		fmt.Println("unknown way to reach", how)
		return 2
	}
	return 0
}

func show(path string) error {
	text, err := os.ReadFile(path)
	fmt.Printf("%s", text)
	return err
}

// ask sends the proxy a request as it stands there, with \r and \n for line
// ends, and says how the answer begins.
func ask(text string) error {
	conn, err := net.Dial("tcp", proxyAddress)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := conn.Write([]byte(strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace(text))); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	fmt.Printf("%q\n", answer)
	return err
}

// hello speaks TLS to a host by the proxy, and asks for another name there.
func hello(address, name string) error {
	conn, err := net.Dial("tcp", proxyAddress)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address)
	in := bufio.NewReader(conn)
	for line := ""; line != "\r\n"; {
		if line, err = in.ReadString('\n'); err != nil {
			return err
		}
	}
	return tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
}

// byHandle opens a file of a folder that it does not see by guessing its handle,
// as far as the kernel tells one.
func byHandle(path string) {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
	if err != nil {
		tell("handle", err)
		handle = unix.NewFileHandle(1, []byte{2, 0, 0, 0, 0, 0, 0, 0}) // what the root of a file system often has
	}
	here, err := unix.Open(".", unix.O_RDONLY, 0)
	if err == nil {
		var fd int
		if fd, err = unix.OpenByHandleAt(here, handle, unix.O_RDONLY); err == nil {
			fmt.Println("GOT a file")
			err = show(fmt.Sprintf("/proc/self/fd/%d", fd))
		}
	}
	tell("open", err)
}

// byMemory reads 32 bytes of another process, at an address that the process has told.
func byMemory(pid int, address string) {
	at, _ := strconv.ParseUint(address, 0, 64)
	got := make([]byte, 32)
	local := []unix.Iovec{{Base: &got[0], Len: uint64(len(got))}}
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(got)}}, 0)
	tell(fmt.Sprintf("readv %q", got[:max(n, 0)]), err)
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err == nil {
		n, err = memory.ReadAt(got, int64(at))
		fmt.Printf("%q\n", got[:n])
	}
	tell("mem", err)
}

// byShared reads a System V shared memory of the host.
func byShared(key int) {
	id, err := unix.SysvShmGet(key, 0, 0)
	if err == nil {
		var text []byte
		if text, err = unix.SysvShmAttach(id, 0, unix.SHM_RDONLY); err == nil {
			fmt.Printf("%s\n", text[:32])
		}
	}
	tell("shared", err)
}

// otherTable asks for the process's number by the table of 32-bit programs,
// which has other calls under the numbers that the filter knows.
func otherTable() {
	if runtime.GOARCH != "amd64" {
		fmt.Println("this machine has one table")
		return
	}
	code, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		tell("map", err)
		return
	}
	copy(code, []byte{0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3}) // mov eax, getpid; int 0x80; ret
	at := unsafe.Pointer(&code)
	call := *(*func())(unsafe.Pointer(&at))
	call()
	fmt.Println("GOT an answer")
}

// openMany opens n files and says how many it got.
func openMany(n int) {
	var all []*os.File
	for range n {
		f, err := os.Open("/dev/null")
		if err != nil {
			tell("files", err)
			return
		}
		all = append(all, f)
	}
	fmt.Println("GOT", len(all), "files")
}

// stay is a process of the host's: it says where in its memory a secret stands,
// and stays until it is killed.
func stay(secret string) int {
	kept := []byte(secret)
	fmt.Printf("%#x\n", uintptr(unsafe.Pointer(&kept[0])))
	time.Sleep(5 * time.Minute) // longer than any test; no stray is left for good
	runtime.KeepAlive(kept)
	return 0
}
