/* conformance: does what each vector says, with the bare ABI. A script has one
 * instruction a line; the last answer counts. */
#include "wharf.h"

#define IMPORT(name) __attribute__((import_module("wharf_v1"), import_name(name)))

IMPORT("call") u64 host_call(const u8 *op, u32 op_length, const u8 *request, u32 request_length);
IMPORT("read") void host_read(u8 *to);
IMPORT("log") void host_log(u32 level, const u8 *text, u32 length);

/* until takes what stands before a byte off a text, and the byte with it. */
static struct text until(struct text *rest, u8 byte)
{
	struct text first = {rest->at, 0};
	while (first.length < rest->length && first.at[first.length] != byte)
		first.length++;
	u32 taken = first.length < rest->length ? first.length + 1 : first.length;
	rest->at += taken;
	rest->length -= taken;
	return first;
}

static u32 level(struct text word)
{
	static const char *const words[] = {"debug", "info", "warning", "error"};
	u32 n = 0;
	while (n < 3 && !same(word, words[n]))
		n++;
	return n;
}

/* operate runs an operation and logs its status and response. */
static void operate(struct text op, struct text request)
{
	u64 result = host_call(op.at, op.length, request.at, request.length);
	u32 length = (u32)result;
	u8 *line = allocate(length + 2);
	if (!line)
		__builtin_trap();
	line[0] = (u8)('0' + (u32)(result >> 32));
	line[1] = ' ';
	host_read(line + 2);
	host_log(1, line, length + 2);
}

/* read logs one value of the payload; a tool has it as its content. */
static u64 read(struct json payload, struct text key, int is_tool)
{
	char name[32] = {0};
	struct json value;
	for (u32 i = 0; i < key.length && i < sizeof name - 1; i++)
		name[i] = (char)key.at[i];
	if (!member(payload, name, &value))
		return ANSWER("{\"error\":\"the payload has no such key\"}");
	if (!is_tool) {
		host_log(1, value.at, (u32)(value.end - value.at));
		return 0;
	}
	struct output o = {0};
	put_text(&o, "{\"content\":\"");
	for (; value.at < value.end; value.at++)
		put_escaped(&o, *value.at);
	put_text(&o, "\"}");
	return answer(o.at, o.length);
}

static u64 obey(struct text script, struct json payload, int is_tool)
{
	u64 result = 0;
	while (script.length) {
		struct text rest = until(&script, '\n');
		struct text verb = until(&rest, ' ');
		if (same(verb, "answer")) {
			result = answer(rest.at, rest.length);
		} else if (same(verb, "log")) {
			u32 at = level(until(&rest, ' '));
			host_log(at, rest.at, rest.length);
		} else if (same(verb, "operate")) {
			struct text op = until(&rest, ' ');
			operate(op, rest);
		} else if (same(verb, "read")) {
			result = read(payload, rest, is_tool);
		} else if (same(verb, "spin")) {
			for (volatile int i = 0;; i++)
				;
		} else if (!same(verb, "none")) {
			__builtin_trap(); /* trap, and what nobody knows */
		}
	}
	return result;
}

static u64 hook(const u8 *at, u32 length)
{
	struct json payload = {at, at + length}, value;
	struct text script;
	if (!member(payload, "session_id", &value) || !string(&value, &script))
		__builtin_trap();
	return obey(script, payload, 0);
}

#define JSON_POINT(name) WHARF_EXPORT(#name) u64 name(const u8 *at, u32 length) { return hook(at, length); }
#define TEXT_POINT(name) \
	WHARF_EXPORT(#name) u64 name(const u8 *at, u32 length) { return obey((struct text){at, length}, (struct json){at, at}, 0); }

JSON_POINT(session_start)
JSON_POINT(user_prompt_submit)
JSON_POINT(before_run)
JSON_POINT(before_iteration)
JSON_POINT(before_request)
JSON_POINT(on_request_error)
TEXT_POINT(emit_reasoning)
JSON_POINT(emit_reasoning_end)
TEXT_POINT(on_stream)
JSON_POINT(on_stream_end)
JSON_POINT(on_provider_tool_event)
JSON_POINT(before_execute_tools)
JSON_POINT(before_execute_tool)
JSON_POINT(permission_request)
JSON_POINT(after_execute_tool)
JSON_POINT(on_execute_tool_error)
JSON_POINT(after_iteration)
JSON_POINT(subagent_start)
JSON_POINT(subagent_stop)
JSON_POINT(before_compact)
JSON_POINT(after_compact)
JSON_POINT(notification)
JSON_POINT(turn_stopping)
JSON_POINT(finalize_content)
JSON_POINT(after_run)
JSON_POINT(on_error)
JSON_POINT(on_finally)
JSON_POINT(session_end)

WHARF_EXPORT("call_tool") u64 call_tool(const u8 *at, u32 length)
{
	struct json payload = {at, at + length}, arguments, value;
	struct text script;
	if (!member(payload, "arguments", &arguments) || !member(arguments, "do", &value) || !string(&value, &script))
		__builtin_trap();
	return obey(script, payload, 1);
}
