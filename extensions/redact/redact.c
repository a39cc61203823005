/* redact: puts a mark in the place of what looks like a token or key in the
 * final answer. The mark names the kind and nothing of the value. */
#include "wharf.h"

/* A token is a prefix and then characters of a set, at least so many. */
struct kind {
	const char *prefix, *mark;
	u32 least;
	int dots; /* the characters may include dots */
};

static const struct kind kinds[] = {
	{"github_pat_", "GitHub token", 20, 0}, {"ghp_", "GitHub token", 20, 0},     {"gho_", "GitHub token", 20, 0},
	{"ghu_", "GitHub token", 20, 0},        {"ghs_", "GitHub token", 20, 0},     {"ghr_", "GitHub token", 20, 0},
	{"glpat-", "GitLab token", 16, 0},      {"sk-", "API key", 16, 0},           {"sk_live_", "API key", 16, 0},
	{"sk_test_", "API key", 16, 0},         {"rk_live_", "API key", 16, 0},      {"AIza", "Google key", 30, 0},
	{"AKIA", "AWS key", 16, 0},             {"ASIA", "AWS key", 16, 0},          {"xoxa-", "Slack token", 10, 0},
	{"xoxb-", "Slack token", 10, 0},        {"xoxp-", "Slack token", 10, 0},     {"xoxe-", "Slack token", 10, 0},
	{"xoxr-", "Slack token", 10, 0},        {"xoxs-", "Slack token", 10, 0},     {"xapp-", "Slack token", 10, 0},
	{"npm_", "npm token", 30, 0},           {"hf_", "Hugging Face token", 30, 0}, {"pypi-", "PyPI token", 30, 0},
	{"eyJ", "JSON web token", 20, 1},
};

static int is_word(u8 c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* within tells whether the text at i goes on with a word, so that no token begins there. */
static int within(struct text t, u32 i)
{
	return i && is_word(t.at[i - 1]) && t.at[i - 1] != '_' && t.at[i - 1] != '-';
}

static int begins(struct text t, u32 at, const char *prefix, int any_case)
{
	for (; *prefix; prefix++, at++) {
		if (at >= t.length)
			return 0;
		u8 c = t.at[at];
		if (any_case && c >= 'A' && c <= 'Z')
			c |= 0x20;
		if (c != (u8)*prefix)
			return 0;
	}
	return 1;
}

static u32 size(const char *text)
{
	u32 n = 0;
	while (text[n])
		n++;
	return n;
}

/* token returns where the token that begins at i ends, or 0. */
static u32 token(struct text t, u32 i, const char **mark)
{
	for (u32 k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		if (!begins(t, i, kinds[k].prefix, 0))
			continue;
		u32 from = i + size(kinds[k].prefix), end = from, dots = 0;
		while (end < t.length && (is_word(t.at[end]) || (kinds[k].dots && t.at[end] == '.' && end + 1 < t.length && is_word(t.at[end + 1]))))
			dots += t.at[end++] == '.';
		if (end - from >= kinds[k].least && (!kinds[k].dots || dots >= 2)) {
			*mark = kinds[k].mark;
			return end;
		}
	}
	return 0;
}

/* bearer returns where the credential behind "Bearer " at i ends, or 0. */
static u32 bearer(struct text t, u32 i, u32 *from)
{
	if (!begins(t, i, "bearer ", 1))
		return 0;
	u32 end = *from = i + 7;
	while (end < t.length && (is_word(t.at[end]) || t.at[end] == '.' || t.at[end] == '~' || t.at[end] == '+' || t.at[end] == '/' || t.at[end] == '='))
		end++;
	while (end > *from && t.at[end - 1] == '.')
		end--; /* the sentence's */
	return end - *from >= 16 ? end : 0;
}

/* pem returns where the private key that begins at i ends, or 0. One that
 * does not end is masked to the end of the text. */
static u32 pem(struct text t, u32 i)
{
	if (!begins(t, i, "-----BEGIN ", 0))
		return 0;
	u32 line = i;
	while (line < t.length && t.at[line] != '\n' && line - i < 80 && !begins(t, line, "PRIVATE KEY", 0))
		line++;
	if (!begins(t, line, "PRIVATE KEY", 0))
		return 0;
	for (; line < t.length; line++) {
		if (!begins(t, line, "-----END ", 0))
			continue;
		for (line += 9; line < t.length && t.at[line] != '\n'; line++)
			if (begins(t, line, "-----", 0))
				return line + 5;
		return line;
	}
	return t.length;
}

static void put_mark(struct output *o, const char *mark)
{
	put_text(o, "[redacted: ");
	put_text(o, mark);
	put_text(o, "]");
}

/* mask writes the text with its marks and returns how many there are. */
static u32 mask(struct output *o, struct text t)
{
	u32 marks = 0;
	for (u32 i = 0; i < t.length;) {
		const char *mark = 0;
		u32 end = 0, from = i;
		if (!within(t, i)) {
			if ((end = token(t, i, &mark)) == 0 && (end = bearer(t, i, &from)) != 0)
				mark = "bearer token";
		}
		if (!end && (end = pem(t, i)) != 0)
			mark = "private key";
		if (!end) {
			put_escaped(o, t.at[i++]);
			continue;
		}
		while (i < from)
			put_escaped(o, t.at[i++]);
		put_mark(o, mark);
		marks++;
		i = end;
	}
	return marks;
}

WHARF_EXPORT("finalize_content") u64 finalize_content(const u8 *at, u32 length)
{
	struct json payload = {at, at + length}, value;
	struct text text;
	if (!member(payload, "text", &value) || !string(&value, &text))
		return ANSWER("{\"error\":\"the payload has no text\"}");
	struct output o = {0};
	put_text(&o, "{\"replace\":{\"text\":\"");
	u32 marks = mask(&o, text);
	put_text(&o, "\"}}");
	return marks ? answer(o.at, o.length) : 0;
}
