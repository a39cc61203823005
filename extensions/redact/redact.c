/* redact: puts a mark in the place of what looks like a token or key in the
 * final answer. The mark names the kind and nothing of the value. */
#include "wharf.h"

/* The characters that a token may have behind its prefix. */
enum set { none, plain, upper, word, dotted };

/* A token is a prefix and then characters of a set, at least so many. One that
 * is not at the beginning of a word has those of inside, if any. */
struct kind {
	const char *prefix, *mark;
	uint32_t least;
	enum set set, inside;
};

static const struct kind kinds[] = {
	{"github_pat_", "GitHub token", 20, word, word},
	{"ghp_", "GitHub token", 20, word, plain},
	{"gho_", "GitHub token", 20, word, plain},
	{"ghu_", "GitHub token", 20, word, plain},
	{"ghs_", "GitHub token", 20, word, plain},
	{"ghr_", "GitHub token", 20, word, plain},
	{"glpat-", "GitLab token", 16, word, word},
	{"sk-", "API key", 16, word, none},
	{"sk_live_", "API key", 16, word, plain},
	{"sk_test_", "API key", 16, word, plain},
	{"rk_live_", "API key", 16, word, plain},
	{"whsec_", "API key", 24, plain, plain},
	{"gsk_", "API key", 30, plain, plain},
	{"xai-", "API key", 40, plain, none},
	{"AIza", "Google key", 30, word, word},
	{"ya29.", "Google token", 20, word, none},
	{"GOCSPX-", "Google secret", 20, word, word},
	{"AKIA", "AWS key", 16, upper, upper},
	{"ASIA", "AWS key", 16, upper, upper},
	{"xoxa-", "Slack token", 10, word, word},
	{"xoxb-", "Slack token", 10, word, word},
	{"xoxp-", "Slack token", 10, word, word},
	{"xoxe-", "Slack token", 10, word, word},
	{"xoxr-", "Slack token", 10, word, word},
	{"xoxs-", "Slack token", 10, word, word},
	{"xapp-", "Slack token", 10, word, word},
	{"npm_", "npm token", 30, plain, plain},
	{"hf_", "Hugging Face token", 30, plain, none},
	{"pypi-AgE", "PyPI token", 30, word, word},
	{"dop_v1_", "DigitalOcean token", 40, plain, plain},
	{"hvs.", "Vault token", 20, word, none},
	{"AGE-SECRET-KEY-1", "age key", 40, upper, upper},
	{"eyJ", "JSON web token", 20, dotted, dotted},
};

/* What stands behind one of these is a secret, if it is at least so long. */
struct label {
	const char *text, *mark;
	uint32_t least;
};

static const struct label labels[] = {
	{"bearer ", "bearer token", 16},
	{"authorization: basic ", "password", 8},
	{"aws_secret_access_key=", "AWS secret", 40},
	{"aws_secret_access_key = ", "AWS secret", 40},
	{"\"secretaccesskey\": \"", "AWS secret", 40},
	{"\"secretaccesskey\":\"", "AWS secret", 40},
};

static int is_upper(uint8_t c) { return c >= 'A' && c <= 'Z'; }
static int is_digit(uint8_t c) { return c >= '0' && c <= '9'; }
static int is_plain(uint8_t c) { return (c >= 'a' && c <= 'z') || is_upper(c) || is_digit(c); }

static int is_word(uint8_t c) { return is_plain(c) || c == '_' || c == '-'; }

static int is_hex(uint8_t c) { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }

/* belongs tells whether the character at i belongs to a token. */
static int belongs(wharf_text t, uint32_t i, enum set set)
{
	uint8_t c = t.at[i];
	switch (set) {
	case plain:
		return is_plain(c);
	case upper:
		return is_upper(c) || is_digit(c);
	case dotted:
		return is_word(c) || (c == '.' && i + 1 < t.length && is_word(t.at[i + 1]));
	default:
		return is_word(c);
	}
}

/* within tells whether i is in the middle of a word. The letter of an escape
 * such as \n, and the digits of one such as %3D, are not part of a word. */
static int within(wharf_text t, uint32_t i)
{
	if (!i || !is_plain(t.at[i - 1]))
		return 0;
	if (i >= 2 && t.at[i - 2] == '\\')
		return 0;
	return !(i >= 3 && t.at[i - 3] == '%' && is_hex(t.at[i - 2]) && is_hex(t.at[i - 1]));
}

static int begins(wharf_text t, uint32_t at, const char *prefix, int any_case)
{
	for (; *prefix; prefix++, at++) {
		if (at >= t.length)
			return 0;
		uint8_t c = t.at[at];
		if (any_case && is_upper(c))
			c |= 0x20;
		if (c != (uint8_t)*prefix)
			return 0;
	}
	return 1;
}

static uint32_t size(const char *text)
{
	uint32_t n = 0;
	while (text[n])
		n++;
	return n;
}

/* Up to here no dotted token begins: the dots were counted. Without it, a long
 * text of beginnings would take too long. */
static uint32_t dotted_from;

/* token returns where the token that begins at i ends, or 0. */
static uint32_t token(wharf_text t, uint32_t i, const char **mark)
{
	int inside = within(t, i);
	for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		enum set set = inside ? kinds[k].inside : kinds[k].set;
		if (set == none || !begins(t, i, kinds[k].prefix, 0) || (set == dotted && i < dotted_from))
			continue;
		uint32_t from = i + size(kinds[k].prefix), end = from, dots = 0;
		while (end < t.length && belongs(t, end, set))
			dots += t.at[end++] == '.';
		if (end - from >= kinds[k].least && (set != dotted || dots >= 2)) {
			*mark = kinds[k].mark;
			return end;
		}
		if (set == dotted && dots < 2)
			dotted_from = end;
	}
	return 0;
}

/* labelled returns where the secret behind a label at i ends, or 0. A word of
 * small letters is none. */
static uint32_t labelled(wharf_text t, uint32_t i, uint32_t *from, const char **mark)
{
	for (uint32_t k = 0; k < sizeof labels / sizeof *labels; k++) {
		if (within(t, i) || !begins(t, i, labels[k].text, 1))
			continue;
		uint32_t end = *from = i + size(labels[k].text), odd = 0;
		while (end < t.length && (is_word(t.at[end]) || t.at[end] == '.' || t.at[end] == '~' || t.at[end] == '+' || t.at[end] == '/' || t.at[end] == '='))
			end++;
		while (end > *from && t.at[end - 1] == '.')
			end--; /* the sentence's */
		for (uint32_t j = *from; j < end; j++)
			odd += t.at[j] != '-' && !(t.at[j] >= 'a' && t.at[j] <= 'z');
		if (end - *from >= labels[k].least && odd) {
			*mark = labels[k].mark;
			return end;
		}
	}
	return 0;
}

/* password returns where the password in a URL ends whose :// is at i, or 0. */
static uint32_t password(wharf_text t, uint32_t i, uint32_t *from)
{
	if (!begins(t, i, "://", 0))
		return 0;
	*from = 0;
	for (i += 3; i < t.length && t.at[i] > ' ' && t.at[i] != '/' && t.at[i] != '"' && t.at[i] != '<'; i++) {
		if (t.at[i] == ':' && !*from)
			*from = i + 1;
		else if (t.at[i] == '@')
			return *from && i > *from && t.at[*from] != '$' && t.at[*from] != '[' ? i : 0;
	}
	return 0;
}

/* pem returns where the private key that begins at i ends, or 0. One that
 * does not end is masked to the end of the text. */
static uint32_t pem(wharf_text t, uint32_t i)
{
	if (!begins(t, i, "-----BEGIN ", 0))
		return 0;
	uint32_t line = i;
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

static void put_mark(wharf_out *o, const char *mark)
{
	wharf_put(o, "[redacted: ");
	wharf_put(o, mark);
	wharf_put(o, "]");
}

/* pairs has a bit for each pair of characters, in lower case, with which
 * something to be masked may begin: most of a text begins nothing. */
static uint8_t pairs[1 << 13];

static uint32_t pair(uint8_t first, uint8_t second)
{
	return (uint32_t)(is_upper(first) ? first | 0x20 : first) << 8 | (is_upper(second) ? second | 0x20 : second);
}

static void note(const char *text)
{
	uint32_t p = pair((uint8_t)text[0], (uint8_t)text[1]);
	pairs[p >> 3] |= (uint8_t)(1 << (p & 7));
}

static void note_all(void)
{
	for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		note(kinds[k].prefix);
	for (uint32_t k = 0; k < sizeof labels / sizeof *labels; k++)
		note(labels[k].text);
	note("://");
	note("-----BEGIN ");
}

static int may_begin(wharf_text t, uint32_t i)
{
	if (i + 1 >= t.length)
		return 0;
	uint32_t p = pair(t.at[i], t.at[i + 1]);
	return pairs[p >> 3] >> (p & 7) & 1;
}

/* mask writes the text with its marks and returns how many there are. */
static uint32_t mask(wharf_out *o, wharf_text t)
{
	uint32_t marks = 0;
	dotted_from = 0;
	note_all();
	for (uint32_t i = 0; i < t.length;) {
		if (!may_begin(t, i)) {
			wharf_put_byte(o, t.at[i++]);
			continue;
		}
		const char *mark = 0;
		uint32_t from = i, end = token(t, i, &mark);
		if (!end)
			end = labelled(t, i, &from, &mark);
		if (!end && (end = password(t, i, &from)) != 0)
			mark = "password";
		if (!end && (end = pem(t, i)) != 0)
			from = i, mark = "private key";
		if (!end) {
			wharf_put_byte(o, t.at[i++]);
			continue;
		}
		while (i < from)
			wharf_put_byte(o, t.at[i++]);
		put_mark(o, mark);
		marks++;
		i = end;
	}
	return marks;
}

WHARF_HOOK(finalize_content, payload)
{
	wharf_out o = {0};
	if (!payload.text.at)
		return wharf_fail("the payload has no text");
	return mask(&o, payload.text) ? wharf_replace_text(wharf_written(&o)) : WHARF_NO_OPINION;
}
