package host

import (
	"context"
	"slices"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/extism"
)

// provideImports makes the host functions of ABI 1 and WASI, of which a guest
// sees clocks, randomness, and a standard output that is logged.
func (e *Extension) provideImports(ctx context.Context) error {
	r := e.runtime
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return err
	}
	if e.Manifest.Extism {
		return extism.Provide(ctx, r, func(ctx context.Context) *extism.Kernel { return entered(ctx).kernel }, e.imports)
	}
	i32, i64 := api.ValueTypeI32, api.ValueTypeI64
	b := r.NewHostModuleBuilder(abi.ImportModule)
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(guestCall),
		[]api.ValueType{i32, i32, i32, i32}, []api.ValueType{i64}).Export(abi.ImportCall)
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(guestRead),
		[]api.ValueType{i32}, nil).Export(abi.ImportRead)
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(guestLogs),
		[]api.ValueType{i32, i32, i32}, nil).Export(abi.ImportLog)
	_, err := b.Instantiate(ctx)
	return err
}

// entered returns the instance whose guest is calling, unless the call is over.
func entered(ctx context.Context) *instance {
	call := callOf(ctx)
	if call.over() {
		panic(errTimeout)
	}
	return call.instance
}

// guestCall is the import call: it runs a host operation.
func guestCall(ctx context.Context, m api.Module, stack []uint64) {
	x := entered(ctx)
	op, ok1 := m.Memory().Read(uint32(stack[0]), uint32(stack[1]))
	request, ok2 := m.Memory().Read(uint32(stack[2]), uint32(stack[3]))
	var status abi.Status
	if ok1 && ok2 {
		timed, cancel := x.running.timed()
		status = x.operate(timed, op, request)
		cancel()
	} else {
		status = x.respondError(abi.BadRequest, "the operation's name or request is outside the guest's memory")
	}
	stack[0] = abi.Pack(uint32(status), uint32(len(x.response)))
}

// guestRead is the import read: it copies the last response to the guest.
func guestRead(ctx context.Context, m api.Module, stack []uint64) {
	x := entered(ctx)
	if dst := uint32(stack[0]); !m.Memory().Write(dst, x.response) {
		panic(faultf("read: %d bytes at %#x are outside the guest's memory", len(x.response), dst))
	}
}

// guestLogs is the import log.
func guestLogs(ctx context.Context, m api.Module, stack []uint64) {
	x := entered(ctx)
	ptr, length := uint32(stack[1]), uint32(stack[2])
	text, ok := m.Memory().Read(ptr, length)
	if !ok {
		panic(faultf("log: %d bytes at %#x are outside the guest's memory", length, ptr))
	}
	x.log.add(abi.Level(uint32(stack[0])), text)
}

// isWASI reports whether name is a function of WASI preview 1.
func isWASI(name string) bool { return slices.Contains(wasiFunctions, name) }

var wasiFunctions = []string{
	"args_get", "args_sizes_get", "clock_res_get", "clock_time_get", "environ_get", "environ_sizes_get",
	"fd_advise", "fd_allocate", "fd_close", "fd_datasync", "fd_fdstat_get", "fd_fdstat_set_flags",
	"fd_fdstat_set_rights", "fd_filestat_get", "fd_filestat_set_size", "fd_filestat_set_times", "fd_pread",
	"fd_prestat_dir_name", "fd_prestat_get", "fd_pwrite", "fd_read", "fd_readdir", "fd_renumber", "fd_seek",
	"fd_sync", "fd_tell", "fd_write", "path_create_directory", "path_filestat_get", "path_filestat_set_times",
	"path_link", "path_open", "path_readlink", "path_remove_directory", "path_rename", "path_symlink",
	"path_unlink_file", "poll_oneoff", "proc_exit", "proc_raise", "random_get", "sched_yield", "sock_accept",
	"sock_recv", "sock_send", "sock_shutdown",
}
