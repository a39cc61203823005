package exttest

import (
	"reflect"
	"time"

	"github.com/BurntSushi/toml"
)

// fileForm is a file as TOML.
type fileForm struct {
	Grant  any            `toml:"grant"`
	Config map[string]any `toml:"config"`
	Cases  []caseForm     `toml:"case"`
}

type caseForm struct {
	Name string `toml:"name"`
	worldForm
	stepForm
	Steps []stepForm `toml:"step"`
}

// worldForm is the world as a case gives it.
type worldForm struct {
	Grant    any               `toml:"grant"`
	Config   map[string]any    `toml:"config"`
	Now      time.Time         `toml:"now"`
	Seed     uint64            `toml:"seed"`
	Env      map[string]string `toml:"env"`
	Secrets  map[string]string `toml:"secrets"`
	Kept     map[string]any    `toml:"kept"`
	Files    map[string]string `toml:"files"`
	Session  sessionForm       `toml:"session"`
	Messages []messageForm     `toml:"messages"`
	HTTP     []httpForm        `toml:"http"`
	Exec     []execForm        `toml:"exec"`
	Calls    []callForm        `toml:"tool_call"`
	LLM      []llmForm         `toml:"llm"`
	Faults   []faultForm       `toml:"fault"`
}

type sessionForm struct {
	ID    string `toml:"id"`
	Cwd   string `toml:"cwd"`
	Model string `toml:"model"`
	Turn  int    `toml:"turn"`
}

type messageForm struct {
	Role    string `toml:"role"`
	Content string `toml:"content"`
	CallID  string `toml:"call_id"`
	IsError bool   `toml:"is_error"`
}

// answerForm is what all answers have.
type answerForm struct {
	Times  int    `toml:"times"`  // how often it is given; 0 is once
	Denied string `toml:"denied"` // the reason why the agent does not do it
}

type httpForm struct {
	Method      string            `toml:"method"` // empty is GET
	URL         string            `toml:"url"`
	SentHeaders map[string]string `toml:"sent_headers"` // that the request must have
	SentBody    *string           `toml:"sent_body"`
	Status      int               `toml:"status"` // 0 is 200
	Headers     map[string]string `toml:"headers"`
	Body        string            `toml:"body"`
	Times       int               `toml:"times"`
}

type execForm struct {
	answerForm
	Command string `toml:"command"`
	Exit    int    `toml:"exit"`
	Stdout  string `toml:"stdout"`
	Stderr  string `toml:"stderr"`
}

type callForm struct {
	answerForm
	Name      string `toml:"name"`
	Arguments any    `toml:"arguments"` // nil: any
	Content   string `toml:"content"`
	IsError   bool   `toml:"is_error"`
	Code      string `toml:"code"`
}

type llmForm struct {
	answerForm
	Prompt       string `toml:"prompt"` // empty: any
	Text         string `toml:"text"`
	InputTokens  int64  `toml:"input_tokens"`
	OutputTokens int64  `toml:"output_tokens"`
}

type faultForm struct {
	Operation string `toml:"operation"`
	Target    string `toml:"target"` // empty: any
	Code      string `toml:"code"`   // empty is FAILED
	Message   string `toml:"message"`
	Times     int    `toml:"times"`
}

// stepForm is a step as TOML. Of the expectations, which are verbs but for the
// answer itself, a nil is none; no answer and no failure are expected by default.
type stepForm struct {
	Hook      string `toml:"hook"`
	Tool      string `toml:"tool"`
	Payload   any    `toml:"payload"`
	Arguments any    `toml:"arguments"`

	Verdict any               `toml:"verdict"`
	Result  any               `toml:"result"`
	Fails   *string           `toml:"fails"`
	Logs    *[]string         `toml:"logs"`
	Tries   *[]string         `toml:"tries"`
	Emits   *[]map[string]any `toml:"emits"`
	Keeps   map[string]any    `toml:"keeps"`
	Writes  map[string]string `toml:"writes"`
}

// given reports whether a case has a step of its own, without [[case.step]].
func (s stepForm) given() bool {
	return s.Hook != "" || s.Tool != "" || s.Payload != nil || s.Arguments != nil || s.Verdict != nil || s.Result != nil || s.Fails != nil ||
		s.Logs != nil || s.Tries != nil || s.Emits != nil || s.Keeps != nil || s.Writes != nil
}

// forms are the tables of a file, by the last part of their names.
var forms = map[string]any{
	"": fileForm{}, "case": caseForm{}, "step": stepForm{}, "session": sessionForm{}, "messages": messageForm{},
	"http": httpForm{}, "exec": execForm{}, "tool_call": callForm{}, "llm": llmForm{}, "fault": faultForm{},
}

// keysBeside lists the keys that there are in the table of an unknown one.
func keysBeside(key toml.Key) []string {
	table := ""
	if len(key) > 1 {
		table = key[len(key)-2]
	}
	form, known := forms[table]
	if !known {
		return nil
	}
	return keysOf(reflect.TypeOf(form))
}

// keysOf lists the keys of a form.
func keysOf(form reflect.Type) []string {
	var all []string
	for i := range form.NumField() {
		field := form.Field(i)
		if field.Anonymous {
			all = append(all, keysOf(field.Type)...)
			continue
		}
		all = append(all, field.Tag.Get("toml"))
	}
	return all
}
