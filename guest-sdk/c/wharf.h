/* What a guest in freestanding C needs of ABI 1: memory, answers, and enough
 * JSON to read a payload. The shipped extensions share it; copy it beside your
 * own sources. */
#ifndef WHARF_H
#define WHARF_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define WHARF_EXPORT(name) __attribute__((export_name(name)))
#define WHARF_UNUSED __attribute__((unused)) static

struct text {
	const u8 *at;
	u32 length;
};

/* Memory is handed out from the end of what the compiler uses, and taken back
 * as a whole when the host asks for the next payload. */
extern u8 __heap_base;
static u32 heap_top;

static void *allocate(u32 length)
{
	u32 at = (heap_top + 7) & ~7u;
	u32 have = (u32)__builtin_wasm_memory_size(0) << 16;
	if (at < heap_top || at + length < at)
		return 0;
	if (at + length > have) {
		u32 pages = (at + length - have + 0xffff) >> 16;
		if (__builtin_wasm_memory_grow(0, pages) == (unsigned long)-1)
			return 0;
	}
	heap_top = at + length;
	return (void *)at;
}

WHARF_EXPORT("wharf_v1_alloc") u32 wharf_v1_alloc(u32 length)
{
	heap_top = (u32)&__heap_base;
	return (u32)allocate(length ? length : 1);
}

WHARF_UNUSED u64 answer(const u8 *at, u32 length) { return (u64)(u32)at << 32 | length; }

#define ANSWER(literal) answer((const u8 *)literal, sizeof literal - 1)

WHARF_UNUSED int same(struct text t, const char *word)
{
	u32 i = 0;
	while (i < t.length && word[i] && t.at[i] == (u8)word[i])
		i++;
	return i == t.length && !word[i];
}

/* Output is JSON text that grows at the end of the heap. Nothing else may be
 * allocated while it is written. */
struct output {
	u8 *at;
	u32 length, room;
};

WHARF_UNUSED int put(struct output *o, u8 c)
{
	if (o->length == o->room) {
		if (!o->at)
			o->at = allocate(0);
		if (!allocate(4096))
			return 0;
		o->room = heap_top - (u32)o->at;
	}
	o->at[o->length++] = c;
	return 1;
}

WHARF_UNUSED void put_text(struct output *o, const char *text)
{
	while (*text)
		put(o, (u8)*text++);
}

/* put_escaped writes one byte of a JSON string. */
WHARF_UNUSED void put_escaped(struct output *o, u8 c)
{
	static const char hex[] = "0123456789abcdef";
	if (c < 0x20) {
		put_text(o, "\\u00");
		put(o, (u8)hex[c >> 4]);
		put(o, (u8)hex[c & 15]);
		return;
	}
	if (c == '"' || c == '\\')
		put(o, '\\');
	put(o, c);
}

/* A json is a place in JSON text. The host has made the text valid. */
struct json {
	const u8 *at, *end;
};

WHARF_UNUSED void skip_blank(struct json *j)
{
	while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
		j->at++;
}

WHARF_UNUSED void skip_string(struct json *j)
{
	for (j->at++; j->at < j->end && *j->at != '"'; j->at++)
		if (*j->at == '\\')
			j->at++;
	j->at++;
}

WHARF_UNUSED void skip_value(struct json *j)
{
	u32 depth = 0;
	do {
		skip_blank(j);
		if (j->at >= j->end)
			return;
		switch (*j->at) {
		case '"':
			skip_string(j);
			break;
		case '{':
		case '[':
			depth++;
			j->at++;
			break;
		case '}':
		case ']':
			depth--;
			j->at++;
			break;
		default:
			j->at++;
			while (!depth && j->at < j->end && *j->at != ',' && *j->at != '}' && *j->at != ']')
				j->at++;
		}
	} while (depth);
}

/* member finds the value of a key in an object, and its end. */
WHARF_UNUSED int member(struct json object, const char *key, struct json *value)
{
	skip_blank(&object);
	if (object.at >= object.end || *object.at != '{')
		return 0;
	for (object.at++;; object.at++) {
		skip_blank(&object);
		if (object.at >= object.end || *object.at != '"')
			return 0;
		struct text name = {object.at + 1, 0};
		skip_string(&object);
		name.length = (u32)(object.at - name.at) - 1;
		skip_blank(&object);
		if (object.at >= object.end || *object.at != ':')
			return 0;
		object.at++;
		skip_blank(&object);
		value->at = object.at;
		skip_value(&object);
		value->end = object.at;
		if (object.at > object.end)
			return 0;
		if (same(name, key))
			return 1;
		skip_blank(&object);
		if (object.at >= object.end || *object.at != ',')
			return 0;
	}
}

WHARF_UNUSED u32 hex4(const u8 *at)
{
	u32 v = 0;
	for (int i = 0; i < 4; i++) {
		u8 c = at[i];
		v = v << 4 | (u32)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return v;
}

WHARF_UNUSED u8 *put_utf8(u8 *out, u32 c)
{
	if (c < 0x80) {
		*out++ = (u8)c;
		return out;
	}
	if (c < 0x800) {
		*out++ = (u8)(0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			*out++ = (u8)(0xe0 | c >> 12);
		} else {
			*out++ = (u8)(0xf0 | c >> 18);
			*out++ = (u8)(0x80 | (c >> 12 & 63));
		}
		*out++ = (u8)(0x80 | (c >> 6 & 63));
	}
	*out++ = (u8)(0x80 | (c & 63));
	return out;
}

/* string decodes the string at j and moves behind it. */
WHARF_UNUSED int string(struct json *j, struct text *out)
{
	const u8 *at = j->at + 1;
	if (j->at >= j->end || *j->at != '"')
		return 0;
	skip_string(j);
	const u8 *end = j->at - 1;
	u8 *to = allocate((u32)(end - at) + 1);
	if (j->at > j->end || !to)
		return 0;
	out->at = to;
	while (at < end) {
		u32 c = *at++;
		if (c != '\\') {
			*to++ = (u8)c;
			continue;
		}
		c = *at++;
		if (c == 'u' && end - at >= 4) {
			c = hex4(at);
			at += 4;
			if (c >= 0xd800 && c < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
				c = 0x10000 + ((c - 0xd800) << 10) + (hex4(at + 2) - 0xdc00);
				at += 6;
			}
			if ((c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
				c = 0xfffd;
			to = put_utf8(to, c);
			continue;
		}
		switch (c) {
		case 'n': c = '\n'; break;
		case 't': c = '\t'; break;
		case 'r': c = '\r'; break;
		case 'b': c = '\b'; break;
		case 'f': c = '\f'; break;
		}
		*to++ = (u8)c;
	}
	out->length = (u32)(to - out->at);
	return 1;
}

#endif
