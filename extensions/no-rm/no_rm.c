/* no-rm: refuses commands that delete recursively.
 *
 * The command is read as a shell would read it: quotes, escapes, expansions,
 * nested commands and here-documents. Where that leaves a doubt, it is
 * refused. The README says what it lets pass, and why. */
#include "wharf.h"

static const char recursive_rm[] = "rm with a recursive flag";
static const char find_deletes[] = "find that deletes what it finds";
static const char hidden_rm[] = "a command whose name or flags are computed, and which may be a recursive rm";
static const char unreadable[] = "a command that is nested too deeply or is too large to be judged";

enum { max_frames = 48, max_depth = 6, max_documents = 8, max_text = 1 << 20 };

/* command is what is known of the simple command that is being read. */
struct command {
	int named;   /* its name was read */
	int wrapper; /* a word before may run what follows, such as sudo */
	int rm, rm_over; /* rm was read; -- after it too */
	int find, xargs;
	int computed; /* what may be its name is the result of an expansion */
	int redirect; /* the next word is the target of a redirection */
};

/* frame is one level of ( … ) or $( … ). */
struct frame {
	struct command command;
	u32 start;       /* of the word that is being read, in the buffer */
	int quotes;      /* within "…" */
	int begun;       /* there is a word, perhaps an empty one */
	int expanded, globbed, braced; /* the word has an expansion, a glob, a brace */
	int arithmetic;  /* (( … )): << is no here-document */
	int document;    /* the text of a here-document: " is a character */
};

/* inner is a text that a shell might run, if one is called: a quoted word or
 * a here-document. */
struct inner {
	struct inner *next;
	struct text text;
	u32 depth;
};

/* What was seen anywhere in the command line. */
static struct {
	struct inner *inners;
	int runs_text; /* something that may run a quoted text as a command */
	int find, xargs_rm, rm_expanded, flag_value;
	const char *verdict;
} seen;

struct document {
	struct text end;
	int strip, quoted;
};

struct scan {
	struct text t;
	u32 i, depth;
	u8 *buffer; /* the words of all frames, one behind the other */
	u32 used;
	struct frame frames[max_frames];
	u32 top;
	struct document documents[max_documents];
	u32 waiting; /* documents whose text has not come yet */
};

static void scan_text(struct text t, u32 depth, int quotes);

static void refuse(const char *why)
{
	if (!seen.verdict)
		seen.verdict = why;
}

static int one_of(struct text t, const char *const *words)
{
	for (; *words; words++)
		if (same(t, *words))
			return 1;
	return 0;
}

/* Words behind which a command begins. */
static const char *const keywords[] = {"then", "do", "else", "elif", "if", "while", "until", "!", "{", "time", 0};

/* Words that run what follows them, behind flags and values of their own. */
static const char *const wrappers[] = {
	"sudo", "doas", "env", "nice", "nohup", "timeout", "exec", "command", "builtin", "xargs", "parallel", "setsid", "stdbuf",
	"ionice", "busybox", "toybox", 0};

/* Words that may run a text as a command. */
static const char *const interpreters[] = {
	"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "eval", "su", "ssh", "alias", "trap", "case", "watch", "parallel",
	"script", "nsenter", "chroot", "perl", "ruby", "node", "php", "awk", "expect", 0};

static struct text base_name(struct text w)
{
	for (u32 i = w.length; i > 0; i--)
		if (w.at[i - 1] == '/')
			return (struct text){w.at + i, w.length - i};
	return w;
}

static int starts(struct text w, const char *prefix)
{
	for (u32 i = 0; prefix[i]; i++)
		if (i >= w.length || w.at[i] != (u8)prefix[i])
			return 0;
	return 1;
}

static int has(struct text w, const char *set)
{
	for (u32 i = 0; i < w.length; i++)
		for (const char *c = set; *c; c++)
			if (w.at[i] == (u8)*c)
				return 1;
	return 0;
}

/* long_flag tells --recursive, also where it is cut short as GNU allows. */
static int long_flag(struct text w, const char *flag)
{
	u32 i = 0;
	while (i < w.length && flag[i] && w.at[i] == (u8)flag[i])
		i++;
	return i == w.length && i >= 3;
}

/* sure_flag tells flags that rm takes and that make it recursive. */
static int sure_flag(struct text w)
{
	if (long_flag(w, "--recursive"))
		return 1;
	if (w.length < 2 || w.at[0] != '-')
		return 0;
	int recursive = 0;
	for (u32 i = 1; i < w.length; i++) {
		if (!has((struct text){w.at + i, 1}, "dfiIPrRvWx"))
			return 0;
		recursive |= w.at[i] == 'r' || w.at[i] == 'R';
	}
	return recursive;
}

static int is_assignment(struct text w)
{
	u32 i = 0;
	while (i < w.length && (w.at[i] == '_' || (w.at[i] | 0x20) - 'a' < 26u || w.at[i] - '0' < 10u))
		i++;
	return i > 0 && i < w.length && w.at[i] == '=';
}

/* assigned is the value of an assignment. */
static struct text assigned(struct text w)
{
	u32 i = 0;
	while (w.at[i] != '=')
		i++;
	return (struct text){w.at + i + 1, w.length - i - 1};
}

static void remember(struct text t, u32 depth)
{
	if (is_assignment(t))
		t = assigned(t);
	u8 *copy = allocate(t.length + 1);
	struct inner *n = allocate(sizeof *n);
	if (!copy || !n) {
		refuse(unreadable);
		return;
	}
	for (u32 i = 0; i < t.length; i++)
		copy[i] = t.at[i];
	*n = (struct inner){seen.inners, {copy, t.length}, depth};
	seen.inners = n;
}

static void judge_rm_argument(struct command *c, struct text w, const struct frame *f)
{
	if (same(w, "--")) {
		c->rm_over = 1;
		return;
	}
	if (starts(w, "--")) {
		if (long_flag(w, "--recursive") || (starts(w, "--no-p") && long_flag(w, "--no-preserve-root")))
			refuse(recursive_rm);
	} else if (starts(w, "-")) {
		if (has(w, "rR"))
			refuse(recursive_rm);
	}
	if (has(w, "-") && (starts(w, "-") || f->braced) && (f->expanded || f->globbed || f->braced))
		refuse(hidden_rm);
	if (f->expanded)
		seen.rm_expanded = 1;
}

/* judge_word takes a whole word into account. */
static void judge_word(struct scan *s, struct frame *f, struct text w)
{
	struct command *c = &f->command;
	if (has(w, " \t\n;|&(`$<>"))
		remember(w, s->depth);
	if (c->redirect) {
		c->redirect = 0;
		return;
	}
	if (!c->named && is_assignment(w)) {
		seen.flag_value |= sure_flag(assigned(w));
		return;
	}
	if (!c->named && one_of(w, keywords))
		return;
	struct text base = base_name(w);
	int computed = f->expanded || f->globbed || f->braced;
	if (one_of(base, interpreters) || starts(base, "python"))
		seen.runs_text = 1;
	if ((!c->named || c->wrapper) && computed)
		c->computed = seen.runs_text = 1;
	if (c->computed && sure_flag(w))
		refuse(hidden_rm);
	if (c->rm && !c->rm_over)
		judge_rm_argument(c, w, f);
	if (same(base, "rm")) {
		c->rm = 1;
		c->rm_over = 0;
		seen.xargs_rm |= c->xargs;
		if (c->find)
			refuse(find_deletes);
	}
	if (c->find && same(w, "-delete"))
		refuse(find_deletes);
	c->find |= same(base, "find") || same(base, "fd");
	seen.find |= c->find;
	c->xargs |= same(base, "xargs") || same(base, "parallel");
	c->wrapper |= one_of(base, wrappers);
	if (!one_of(base, wrappers) && !starts(w, "-"))
		c->named = 1;
}

/* end_word ends the word of a frame. One with braces is judged as a whole and
 * in the parts that a shell makes of it. */
static void end_word(struct scan *s, struct frame *f)
{
	if (f->begun) {
		struct text w = {s->buffer + f->start, s->used - f->start};
		judge_word(s, f, w);
		if (f->braced && has(w, ",")) {
			f->expanded = 1;
			f->braced = 0;
			for (u32 from = 0, i = 0; i <= w.length; i++) {
				if (i < w.length && !has((struct text){w.at + i, 1}, "{,}"))
					continue;
				if (i > from)
					judge_word(s, f, (struct text){w.at + from, i - from});
				from = i + 1;
			}
		}
	}
	s->used = f->start;
	f->begun = f->expanded = f->globbed = f->braced = 0;
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

static void append(struct scan *s, struct frame *f, u8 c)
{
	s->buffer[s->used++] = c; /* a word is never longer than the text */
	f->begun = 1;
}

static u8 peek(const struct scan *s, u32 ahead)
{
	return s->i + ahead < s->t.length ? s->t.at[s->i + ahead] : 0;
}

/* backticks reads `…` and what is in it. */
static void backticks(struct scan *s, struct frame *f)
{
	u32 from = s->i, length = 0;
	u8 *inner = allocate(s->t.length - from + 1);
	if (!inner) {
		refuse(unreadable);
		return;
	}
	for (s->i++; s->i < s->t.length && s->t.at[s->i] != '`'; s->i++) {
		if (s->t.at[s->i] == '\\' && (peek(s, 1) == '`' || peek(s, 1) == '\\' || peek(s, 1) == '$'))
			s->i++;
		inner[length++] = s->t.at[s->i];
	}
	scan_text((struct text){inner, length}, s->depth + 1, 0);
	f->begun = f->expanded = 1;
}

static int is_name(u8 c) { return c == '_' || (u8)((c | 0x20) - 'a') < 26 || (u8)(c - '0') < 10; }

/* variable reads the name behind $ or ${, and the operator behind the name.
 * $IFS counts as a blank. What may stand for it is read on as part of the word. */
static void variable(struct scan *s, struct frame *f, int braces)
{
	s->i += 1 + (u32)braces;
	if (braces && (peek(s, 0) == '#' || peek(s, 0) == '!'))
		s->i++;
	u32 from = s->i;
	if (is_name(peek(s, 0)))
		while (is_name(peek(s, 0)))
			s->i++;
	else
		s->i++; /* $@, $*, $?, … */
	struct text name = {s->t.at + from, s->i - from};
	if (braces)
		while (peek(s, 0) && has((struct text){s->t.at + s->i, 1}, ":-=+?%#/^,"))
			s->i++;
	int blank = same(name, "IFS") && !f->quotes;
	while (braces && blank && peek(s, 0) && peek(s, 0) != '}')
		s->i++;
	if (braces && peek(s, 0) == '}')
		s->i++;
	s->i--; /* the caller steps */
	if (blank) {
		end_word(s, f);
		return;
	}
	f->begun = f->expanded = 1;
}

/* dollar reads what begins with $. */
static void dollar(struct scan *s, struct frame *f)
{
	u8 next = peek(s, 1);
	if (next == '(') {
		f->begun = f->expanded = 1;
		s->i++;
		push(s, peek(s, 1) == '(');
	} else if (next == '{') {
		variable(s, f, 1);
	} else if (is_name(next) || (next && has((struct text){&next, 1}, "@*#?$!-"))) {
		variable(s, f, 0);
	} else if (next == '\'' && !f->quotes) {
		for (s->i += 2; s->i < s->t.length && s->t.at[s->i] != '\''; s->i++) {
			if (s->t.at[s->i] == '\\') {
				f->expanded = 1; /* whatever it makes */
				s->i++;
			}
			if (s->i < s->t.length)
				append(s, f, s->t.at[s->i]);
		}
		f->begun = 1;
	} else if (next != '"' || f->quotes) {
		append(s, f, '$');
	}
}

/* redirection reads < or > and what belongs to it. */
static void redirection(struct scan *s, struct frame *f)
{
	u8 c = s->t.at[s->i], next = peek(s, 1);
	end_word(s, f);
	if (next == '(') { /* a process's output or input */
		s->i++;
		f->begun = f->expanded = 1;
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
		u8 *end = allocate(s->t.length - s->i + 1);
		if (!end) {
			refuse(unreadable);
			return;
		}
		d.end.at = end;
		for (u8 e; (e = peek(s, 1)) && !has((struct text){&e, 1}, " \t\n;|&<>()"); s->i++) {
			if (e == '\'' || e == '"' || e == '\\')
				d.quoted = 1;
			else
				end[d.end.length++] = e;
		}
		s->documents[s->waiting++] = d;
		return;
	}
	while (next && has((struct text){&next, 1}, "<>&|")) {
		s->i++;
		next = peek(s, 1);
	}
	f->command.redirect = 1;
}

/* read_document reads the lines of a here-document, behind a newline. */
static void read_document(struct scan *s, struct document d)
{
	u32 from = s->i + 1, at = from;
	int found = 0;
	while (at < s->t.length && !found) {
		u32 line = at;
		while (at < s->t.length && s->t.at[at] != '\n')
			at++;
		struct text t = {s->t.at + line, at - line};
		while (d.strip && t.length && *t.at == '\t')
			t.at++, t.length--;
		found = t.length == d.end.length;
		for (u32 i = 0; found && i < t.length; i++)
			found = t.at[i] == d.end.at[i];
		s->i = at;
		at++;
	}
	struct text body = {s->t.at + from, s->i > from ? s->i - from : 0};
	remember(body, s->depth);
	if (!d.quoted)
		scan_text(body, s->depth + 1, 1); /* the shell expands it */
	if (!found)
		scan_text(body, s->depth + 1, 0); /* perhaps it is none */
}

static void quoted(struct scan *s, struct frame *f, u8 c)
{
	if (c == '"' && !f->document) {
		f->quotes = 0;
	} else if (c == '\\') {
		u8 next = peek(s, 1);
		if (next && has((struct text){&next, 1}, "$`\"\\\n")) {
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
	u32 waiting = s->waiting;
	s->waiting = 0;
	for (u32 d = 0; d < waiting; d++)
		read_document(s, s->documents[d]);
}

static void unquoted(struct scan *s, struct frame *f, u8 c)
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
		f->braced = 1;
		append(s, f, c);
		break;
	case '*': case '?': case '[':
		f->globbed = 1;
		append(s, f, c);
		break;
	default:
		append(s, f, c);
	}
}

/* scan_text judges a text as a shell would read it; with quotes, as one
 * within "…" that does not end. */
static void scan_text(struct text t, u32 depth, int quotes)
{
	if (depth > max_depth || t.length > max_text) {
		refuse(unreadable);
		return;
	}
	u32 mark = heap_top;
	struct inner *before = seen.inners;
	struct scan *s = allocate(sizeof *s);
	u8 *buffer = allocate(t.length + 1);
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
		heap_top = mark; /* nothing of it is needed any more */
}

/* judge judges a command line, with what a shell that it calls would run. */
static void judge(struct text t)
{
	const char *verdict = seen.verdict;
	__builtin_memset(&seen, 0, sizeof seen);
	seen.verdict = verdict;
	scan_text(t, 0, 0);
	while (seen.runs_text && seen.inners && !seen.verdict) {
		struct inner n = *seen.inners;
		seen.inners = n.next;
		scan_text(n.text, n.depth + 1, 0);
	}
	if (seen.find && seen.xargs_rm)
		refuse(find_deletes);
	if (seen.rm_expanded && seen.flag_value)
		refuse(hidden_rm);
}

/* judge_strings judges each string in JSON text. */
static int judge_strings(struct json j)
{
	struct text t;
	while (j.at < j.end) {
		if (*j.at != '"')
			j.at++;
		else if (string(&j, &t))
			judge(t);
		else
			return 0;
	}
	return 1;
}

WHARF_EXPORT("before_execute_tool") u64 before_execute_tool(const u8 *at, u32 length)
{
	struct json payload = {at, at + length}, arguments;
	seen.verdict = 0;
	if (!member(payload, "arguments", &arguments) || !judge_strings(arguments))
		return ANSWER("{\"error\":\"the call has no arguments that can be read\"}");
	if (!seen.verdict)
		return 0;
	struct output o = {0};
	put_text(&o, "{\"decision\":\"deny\",\"reason\":\"this guard refuses recursive deletes, and the command has ");
	put_text(&o, seen.verdict);
	put_text(&o, ": delete single files by name, or ask the user to delete the folder\"}");
	return answer(o.at, o.length);
}
