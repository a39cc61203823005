package guestsdk_test

import (
	"fmt"
	"strings"

	"github.com/wharf-agent/wharf/engine/hook"
)

// cHeader brings the payloads in the header for C up to date.
func cHeader() ([]byte, error) {
	var b strings.Builder
	for i, info := range hook.Points {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(cPoint(info))
	}
	return between("c/wharf.h", "/* ", " */", []string{strings.TrimSuffix(b.String(), "\n")})
}

// cPoint generates a point's payload, the function that reads it, and of what
// kind its handlers are.
func cPoint(info hook.Info) string {
	kind := "WHARF_WATCHES"
	if info.Raw {
		kind = "WHARF_HEARS"
	} else if info.Deciding() {
		kind = "WHARF_JUDGES"
	}
	doc := fmt.Sprintf("/* %s: %s.", info.Point, info.When)
	if answers := strings.ReplaceAll(answersOf(info, cAnswers), "`", ""); answers != "" {
		doc += "\n * It may answer " + answers + "."
	}
	doc += " */\n"
	define := fmt.Sprintf("#define WHARF_KIND_%s %s\n", info.Point, kind)
	if info.Raw {
		return doc + define
	}
	keys := append([]hook.Key{{Name: "session_id", Type: hook.Text}, {Name: "turn", Type: hook.Integer}, {Name: "step", Type: hook.Integer}}, info.Keys...)
	var names, fields, values []string
	for i, key := range keys {
		names = append(names, fmt.Sprintf("%q", key.Name))
		typ, read := cType(info.Point, key)
		field := fmt.Sprintf("\t%s %s;", typ, key.Name)
		if key.Doc != "" {
			field += " /* " + key.Doc + " */"
		}
		fields = append(fields, field)
		values = append(values, fmt.Sprintf("\t\t"+read, fmt.Sprintf("v[%d]", i)))
	}
	return doc + fmt.Sprintf(`struct wharf_%[1]s {
%[2]s
};
WHARF_FN struct wharf_%[1]s wharf_read_%[1]s(wharf_json payload)
{
	static const char *const keys[] = {%[3]s};
	wharf_json v[%[4]d];
	wharf_find(payload, keys, v, %[4]d);
	return (struct wharf_%[1]s){
%[5]s,
	};
}
`, info.Point, strings.Join(fields, "\n"), strings.Join(names, ", "), len(keys), strings.Join(values, ",\n")) + define
}

// cType returns the type of a key, and how it is read.
func cType(p hook.Point, key hook.Key) (typ, read string) {
	switch {
	case key.Name == "usage":
		return "struct wharf_usage", "wharf_as_usage(%s)"
	case key.Name == "budget":
		return "struct wharf_budget", "wharf_as_budget(%s)"
	case p == hook.AfterExecuteTool && key.Name == "result":
		return "struct wharf_tool_result", "wharf_as_tool_result(%s)"
	}
	row := map[hook.Type][2]string{
		hook.Text: {"wharf_text", "wharf_as_text(%s)"}, hook.Integer: {"int64_t", "wharf_as_integer(%s)"},
		hook.Number: {"double", "wharf_as_number(%s)"}, hook.Boolean: {"bool", "wharf_as_bool(%s)"},
		hook.Object: {"wharf_json", "%s"}, hook.List: {"wharf_json", "%s"}, hook.Any: {"wharf_json", "%s"},
	}[key.Type]
	return row[0], row[1]
}

// cAnswers are the functions of the header for C by what they answer.
var cAnswers = map[string]string{
	"allow": "wharf_allow", "deny": "wharf_deny", "ask": "wharf_ask", "block": "wharf_block", "continue": "wharf_continue",
	"retry": "wharf_retry", "fail": "wharf_give_up", "text": "wharf_replace_text", "arguments": "wharf_replace_arguments",
	"result": "wharf_answer_in_place", "content": "wharf_replace_content", "parameters": "wharf_replace_parameters",
	"hide_tools": "wharf_hide_tools", "response": "wharf_answer_for_model", "context": "wharf_add_context",
}

// cReadme brings the table of the C SDK's page up to date.
func cReadme() ([]byte, error) {
	return readme("c/README.md", "handled by", func(info hook.Info) string {
		if info.Raw {
			return fmt.Sprintf("WHARF_HOOK(%s, text)", info.Point)
		}
		return fmt.Sprintf("WHARF_HOOK(%s, payload)", info.Point)
	}, cAnswers)
}
