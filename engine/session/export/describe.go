package export

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/wharf-agent/wharf/engine/session"
)

// describe says in words what an event tells that is neither a message nor a
// call's own; id is the call that it is about. An empty title is for what only
// programs need.
func describe(e session.Event) (title, text string, id session.CallID) {
	switch e := e.(type) {
	case session.Repaired:
		return "repaired", e.What, ""
	case session.HookVerdict:
		return verdict(e)
	case session.HookFailed:
		return "hook failed", fmt.Sprintf("%s at %s (%s): %s", e.Extension, e.Point, e.OnFailure, e.Failure), e.CallID
	case session.SandboxRefused:
		return "sandbox", e.Reason, e.CallID
	case session.ExtensionUsed:
		how := "used"
		if !e.Allowed {
			how = "refused"
		}
		return how, lines(fmt.Sprintf("%s by %s: %s", e.Operation, e.Extension, e.Target), e.Reason), e.CallID
	case session.EgressChecked:
		how := "reached"
		if !e.Allowed {
			how = "refused"
		}
		return how, fmt.Sprintf("%s:%d: %s", e.Host, e.Port, e.Rule), ""
	case session.ContextReplaced:
		return "replaced", lines(fmt.Sprintf("%s: the model is shown something else for events %v", e.By, e.Targets), e.Content), ""
	case session.CompactionStarted:
		return "compaction", fmt.Sprintf("%s: %d messages are summarized", e.Reason, e.Messages), ""
	case session.CompactionEnded:
		return "compaction", lines(fmt.Sprintf("done by %s, %d tokens are left", e.By, e.Tokens), e.Error), ""
	}
	return describeExtension(e)
}

func describeExtension(e session.Event) (title, text string, id session.CallID) {
	switch e := e.(type) {
	case session.ExtensionLogged:
		return "log", fmt.Sprintf("%s %s: %s", e.Extension, e.Level, e.Text), ""
	case session.ExtensionEmitted:
		return "event", fmt.Sprintf("%s by %s: %s", e.Name, e.Extension, e.Data), ""
	case session.ExtensionAsked:
		return "asked", fmt.Sprintf("%s asks %s: %s", e.Extension, e.Model, e.Prompt), ""
	case session.ExtensionAnswered:
		return "answered", lines(e.Text, e.Error), ""
	case session.ApprovalAsked:
		return "question", lines(e.Tool+" "+e.Arguments, e.Reason), e.CallID
	case session.ApprovalDecided:
		return "decision", lines(decision(e.Allowed), e.Message), e.CallID
	case session.PermissionGranted:
		return "granted", e.Rule + ", for this " + e.Scope, ""
	case session.ExtensionQuarantined:
		return "quarantine", e.Extension + ": " + e.Reason, ""
	case session.GoalChanged:
		return "goal", lines(fmt.Sprintf("%s, round %d of %d", e.Status, e.Round, e.Rounds), e.Note), ""
	case session.SubagentStarted:
		return "subagent", fmt.Sprintf("%s begins: %s", e.Session, e.Task), e.CallID
	case session.SubagentEnded:
		return "subagent", lines(fmt.Sprintf("%s ended: %s after %s", e.Session, e.Reason, count(e.Steps, "step")), e.Error), ""
	case session.Unknown:
		return e.Type, string(e.Data), ""
	}
	return "", "", ""
}

func verdict(e session.HookVerdict) (title, text string, id session.CallID) {
	words := []string{fmt.Sprintf("%s at %s:", e.Extension, e.Point)}
	for _, word := range []string{e.Decision, e.Reason} {
		if word != "" {
			words = append(words, word)
		}
	}
	if e.Replaced != nil {
		words = append(words, "replaced "+string(e.Replaced))
	}
	if len(words) == 1 {
		words = append(words, "added a context or a message")
	}
	return "verdict", strings.Join(words, " "), e.CallID
}

func lines(text ...string) string { return strings.TrimSpace(strings.Join(text, "\n")) }

// clean returns text without the characters that would show something else than
// what stands there.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return '\uFFFD'
		}
		return r
	}, text)
}

// decision is a person's word about a call.
func decision(allowed bool) string {
	if allowed {
		return "the user allowed it"
	}
	return "the user refused it"
}
