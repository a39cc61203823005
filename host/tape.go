package host

import (
	"github.com/wharf-agent/wharf/engine/hook"
	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/host/abi"
)

// NoAnswer is how an operation fails that took the rest of the call's time.
const NoAnswer = "no answer in time"

// Taped is a call in a session: of a handler of the guest's, or of an operation by
// the guest. Its bytes are valid until the function that is given them returns.
type Taped struct {
	Point     hook.Point // of a hook
	Tool      string     // or of a tool
	Operation string     // or the operation

	In  []byte // the payload, the arguments, or the request as the guest wrote it
	Out []byte // a hook's answer, or the response to an operation

	Result tool.Result // of a tool
	Err    error       // how the handler failed
	Status abi.Status  // how the operation ended
	Target string      // what the operation is about, as in the audit
}
