package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/wharf-agent/wharf/engine/provider/internal/wire"
	"github.com/wharf-agent/wharf/engine/session"
)

// conversation is a request's messages, as one server wants them.
type conversation struct {
	Compat
	model   string
	own     bool // the server is OpenAI's own
	all     []openai.ChatCompletionMessageParamUnion
	system  string          // that waits for the first message of the user
	images  []session.Image // of results, that wait for a message which may show them
	results []string        // that wait for a message of the user, which is all that the server takes
	last    session.Role
}

// add takes the next message.
func (c *conversation) add(m session.Message) error {
	switch m.Role {
	case session.ToolRole:
		c.result(m)
		return nil
	case session.User:
		c.user(m)
		return nil
	case session.Assistant:
		c.flush()
		return c.assistant(m)
	}
	return wire.Invalid(fmt.Sprintf("the history has a message of the unknown role %q", m.Role), "report this as a bug")
}

func (c *conversation) put(m openai.ChatCompletionMessageParamUnion, role session.Role) {
	c.all, c.last = append(c.all, m), role
}

// user shows a message, with what waited for one. A message that says nothing is left
// out: servers refuse it.
func (c *conversation) user(m session.Message) {
	if m.Content != "" || len(m.Images) > 0 {
		c.show(m)
	}
}

// flush shows what waits, in a message of its own.
func (c *conversation) flush() {
	if len(c.images) > 0 || len(c.results) > 0 {
		c.show(session.Message{})
	}
}

const imagesAbove = "(These images are what the calls above gave.)"

// show puts together what waits and a message.
func (c *conversation) show(m session.Message) {
	text := slices.Clone(c.results)
	if c.system != "" {
		text = append([]string{c.system}, text...)
	}
	if len(c.images) > 0 {
		text = append(text, imagesAbove)
	}
	if m.Content != "" {
		text = append(text, m.Content)
	}
	if c.AssistantAfterTool && c.last == session.ToolRole {
		c.put(openai.AssistantMessage("(The results are above.)"), session.Assistant)
	}
	c.put(userMessage(strings.Join(text, "\n\n"), append(c.images, m.Images...)), session.User)
	c.system, c.images, c.results = "", nil, nil
}

func userMessage(text string, images []session.Image) openai.ChatCompletionMessageParamUnion {
	if len(images) == 0 {
		return openai.UserMessage(text)
	}
	var parts []openai.ChatCompletionContentPartUnionParam
	if text != "" {
		parts = append(parts, openai.TextContentPart(text))
	}
	for _, image := range images {
		parts = append(parts, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: wire.DataURL(image)}))
	}
	return openai.UserMessage(parts)
}

// id returns the id of a call as the server takes it. OpenAI's own refuses long ones;
// others may want to have back what they gave, whatever its form.
func (c *conversation) id(id session.CallID) string {
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	switch {
	case c.own:
		return wire.SendableID(id, 40)
	case len(id) > 128 || strings.ContainsFunc(string(id), odd):
		return wire.SendableID(id, 128)
	}
	return string(id)
}

// result shows the result of a call. Its images wait: a tool message takes text
// alone.
func (c *conversation) result(m session.Message) {
	content := m.Content
	if content == "" {
		content = "(no output)" // left out, its call would have no answer
	}
	c.images = append(c.images, m.Images...)
	if c.ToolRole == "user" {
		c.results = append(c.results, fmt.Sprintf("Result of the call %s:\n%s", c.id(m.CallID), content))
		return
	}
	c.put(openai.ToolMessage(content, c.id(m.CallID)), session.ToolRole)
}

func (c *conversation) assistant(m session.Message) error {
	if m.Content == "" && len(m.Calls) == 0 {
		return nil
	}
	if c.ToolRole == "user" {
		c.put(openai.AssistantMessage(c.spelled(m)), session.Assistant)
		return nil
	}
	var message openai.ChatCompletionAssistantMessageParam
	extra := c.reasoning(m)
	if m.Content != "" {
		message.Content.OfString = param.NewOpt(m.Content)
	} else {
		extra["content"] = nil // some servers miss it, none minds the null
	}
	for _, call := range m.Calls {
		sent, err := encodeCall(c.id(call.ID), call)
		if err != nil {
			return err
		}
		message.ToolCalls = append(message.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: sent})
	}
	message.SetExtraFields(extra)
	c.put(openai.ChatCompletionMessageParamUnion{OfAssistant: &message}, session.Assistant)
	return nil
}

// spelled returns a message with its calls as text.
func (c *conversation) spelled(m session.Message) string {
	var lines []string
	if m.Content != "" {
		lines = append(lines, m.Content)
	}
	for _, call := range m.Calls {
		lines = append(lines, fmt.Sprintf("I call %s as %s with %s.", call.Name, c.id(call.ID), wire.SendableArguments(call.Arguments)))
	}
	return strings.Join(lines, "\n")
}

// chatAPI is the name under which a message's Extra holds what belongs to Chat
// Completions.
const chatAPI = "chat"

// thoughts is how a server sent its reasoning.
type thoughts struct {
	Model   string          `json:"model"`
	Field   string          `json:"field,omitempty"`   // that the text came in; it stands in the message
	Details json.RawMessage `json:"details,omitempty"` // the list reasoning_details, opaque in part
}

// reasoning returns the fields in which a message's reasoning goes back.
func (c *conversation) reasoning(m session.Message) map[string]any {
	fields := map[string]any{}
	if c.Reasoning == "never" || c.Reasoning == "calls" && len(m.Calls) == 0 {
		return fields
	}
	var all map[string]json.RawMessage
	var was thoughts
	if json.Unmarshal(m.Extra, &all) == nil {
		_ = json.Unmarshal(all[chatAPI], &was) // what is none says nothing
	}
	if was.Field == "" {
		was.Field = "reasoning_content"
	}
	switch {
	case was.Details != nil && was.Model == c.model:
		fields["reasoning_details"] = was.Details
	case m.Reasoning != "":
		fields[was.Field] = m.Reasoning
	case len(m.Calls) > 0:
		fields[was.Field] = " " // these servers refuse a message with calls that has none
	}
	return fields
}
