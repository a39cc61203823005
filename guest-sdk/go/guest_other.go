//go:build !wasip1

package wharf

// fakeHost stands in for the host in this package's tests.
var fakeHost func(op string, request []byte) (uint32, []byte)

// fakeLog takes what is logged in this package's tests.
var fakeLog func(level uint32, text string)

// Handle answers at a hook point. There is no host off Wasm: it does nothing.
func Handle(string, uint32, uint32) uint64 { return 0 }

// HandleTool answers a tool call. There is no host off Wasm: it does nothing.
func HandleTool(uint32, uint32) uint64 { return 0 }

func hostCall(op string, request []byte) (uint32, []byte) {
	if fakeHost == nil {
		return 3, []byte(`{"code":"FAILED","message":"` + op + `: there is no host: this is no guest"}`)
	}
	return fakeHost(op, request)
}

func hostLog(level uint32, text []byte) {
	if fakeLog != nil {
		fakeLog(level, string(text))
	}
}
