// Package abi holds the names, numbers and wire types of ABI 1, the contract
// between the host and its guests. guest-sdk/ABI.md is the full text.
//
// The package uses the standard library alone and changes only by growing: a
// guest built against it years ago must still load.
package abi

// Version is the ABI that this host speaks; a manifest says abi = 1.
const Version = 1

// ManifestSection is the custom section that holds a module's manifest.
const ManifestSection = "wharf.manifest"

// What a guest exports, besides one function for each hook point it handles.
const (
	Memory     = "memory"         // its linear memory
	Alloc      = "wharf_v1_alloc" // (len: i32) -> i32
	Initialize = "_initialize"    // () -> (), runs once in each instance; optional
	CallTool   = "call_tool"      // (ptr, len: i32) -> i64; only where there are tools
	Start      = "_start"         // never called
)

// What a guest may import: three functions of ImportModule, and WASI.
const (
	ImportModule = "wharf_v1"
	ImportCall   = "call" // (op_ptr, op_len, req_ptr, req_len: i32) -> i64
	ImportRead   = "read" // (dst: i32)
	ImportLog    = "log"  // (level, ptr, len: i32)
	WASI         = "wasi_snapshot_preview1"
)

// Status says how a host operation ended.
type Status uint32

// The statuses. All but OK come with an [ErrorResponse].
const (
	OK               Status = 0
	NotGranted       Status = 1
	BadRequest       Status = 2
	Failed           Status = 3
	OverLimit        Status = 4
	UnknownOperation Status = 5
)

// Denied is the code, in the place of NOT_GRANTED, of what was granted and then
// refused by another extension, the permission rules or the sandbox.
const Denied = "DENIED"

// Code returns the word that stands for s in an [ErrorResponse].
func (s Status) Code() string {
	switch s {
	case OK:
		return "OK"
	case NotGranted:
		return "NOT_GRANTED"
	case BadRequest:
		return "BAD_REQUEST"
	case OverLimit:
		return "OVER_LIMIT"
	case UnknownOperation:
		return "UNKNOWN_OPERATION"
	default:
		return "FAILED"
	}
}

// Level is the first argument of log.
type Level uint32

// The levels. A number above Error counts as Error.
const (
	Debug   Level = 0
	Info    Level = 1
	Warning Level = 2
	Error   Level = 3
)

// String returns the level's word, as it stands in a session's log.
func (l Level) String() string {
	switch l {
	case Debug:
		return "debug"
	case Info:
		return "info"
	case Warning:
		return "warning"
	default:
		return "error"
	}
}

// Pack makes one i64 of two i32: an address and a length, or a status and a
// length.
func Pack(high, low uint32) uint64 { return uint64(high)<<32 | uint64(low) }

// Unpack takes apart what [Pack] made.
func Unpack(v uint64) (high, low uint32) { return uint32(v >> 32), uint32(v) }
