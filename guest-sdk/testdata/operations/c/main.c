/* Asks for each host operation once, and tells what came. */
#include "wharf.h"

#define SAY(...) do { wharf_text parts[] = {__VA_ARGS__}; say(o, parts, sizeof parts / sizeof *parts); } while (0)
#define T(x) WHARF_TEXT(x)

static void say(wharf_out *o, const wharf_text *parts, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		wharf_put(o, parts[i]);
}

static wharf_text number(int64_t n)
{
	wharf_out o = {0};
	wharf_put_integer(&o, n);
	return wharf_written(&o);
}

static enum wharf_status config(wharf_out *o)
{
	wharf_json value;
	enum wharf_status status = wharf_config("greeting", &value);
	SAY(value.at ? wharf_raw(value) : T("null"));
	return status;
}

static enum wharf_status done(wharf_out *o, enum wharf_status status)
{
	if (!status)
		SAY(T("done"));
	return status;
}

static enum wharf_status kv_set(wharf_out *o) { return done(o, wharf_kv_set("a", "{\"n\":1}")); }

static enum wharf_status kv_get(wharf_out *o)
{
	wharf_json value;
	enum wharf_status status = wharf_kv_get("a", &value);
	SAY(wharf_raw(value));
	return status;
}

static enum wharf_status kv_list(wharf_out *o)
{
	wharf_json keys, key;
	enum wharf_status status = wharf_kv_list("", &keys);
	while (wharf_next(&keys, &key))
		SAY(wharf_as_text(key));
	return status;
}

static enum wharf_status kv_delete(wharf_out *o) { return done(o, wharf_kv_delete("a")); }

static enum wharf_status http(wharf_out *o)
{
	struct wharf_http_response r;
	enum wharf_status status = wharf_http(
		(struct wharf_http_request){.method = "POST", .url = T("https://api.example.com/x"), .headers = T("{\"Accept\":\"text/plain\"}"),
			.body = T("h\xc3\xa9"), .secrets = T("[\"TOKEN\"]")},
		&r);
	if (!status)
		SAY(number(r.status), T(" "), r.body, T(" "), r.url, wharf_equal(wharf_as_text(wharf_get(r.headers, "x-one")), "1") ? T(" true") : T(" false"));
	return status;
}

static enum wharf_status read_file(wharf_out *o)
{
	wharf_text content;
	enum wharf_status status = wharf_read_file("a.txt", &content);
	SAY(content);
	return status;
}

static enum wharf_status read_file_at(wharf_out *o)
{
	wharf_text part;
	int64_t size;
	enum wharf_status status = wharf_read_file_at("a.txt", 2, 3, &part, &size); /* from within a letter: no text */
	for (uint32_t i = 0; i < part.length; i++)
		SAY(i ? T(", ") : T("["), number(part.at[i]));
	if (!status)
		SAY(T("] of "), number(size));
	return status;
}

static enum wharf_status list_dir(wharf_out *o)
{
	wharf_json entries, e;
	enum wharf_status status = wharf_list_dir(".", &entries);
	while (wharf_next(&entries, &e))
		SAY(wharf_as_text(wharf_get(e, "name")), T(" "), wharf_as_text(wharf_get(e, "kind")));
	return status;
}

static enum wharf_status stat_file(wharf_out *o)
{
	struct wharf_file_info info;
	enum wharf_status status = wharf_stat_file("a.txt", &info);
	if (!status)
		SAY(number(info.size), T(" "), number(info.mode.length), T(" "), number(info.mtime.length));
	return status;
}

static enum wharf_status write_file(wharf_out *o) { return done(o, wharf_write_file("b.txt", "two\n")); }

static enum wharf_status call_tool(wharf_out *o)
{
	struct wharf_tool_result r;
	enum wharf_status status = wharf_call_tool("grep", "{\"pattern\":\"x\"}", &r);
	if (!status)
		SAY(r.content, r.is_error ? T(" true") : T(" false"), r.code);
	return status;
}

static enum wharf_status exec(wharf_out *o)
{
	struct wharf_output r;
	enum wharf_status status = wharf_exec("make all", 1500, &r);
	if (!status)
		SAY(number(r.exit), T(" "), r.out, T(" "), r.err);
	return status;
}

static enum wharf_status session_info(wharf_out *o)
{
	struct wharf_session s;
	enum wharf_status status = wharf_session_info(&s);
	if (!status)
		SAY(s.id, T(" "), s.cwd, T(" "), s.model, T(" "), number(s.turn));
	return status;
}

static enum wharf_status messages(wharf_out *o)
{
	wharf_json all, m;
	enum wharf_status status = wharf_messages(1, &all);
	while (wharf_next(&all, &m))
		SAY(wharf_as_text(wharf_get(m, "role")), T(" "), wharf_as_text(wharf_get(m, "content")));
	return status;
}

static enum wharf_status complete(wharf_out *o)
{
	wharf_text text;
	struct wharf_usage usage;
	enum wharf_status status = wharf_complete("why?", 10, &text, &usage);
	if (!status)
		SAY(text, T(" "), number(usage.input_tokens), T(" "), number(usage.output_tokens));
	return status;
}

static enum wharf_status env_and_emit(wharf_out *o)
{
	wharf_text value;
	enum wharf_status status = wharf_emit("toured", "[1,2]");
	if (!status)
		status = wharf_env("LANG", &value);
	if (!status)
		SAY(value);
	return status;
}

static const struct {
	const char *name;
	enum wharf_status (*stop)(wharf_out *);
} stops[] = {
	{"config", config}, {"kv_set", kv_set}, {"kv_get", kv_get}, {"kv_list", kv_list}, {"kv_delete", kv_delete},
	{"http", http}, {"read_file", read_file}, {"read_file_at", read_file_at}, {"list_dir", list_dir}, {"stat_file", stat_file},
	{"write_file", write_file}, {"call_tool", call_tool}, {"exec", exec}, {"session_info", session_info}, {"messages", messages},
	{"complete", complete}, {"env and emit", env_and_emit},
};

static wharf_result tour(__attribute__((unused)) wharf_json arguments)
{
	wharf_out told = {0}, *o = &told;
	for (uint32_t i = 0; i < sizeof stops / sizeof *stops; i++) {
		SAY(T(stops[i].name), T(": "));
		if (stops[i].stop(o))
			SAY(wharf_last_error.code);
		SAY(T("\n"));
	}
	return wharf_content(wharf_written(o));
}

WHARF_TOOLS({"tour", tour})
