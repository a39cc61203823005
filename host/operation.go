package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/capability"
)

// operation is something that the host does for a guest.
type operation struct {
	name string
	run  func(ctx context.Context, x *instance, request []byte) ([]byte, error)
}

// operations is every operation there is.
var operations = byName(configGet, kvGet, kvSet, kvDelete, kvList)

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
		if err := x.permit(name, want); err != nil {
			return nil, err
		}
		out, err := do(ctx, x, in)
		if err != nil {
			return nil, err
		}
		return encode(out)
	}
	return operation{name, run}
}

// permit checks a need and writes the audit of it.
func (x *instance) permit(name string, want capability.Need) error {
	refused := x.extension.Granted.Allow(want)
	if want.Key == "" {
		return refused
	}
	err := x.session.Record(session.ExtensionUsed{
		Extension: x.extension.Manifest.Name, Operation: name, Target: want.Target, Allowed: refused == nil,
	})
	return errors.Join(refused, err)
}

// operate runs the operation that a guest names and keeps its response.
func (x *instance) operate(ctx context.Context, name, request []byte) abi.Status {
	x.operations++
	op, known := operations[string(name)]
	switch {
	case x.operations > limitOperations:
		return x.respondError(abi.OverLimit, fmt.Sprintf("over the limit operations: %d in one call", limitOperations))
	case len(request) > limitOutput:
		return x.respondError(abi.OverLimit, fmt.Sprintf("the request has %d bytes: that is over the limit output, %d", len(request), limitOutput))
	case !utf8.Valid(request):
		return x.respondError(abi.BadRequest, "the request is not UTF-8")
	case !known:
		return x.respondError(abi.UnknownOperation, fmt.Sprintf("unknown operation %.64q: this host has %s", name, strings.Join(Operations(), ", ")))
	}
	response, err := op.run(ctx, x, request)
	if err != nil {
		return x.respondError(statusOf(err), op.name+": "+oneLine(err))
	}
	x.response = response
	return abi.OK
}

func statusOf(err error) abi.Status {
	switch {
	case errors.Is(err, capability.ErrNotGranted):
		return abi.NotGranted
	case errors.Is(err, errBadRequest):
		return abi.BadRequest
	case errors.Is(err, errOverLimit):
		return abi.OverLimit
	default:
		return abi.Failed
	}
}

// respondError makes the response of an operation that did not work.
func (x *instance) respondError(s abi.Status, message string) abi.Status {
	x.response, _ = json.Marshal(abi.ErrorResponse{Code: s.Code(), Message: message}) // two strings always encode
	return s
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
