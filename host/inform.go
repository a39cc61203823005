package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/wharf-agent/wharf/engine/session"
	"github.com/wharf-agent/wharf/host/abi"
	"github.com/wharf-agent/wharf/host/capability"
)

// What an extension may know, say and ask.
var (
	envGet          = define("env.get", needEnv, getEnv)
	eventEmit       = define("event.emit", needEvents, emitEvent)
	sessionInfo     = define("session.info", needSession, infoOfSession)
	sessionMessages = define("session.messages", needMessages, messagesOfSession)
	llmComplete     = judged(define("llm.complete", needLLM, completeText))
)

func needEnv(in abi.EnvRequest) (capability.Need, error) { return capability.Env(in.Name) }

func getEnv(_ context.Context, x *instance, in abi.EnvRequest) (abi.EnvResponse, error) {
	if x.session.Env == nil {
		return abi.EnvResponse{}, nil
	}
	value, set := x.session.Env(in.Name)
	if !set {
		return abi.EnvResponse{}, nil
	}
	value = strings.ToValidUTF8(value, "\uFFFD")
	return abi.EnvResponse{Value: &value}, nil
}

var eventName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

func needEvents(in abi.EmitRequest) (capability.Need, error) {
	if !eventName.MatchString(in.Name) {
		return capability.Need{}, fmt.Errorf(`"name" %q: give it up to 64 letters, digits, dots, _ and -`, cut(in.Name, 100))
	}
	if len(in.Data) > 0 && !session.Fits(in.Data) {
		return capability.Need{}, errors.New(`"data" is nested too deeply`)
	}
	return capability.Events(in.Name), nil
}

func emitEvent(_ context.Context, x *instance, in abi.EmitRequest) (abi.Empty, error) {
	x.events++
	switch {
	case x.events > limitEvents:
		return abi.Empty{}, fmt.Errorf("%w: events: %d in one call", errOverLimit, limitEvents)
	case len(in.Data) > limitEmitted:
		return abi.Empty{}, fmt.Errorf("%w: the data has %d bytes, and the limit emitted is %d", errOverLimit, len(in.Data), limitEmitted)
	case x.session.audited.Add(int64(len(in.Data))) > limitAudited:
		return abi.Empty{}, fmt.Errorf("%w: the limit audited is %d bytes of data in a session", errOverLimit, limitAudited)
	}
	data := in.Data
	if len(data) == 0 {
		data = json.RawMessage("null")
	}
	return abi.Empty{}, x.session.Record(session.ExtensionEmitted{Extension: x.extension.Manifest.Name, Name: in.Name, Data: data})
}

func needSession(abi.Empty) (capability.Need, error) { return capability.Session(), nil }

func infoOfSession(_ context.Context, x *instance, _ abi.Empty) (abi.SessionInfo, error) {
	gate, err := x.gate()
	if err != nil {
		return abi.SessionInfo{}, err
	}
	return gate.Info(), nil
}

func needMessages(in abi.MessagesRequest) (capability.Need, error) {
	if in.Last < 0 {
		return capability.Need{}, errors.New(`"last" must be 0, for all, or more`)
	}
	return capability.Session(), nil
}

// messagesOfSession gives the last messages, as many as there is room for.
func messagesOfSession(_ context.Context, x *instance, in abi.MessagesRequest) (abi.MessagesResponse, error) {
	gate, err := x.gate()
	if err != nil {
		return abi.MessagesResponse{}, err
	}
	all := gate.Messages()
	if in.Last > 0 {
		all = all[max(0, len(all)-in.Last):]
	}
	out := abi.MessagesResponse{Messages: make([]json.RawMessage, len(all))}
	room := limitOutput - 100 // for what is around them
	first := len(all)
	for first > 0 {
		raw, err := encode(messageOf(all[first-1]))
		if err != nil {
			return abi.MessagesResponse{}, err
		}
		if room -= len(raw) + 1; room < 0 {
			break
		}
		first--
		out.Messages[first] = raw
	}
	out.Messages, out.Dropped = out.Messages[first:], first
	return out, nil
}

func messageOf(m session.Message) abi.Message {
	out := abi.Message{Role: string(m.Role), Content: m.Content, CallID: string(m.CallID), IsError: m.IsError}
	for _, c := range m.Calls {
		out.Calls = append(out.Calls, abi.MessageCall{CallID: string(c.ID), Name: c.Name, Arguments: c.Arguments})
	}
	return out
}

// defaultAnswer is how many tokens an answer may have if the guest does not say.
const defaultAnswer = 1024

func needLLM(in abi.CompleteRequest) (capability.Need, error) {
	switch {
	case strings.TrimSpace(in.Prompt) == "":
		return capability.Need{}, errors.New(`"prompt" is empty`)
	case in.MaxTokens < 0:
		return capability.Need{}, errors.New(`"max_tokens" must be 0 or more`)
	}
	return capability.LLM(fmt.Sprintf("%d bytes", len(in.Prompt))), nil
}

// completeText asks the model, within what is left of the grant. How many
// tokens the prompt is, only the server knows: here, one for each three bytes.
func completeText(ctx context.Context, x *instance, in abi.CompleteRequest) (abi.CompleteResponse, error) {
	gate, err := x.gate()
	if err != nil {
		return abi.CompleteResponse{}, err
	}
	if leak := x.refuseLeak(in.Prompt); leak != nil {
		return abi.CompleteResponse{}, errors.Join(leak, x.audit(leak))
	}
	reserved, err := x.reserve(gate, &in)
	if err != nil {
		return abi.CompleteResponse{}, err
	}
	defer x.release(reserved)
	return gate.Complete(x.outward(ctx), x.extension.Manifest.Name, x.using.call, in, reserved)
}

// reserve sees that a question is within what is left of the grant, limits its
// answer to that, and returns what both may cost. A call beside may be in the
// log as well as pending, so that in doubt there is less left, and never more.
func (x *instance) reserve(gate Gate, in *abi.CompleteRequest) (int64, error) {
	x.session.asking.Lock()
	defer x.session.asking.Unlock()
	spent := gate.Tokens(x.extension.Manifest.Name) + x.session.pending
	prompt := int64(len(in.Prompt)/3 + 1)
	left := x.extension.Granted.LLM - spent - prompt
	if left <= 0 {
		return 0, fmt.Errorf("%w: the prompt takes about %d tokens, and of the grant llm = { tokens = %d } %d are spent in this session",
			errOverLimit, prompt, x.extension.Granted.LLM, spent)
	}
	if in.MaxTokens == 0 {
		in.MaxTokens = defaultAnswer
	}
	in.MaxTokens = min(in.MaxTokens, left)
	x.session.pending += prompt + in.MaxTokens
	return prompt + in.MaxTokens, nil
}

func (x *instance) release(reserved int64) {
	x.session.asking.Lock()
	defer x.session.asking.Unlock()
	x.session.pending -= reserved
}
