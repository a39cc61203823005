/* count-words: a tool that counts the words of a text. */
#include "wharf.h"

/* is_blank tells the blanks of Unicode, the length of which it returns. */
static u32 is_blank(const u8 *at, const u8 *end)
{
	if (*at == ' ' || (*at >= '\t' && *at <= '\r'))
		return 1;
	if (end - at >= 2 && at[0] == 0xc2 && (at[1] == 0x85 || at[1] == 0xa0))
		return 2; /* next line, no-break space */
	if (end - at < 3)
		return 0;
	u32 c = (u32)(at[0] & 15) << 12 | (u32)(at[1] & 63) << 6 | (at[2] & 63);
	if ((at[0] & 0xf0) == 0xe0 &&
	    (c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000))
		return 3;
	return 0;
}

static u32 count(struct text t)
{
	u32 words = 0;
	int inside = 0;
	for (const u8 *at = t.at, *end = t.at + t.length; at < end;) {
		u32 blank = is_blank(at, end);
		words += !blank && !inside;
		inside = !blank;
		at += blank ? blank : 1;
	}
	return words;
}

static void put_number(struct output *o, u32 n)
{
	if (n >= 10)
		put_number(o, n / 10);
	put(o, (u8)('0' + n % 10));
}

WHARF_EXPORT("call_tool") u64 call_tool(const u8 *at, u32 length)
{
	struct json payload = {at, at + length}, arguments, value;
	struct text text;
	if (!member(payload, "arguments", &arguments) || !member(arguments, "text", &value) || !string(&value, &text))
		return ANSWER("{\"error\":\"count_words needs a text\"}");
	u32 n = count(text);
	struct output o = {0};
	put_text(&o, "{\"content\":\"");
	put_number(&o, n);
	put_text(&o, n == 1 ? " word\"}" : " words\"}");
	return answer(o.at, o.length);
}
