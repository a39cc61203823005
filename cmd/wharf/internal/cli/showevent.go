package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/wharf-agent/wharf/engine/session"
)

// showEvent returns an event as a person reads it; empty for what only
// programs need.
func showEvent(r session.Record) string {
	kind, text := showWork(r)
	if kind == "" {
		kind, text = showDecision(r.Event)
	}
	if kind == "" {
		return ""
	}
	text = strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n                      ")
	line := fmt.Sprintf("%s  %-11s %s", r.Time.Local().Format("15:04:05"), kind, text)
	if _, begins := r.Event.(session.TurnStarted); begins {
		line = "\n" + line
	}
	return line
}

// showWork is about what was said and done; the kind is empty for other events.
func showWork(r session.Record) (kind, text string) {
	switch e := r.Event.(type) {
	case session.Started:
		return "session", fmt.Sprintf("%s in %s, started %s", e.ID, e.Cwd, r.Time.Local().Format(time.RFC3339)) + relation(e.Parent, e.ForkedFrom, e.ForkedAt)
	case session.Repaired:
		return "repaired", e.What
	case session.TurnStarted:
		return "turn", fmt.Sprintf("%d", e.Turn)
	case session.TurnEnded:
		text := fmt.Sprintf("%s after %s, %d tokens in, %d out", e.Reason, count(e.Steps, "step"), e.Usage.InputTokens, e.Usage.OutputTokens)
		if e.Error != "" {
			text += "\n" + e.Error
		}
		return "ended", text
	case session.UserMessage:
		return cmp.Or(e.Origin, "user"), e.Content
	case session.AssistantMessage:
		text := e.Text
		if e.Interrupted {
			text += " […broken off]"
		}
		if strings.TrimSpace(text) == "" {
			return "", ""
		}
		return "assistant", text
	case session.ToolCall:
		return "call", e.Name + " " + e.Arguments
	case session.ToolResult:
		kind := "result"
		if e.IsError {
			kind = strings.TrimSpace("error " + e.Code)
		}
		return kind, clip(e.Content, 2000)
	case session.ContextReplaced:
		return "replaced", fmt.Sprintf("%s, by %s\n%s", count(len(e.Targets), "message"), e.By, clip(e.Content, 2000))
	case session.CompactionStarted:
		return "compacting", fmt.Sprintf("%s (%s): the history has %d tokens", count(e.Messages, "message"), e.Reason, e.Tokens)
	case session.CompactionEnded:
		return "compacted", strings.TrimSpace(fmt.Sprintf("by %s: the history has %d tokens\n%s", cmp.Or(e.By, "nothing"), e.Tokens, e.Error))
	}
	return "", ""
}

// showDecision is about what was decided, and what extensions and others did; the kind is
// empty for other events.
func showDecision(event session.Event) (kind, text string) {
	switch e := event.(type) {
	case session.HookVerdict:
		return "hook", describeVerdict(e)
	case session.HookFailed:
		return "hook failed", fmt.Sprintf("%s at %s (%s): %s", e.Extension, e.Point, e.OnFailure, e.Failure)
	case session.ApprovalAsked:
		return "question", e.Tool + " " + summary(e.Arguments) + "\n" + e.Reason
	case session.ApprovalDecided:
		if e.Allowed {
			return "allowed", "by the user"
		}
		return "refused", strings.TrimSpace("by the user\n" + e.Message)
	case session.PermissionGranted:
		return "granted", e.Rule + ", for this " + e.Scope
	case session.ExtensionQuarantined:
		return "quarantine", e.Extension + ": " + e.Reason
	case session.SandboxRefused:
		return "sandbox", e.Reason
	case session.ExtensionUsed:
		return useKind(e), strings.TrimSpace(fmt.Sprintf("%s by %s: %s", e.Operation, e.Extension, e.Target) + "\n" + e.Reason)
	case session.ExtensionLogged:
		return "log", e.Extension + " " + e.Level + ": " + e.Text
	case session.ExtensionEmitted:
		return "event", fmt.Sprintf("%s by %s: %s", e.Name, e.Extension, e.Data)
	case session.EgressChecked:
		if e.Allowed {
			return "", ""
		}
		return "refused", refusedConnection(e)
	case session.GoalChanged:
		return "goal", strings.TrimSpace(fmt.Sprintf("%s, round %d of %d\n%s", goalStatus(e), e.Round, e.Rounds, e.Note))
	case session.SubagentStarted:
		return "subagent", fmt.Sprintf("%s begins: %s", e.Session, e.Task)
	case session.SubagentEnded:
		return "subagent", strings.TrimSpace(fmt.Sprintf("%s ended: %s after %s\n%s", e.Session, e.Reason, count(e.Steps, "step"), e.Error))
	case session.ExtensionAsked:
		return "asked", e.Extension + ": " + e.Prompt
	case session.ExtensionAnswered:
		return "answered", strings.TrimSpace(e.Text + " " + e.Error)
	}
	return "", ""
}
