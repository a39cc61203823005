/* guest-c obeys the scripts of the conformance vectors with the SDK for C. The
 * last answer of a script counts. */
#include "wharf.h"

/* until takes what stands before a byte off a text, and the byte with it. */
static wharf_text until(wharf_text *rest, uint8_t byte)
{
	wharf_text first = {rest->at, 0};
	while (first.length < rest->length && first.at[first.length] != byte)
		first.length++;
	uint32_t taken = first.length < rest->length ? first.length + 1 : first.length;
	rest->at += taken;
	rest->length -= taken;
	return first;
}

static enum wharf_level level(wharf_text word)
{
	static const char *const words[] = {"debug", "info", "warning"};
	uint32_t n = 0;
	while (n < 3 && !wharf_equal(word, words[n]))
		n++;
	return (enum wharf_level)n;
}

/* operate runs an operation and logs its status and response. */
static void operate(wharf_text op, wharf_text request)
{
	wharf_out name = {0}, line = {0};
	wharf_json response;
	wharf_put(&name, op);
	wharf_put_byte(&name, 0);
	wharf_put_integer(&line, wharf_operate((const char *)wharf_written(&name).at, request, &response));
	wharf_put(&line, " ");
	wharf_put(&line, wharf_raw(response));
	wharf_log(WHARF_INFO, wharf_written(&line));
}

/* member returns the JSON of one key of what the host gave. */
static wharf_text member(wharf_text key)
{
	wharf_out name = {0};
	wharf_put(&name, key);
	wharf_put_byte(&name, 0);
	return wharf_raw(wharf_get(wharf_payload, (const char *)wharf_written(&name).at));
}

/* obey returns the answer of a script. What it reads is logged by a hook, and the
 * answer of a tool. */
static wharf_text obey(wharf_text script, bool is_tool)
{
	wharf_text answer = {0};
	while (script.length) {
		wharf_text rest = until(&script, '\n'), verb = until(&rest, ' ');
		if (wharf_equal(verb, "answer")) {
			answer = rest;
		} else if (wharf_equal(verb, "log")) {
			enum wharf_level at = level(until(&rest, ' '));
			wharf_log(at, rest);
		} else if (wharf_equal(verb, "operate")) {
			wharf_text op = until(&rest, ' ');
			operate(op, rest);
		} else if (wharf_equal(verb, "read") && is_tool) {
			answer = wharf_member("content", wharf_string(member(rest)));
		} else if (wharf_equal(verb, "read")) {
			wharf_log(WHARF_INFO, member(rest));
		} else if (wharf_equal(verb, "spin")) {
			for (volatile int i = 0;; i++)
				;
		} else if (!wharf_equal(verb, "none")) {
			__builtin_trap(); /* trap, and what nobody knows */
		}
	}
	return answer;
}

#define OBEY(point) \
	WHARF_HOOK(point, payload) { return (wharf_verdict){.answer = obey(payload.session_id, false)}; }

/* Of these points the functions take no answer, and the vectors try what one does. */
#define OBEY_ANY(point) \
	WHARF_ANY_HOOK(point, text) { return (wharf_verdict){.answer = obey(wharf_read_##point(wharf_parse(text)).session_id, false)}; }
#define OBEY_TEXT(point) \
	WHARF_ANY_HOOK(point, text) { return (wharf_verdict){.answer = obey(text, false)}; }

OBEY(session_start)
OBEY(user_prompt_submit)
OBEY(before_run)
OBEY(before_iteration)
OBEY(before_request)
OBEY(on_request_error)
OBEY_TEXT(emit_reasoning)
OBEY_ANY(emit_reasoning_end)
OBEY_TEXT(on_stream)
OBEY_ANY(on_stream_end)
OBEY_ANY(on_provider_tool_event)
OBEY(before_execute_tools)
OBEY(before_execute_tool)
OBEY(permission_request)
OBEY(after_execute_tool)
OBEY(on_execute_tool_error)
OBEY_ANY(after_iteration)
OBEY(subagent_start)
OBEY(subagent_stop)
OBEY(before_compact)
OBEY_ANY(after_compact)
OBEY_ANY(notification)
OBEY(turn_stopping)
OBEY(finalize_content)
OBEY_ANY(after_run)
OBEY_ANY(on_error)
OBEY_ANY(on_finally)
OBEY_ANY(session_end)

static wharf_result work(wharf_json arguments)
{
	wharf_text answer = obey(wharf_as_text(wharf_get(arguments, "do")), true);
	return (wharf_result){.answer = answer.at ? answer : wharf_from_string("")};
}

WHARF_TOOLS({"do", work})
