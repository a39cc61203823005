/* wharf.h: the guest SDK for C. With it, a hook or a tool for Wharf is a plain
 * function. It needs clang and wasm-ld, and no C library.
 *
 *	#include "wharf.h"
 *
 *	WHARF_HOOK(before_execute_tool, call)
 *	{
 *		if (wharf_contains(wharf_argument(call, "command"), "git push"))
 *			return wharf_deny("pushing is the user's");
 *		return WHARF_NO_OPINION;
 *	}
 *
 * "wharf ext build" compiles the folder's .c files and embeds extension.toml,
 * which declares the hooks. Include this header in one .c file of an extension
 * alone: it defines the exports that the host needs.
 *
 * Memory: what the functions here return is good until the handler returns, and
 * is taken back as a whole then. What must last for the session goes into a
 * static variable, what must outlast it into wharf_kv_set.
 *
 * Texts: a function that takes a text takes a "string literal", a char pointer
 * or a wharf_text. Texts are UTF-8 and may hold zeros. */
#ifndef WHARF_H
#define WHARF_H

#include <stdbool.h>
#include <stdint.h>

/* wharf_text is a text, or bytes. One that is absent has at == 0. */
typedef struct wharf_text {
	const uint8_t *at;
	uint32_t length;
} wharf_text;

/* wharf_json is a value in a JSON text. One that is absent has at == 0. */
typedef struct wharf_json {
	const uint8_t *at, *end;
} wharf_json;

#define WHARF_FN __attribute__((unused)) static

WHARF_FN wharf_text wharf_from_string(const char *s)
{
	uint32_t n = 0;
	while (s && s[n])
		n++;
	return (wharf_text){(const uint8_t *)s, n};
}
WHARF_FN wharf_text wharf_from_text(wharf_text t) { return t; }

/* WHARF_TEXT makes a wharf_text of whatever a function takes for one. */
#define WHARF_TEXT(x) _Generic((x), wharf_text: wharf_from_text, char *: wharf_from_string, const char *: wharf_from_string)(x)

/* ---- Memory ---- */

extern uint8_t __heap_base;
static uint32_t wharf_heap_top; /* 0: nothing was handed out yet */
static bool wharf_out_of_memory;

/* wharf_allocate returns memory for the time of this call, or 0 where there is no
 * more. Then whatever the handler answers is a failure, so that no guard lets
 * pass what it had no room to read. */
WHARF_FN void *wharf_allocate(uint32_t length)
{
	if (!wharf_heap_top)
		wharf_heap_top = (uint32_t)&__heap_base;
	uint64_t at = ((uint64_t)wharf_heap_top + 7) & ~7ull, end = at + length;
	uint64_t have = (uint64_t)__builtin_wasm_memory_size(0) << 16;
	if (end > UINT32_MAX || (end > have && __builtin_wasm_memory_grow(0, (uint32_t)((end - have + 0xffff) >> 16)) == (unsigned long)-1)) {
		wharf_out_of_memory = true;
		return 0;
	}
	wharf_heap_top = (uint32_t)end;
	return (void *)(uint32_t)at;
}

#define WHARF_EXPORT(name) __attribute__((export_name(name)))

WHARF_EXPORT("wharf_v1_alloc") uint32_t wharf_v1_alloc(uint32_t length)
{
	wharf_heap_top = 0;
	wharf_out_of_memory = false;
	return (uint32_t)wharf_allocate(length ? length : 1);
}

/* ---- Texts ---- */

WHARF_FN bool wharf_equal_(wharf_text a, wharf_text b)
{
	uint32_t i = 0;
	while (i < a.length && i < b.length && a.at[i] == b.at[i])
		i++;
	return i == a.length && i == b.length;
}

WHARF_FN bool wharf_is_(wharf_text t, const char *word)
{
	uint32_t i = 0;
	while (i < t.length && word[i] && t.at[i] == (uint8_t)word[i])
		i++;
	return i == t.length && !word[i];
}

WHARF_FN bool wharf_starts_(wharf_text t, wharf_text part)
{
	return t.length >= part.length && wharf_equal_((wharf_text){t.at, part.length}, part);
}

WHARF_FN bool wharf_contains_(wharf_text t, wharf_text part)
{
	for (; t.length >= part.length; t.at++, t.length--) {
		if (wharf_starts_(t, part))
			return true;
		if (!t.length)
			break;
	}
	return false;
}

/* Whether two texts are the same, one begins with another, one holds another. */
#define wharf_equal(a, b) _Generic((b), wharf_text: wharf_equal_, char *: wharf_is_, const char *: wharf_is_)(WHARF_TEXT(a), b)
#define wharf_starts(text, part) wharf_starts_(WHARF_TEXT(text), WHARF_TEXT(part))
#define wharf_contains(text, part) wharf_contains_(WHARF_TEXT(text), WHARF_TEXT(part))

/* ---- Writing ---- */

/* wharf_out is a text that is being written. Begin with {0}. */
typedef struct wharf_out {
	uint8_t *at;
	uint32_t length, room;
	bool failed; /* there was no memory for all of it */
} wharf_out;

WHARF_FN bool wharf_grow(wharf_out *o, uint32_t more)
{
	if (o->failed || o->length + (uint64_t)more > UINT32_MAX / 2)
		return !(o->failed = true);
	if (o->room - o->length >= more)
		return true;
	uint32_t room = (o->length + more) * 2 < 256 ? 256 : (o->length + more) * 2;
	if (o->at && (uint32_t)o->at + o->room == wharf_heap_top) { /* nothing came behind it: it grows where it is */
		wharf_heap_top = (uint32_t)o->at;
		o->failed = !wharf_allocate(room);
	} else {
		uint8_t *to = wharf_allocate(room);
		if (to && o->length)
			__builtin_memcpy(to, o->at, o->length);
		o->failed = !to;
		o->at = to;
	}
	o->room = room;
	return !o->failed;
}

WHARF_FN void wharf_put_byte(wharf_out *o, uint8_t c)
{
	if (wharf_grow(o, 1))
		o->at[o->length++] = c;
}

WHARF_FN void wharf_put_(wharf_out *o, wharf_text t)
{
	if (!wharf_grow(o, t.length))
		return;
	if (t.length)
		__builtin_memcpy(o->at + o->length, t.at, t.length);
	o->length += t.length;
}

/* wharf_rune_length returns the length of the UTF-8 character at the beginning of
 * a text, or 0 if there is none. */
WHARF_FN uint32_t wharf_rune_length(wharf_text t)
{
	uint8_t c = t.at[0], d = t.length > 1 ? t.at[1] : 0;
	uint32_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
	if (n > t.length || (c == 0xe0 && d < 0xa0) || (c == 0xed && d > 0x9f) || (c == 0xf0 && d < 0x90) || (c == 0xf4 && d > 0x8f))
		return 0;
	for (uint32_t i = 1; i < n; i++)
		if ((t.at[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* wharf_put_character writes the beginning of a text as part of a JSON string,
 * and returns how many bytes that was. What is no UTF-8 becomes U+FFFD. */
WHARF_FN uint32_t wharf_put_character(wharf_out *o, wharf_text t)
{
	static const char hex[] = "0123456789abcdef";
	uint8_t c = t.at[0];
	uint32_t n = wharf_rune_length(t);
	if (c < 0x20) {
		wharf_put_(o, wharf_from_string("\\u00"));
		wharf_put_byte(o, (uint8_t)hex[c >> 4]);
		wharf_put_byte(o, (uint8_t)hex[c & 15]);
	} else if (!n) {
		wharf_put_(o, wharf_from_string("\xef\xbf\xbd"));
	} else {
		if (c == '"' || c == '\\')
			wharf_put_byte(o, '\\');
		wharf_put_(o, (wharf_text){t.at, n});
	}
	return n ? n : 1;
}

WHARF_FN void wharf_put_string_(wharf_out *o, wharf_text t)
{
	wharf_put_byte(o, '"');
	for (uint32_t n; t.length; t.at += n, t.length -= n)
		n = wharf_put_character(o, t);
	wharf_put_byte(o, '"');
}

/* wharf_put writes a text as it is, wharf_put_string as a JSON string with its quotes. */
#define wharf_put(out, text) wharf_put_(out, WHARF_TEXT(text))
#define wharf_put_string(out, text) wharf_put_string_(out, WHARF_TEXT(text))

/* wharf_put_integer writes a number. */
WHARF_FN void wharf_put_integer(wharf_out *o, int64_t n)
{
	uint8_t digits[20], *at = digits + sizeof digits;
	uint64_t rest = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
	do
		*--at = (uint8_t)('0' + rest % 10);
	while (rest /= 10);
	if (n < 0)
		wharf_put_byte(o, '-');
	wharf_put_(o, (wharf_text){at, (uint32_t)(digits + sizeof digits - at)});
}

/* wharf_written returns what was written; it is absent if there was no memory for it. */
WHARF_FN wharf_text wharf_written(const wharf_out *o)
{
	return o->failed ? (wharf_text){0} : (wharf_text){o->at ? o->at : (const uint8_t *)"", o->length};
}

/* wharf_string returns a text as a JSON string. */
WHARF_FN wharf_text wharf_string_(wharf_text t)
{
	wharf_out o = {0};
	wharf_put_string_(&o, t);
	return wharf_written(&o);
}
#define wharf_string(text) wharf_string_(WHARF_TEXT(text))

/* ---- Reading JSON: the fields that one asks for, and nothing else ---- */

WHARF_FN void wharf_skip_blank(wharf_json *j)
{
	while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
		j->at++;
}

/* wharf_skip_string moves behind the string at j, or to the end of the text. */
WHARF_FN void wharf_skip_string(wharf_json *j)
{
	for (j->at++; j->at < j->end && *j->at != '"'; j->at++)
		if (*j->at == '\\' && j->end - j->at > 1)
			j->at++;
	if (j->at < j->end)
		j->at++;
}

/* wharf_skip_value moves behind the value at j, or to the end of the text. */
WHARF_FN void wharf_skip_value(wharf_json *j)
{
	uint32_t depth = 0;
	do {
		wharf_skip_blank(j);
		if (j->at >= j->end)
			return;
		uint8_t c = *j->at;
		if (c == '"') {
			wharf_skip_string(j);
		} else if (c == '{' || c == '[') {
			depth++;
			j->at++;
		} else if (c == '}' || c == ']') {
			depth -= depth > 0;
			j->at++;
		} else {
			j->at++;
			while (!depth && j->at < j->end && *j->at != ',' && *j->at != '}' && *j->at != ']')
				j->at++;
		}
	} while (depth);
}

/* wharf_next reads a list or an object item by item:
 *
 *	for (wharf_json rest = list, item; wharf_next(&rest, &item);)
 *
 * Of an object it gives the keys and the values in turn. */
WHARF_FN bool wharf_next(wharf_json *rest, wharf_json *item)
{
	wharf_skip_blank(rest);
	if (rest->at >= rest->end || !rest->at)
		return false;
	uint8_t c = *rest->at;
	if (c != '[' && c != '{' && c != ',' && c != ':')
		return false;
	rest->at++;
	wharf_skip_blank(rest);
	if (rest->at >= rest->end || *rest->at == ']' || *rest->at == '}')
		return false;
	item->at = rest->at;
	wharf_skip_value(rest);
	item->end = rest->at;
	while (item->end > item->at && (item->end[-1] == ' ' || item->end[-1] == '\t' || item->end[-1] == '\n' || item->end[-1] == '\r'))
		item->end--;
	return true;
}

WHARF_FN uint32_t wharf_hex4(const uint8_t *at)
{
	uint32_t v = 0;
	for (int i = 0; i < 4; i++)
		v = v << 4 | (uint32_t)(at[i] <= '9' ? at[i] - '0' : (at[i] | 0x20) - 'a' + 10);
	return v;
}

WHARF_FN uint8_t *wharf_put_rune(uint8_t *to, uint32_t c)
{
	if (c < 0x80) {
		*to++ = (uint8_t)c;
		return to;
	}
	if (c < 0x800) {
		*to++ = (uint8_t)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		*to++ = (uint8_t)(0xe0 | c >> 12);
		*to++ = (uint8_t)(0x80 | (c >> 6 & 63));
	} else {
		*to++ = (uint8_t)(0xf0 | c >> 18);
		*to++ = (uint8_t)(0x80 | (c >> 12 & 63));
		*to++ = (uint8_t)(0x80 | (c >> 6 & 63));
	}
	*to++ = (uint8_t)(0x80 | (c & 63));
	return to;
}

/* wharf_unescape decodes the escape behind a backslash at *at. Half a pair of
 * surrogates is U+FFFD. */
WHARF_FN uint8_t *wharf_unescape(uint8_t *to, const uint8_t **at, const uint8_t *end)
{
	uint32_t c = *(*at)++;
	if (c != 'u' || end - *at < 4) {
		*to++ = (uint8_t)(c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 'b' ? '\b' : c == 'f' ? '\f' : c);
		return to;
	}
	c = wharf_hex4(*at);
	*at += 4;
	if (c >= 0xd800 && c < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
		uint32_t low = wharf_hex4(*at + 2);
		if (low >= 0xdc00 && low < 0xe000) {
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
			*at += 6;
		}
	}
	return wharf_put_rune(to, (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? 0xfffd : c);
}

/* wharf_as_text returns a string, decoded. It is absent if the value is none. */
WHARF_FN wharf_text wharf_as_text(wharf_json j)
{
	if (j.end - j.at < 2 || j.at[0] != '"' || j.end[-1] != '"')
		return (wharf_text){0};
	const uint8_t *at = j.at + 1, *end = j.end - 1;
	wharf_text t = {at, (uint32_t)(end - at)};
	uint32_t i = 0;
	while (i < t.length && t.at[i] != '\\')
		i++;
	if (i == t.length)
		return t; /* most strings stand there as they are */
	uint8_t *copy = wharf_allocate(t.length), *to = copy;
	if (!copy)
		return (wharf_text){0};
	while (at < end) {
		if (*at != '\\' || end - at < 2) {
			*to++ = *at++;
			continue;
		}
		at++;
		to = wharf_unescape(to, &at, end);
	}
	return (wharf_text){copy, (uint32_t)(to - copy)};
}

/* wharf_find reads the values of some keys of an object, in one pass. Of a key
 * that is there twice it takes the last, as most readers of JSON do; a key's
 * escapes hide nothing. */
WHARF_FN void wharf_find(wharf_json object, const char *const *keys, wharf_json *values, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		values[i] = (wharf_json){0};
	wharf_skip_blank(&object);
	if (object.at >= object.end || *object.at != '{')
		return;
	for (wharf_json key, value; wharf_next(&object, &key) && wharf_next(&object, &value);) {
		uint32_t mark = wharf_heap_top;
		wharf_text name = wharf_as_text(key);
		for (uint32_t i = 0; i < count; i++)
			if (wharf_is_(name, keys[i]))
				values[i] = value;
		wharf_heap_top = mark;
	}
}

/* wharf_get returns the value of a key, absent if the object has no such key. */
WHARF_FN wharf_json wharf_get(wharf_json object, const char *key)
{
	wharf_json value;
	wharf_find(object, &key, &value, 1);
	return value;
}

/* wharf_raw returns the JSON of a value. */
WHARF_FN wharf_text wharf_raw(wharf_json j) { return (wharf_text){j.at, (uint32_t)(j.end - j.at)}; }

/* wharf_parse takes a text as JSON. The host checks what it hands out and what
 * it is given; other text is read as far as it goes. */
WHARF_FN wharf_json wharf_parse_(wharf_text t) { return (wharf_json){t.at, t.at + t.length}; }
#define wharf_parse(text) wharf_parse_(WHARF_TEXT(text))

/* wharf_is_null tells whether a value is null or absent. */
WHARF_FN bool wharf_is_null(wharf_json j) { return !j.at || wharf_is_(wharf_raw(j), "null"); }

/* wharf_as_bool tells whether a value is true. */
WHARF_FN bool wharf_as_bool(wharf_json j) { return wharf_is_(wharf_raw(j), "true"); }

/* wharf_as_number returns a number to some 15 digits; 0 if the value is none. */
WHARF_FN double wharf_as_number(wharf_json j)
{
	bool minus = j.at < j.end && *j.at == '-', fraction = false;
	uint64_t digits = 0;
	int32_t power = 0, e = 0;
	for (j.at += minus; j.at < j.end && ((*j.at >= '0' && *j.at <= '9') || *j.at == '.'); j.at++) {
		if (*j.at == '.') {
			fraction = true;
		} else if (digits < 100000000000000000ull) {
			digits = digits * 10 + (*j.at - '0');
			power -= fraction;
		} else {
			power += !fraction;
		}
	}
	if (j.end - j.at > 1 && (*j.at | 0x20) == 'e') {
		bool less = *++j.at == '-';
		for (j.at += *j.at == '-' || *j.at == '+'; j.at < j.end && *j.at >= '0' && *j.at <= '9'; j.at++)
			e = e > 99999 ? e : e * 10 + (*j.at - '0');
		power += less ? -e : e;
	}
	double v = (double)digits;
	for (; power > 0 && v > 0 && v < __builtin_inf(); power--)
		v *= 10;
	for (; power < 0 && v > 0; power++)
		v /= 10;
	return minus ? -v : v;
}

/* wharf_as_integer returns a whole number; 0 if the value is none, and the
 * nearest that there is if it is too large. */
WHARF_FN int64_t wharf_as_integer(wharf_json j)
{
	bool minus = j.at < j.end && *j.at == '-';
	uint64_t v = 0;
	const uint8_t *at = j.at + minus;
	for (; at < j.end && *at >= '0' && *at <= '9' && v <= INT64_MAX; at++)
		v = v > INT64_MAX / 10 ? UINT64_MAX : v * 10 + (*at - '0');
	if (at < j.end && (*at == '.' || (*at | 0x20) == 'e')) {
		double d = wharf_as_number(j);
		return d >= 9223372036854775807.0 ? INT64_MAX : d <= -9223372036854775808.0 ? INT64_MIN : (int64_t)d;
	}
	if (v > INT64_MAX)
		return minus ? INT64_MIN : INT64_MAX;
	return minus ? -(int64_t)v : (int64_t)v;
}

/* ---- Verdicts: what a hook answers ---- */

/* wharf_verdict is an answer. {0} is no opinion; absent texts are left out. */
typedef struct wharf_verdict {
	const char *decision; /* allow, deny, ask, block, continue, retry or fail, where the point takes it */
	wharf_text reason;    /* reaches the model */
	wharf_text replace;   /* a JSON object */
	wharf_text context;   /* the model is told */
	wharf_text message;   /* with continue: what the model goes on with */
	wharf_text error;     /* the hook failed */
	wharf_text answer;    /* the whole answer in JSON: it stands for all the others */
} wharf_verdict;

#define WHARF_NO_OPINION ((wharf_verdict){0})

/* wharf_member returns a JSON object with one key. */
WHARF_FN wharf_text wharf_member(const char *key, wharf_text value)
{
	wharf_out o = {0};
	wharf_put(&o, "{\"");
	wharf_put(&o, key);
	wharf_put(&o, "\":");
	wharf_put(&o, value);
	wharf_put(&o, "}");
	return wharf_written(&o);
}

/* wharf_decide answers a decision with its reason. */
#define wharf_decide(word, why) ((wharf_verdict){.decision = (word), .reason = WHARF_TEXT(why)})
/* Allow skips a question to the user only where the user granted approve. */
#define wharf_allow(reason) wharf_decide("allow", reason)
/* Deny refuses a tool call, ask has the user asked about it. */
#define wharf_deny(reason) wharf_decide("deny", reason)
#define wharf_ask(reason) wharf_decide("ask", reason)
/* Block stops a prompt, or gives the model reason in the place of a result. */
#define wharf_block(reason) wharf_decide("block", reason)
/* Retry has a request that failed sent again, give up has it not. */
#define wharf_retry(reason) wharf_decide("retry", reason)
#define wharf_give_up(reason) wharf_decide("fail", reason)
/* Continue has the model go on with a message where a turn is about to end. */
#define wharf_continue(text) ((wharf_verdict){.decision = "continue", .message = WHARF_TEXT(text)})
/* Add context tells the model something besides. */
#define wharf_add_context(text) ((wharf_verdict){.context = WHARF_TEXT(text)})
/* Fail says that the hook could not judge; what follows is the manifest's on_failure. */
#define wharf_fail(text) ((wharf_verdict){.error = WHARF_TEXT(text)})

/* wharf_replace puts a value, in JSON, in the place of what the key names. */
#define wharf_replace(key, json) ((wharf_verdict){.replace = wharf_member(key, WHARF_TEXT(json))})
/* Another prompt or final answer; other content of a result. */
#define wharf_replace_text(text) wharf_replace("text", wharf_string(text))
#define wharf_replace_content(text) wharf_replace("content", wharf_string(text))
/* Other arguments or parameters: a JSON object. */
#define wharf_replace_arguments(json) wharf_replace("arguments", json)
#define wharf_replace_parameters(json) wharf_replace("parameters", json)
/* Tools that are left out of a request: a JSON list of names. */
#define wharf_hide_tools(json) wharf_replace("hide_tools", json)
/* An answer in the tool's place, or in the model's. */
#define wharf_answer_in_place(text) wharf_replace("result", wharf_member("content", wharf_string(text)))
#define wharf_answer_for_model(text) wharf_replace("response", wharf_member("text", wharf_string(text)))

/* wharf_pack returns what a handler gives back to the host. */
WHARF_FN uint64_t wharf_pack(wharf_text t) { return t.length ? (uint64_t)(uint32_t)t.at << 32 | t.length : 0; }

/* wharf_put_key writes a key of an object that has been begun by {. */
WHARF_FN void wharf_put_key(wharf_out *o, const char *key)
{
	if (o->length > 1)
		wharf_put_byte(o, ',');
	wharf_put_byte(o, '"');
	wharf_put(o, key);
	wharf_put(o, "\":");
}

WHARF_FN void wharf_put_member(wharf_out *o, const char *key, wharf_text value)
{
	if (!value.at)
		return;
	wharf_put_key(o, key);
	wharf_put_string_(o, value);
}

/* wharf_finish ends an object and packs it. */
WHARF_FN uint64_t wharf_finish(wharf_out *o)
{
	wharf_put_byte(o, '}');
	return wharf_pack(wharf_out_of_memory ? wharf_from_string("{\"error\":\"out of memory\"}") : wharf_written(o));
}

/* wharf_answer encodes a verdict. */
WHARF_FN uint64_t wharf_answer(wharf_verdict v)
{
	if (v.answer.at && !wharf_out_of_memory)
		return wharf_pack(v.answer);
	if (!wharf_out_of_memory && !v.decision && !v.reason.at && !v.replace.at && !v.context.at && !v.message.at && !v.error.at)
		return 0;
	wharf_out o = {0};
	wharf_put_byte(&o, '{');
	wharf_put_member(&o, "decision", wharf_from_string(v.decision));
	wharf_put_member(&o, "reason", v.reason);
	if (v.replace.at) {
		wharf_put_key(&o, "replace");
		wharf_put_(&o, v.replace);
	}
	wharf_put_member(&o, "context", v.context);
	wharf_put_member(&o, "message", v.message);
	wharf_put_member(&o, "error", v.error);
	return wharf_finish(&o);
}

/* ---- The host: what it does for a guest ---- */

#define WHARF_IMPORT(name) __attribute__((import_module("wharf_v1"), import_name(name)))
WHARF_IMPORT("call") uint64_t wharf_v1_call(const uint8_t *op, uint32_t op_length, const uint8_t *request, uint32_t request_length);
WHARF_IMPORT("read") void wharf_v1_read(uint8_t *to);
WHARF_IMPORT("log") void wharf_v1_log(uint32_t level, const uint8_t *text, uint32_t length);

/* How grave a line of the log is. */
enum wharf_level { WHARF_DEBUG, WHARF_INFO, WHARF_WARNING, WHARF_ERROR };

WHARF_FN void wharf_log_(enum wharf_level level, wharf_text t) { wharf_v1_log(level, t.at, t.length); }

/* wharf_log writes a line to the session's log. */
#define wharf_log(level, text) wharf_log_(level, WHARF_TEXT(text))

/* How an operation ended. But for WHARF_OK, wharf_last_error says more. */
enum wharf_status {
	WHARF_OK,
	WHARF_NOT_GRANTED, /* or granted and then refused: the code is DENIED */
	WHARF_BAD_REQUEST,
	WHARF_FAILED,
	WHARF_OVER_LIMIT,
	WHARF_UNKNOWN_OPERATION,
	WHARF_NO_MEMORY, /* the guest's own is used up */
};

/* wharf_last_error is the code and message of the last operation that did not
 * end as WHARF_OK. The message says what to do. */
static struct {
	wharf_text code, message;
} wharf_last_error;

/* wharf_operate runs a host operation by its name: request and response are as
 * ABI.md has them. The functions below do so for those that there are. */
WHARF_FN enum wharf_status wharf_operate(const char *op, wharf_text request, wharf_json *response)
{
	uint64_t result = wharf_v1_call((const uint8_t *)op, wharf_from_string(op).length, request.at, request.length);
	uint32_t length = (uint32_t)result;
	uint8_t *to = wharf_allocate(length);
	*response = (wharf_json){to, to + length};
	if (!to) {
		wharf_last_error.code = wharf_from_string("NO_MEMORY");
		wharf_last_error.message = wharf_from_string("there is no memory for what the host answers");
		return WHARF_NO_MEMORY;
	}
	wharf_v1_read(to);
	if (result >> 32) {
		wharf_last_error.code = wharf_as_text(wharf_get(*response, "code"));
		wharf_last_error.message = wharf_as_text(wharf_get(*response, "message"));
	}
	return (enum wharf_status)(result >> 32);
}

/* wharf_request begins a request with one text, if its key is not 0. */
WHARF_FN wharf_out wharf_request(const char *key, wharf_text value)
{
	wharf_out o = {0};
	wharf_put_byte(&o, '{');
	if (key) {
		wharf_put_key(&o, key);
		wharf_put_string_(&o, value);
	}
	return o;
}

WHARF_FN void wharf_put_number_member(wharf_out *o, const char *key, int64_t n)
{
	wharf_put_key(o, key);
	wharf_put_integer(o, n);
}

/* wharf_send ends a request and runs the operation. */
WHARF_FN enum wharf_status wharf_send(const char *op, wharf_out *o, wharf_json *response)
{
	wharf_put_byte(o, '}');
	return wharf_operate(op, wharf_written(o), response);
}

WHARF_FN enum wharf_status wharf_get_value(const char *op, const char *key, wharf_text name, wharf_json *value)
{
	wharf_out o = wharf_request(key, name);
	wharf_json response;
	enum wharf_status status = wharf_send(op, &o, &response);
	*value = status ? (wharf_json){0} : wharf_get(response, "value");
	if (wharf_is_null(*value))
		*value = (wharf_json){0};
	return status;
}

/* wharf_config reads a value of the user's configuration, from
 * [extensions.NAME.config]; absent if there is none. */
#define wharf_config(name, value) wharf_get_value("config.get", "key", WHARF_TEXT(name), value)

/* wharf_kv_get reads what wharf_kv_set kept; absent if there is nothing. The
 * manifest must ask for kv, and the user grant it. */
#define wharf_kv_get(key, value) wharf_get_value("kv.get", "key", WHARF_TEXT(key), value)

WHARF_FN enum wharf_status wharf_kv_set_(wharf_text key, wharf_text json)
{
	wharf_out o = wharf_request("key", key);
	wharf_json response;
	wharf_put_key(&o, "value");
	wharf_put_(&o, json);
	return wharf_send("kv.set", &o, &response);
}

/* wharf_kv_set keeps a value, in JSON, for this and later sessions. */
#define wharf_kv_set(key, json) wharf_kv_set_(WHARF_TEXT(key), WHARF_TEXT(json))

WHARF_FN enum wharf_status wharf_kv_delete_(wharf_text key)
{
	wharf_out o = wharf_request("key", key);
	wharf_json response;
	return wharf_send("kv.delete", &o, &response);
}

/* wharf_kv_delete takes a key away; it is no error if there was none. */
#define wharf_kv_delete(key) wharf_kv_delete_(WHARF_TEXT(key))

/* wharf_get_list runs an operation with one text, and returns a list of its response. */
WHARF_FN enum wharf_status wharf_get_list(const char *op, const char *key, wharf_text name, const char *what, wharf_json *list)
{
	wharf_out o = wharf_request(key, name);
	wharf_json response;
	enum wharf_status status = wharf_send(op, &o, &response);
	*list = status ? (wharf_json){0} : wharf_get(response, what);
	return status;
}

/* wharf_kv_list gives the keys that begin with a prefix, sorted: a list of texts. */
#define wharf_kv_list(prefix, keys) wharf_get_list("kv.list", "prefix", WHARF_TEXT(prefix), "keys", keys)

WHARF_FN void wharf_put_base64(wharf_out *o, wharf_text t)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (uint32_t i = 0; i < t.length; i += 3) {
		uint32_t left = t.length - i, v = (uint32_t)t.at[i] << 16;
		v |= (left > 1 ? (uint32_t)t.at[i + 1] << 8 : 0) | (left > 2 ? t.at[i + 2] : 0);
		wharf_put_byte(o, (uint8_t)digits[v >> 18]);
		wharf_put_byte(o, (uint8_t)digits[v >> 12 & 63]);
		wharf_put_byte(o, left > 1 ? (uint8_t)digits[v >> 6 & 63] : '=');
		wharf_put_byte(o, left > 2 ? (uint8_t)digits[v & 63] : '=');
	}
}

WHARF_FN wharf_text wharf_from_base64(wharf_text t)
{
	wharf_out o = {0};
	uint32_t v = 0, bits = 0;
	for (uint32_t i = 0; i < t.length && t.at[i] != '='; i++) {
		uint8_t c = t.at[i];
		v = v << 6 | (uint32_t)(c == '+' ? 62 : c == '/' ? 63 : c < 'A' ? c - '0' + 52 : c < 'a' ? c - 'A' : c - 'a' + 26);
		if ((bits += 6) >= 8)
			wharf_put_byte(&o, (uint8_t)(v >> (bits -= 8)));
	}
	return wharf_written(&o);
}

/* wharf_bytes reads bytes that stand as a text under one key, or else as base64
 * under another. */
WHARF_FN wharf_text wharf_bytes(wharf_json response, const char *text, const char *base64)
{
	wharf_json encoded = wharf_get(response, base64);
	return encoded.at ? wharf_from_base64(wharf_as_text(encoded)) : wharf_as_text(wharf_get(response, text));
}

/* wharf_http_request is a request that the host makes. Leave out what is not needed. */
struct wharf_http_request {
	const char *method; /* GET if absent */
	wharf_text url;
	wharf_text headers; /* a JSON object of texts */
	wharf_text body;
	wharf_text secrets; /* a JSON list of the names of secrets that the manifest binds to the URL's host */
};

/* wharf_http_response is what came of it. */
struct wharf_http_response {
	int64_t status;
	wharf_json headers; /* an object of texts, by name in lower case */
	wharf_text body;
	wharf_text url; /* of the last hop, where there were redirects */
};

/* wharf_http makes a request. The manifest must ask for http, and the user grant
 * it; a status such as 404 is no error. */
WHARF_FN enum wharf_status wharf_http(struct wharf_http_request r, struct wharf_http_response *out)
{
	wharf_out o = wharf_request("url", r.url);
	wharf_json response;
	wharf_put_member(&o, "method", wharf_from_string(r.method ? r.method : "GET"));
	if (r.headers.at) {
		wharf_put_key(&o, "headers");
		wharf_put_(&o, r.headers);
	}
	if (r.secrets.at) {
		wharf_put_key(&o, "secrets");
		wharf_put_(&o, r.secrets);
	}
	if (r.body.length) {
		wharf_put_key(&o, "body_base64");
		wharf_put_byte(&o, '"');
		wharf_put_base64(&o, r.body);
		wharf_put_byte(&o, '"');
	}
	enum wharf_status status = wharf_send("http.fetch", &o, &response);
	if (status)
		return *out = (struct wharf_http_response){0}, status;
	*out = (struct wharf_http_response){
		wharf_as_integer(wharf_get(response, "status")), wharf_get(response, "headers"),
		wharf_bytes(response, "body", "body_base64"), wharf_as_text(wharf_get(response, "url"))};
	return status;
}

WHARF_FN enum wharf_status wharf_read_file_at_(wharf_text path, int64_t offset, int64_t limit, wharf_text *part, int64_t *size)
{
	wharf_out o = wharf_request("path", path);
	wharf_json response;
	wharf_put_number_member(&o, "offset", offset);
	wharf_put_number_member(&o, "limit", limit);
	enum wharf_status status = wharf_send("fs.read", &o, &response);
	*part = status ? (wharf_text){0} : wharf_bytes(response, "content", "content_base64");
	*size = status ? 0 : wharf_as_integer(wharf_get(response, "size"));
	return status;
}

/* wharf_read_file_at reads up to limit bytes of a file, 0 for as many as one call
 * gives, and tells how large the file is. Paths are relative to the workspace,
 * here and below; the manifest must ask for fs, and the user grant it. */
#define wharf_read_file_at(path, offset, limit, part, size) wharf_read_file_at_(WHARF_TEXT(path), offset, limit, part, size)

WHARF_FN enum wharf_status wharf_read_file_(wharf_text path, wharf_text *content)
{
	wharf_out all = {0};
	wharf_text part;
	int64_t size;
	do {
		enum wharf_status status = wharf_read_file_at_(path, all.length, 0, &part, &size);
		*content = (wharf_text){0};
		if (status)
			return status;
		wharf_put_(&all, part);
	} while (part.length && all.length < size && !all.failed);
	*content = wharf_written(&all);
	return all.failed ? WHARF_NO_MEMORY : WHARF_OK;
}

/* wharf_read_file reads a file whole. */
#define wharf_read_file(path, content) wharf_read_file_(WHARF_TEXT(path), content)

/* wharf_list_dir lists a folder, sorted: objects with name and kind, which is file,
 * folder, link or other. */
#define wharf_list_dir(path, entries) wharf_get_list("fs.list", "path", WHARF_TEXT(path), "entries", entries)

/* wharf_file_info describes a file or folder. */
struct wharf_file_info {
	int64_t size;
	wharf_text mode;  /* such as -rw-r--r-- */
	wharf_text mtime; /* such as 2026-11-30T09:00:00Z */
};

WHARF_FN enum wharf_status wharf_stat_file_(wharf_text path, struct wharf_file_info *out)
{
	wharf_out o = wharf_request("path", path);
	wharf_json response;
	enum wharf_status status = wharf_send("fs.stat", &o, &response);
	if (status)
		return *out = (struct wharf_file_info){0}, status;
	*out = (struct wharf_file_info){
		wharf_as_integer(wharf_get(response, "size")), wharf_as_text(wharf_get(response, "mode")), wharf_as_text(wharf_get(response, "mtime"))};
	return status;
}

/* wharf_stat_file describes what a path leads to. */
#define wharf_stat_file(path, info) wharf_stat_file_(WHARF_TEXT(path), info)

WHARF_FN enum wharf_status wharf_write_file_(wharf_text path, wharf_text content)
{
	wharf_out o = wharf_request("path", path);
	wharf_json response;
	wharf_put_key(&o, "content");
	wharf_put_string_(&o, content);
	return wharf_send("fs.write", &o, &response);
}

/* wharf_write_file puts a text in the place of a file, whole or not at all, and
 * makes the folders above it. */
#define wharf_write_file(path, content) wharf_write_file_(WHARF_TEXT(path), WHARF_TEXT(content))

/* wharf_tool_result is the result of a tool call. */
struct wharf_tool_result {
	wharf_text content;
	bool is_error;
	wharf_text code;
};

WHARF_FN struct wharf_tool_result wharf_as_tool_result(wharf_json j)
{
	return (struct wharf_tool_result){
		wharf_as_text(wharf_get(j, "content")), wharf_as_bool(wharf_get(j, "is_error")), wharf_as_text(wharf_get(j, "code"))};
}

WHARF_FN enum wharf_status wharf_call_tool_(wharf_text name, wharf_text arguments, struct wharf_tool_result *out)
{
	wharf_out o = wharf_request("name", name);
	wharf_json response;
	wharf_put_key(&o, "arguments");
	wharf_put_(&o, arguments);
	enum wharf_status status = wharf_send("tool.call", &o, &response);
	*out = status ? (struct wharf_tool_result){0} : wharf_as_tool_result(response);
	return status;
}

/* wharf_call_tool calls a tool of the session with arguments, a JSON object. It is
 * judged like a call of the model's. A failure of the tool's own is a result with
 * is_error. The manifest must ask for the tool under tools, and the user grant it. */
#define wharf_call_tool(name, arguments, result) wharf_call_tool_(WHARF_TEXT(name), WHARF_TEXT(arguments), result)

/* wharf_output is how a command ended. */
struct wharf_output {
	int64_t exit; /* 0 if it did what it should */
	wharf_text out, err;
};

WHARF_FN enum wharf_status wharf_exec_(wharf_text command, int64_t timeout_ms, struct wharf_output *out)
{
	wharf_out o = wharf_request("command", command);
	wharf_json response;
	wharf_put_number_member(&o, "timeout_ms", timeout_ms);
	enum wharf_status status = wharf_send("exec.run", &o, &response);
	if (status)
		return *out = (struct wharf_output){0}, status;
	*out = (struct wharf_output){
		wharf_as_integer(wharf_get(response, "exit")), wharf_as_text(wharf_get(response, "stdout")), wharf_as_text(wharf_get(response, "stderr"))};
	return status;
}

/* wharf_exec runs one simple command in the session's sandbox: no pipes, variables or
 * globs. 0 for timeout_ms is the limit of the tool exec. The manifest must ask for
 * exec, and the user grant it. */
#define wharf_exec(command, timeout_ms, output) wharf_exec_(WHARF_TEXT(command), timeout_ms, output)

/* wharf_session describes the session that a guest runs in. */
struct wharf_session {
	wharf_text id, cwd, model;
	int64_t turn;
};

/* wharf_session_info describes the session. The manifest must ask for session,
 * and the user grant it. */
WHARF_FN enum wharf_status wharf_session_info(struct wharf_session *out)
{
	wharf_out o = wharf_request(0, (wharf_text){0});
	wharf_json response;
	enum wharf_status status = wharf_send("session.info", &o, &response);
	if (status)
		return *out = (struct wharf_session){0}, status;
	*out = (struct wharf_session){
		wharf_as_text(wharf_get(response, "id")), wharf_as_text(wharf_get(response, "cwd")), wharf_as_text(wharf_get(response, "model")),
		wharf_as_integer(wharf_get(response, "turn"))};
	return status;
}

/* wharf_messages gives the last messages of the session, 0 for all, the oldest first:
 * objects with role (user, assistant or tool), content, and perhaps calls, call_id
 * and is_error. Where there is no room for so many, there are fewer. */
WHARF_FN enum wharf_status wharf_messages(int64_t last, wharf_json *messages)
{
	wharf_out o = wharf_request(0, (wharf_text){0});
	wharf_json response;
	wharf_put_number_member(&o, "last", last);
	enum wharf_status status = wharf_send("session.messages", &o, &response);
	*messages = status ? (wharf_json){0} : wharf_get(response, "messages");
	return status;
}

/* wharf_usage counts tokens. */
struct wharf_usage {
	int64_t input_tokens, output_tokens;
	int64_t cache_read_input_tokens; /* the part of input_tokens that came out of a cache */
	int64_t reasoning_tokens;        /* the part of output_tokens that was reasoning */
};

WHARF_FN struct wharf_usage wharf_as_usage(wharf_json j)
{
	return (struct wharf_usage){
		wharf_as_integer(wharf_get(j, "input_tokens")), wharf_as_integer(wharf_get(j, "output_tokens")),
		wharf_as_integer(wharf_get(j, "cache_read_input_tokens")), wharf_as_integer(wharf_get(j, "reasoning_tokens"))};
}

WHARF_FN enum wharf_status wharf_complete_(wharf_text prompt, int64_t max_tokens, wharf_text *text, struct wharf_usage *usage)
{
	wharf_out o = wharf_request("prompt", prompt);
	wharf_json response;
	wharf_put_number_member(&o, "max_tokens", max_tokens);
	enum wharf_status status = wharf_send("llm.complete", &o, &response);
	*text = status ? (wharf_text){0} : wharf_as_text(wharf_get(response, "text"));
	*usage = status ? (struct wharf_usage){0} : wharf_as_usage(wharf_get(response, "usage"));
	return status;
}

/* wharf_complete asks the session's model one question. max_tokens is of the answer; 0
 * is 1024. The manifest must ask for llm, and the user grant it. */
#define wharf_complete(prompt, max_tokens, text, usage) wharf_complete_(WHARF_TEXT(prompt), max_tokens, text, usage)

WHARF_FN enum wharf_status wharf_env_(wharf_text name, wharf_text *out)
{
	wharf_json value;
	enum wharf_status status = wharf_get_value("env.get", "name", name, &value);
	*out = wharf_as_text(value);
	return status;
}

/* wharf_env reads a variable of Wharf's environment; absent if it is not set. The
 * manifest must ask for it under env, and the user grant it. */
#define wharf_env(name, value) wharf_env_(WHARF_TEXT(name), value)

WHARF_FN enum wharf_status wharf_emit_(wharf_text name, wharf_text json)
{
	wharf_out o = wharf_request("name", name);
	wharf_json response;
	wharf_put_key(&o, "data");
	wharf_put_(&o, json);
	return wharf_send("event.emit", &o, &response);
}

/* wharf_emit writes an event of the extension's own, with data in JSON, to the session's
 * log. The manifest must ask for events, and the user grant it. */
#define wharf_emit(name, json) wharf_emit_(WHARF_TEXT(name), WHARF_TEXT(json))

/* ---- Tools ---- */

/* wharf_result is a tool's result for the model. */
typedef struct wharf_result {
	wharf_text content;
	wharf_text blocks;     /* in its place: a JSON list of MCP content blocks */
	wharf_text structured; /* JSON for programs; the content where there is none */
	bool is_error;         /* the call failed, and content says why */
	wharf_text error;      /* the tool's own failure */
	wharf_text answer;     /* the whole answer in JSON: it stands for all the others */
} wharf_result;

#define wharf_content(text) ((wharf_result){.content = WHARF_TEXT(text)})
#define wharf_error(text) ((wharf_result){.error = WHARF_TEXT(text)})

/* wharf_tool is a tool by its name in the manifest. Its function is given the
 * arguments, an object that meets the input schema. */
struct wharf_tool {
	const char *name;
	wharf_result (*run)(wharf_json arguments);
};

/* wharf_payload is what the host gave to the handler that is running. */
static wharf_json wharf_payload;

WHARF_FN void wharf_begin(const uint8_t *at, uint32_t length)
{
	if (!length) { /* the host asked for no room */
		wharf_heap_top = 0;
		wharf_out_of_memory = false;
	}
	wharf_payload = (wharf_json){at, at + length};
	wharf_last_error.code = wharf_last_error.message = (wharf_text){0};
}

WHARF_FN uint64_t wharf_encode_result(wharf_result r)
{
	if (r.answer.at && !wharf_out_of_memory)
		return wharf_pack(r.answer);
	wharf_out o = {0};
	wharf_put_byte(&o, '{');
	wharf_put_member(&o, "error", r.error);
	if (r.blocks.at) {
		wharf_put_key(&o, "content");
		wharf_put_(&o, r.blocks);
	} else if (!r.error.at && (r.content.at || !r.structured.at)) {
		wharf_put_key(&o, "content");
		wharf_put_string_(&o, r.content);
	}
	if (r.structured.at) {
		wharf_put_key(&o, "structured");
		wharf_put_(&o, r.structured);
	}
	if (r.is_error) {
		wharf_put_key(&o, "is_error");
		wharf_put(&o, "true");
	}
	return wharf_finish(&o);
}

WHARF_FN uint64_t wharf_dispatch(const struct wharf_tool *tools, uint32_t count)
{
	wharf_text name = wharf_as_text(wharf_get(wharf_payload, "name"));
	for (uint32_t i = 0; i < count; i++)
		if (wharf_equal(name, tools[i].name))
			return wharf_encode_result(tools[i].run(wharf_get(wharf_payload, "arguments")));
	return wharf_encode_result(wharf_error("there is no tool of this name in the code: list it in WHARF_TOOLS"));
}

/* WHARF_TOOLS lists an extension's tools, once: WHARF_TOOLS({"count", count}, {"sum", sum}) */
#define WHARF_TOOLS(...) \
	WHARF_EXPORT("call_tool") uint64_t wharf_export_call_tool(const uint8_t *at, uint32_t length) \
	{ \
		static const struct wharf_tool tools[] = {__VA_ARGS__}; \
		wharf_begin(at, length); \
		return wharf_dispatch(tools, sizeof tools / sizeof *tools); \
	}

/* ---- Hooks ---- */

/* WHARF_HOOK(point, payload) { … } handles a hook point. The payload is the struct
 * wharf_POINT below, or a wharf_text at points with plain text. At points whose
 * answer counts the body returns a wharf_verdict, at the others nothing. */
#define WHARF_HOOK(point, payload) WHARF_KIND_##point(point, payload)

#define WHARF_JUDGES(point, payload) \
	static wharf_verdict wharf_do_##point(struct wharf_##point); \
	WHARF_EXPORT(#point) uint64_t wharf_export_##point(const uint8_t *at, uint32_t length) \
	{ \
		wharf_begin(at, length); \
		return wharf_answer(wharf_do_##point(wharf_read_##point(wharf_payload))); \
	} \
	static wharf_verdict wharf_do_##point(__attribute__((unused)) struct wharf_##point payload)

#define WHARF_WATCHES(point, payload) \
	static void wharf_do_##point(struct wharf_##point); \
	WHARF_EXPORT(#point) uint64_t wharf_export_##point(const uint8_t *at, uint32_t length) \
	{ \
		wharf_begin(at, length); \
		wharf_do_##point(wharf_read_##point(wharf_payload)); \
		return wharf_answer(WHARF_NO_OPINION); \
	} \
	static void wharf_do_##point(__attribute__((unused)) struct wharf_##point payload)

#define WHARF_HEARS(point, payload) \
	static void wharf_do_##point(wharf_text); \
	WHARF_EXPORT(#point) uint64_t wharf_export_##point(const uint8_t *at, uint32_t length) \
	{ \
		wharf_begin(at, length); \
		wharf_do_##point((wharf_text){at, length}); \
		return 0; \
	} \
	static void wharf_do_##point(__attribute__((unused)) wharf_text payload)

/* WHARF_ANY_HOOK(point, payload) { … } handles a point by its name, such as one of a
 * later release. The payload is a wharf_text as the host gave it; the body returns
 * a wharf_verdict. */
#define WHARF_ANY_HOOK(point, payload) \
	static wharf_verdict wharf_do_##point(wharf_text); \
	WHARF_EXPORT(#point) uint64_t wharf_export_##point(const uint8_t *at, uint32_t length) \
	{ \
		wharf_begin(at, length); \
		return wharf_answer(wharf_do_##point((wharf_text){at, length})); \
	} \
	static wharf_verdict wharf_do_##point(__attribute__((unused)) wharf_text payload)

/* wharf_argument returns an argument of a call if it is a text; else it is absent. */
#define wharf_argument(call, name) wharf_as_text(wharf_get((call).arguments, name))

/* wharf_budget is what a turn may use up; 0 is not limited. */
struct wharf_budget {
	int64_t tokens;
	double cost;
	int64_t time_ms;
};

WHARF_FN struct wharf_budget wharf_as_budget(wharf_json j)
{
	return (struct wharf_budget){
		wharf_as_integer(wharf_get(j, "tokens")), wharf_as_number(wharf_get(j, "cost")), wharf_as_integer(wharf_get(j, "time_ms"))};
}

/* wharf_call is one of the calls in a list of them; result is absent before they run. */
struct wharf_call {
	wharf_text call_id, tool;
	wharf_json arguments, result;
};

WHARF_FN struct wharf_call wharf_as_call(wharf_json j)
{
	return (struct wharf_call){
		wharf_as_text(wharf_get(j, "call_id")), wharf_as_text(wharf_get(j, "tool")), wharf_get(j, "arguments"), wharf_get(j, "result")};
}

/* generated: hook points */
/* session_start: a session began or was resumed.
 * It may answer wharf_add_context. */
struct wharf_session_start {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text source; /* new, resume or fork */
};
WHARF_FN struct wharf_session_start wharf_read_session_start(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "source"};
	wharf_json v[4];
	wharf_find(payload, keys, v, 4);
	return (struct wharf_session_start){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
	};
}
#define WHARF_KIND_session_start WHARF_JUDGES

/* user_prompt_submit: a prompt arrived, before the model sees it.
 * It may answer wharf_block, wharf_replace_text, wharf_add_context. */
struct wharf_user_prompt_submit {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text text; /* the prompt */
};
WHARF_FN struct wharf_user_prompt_submit wharf_read_user_prompt_submit(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "text"};
	wharf_json v[4];
	wharf_find(payload, keys, v, 4);
	return (struct wharf_user_prompt_submit){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
	};
}
#define WHARF_KIND_user_prompt_submit WHARF_JUDGES

/* before_run: a turn is about to ask the model for the first time.
 * It may answer wharf_block, wharf_add_context. */
struct wharf_before_run {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text text; /* the prompt */
};
WHARF_FN struct wharf_before_run wharf_read_before_run(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "text"};
	wharf_json v[4];
	wharf_find(payload, keys, v, 4);
	return (struct wharf_before_run){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
	};
}
#define WHARF_KIND_before_run WHARF_JUDGES

/* before_iteration: a step begins.
 * It may answer wharf_block, wharf_add_context. */
struct wharf_before_iteration {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	int64_t steps; /* steps that were taken */
	int64_t max_steps; /* steps that there may be */
	struct wharf_usage usage; /* tokens that the turn used: input_tokens, output_tokens, cache_read_input_tokens, reasoning_tokens */
	double cost; /* what the turn cost so far; 0 where there are no prices */
	struct wharf_budget budget; /* what is limited of tokens, cost and time_ms */
};
WHARF_FN struct wharf_before_iteration wharf_read_before_iteration(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "steps", "max_steps", "usage", "cost", "budget"};
	wharf_json v[8];
	wharf_find(payload, keys, v, 8);
	return (struct wharf_before_iteration){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_integer(v[3]),
		wharf_as_integer(v[4]),
		wharf_as_usage(v[5]),
		wharf_as_number(v[6]),
		wharf_as_budget(v[7]),
	};
}
#define WHARF_KIND_before_iteration WHARF_JUDGES

/* before_request: a request is about to be sent to the model.
 * It may answer wharf_replace_parameters, wharf_hide_tools, wharf_answer_for_model. */
struct wharf_before_request {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text model; /* the model, by the server's name for it */
	wharf_json parameters; /* of the request: an object, or null */
	wharf_json tools; /* the names of the tools on offer */
};
WHARF_FN struct wharf_before_request wharf_read_before_request(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "model", "parameters", "tools"};
	wharf_json v[6];
	wharf_find(payload, keys, v, 6);
	return (struct wharf_before_request){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
		v[4],
		v[5],
	};
}
#define WHARF_KIND_before_request WHARF_JUDGES

/* on_request_error: a request to the model failed.
 * It may answer wharf_retry, wharf_give_up. */
struct wharf_on_request_error {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text class; /* of the failure: unreachable, timeout, auth, invalid, rate_limit, quota, server, malformed, overflow or script */
	int64_t attempt; /* counts from 1 */
	int64_t retry_after_ms; /* what the server asks to wait; 0 if it does not say */
	wharf_text error; /* what happened, and why */
};
WHARF_FN struct wharf_on_request_error wharf_read_on_request_error(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "class", "attempt", "retry_after_ms", "error"};
	wharf_json v[7];
	wharf_find(payload, keys, v, 7);
	return (struct wharf_on_request_error){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
		wharf_as_integer(v[4]),
		wharf_as_integer(v[5]),
		wharf_as_text(v[6]),
	};
}
#define WHARF_KIND_on_request_error WHARF_JUDGES

/* emit_reasoning: a piece of the model's reasoning arrived. */
#define WHARF_KIND_emit_reasoning WHARF_HEARS

/* emit_reasoning_end: the reasoning of a reply is whole. */
struct wharf_emit_reasoning_end {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	bool resuming; /* whether the turn asks the model again */
};
WHARF_FN struct wharf_emit_reasoning_end wharf_read_emit_reasoning_end(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "resuming"};
	wharf_json v[4];
	wharf_find(payload, keys, v, 4);
	return (struct wharf_emit_reasoning_end){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_bool(v[3]),
	};
}
#define WHARF_KIND_emit_reasoning_end WHARF_WATCHES

/* on_stream: a piece of the answer arrived. */
#define WHARF_KIND_on_stream WHARF_HEARS

/* on_stream_end: the text of a reply is whole. */
struct wharf_on_stream_end {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	bool resuming; /* whether the turn asks the model again */
};
WHARF_FN struct wharf_on_stream_end wharf_read_on_stream_end(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "resuming"};
	wharf_json v[4];
	wharf_find(payload, keys, v, 4);
	return (struct wharf_on_stream_end){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_bool(v[3]),
	};
}
#define WHARF_KIND_on_stream_end WHARF_WATCHES

/* on_provider_tool_event: a tool that the provider itself runs reported something. */
struct wharf_on_provider_tool_event {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_json event; /* as the provider sent it */
};
WHARF_FN struct wharf_on_provider_tool_event wharf_read_on_provider_tool_event(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "event"};
	wharf_json v[4];
	wharf_find(payload, keys, v, 4);
	return (struct wharf_on_provider_tool_event){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		v[3],
	};
}
#define WHARF_KIND_on_provider_tool_event WHARF_WATCHES

/* before_execute_tools: a reply's tool calls are about to be judged and run.
 * It may answer wharf_block. */
struct wharf_before_execute_tools {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_json calls; /* each with call_id, tool and arguments */
};
WHARF_FN struct wharf_before_execute_tools wharf_read_before_execute_tools(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "calls"};
	wharf_json v[4];
	wharf_find(payload, keys, v, 4);
	return (struct wharf_before_execute_tools){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		v[3],
	};
}
#define WHARF_KIND_before_execute_tools WHARF_JUDGES

/* before_execute_tool: a tool call is about to be judged and run.
 * It may answer wharf_allow, wharf_deny, wharf_ask, wharf_replace_arguments, wharf_answer_in_place, wharf_add_context. */
struct wharf_before_execute_tool {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text call_id; /* the call's name */
	wharf_text tool; /* the tool's name */
	wharf_json arguments; /* of the call */
};
WHARF_FN struct wharf_before_execute_tool wharf_read_before_execute_tool(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "call_id", "tool", "arguments"};
	wharf_json v[6];
	wharf_find(payload, keys, v, 6);
	return (struct wharf_before_execute_tool){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
		wharf_as_text(v[4]),
		v[5],
	};
}
#define WHARF_KIND_before_execute_tool WHARF_JUDGES

/* permission_request: the user is about to be asked about a call.
 * It may answer wharf_allow, wharf_deny. */
struct wharf_permission_request {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text call_id; /* the call's name */
	wharf_text tool; /* the tool's name */
	wharf_json arguments; /* of the call */
	wharf_text rule; /* by which the user is asked */
};
WHARF_FN struct wharf_permission_request wharf_read_permission_request(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "call_id", "tool", "arguments", "rule"};
	wharf_json v[7];
	wharf_find(payload, keys, v, 7);
	return (struct wharf_permission_request){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
		wharf_as_text(v[4]),
		v[5],
		wharf_as_text(v[6]),
	};
}
#define WHARF_KIND_permission_request WHARF_JUDGES

/* after_execute_tool: a tool call has its result, before the model sees it.
 * It may answer wharf_block, wharf_replace_content, wharf_add_context. */
struct wharf_after_execute_tool {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text call_id; /* the call's name */
	wharf_text tool; /* the tool's name */
	wharf_json arguments; /* of the call */
	struct wharf_tool_result result; /* content, is_error, and a code if it failed */
};
WHARF_FN struct wharf_after_execute_tool wharf_read_after_execute_tool(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "call_id", "tool", "arguments", "result"};
	wharf_json v[7];
	wharf_find(payload, keys, v, 7);
	return (struct wharf_after_execute_tool){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
		wharf_as_text(v[4]),
		v[5],
		wharf_as_tool_result(v[6]),
	};
}
#define WHARF_KIND_after_execute_tool WHARF_JUDGES

/* on_execute_tool_error: a tool call failed, before the model sees how.
 * It may answer wharf_block, wharf_replace_content, wharf_add_context. */
struct wharf_on_execute_tool_error {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text call_id; /* the call's name */
	wharf_text tool; /* the tool's name */
	wharf_json arguments; /* of the call */
	wharf_text error; /* what happened, and why */
};
WHARF_FN struct wharf_on_execute_tool_error wharf_read_on_execute_tool_error(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "call_id", "tool", "arguments", "error"};
	wharf_json v[7];
	wharf_find(payload, keys, v, 7);
	return (struct wharf_on_execute_tool_error){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
		wharf_as_text(v[4]),
		v[5],
		wharf_as_text(v[6]),
	};
}
#define WHARF_KIND_on_execute_tool_error WHARF_JUDGES

/* after_iteration: a step is over. */
struct wharf_after_iteration {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_json calls; /* each with call_id, tool, arguments and result */
};
WHARF_FN struct wharf_after_iteration wharf_read_after_iteration(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "calls"};
	wharf_json v[4];
	wharf_find(payload, keys, v, 4);
	return (struct wharf_after_iteration){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		v[3],
	};
}
#define WHARF_KIND_after_iteration WHARF_WATCHES

/* subagent_start: a subagent is about to begin.
 * It may answer wharf_block, wharf_add_context. */
struct wharf_subagent_start {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text task; /* what the subagent is to do */
};
WHARF_FN struct wharf_subagent_start wharf_read_subagent_start(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "task"};
	wharf_json v[4];
	wharf_find(payload, keys, v, 4);
	return (struct wharf_subagent_start){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
	};
}
#define WHARF_KIND_subagent_start WHARF_JUDGES

/* subagent_stop: a subagent is about to end.
 * It may answer wharf_continue. */
struct wharf_subagent_stop {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text result; /* what the subagent found */
};
WHARF_FN struct wharf_subagent_stop wharf_read_subagent_stop(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "result"};
	wharf_json v[4];
	wharf_find(payload, keys, v, 4);
	return (struct wharf_subagent_stop){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
	};
}
#define WHARF_KIND_subagent_stop WHARF_JUDGES

/* before_compact: the history is about to be summarized.
 * It may answer wharf_block. */
struct wharf_before_compact {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	int64_t messages; /* messages that the summary will stand for */
	int64_t tokens; /* tokens of the whole history, about */
};
WHARF_FN struct wharf_before_compact wharf_read_before_compact(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "messages", "tokens"};
	wharf_json v[5];
	wharf_find(payload, keys, v, 5);
	return (struct wharf_before_compact){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_integer(v[3]),
		wharf_as_integer(v[4]),
	};
}
#define WHARF_KIND_before_compact WHARF_JUDGES

/* after_compact: the history was summarized. */
struct wharf_after_compact {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text summary; /* what stands for the older messages now */
};
WHARF_FN struct wharf_after_compact wharf_read_after_compact(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "summary"};
	wharf_json v[4];
	wharf_find(payload, keys, v, 4);
	return (struct wharf_after_compact){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
	};
}
#define WHARF_KIND_after_compact WHARF_WATCHES

/* notification: the user is told something: a question about a call, a retry, another model. */
struct wharf_notification {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text kind; /* question, retry or fallback */
	wharf_text text; /* what the user is told */
};
WHARF_FN struct wharf_notification wharf_read_notification(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "kind", "text"};
	wharf_json v[5];
	wharf_find(payload, keys, v, 5);
	return (struct wharf_notification){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
		wharf_as_text(v[4]),
	};
}
#define WHARF_KIND_notification WHARF_WATCHES

/* turn_stopping: the model gave what looks like its final answer.
 * It may answer wharf_continue. */
struct wharf_turn_stopping {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text text; /* what looks like the final answer */
};
WHARF_FN struct wharf_turn_stopping wharf_read_turn_stopping(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "text"};
	wharf_json v[4];
	wharf_find(payload, keys, v, 4);
	return (struct wharf_turn_stopping){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
	};
}
#define WHARF_KIND_turn_stopping WHARF_JUDGES

/* finalize_content: the final text is known, before anybody sees it.
 * It may answer wharf_replace_text. */
struct wharf_finalize_content {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text text; /* the final answer */
};
WHARF_FN struct wharf_finalize_content wharf_read_finalize_content(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "text"};
	wharf_json v[4];
	wharf_find(payload, keys, v, 4);
	return (struct wharf_finalize_content){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
	};
}
#define WHARF_KIND_finalize_content WHARF_JUDGES

/* after_run: the turn has its answer. */
struct wharf_after_run {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text text; /* the answer */
	struct wharf_usage usage; /* tokens that the turn used: input_tokens, output_tokens, cache_read_input_tokens, reasoning_tokens */
};
WHARF_FN struct wharf_after_run wharf_read_after_run(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "text", "usage"};
	wharf_json v[5];
	wharf_find(payload, keys, v, 5);
	return (struct wharf_after_run){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
		wharf_as_usage(v[4]),
	};
}
#define WHARF_KIND_after_run WHARF_WATCHES

/* on_error: the turn ends without an answer. */
struct wharf_on_error {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text error; /* what happened, and why */
};
WHARF_FN struct wharf_on_error wharf_read_on_error(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "error"};
	wharf_json v[4];
	wharf_find(payload, keys, v, 4);
	return (struct wharf_on_error){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
	};
}
#define WHARF_KIND_on_error WHARF_WATCHES

/* on_finally: the turn is over, however it ended. */
struct wharf_on_finally {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text reason; /* why the turn ended: completed, max_steps, … */
	wharf_text text; /* the answer, or what there was of it */
};
WHARF_FN struct wharf_on_finally wharf_read_on_finally(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "reason", "text"};
	wharf_json v[5];
	wharf_find(payload, keys, v, 5);
	return (struct wharf_on_finally){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
		wharf_as_text(v[4]),
	};
}
#define WHARF_KIND_on_finally WHARF_WATCHES

/* session_end: the session is left. */
struct wharf_session_end {
	wharf_text session_id;
	int64_t turn;
	int64_t step;
	wharf_text reason; /* why the session is left */
};
WHARF_FN struct wharf_session_end wharf_read_session_end(wharf_json payload)
{
	static const char *const keys[] = {"session_id", "turn", "step", "reason"};
	wharf_json v[4];
	wharf_find(payload, keys, v, 4);
	return (struct wharf_session_end){
		wharf_as_text(v[0]),
		wharf_as_integer(v[1]),
		wharf_as_integer(v[2]),
		wharf_as_text(v[3]),
	};
}
#define WHARF_KIND_session_end WHARF_WATCHES
/* end */

#endif
