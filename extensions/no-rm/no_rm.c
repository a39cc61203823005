/* no-rm: refuses commands that delete recursively.
 *
 * The command is read as a shell would read it: quotes, escapes, expansions,
 * nested commands and here-documents. Where that leaves a doubt, it is
 * refused. words.h judges what was read. The README says what it lets pass,
 * and why. */
#include "words.h"

enum { max_frames = 48, max_depth = 6, max_documents = 8, max_text = 1 << 20 };

/* frame is one level of ( … ) or $( … ). */
struct frame {
	struct command command;
	struct word word;
	uint32_t start;       /* of the word that is being read, in the buffer */
	int quotes;      /* within "…" */
	int begun;       /* there is a word, perhaps an empty one */
	int arithmetic;  /* (( … )): << is no here-document */
	int document;    /* the text of a here-document: " is a character */
};

struct document {
	wharf_text end;
	int strip, quoted;
};

struct scan {
	wharf_text t;
	uint32_t i, depth;
	uint8_t *buffer; /* the words of all frames, one behind the other */
	uint32_t used;
	struct frame frames[max_frames];
	uint32_t top;
	struct document documents[max_documents];
	uint32_t waiting; /* documents whose text has not come yet */
};

/* end_word ends the word of a frame. One with braces is judged as a whole and
 * in the parts that a shell makes of it. */
static void end_word(struct scan *s, struct frame *f)
{
	if (f->begun) {
		wharf_text w = {s->buffer + f->start, s->used - f->start};
		judge_word(&f->command, w, f->word, s->depth);
		if (f->word.braced && has(w, ",")) {
			f->word = (struct word){.expanded = 1};
			for (uint32_t from = 0, i = 0; i <= w.length; i++) {
				if (i < w.length && !has((wharf_text){w.at + i, 1}, "{,}"))
					continue;
				if (i > from)
					judge_word(&f->command, (wharf_text){w.at + from, i - from}, f->word, s->depth);
				from = i + 1;
			}
		}
	}
	s->used = f->start;
	f->begun = 0;
	f->word = (struct word){0};
}

static void end_command(struct scan *s, struct frame *f)
{
	end_word(s, f);
	f->command = (struct command){0};
}

static void push(struct scan *s, int arithmetic)
{
	if (s->top + 1 >= max_frames) {
		refuse(unreadable);
		return;
	}
	s->frames[++s->top] = (struct frame){.start = s->used, .arithmetic = arithmetic};
}

static void append(struct scan *s, struct frame *f, uint8_t c)
{
	s->buffer[s->used++] = c; /* a word is never longer than the text */
	f->begun = 1;
}

static uint8_t peek(const struct scan *s, uint32_t ahead)
{
	return s->i + ahead < s->t.length ? s->t.at[s->i + ahead] : 0;
}

/* substituted notes that a command's output is part of the word. */
static void substituted(struct frame *f)
{
	f->word.substituted |= !f->begun && !f->quotes;
	f->begun = f->word.expanded = 1;
}

/* backticks reads `…` and what is in it. */
static void backticks(struct scan *s, struct frame *f)
{
	uint32_t from = s->i, length = 0;
	uint8_t *inner = wharf_allocate(s->t.length - from + 1);
	if (!inner) {
		refuse(unreadable);
		return;
	}
	for (s->i++; s->i < s->t.length && s->t.at[s->i] != '`'; s->i++) {
		if (s->t.at[s->i] == '\\' && (peek(s, 1) == '`' || peek(s, 1) == '\\' || peek(s, 1) == '$'))
			s->i++;
		inner[length++] = s->t.at[s->i];
	}
	scan_text((wharf_text){inner, length}, s->depth + 1, 0);
	substituted(f);
}

static int is_name(uint8_t c) { return c == '_' || (uint8_t)((c | 0x20) - 'a') < 26 || (uint8_t)(c - '0') < 10; }

/* variable reads the name behind $ or ${, and the operator behind the name.
 * $IFS counts as a blank. What may stand for it is read on as part of the word. */
static void variable(struct scan *s, struct frame *f, int braces)
{
	s->i += 1 + (uint32_t)braces;
	if (braces && (peek(s, 0) == '#' || peek(s, 0) == '!'))
		s->i++;
	uint32_t from = s->i;
	if (is_name(peek(s, 0)))
		while (is_name(peek(s, 0)))
			s->i++;
	else
		s->i++; /* $@, $*, $?, … */
	wharf_text name = {s->t.at + from, s->i - from};
	if (braces) { /* ${x:-…} and the like: one mark, behind which the other value stands */
		s->i += peek(s, 0) == ':';
		s->i += peek(s, 0) && has((wharf_text){s->t.at + s->i, 1}, "-=+?%#/^,");
	}
	int blank = wharf_equal(name, "IFS") && !f->quotes;
	while (braces && blank && peek(s, 0) && peek(s, 0) != '}')
		s->i++;
	if (braces && peek(s, 0) == '}')
		s->i++;
	s->i--; /* the caller steps */
	if (blank) {
		end_word(s, f);
		return;
	}
	f->begun = f->word.expanded = 1;
}

static uint32_t digit(uint8_t c, uint32_t base)
{
	uint32_t v = c - '0' < 10u ? (uint32_t)(c - '0') : (c | 0x20) - 'a' < 6u ? (uint32_t)(c | 0x20) - 'a' + 10 : 99;
	return v < base ? v : 99;
}

/* unescape returns what the escape at *i stands for, as $'…' and printf read
 * it, and moves *i to its last character. */
static uint8_t unescape(wharf_text t, uint32_t *i)
{
	uint32_t at = *i + 1, base = 8, most = 3, v = 0, n = 0;
	uint8_t c = at < t.length ? t.at[at] : '\\';
	if (c == 'x' || c == 'u' || c == 'U')
		base = 16, most = c == 'x' ? 2 : c == 'u' ? 4 : 8, at++;
	else if (c == '0')
		most = 4;
	for (; n < most && at + n < t.length && digit(t.at[at + n], base) < 99; n++)
		v = v * base + digit(t.at[at + n], base);
	*i = n ? at + n - 1 : *i + 1;
	if (n)
		return v < 0x80 ? (uint8_t)v : '?';
	return c == 'n' ? '\n' : c == 't' ? '\t' : c;
}

/* unescaped is a text with all its escapes undone. */
static wharf_text unescaped(wharf_text t)
{
	uint8_t *copy = wharf_allocate(t.length + 1);
	uint32_t n = 0;
	if (!copy) {
		refuse(unreadable);
		return (wharf_text){t.at, 0};
	}
	for (uint32_t i = 0; i < t.length; i++)
		copy[n++] = t.at[i] == '\\' ? unescape(t, &i) : t.at[i];
	return (wharf_text){copy, n};
}

/* dollar reads what begins with $. */
static void dollar(struct scan *s, struct frame *f)
{
	uint8_t next = peek(s, 1);
	if (next == '(') {
		s->i++;
		if (peek(s, 1) == '(')
			f->begun = f->word.expanded = 1; /* a number */
		else
			substituted(f);
		push(s, peek(s, 1) == '(');
	} else if (next == '{') {
		variable(s, f, 1);
	} else if (is_name(next) || (next && has((wharf_text){&next, 1}, "@*#?$!-"))) {
		variable(s, f, 0);
	} else if (next == '\'' && !f->quotes) {
		for (s->i += 2; s->i < s->t.length && s->t.at[s->i] != '\''; s->i++) {
			if (s->t.at[s->i] != '\\') {
				append(s, f, s->t.at[s->i]);
				continue;
			}
			f->word.expanded = 1;
			append(s, f, unescape(s->t, &s->i));
		}
		f->begun = 1;
	} else if (next != '"' || f->quotes) {
		append(s, f, '$');
	}
}

/* redirection reads < or > and what belongs to it. */
static void redirection(struct scan *s, struct frame *f)
{
	uint8_t c = s->t.at[s->i], next = peek(s, 1);
	end_word(s, f);
	if (next == '(') { /* a process's output or input */
		s->i++;
		f->begun = f->word.expanded = 1;
		push(s, 0);
		return;
	}
	if (c == '<' && next == '<' && peek(s, 2) != '<') {
		s->i++;
		if (f->arithmetic)
			return;
		if (s->waiting == max_documents) {
			refuse(unreadable);
			return;
		}
		struct document d = {0};
		if (peek(s, 1) == '-')
			d.strip = 1, s->i++;
		while (peek(s, 1) == ' ' || peek(s, 1) == '\t')
			s->i++;
		uint8_t *end = wharf_allocate(s->t.length - s->i + 1);
		if (!end) {
			refuse(unreadable);
			return;
		}
		d.end.at = end;
		for (uint8_t e; (e = peek(s, 1)) && !has((wharf_text){&e, 1}, " \t\n;|&<>()"); s->i++) {
			if (e == '\'' || e == '"' || e == '\\')
				d.quoted = 1;
			else
				end[d.end.length++] = e;
		}
		s->documents[s->waiting++] = d;
		return;
	}
	while (next && has((wharf_text){&next, 1}, "<>&|")) {
		s->i++;
		next = peek(s, 1);
	}
	f->command.redirect = 1;
}

/* read_document reads the lines of a here-document, behind a newline. */
static void read_document(struct scan *s, struct document d)
{
	uint32_t from = s->i + 1, at = from;
	int found = 0;
	while (at < s->t.length && !found) {
		uint32_t line = at;
		while (at < s->t.length && s->t.at[at] != '\n')
			at++;
		wharf_text t = {s->t.at + line, at - line};
		while (d.strip && t.length && *t.at == '\t')
			t.at++, t.length--;
		found = t.length == d.end.length;
		for (uint32_t i = 0; found && i < t.length; i++)
			found = t.at[i] == d.end.at[i];
		s->i = at;
		at++;
	}
	wharf_text body = {s->t.at + from, s->i > from ? s->i - from : 0};
	remember(body, s->depth);
	if (!d.quoted)
		scan_text(body, s->depth + 1, 1); /* the shell expands it */
	if (!found)
		scan_text(body, s->depth + 1, 0); /* perhaps it is none */
}

static void quoted(struct scan *s, struct frame *f, uint8_t c)
{
	if (c == '"' && !f->document) {
		f->quotes = 0;
	} else if (c == '\\') {
		uint8_t next = peek(s, 1);
		if (next && has((wharf_text){&next, 1}, "$`\"\\\n")) {
			s->i++;
			if (next != '\n')
				append(s, f, next);
		} else {
			append(s, f, c);
		}
	} else if (c == '$') {
		dollar(s, f);
	} else if (c == '`') {
		backticks(s, f);
	} else {
		append(s, f, c);
	}
}

static void single_quotes(struct scan *s, struct frame *f)
{
	f->begun = 1;
	for (s->i++; s->i < s->t.length && s->t.at[s->i] != '\''; s->i++)
		append(s, f, s->t.at[s->i]);
}

static void closing(struct scan *s, struct frame *f)
{
	end_command(s, f);
	if (s->top)
		s->top--; /* the word around it goes on */
}

static void newline(struct scan *s, struct frame *f)
{
	end_command(s, f);
	uint32_t waiting = s->waiting;
	s->waiting = 0;
	for (uint32_t d = 0; d < waiting; d++)
		read_document(s, s->documents[d]);
}

static void unquoted(struct scan *s, struct frame *f, uint8_t c)
{
	switch (c) {
	case '\\':
		s->i++;
		if (s->i < s->t.length && s->t.at[s->i] != '\n')
			append(s, f, s->t.at[s->i]);
		break;
	case '\'':
		single_quotes(s, f);
		break;
	case '"':
		f->quotes = f->begun = 1;
		break;
	case '$':
		dollar(s, f);
		break;
	case '`':
		backticks(s, f);
		break;
	case ' ': case '\t': case '\r':
		end_word(s, f);
		break;
	case '\n':
		newline(s, f);
		break;
	case '&':
		if (peek(s, 1) == '>')
			end_word(s, f);
		else
			end_command(s, f);
		break;
	case ';': case '|':
		end_command(s, f);
		break;
	case '<': case '>':
		redirection(s, f);
		break;
	case '(':
		end_command(s, f);
		push(s, f->arithmetic || peek(s, 1) == '(');
		break;
	case ')':
		closing(s, f);
		break;
	case '#':
		if (f->begun) {
			append(s, f, c);
			break;
		}
		while (s->i + 1 < s->t.length && s->t.at[s->i + 1] != '\n')
			s->i++;
		break;
	case '{':
		f->word.braced = 1;
		append(s, f, c);
		break;
	case '*': case '?': case '[':
		f->word.globbed = 1;
		append(s, f, c);
		break;
	default:
		append(s, f, c);
	}
}

/* scan_text judges a text as a shell would read it; with quotes, as one
 * within "…" that does not end. */
static void scan_text(wharf_text t, uint32_t depth, int quotes)
{
	if (depth > max_depth || t.length > max_text) {
		refuse(unreadable);
		return;
	}
	uint32_t mark = wharf_heap_top;
	struct inner *before = seen.inners;
	struct scan *s = wharf_allocate(sizeof *s);
	uint8_t *buffer = wharf_allocate(t.length + 1);
	if (!s || !buffer) {
		refuse(unreadable);
		return;
	}
	s->t = t;
	s->i = s->used = s->top = s->waiting = 0;
	s->depth = depth;
	s->buffer = buffer;
	s->frames[0] = (struct frame){.quotes = quotes, .document = quotes};
	for (; s->i < t.length && !seen.verdict; s->i++) {
		struct frame *f = &s->frames[s->top];
		if (f->quotes)
			quoted(s, f, t.at[s->i]);
		else
			unquoted(s, f, t.at[s->i]);
	}
	for (;; s->top--) {
		s->frames[s->top].quotes = 0;
		end_command(s, &s->frames[s->top]);
		if (!s->top)
			break;
	}
	if (seen.inners == before)
		wharf_heap_top = mark; /* nothing of it is needed any more */
}

/* judge judges a command line, with what a shell that it calls would run. */
static void judge(wharf_text t)
{
	const char *verdict = seen.verdict;
	__builtin_memset(&seen, 0, sizeof seen);
	seen.verdict = verdict;
	scan_text(t, 0, 0);
	while (seen.runs_text && seen.inners && !seen.verdict) {
		struct inner n = *seen.inners;
		seen.inners = n.next;
		scan_text(n.text, n.depth + 1, 0);
		if (has(n.text, "\\") && !seen.verdict)
			scan_text(unescaped(n.text), n.depth + 1, 0); /* as printf gives it on */
	}
	if (seen.find && (seen.xargs_rm || seen.rm_expanded || seen.inner_rm))
		refuse(find_deletes);
	if ((seen.rm_expanded || seen.computed) && seen.flag_value)
		refuse(hidden_rm);
	if (seen.decodes && seen.runs_input)
		refuse(decoded_text);
}

/* judge_strings judges each string in JSON text. */
static bool judge_strings(wharf_json j)
{
	while (j.at < j.end) {
		const uint8_t *from = j.at;
		if (*from != '"') {
			j.at++;
			continue;
		}
		wharf_skip_string(&j);
		wharf_text t = wharf_as_text((wharf_json){from, j.at});
		if (!t.at)
			return false;
		judge(t);
	}
	return true;
}

WHARF_HOOK(before_execute_tool, call)
{
	seen.verdict = 0;
	if (!call.arguments.at || !judge_strings(call.arguments))
		return wharf_fail("the call has no arguments that can be read");
	if (!seen.verdict)
		return WHARF_NO_OPINION;
	wharf_out o = {0};
	wharf_put(&o, "this guard refuses recursive deletes, and the command has ");
	wharf_put(&o, seen.verdict);
	wharf_put(&o, ": delete single files by name, or ask the user to delete the folder");
	return wharf_deny(wharf_written(&o));
}
