/* count-words: a tool that counts the words of a text. */
#include "wharf.h"

/* is_blank tells the blanks of Unicode, the length of which it returns. */
static uint32_t is_blank(const uint8_t *at, const uint8_t *end)
{
	if (*at == ' ' || (*at >= '\t' && *at <= '\r'))
		return 1;
	if (end - at >= 2 && at[0] == 0xc2 && (at[1] == 0x85 || at[1] == 0xa0))
		return 2; /* next line, no-break space */
	if (end - at < 3)
		return 0;
	uint32_t c = (uint32_t)(at[0] & 15) << 12 | (uint32_t)(at[1] & 63) << 6 | (at[2] & 63);
	if ((at[0] & 0xf0) == 0xe0 &&
	    (c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000))
		return 3;
	return 0;
}

static uint32_t count(wharf_text t)
{
	uint32_t words = 0;
	int inside = 0;
	for (const uint8_t *at = t.at, *end = t.at + t.length; at < end;) {
		uint32_t blank = is_blank(at, end);
		words += !blank && !inside;
		inside = !blank;
		at += blank ? blank : 1;
	}
	return words;
}

static wharf_result count_words(wharf_json arguments)
{
	wharf_text text = wharf_as_text(wharf_get(arguments, "text"));
	if (!text.at)
		return wharf_error("count_words needs a text");
	uint32_t n = count(text);
	wharf_out o = {0};
	wharf_put_integer(&o, n);
	wharf_put(&o, n == 1 ? " word" : " words");
	return wharf_content(wharf_written(&o));
}

WHARF_TOOLS({"count_words", count_words})
