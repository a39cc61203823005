package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/wharf-agent/wharf/engine/egress"
	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/capability"
)

// operation is something that the host does for a guest.
type operation struct {
	name   string
	judged bool
	run    func(ctx context.Context, x *instance, request []byte) ([]byte, error)
}

// operations is every operation there is.
var operations = byName(
	configGet, kvGet, kvSet, kvDelete, kvList, envGet, eventEmit, sessionInfo, sessionMessages,
	toolCall, execRun, llmComplete, fsRead, fsList, fsStat, fsWrite, httpFetch,
)

// Operations lists the operations that a guest can call, sorted.
func Operations() []string { return sortedKeys(operations) }

var (
	errBadRequest = errors.New("bad request")
	errOverLimit  = errors.New("over a limit")
)

// define is the only way to make an operation, so none can skip its check. need
// checks a request and says what it reaches; what needs a capability is
// recorded before it happens, allowed or not.
func define[In, Out any](name string, need func(In) (capability.Need, error),
	do func(context.Context, *instance, In) (Out, error),
) operation {
	run := func(ctx context.Context, x *instance, request []byte) ([]byte, error) {
		var in In
		if err := decodeStrict(request, &in); err != nil {
			return nil, fmt.Errorf("%w: %w", errBadRequest, err)
		}
		want, err := need(in)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errBadRequest, err)
		}
		if err := x.permit(want); err != nil {
			return nil, err
		}
		if err := x.misfortune(); err != nil {
			return nil, err
		}
		out, err := do(ctx, x, in)
		if err != nil {
			return nil, err
		}
		return encode(out)
	}
	return operation{name: name, run: run}
}

// judged makes an operation one that the engine judges like a call of the
// model's: each use has a number, by which the hooks know it too.
func judged(op operation) operation {
	op.judged = true
	return op
}

// use is the operation that an instance is in the midst of.
type use struct {
	operation string
	target    string
	call      session.CallID // empty unless the operation is judged
}

func (x *instance) begin(op operation) {
	x.using = use{operation: op.name}
	if op.judged {
		x.using.call = session.CallID(fmt.Sprintf("%s/%d", x.extension.Manifest.Name, x.session.calls.Add(1)))
	}
}

// permit checks a need and writes the audit of it.
func (x *instance) permit(want capability.Need) error {
	refused := x.extension.Granted.Allow(want)
	if want.Key == "" {
		return refused
	}
	x.using.target = want.Target
	if x.session.audited.Add(int64(len(want.Target))) > limitAudited {
		x.using.target = cut(string(x.scrub([]byte(want.Target))), limitTarget)
		refused = cmp.Or(refused, fmt.Errorf("%w: the limit audited is %d bytes of arguments in a session", errOverLimit, limitAudited))
	}
	return errors.Join(refused, x.audit(refused))
}

// audit records the use, or its refusal.
func (x *instance) audit(refused error) error {
	event := session.ExtensionUsed{
		Extension: x.extension.Manifest.Name, Digest: x.extension.Digest, Operation: x.using.operation,
		Target: x.using.target, CallID: x.using.call, Allowed: refused == nil,
	}
	if refused != nil {
		event.Reason = oneLine(refused)
	}
	return x.session.Record(event)
}

// operate runs the operation that a guest names and keeps its response.
func (x *instance) operate(ctx context.Context, name, request []byte) abi.Status {
	x.operations++
	op, ok := operations[string(name)]
	switch {
	case x.operations > limitOperations:
		return x.respondError(abi.OverLimit, fmt.Sprintf("over the limit operations: %d in one call", limitOperations))
	case len(request) > limitOutput:
		return x.respondError(abi.OverLimit, fmt.Sprintf("the request has %d bytes: that is over the limit output, %d", len(request), limitOutput))
	case !utf8.Valid(request):
		return x.respondError(abi.BadRequest, "the request is not UTF-8")
	case !ok:
		return x.respondError(abi.UnknownOperation, fmt.Sprintf("unknown operation %.64q: this host has %s", name, strings.Join(Operations(), ", ")))
	case op.judged && x.starting:
		return x.respondError(abi.Failed, op.name+": not while an instance starts: call it from a hook or a tool")
	}
	x.begin(op)
	status := x.respond(ctx, op, request)
	if x.session.Tape != nil {
		x.session.Tape(Taped{Operation: op.name, In: request, Out: x.response, Status: status, Target: x.using.target})
	}
	return status
}

// respond runs an operation and keeps its response.
func (x *instance) respond(ctx context.Context, op operation, request []byte) abi.Status {
	response, err := op.run(ctx, x, request)
	if err != nil {
		return x.respondFailure(op.name, err)
	}
	if len(response) > limitOutput {
		return x.respondError(abi.OverLimit, fmt.Sprintf("%s: over a limit: the response has %d bytes: that is over the limit output, %d", op.name, len(response), limitOutput))
	}
	var ok bool
	if x.response, ok = x.scrubJSON(response); !ok {
		return x.respondError(abi.Failed, op.name+": the response holds the value of a secret where no mark can stand for it")
	}
	return abi.OK
}

func statusOf(err error) abi.Status {
	switch {
	case errors.Is(err, capability.ErrNotGranted), errors.Is(err, egress.ErrRefused):
		return abi.NotGranted
	case errors.Is(err, errBadRequest), errors.Is(err, egress.ErrInvalid):
		return abi.BadRequest
	case errors.Is(err, errOverLimit), errors.Is(err, egress.ErrLimit):
		return abi.OverLimit
	default:
		return abi.Failed
	}
}

// respondFailure makes the response of an operation that was tried.
func (x *instance) respondFailure(name string, err error) abi.Status {
	message := name + ": " + oneLine(err)
	if errors.Is(err, errDenied) {
		x.respondCode(abi.Denied, message)
		return abi.NotGranted
	}
	return x.respondError(statusOf(err), message)
}

// respondError makes the response of an operation that did not work.
func (x *instance) respondError(s abi.Status, message string) abi.Status {
	x.respondCode(s.Code(), message)
	return s
}

func (x *instance) respondCode(code, message string) {
	response, _ := json.Marshal(abi.ErrorResponse{Code: code, Message: message}) // two strings always encode
	x.response = x.scrub(response)
}

// decodeStrict decodes exactly one JSON value with no unknown keys.
func decodeStrict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is more behind the JSON object")
	}
	return nil
}

// encode encodes v with its texts as they are, not escaped for HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func byName(all ...operation) map[string]operation {
	m := map[string]operation{}
	for _, op := range all {
		m[op.name] = op
	}
	return m
}

// configGet gives a guest its configuration, from [extensions.NAME.config].
var configGet = define("config.get", noNeed, getConfig)

func noNeed(in abi.KeyRequest) (capability.Need, error) {
	return capability.Need{}, checkKey(in.Key)
}

func getConfig(_ context.Context, x *instance, in abi.KeyRequest) (abi.ValueResponse, error) {
	value, ok := x.extension.config[in.Key]
	if !ok {
		return abi.ValueResponse{}, nil
	}
	raw, err := json.Marshal(value)
	return abi.ValueResponse{Value: raw}, err
}

// checkKey bounds the keys of config.get and kv.
func checkKey(key string) error {
	if key == "" || len(key) > 512 {
		return errors.New(`"key" must have 1 to 512 bytes`)
	}
	return nil
}
