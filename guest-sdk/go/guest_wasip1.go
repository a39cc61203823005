//go:build wasip1

package wharf

import "unsafe"

// payload is where the host writes, and answer what the host reads. Both stay
// reachable, so the collector leaves them alone.
var payload, answer []byte

//go:wasmimport wharf_v1 call
func importCall(op unsafe.Pointer, opLen uint32, request unsafe.Pointer, requestLen uint32) uint64

//go:wasmimport wharf_v1 read
func importRead(dst unsafe.Pointer)

//go:wasmimport wharf_v1 log
func importLog(level uint32, text unsafe.Pointer, length uint32)

//go:wasmexport wharf_v1_alloc
func exportAlloc(length uint32) uint32 {
	if uint32(cap(payload)) < length {
		payload = make([]byte, length+length/2)
	}
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(payload))))
}

// Handle answers at a hook point. An export of a guest calls it with what the
// host passed; "wharf ext build" writes such exports.
func Handle(point string, _, length uint32) uint64 { return answerOf(handle(point, payload[:length])) }

// HandleTool answers a tool call, as [Handle] does for a hook point.
func HandleTool(_, length uint32) uint64 { return answerOf(callTool(payload[:length])) }

func answerOf(text []byte) uint64 {
	if len(text) == 0 {
		return 0
	}
	answer = text
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(answer))))<<32 | uint64(len(answer))
}

func hostCall(op string, request []byte) (uint32, []byte) {
	result := importCall(unsafe.Pointer(unsafe.StringData(op)), uint32(len(op)),
		unsafe.Pointer(unsafe.SliceData(request)), uint32(len(request)))
	response := make([]byte, uint32(result))
	if len(response) > 0 {
		importRead(unsafe.Pointer(unsafe.SliceData(response)))
	}
	return uint32(result >> 32), response
}

func hostLog(level uint32, text []byte) {
	importLog(level, unsafe.Pointer(unsafe.SliceData(text)), uint32(len(text)))
}
