/* What the words of a command say: whether it deletes recursively, or may. */
#include "wharf.h"

static const char recursive_rm[] = "rm with a recursive flag";
static const char find_deletes[] = "find that deletes what it finds";
static const char hidden_rm[] = "a command whose name or flags are computed, and which may be a recursive rm";
static const char decoded_text[] = "a text that is decoded and run";
static const char git_deletes[] = "git clean, which deletes folders";
static const char copy_deletes[] = "a copy that deletes what it does not find, or what it has copied";
static const char program_deletes[] = "a program that deletes folders";
static const char unreadable[] = "a command that is nested too deeply or is too large to be judged";

/* command is what is known of the simple command that is being read. */
struct command {
	int named;   /* its name was read */
	int wrapper; /* a word before may run what follows, such as sudo */
	int rm, rm_over; /* rm was read; -- after it too */
	int find, xargs, git, git_clean, copy;
	int prints;   /* it gives its words on, such as echo */
	int computed; /* what may be its name is the result of an expansion */
	int redirect; /* the next word is the target of a redirection */
	int program;  /* it runs programs in a language of its own */
	int source;   /* the next word is such a program */
};

/* word is what is known of a word besides its text. */
struct word {
	int expanded, globbed, braced; /* it has an expansion, a glob, a brace */
	int substituted;               /* it begins with the output of a command, unquoted */
};

/* inner is a text that a shell might run, if one is called: a quoted word or
 * a here-document. */
struct inner {
	struct inner *next;
	wharf_text text;
	uint32_t depth;
};

/* What was seen anywhere in the command line. */
static struct {
	struct inner *inners;
	int runs_text; /* something that may run a quoted text as a command */
	int runs_input; /* a shell, which may run what it reads */
	int decodes;    /* something that makes a text of another */
	int find, xargs_rm, rm_expanded, computed, flag_value, inner_rm;
	const char *verdict;
} seen;

static void scan_text(wharf_text t, uint32_t depth, int quotes);

static void refuse(const char *why)
{
	if (!seen.verdict)
		seen.verdict = why;
}

static int one_of(wharf_text t, const char *const *words)
{
	for (; *words; words++)
		if (wharf_equal(t, *words))
			return 1;
	return 0;
}

/* Words behind which a command begins. */
static const char *const keywords[] = {"then", "do", "else", "elif", "if", "while", "until", "!", "{", "time", 0};

/* Words that run what follows them, behind flags and values of their own. */
static const char *const wrappers[] = {
	"sudo", "doas", "env", "nice", "nohup", "timeout", "exec", "command", "builtin", "xargs", "parallel", "setsid", "stdbuf",
	"ionice", "busybox", "toybox", 0};

static const char *const shells[] = {"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash", "eval", 0};

/* Words that may run a text as a command. */
static const char *const interpreters[] = {
	"su", "ssh", "alias", "trap", "case", "watch", "parallel", "script", "nsenter", "chroot", "flock", "at", "batch", "perl", "ruby",
	"node", "php", "awk", "expect", "vi", "vim", "ex", "ed", "gdb", "tar", "split", 0};

static const char *const languages[] = {"perl", "ruby", "node", "php", 0};
static const char *const program_flags[] = {"-c", "-e", "-E", "-r", "-p", "--eval", "--print", 0};

/* What programs delete folders with. */
static const char *const deleting_calls[] = {"rmtree", "remove_tree", "rm_r", "remove_dir", "removedirs", "rmSync", "rimraf", "RemoveAll", 0};

static const char *const deleters[] = {"rm", "unlink", "shred", 0};
static const char *const printers[] = {"echo", "printf", "set", 0};
static const char *const decoders[] = {"base64", "base32", "xxd", "openssl", "uudecode", 0};
static const char *const decoding_flags[] = {"-d", "-D", "-di", "--decode", "-r", "enc", 0};

static wharf_text base_name(wharf_text w)
{
	uint32_t from = w.length;
	while (from > 0 && w.at[from - 1] != '/')
		from--;
	while (from < w.length && (w.at[from] == '!' || w.at[from] == ':'))
		from++; /* as editors write it */
	return (wharf_text){w.at + from, w.length - from};
}

static int starts(wharf_text w, const char *prefix)
{
	for (uint32_t i = 0; prefix[i]; i++)
		if (i >= w.length || w.at[i] != (uint8_t)prefix[i])
			return 0;
	return 1;
}

static int has(wharf_text w, const char *set)
{
	for (uint32_t i = 0; i < w.length; i++)
		for (const char *c = set; *c; c++)
			if (w.at[i] == (uint8_t)*c)
				return 1;
	return 0;
}

static wharf_text behind(wharf_text w, uint32_t n) { return (wharf_text){w.at + n, w.length - n}; }

/* find_text returns what stands behind the first needle in w, with its length 0 if there is none. */
static wharf_text find_text(wharf_text w, const char *needle, uint32_t size)
{
	for (uint32_t i = 0; i + size <= w.length; i++)
		if (starts(behind(w, i), needle))
			return behind(w, i + size);
	return (wharf_text){w.at, 0};
}

/* long_flag tells --recursive, also where it is cut short as GNU allows. */
static int long_flag(wharf_text w, const char *flag)
{
	uint32_t i = 0;
	while (i < w.length && flag[i] && w.at[i] == (uint8_t)flag[i])
		i++;
	return i == w.length && i >= 3;
}

/* sure_flag tells flags that rm takes and that make it recursive: 2 if no
 * other common command has them. */
static int sure_flag(wharf_text w)
{
	if (long_flag(w, "--recursive"))
		return 1;
	if (w.length < 2 || w.at[0] != '-')
		return 0;
	int recursive = 0, force = 0;
	for (uint32_t i = 1; i < w.length; i++) {
		if (!has((wharf_text){w.at + i, 1}, "dfiIPrRvWx"))
			return 0;
		recursive |= w.at[i] == 'r' || w.at[i] == 'R';
		force |= w.at[i] == 'f';
	}
	return recursive + (recursive && force);
}

/* has_flag tells a text that would be such a flag, or several words with one. */
static int has_flag(wharf_text t)
{
	for (uint32_t from = 0, i = 0; i <= t.length; i++) {
		if (i < t.length && !has((wharf_text){t.at + i, 1}, " \t\n,"))
			continue;
		if (sure_flag((wharf_text){t.at + from, i - from}))
			return 1;
		from = i + 1;
	}
	return 0;
}

static int is_assignment(wharf_text w)
{
	uint32_t i = 0;
	while (i < w.length && (w.at[i] == '_' || (w.at[i] | 0x20) - 'a' < 26u || w.at[i] - '0' < 10u))
		i++;
	return i > 0 && i < w.length && w.at[i] == '=';
}

/* assigned is the value of an assignment. */
static wharf_text assigned(wharf_text w)
{
	uint32_t i = 0;
	while (w.at[i] != '=')
		i++;
	return behind(w, i + 1);
}

/* value is what stands behind NAME= or --option=, where t begins so. */
static wharf_text value(wharf_text t)
{
	uint32_t from = 0;
	for (uint32_t i = 0; i < t.length && !has((wharf_text){t.at + i, 1}, " \t\n"); i++)
		if (t.at[i] == '=')
			from = i + 1;
	return behind(t, from);
}

static void remember(wharf_text t, uint32_t depth)
{
	t = value(t);
	uint8_t *copy = wharf_allocate(t.length + 1);
	struct inner *n = wharf_allocate(sizeof *n);
	if (!copy || !n) {
		refuse(unreadable);
		return;
	}
	for (uint32_t i = 0; i < t.length; i++)
		copy[i] = t.at[i];
	*n = (struct inner){seen.inners, {copy, t.length}, depth};
	seen.inners = n;
	if (starts(t, "-"))
		seen.flag_value |= has_flag(t);
}

/* judge_program judges a program in another language: by the calls that
 * delete folders, and as a command, since it may put one together. */
static void judge_program(wharf_text t, uint32_t depth)
{
	for (const char *const *call = deleting_calls; *call; call++) {
		uint32_t size = 0;
		while ((*call)[size])
			size++;
		if (find_text(t, *call, size).length)
			refuse(program_deletes);
	}
	uint8_t *words = wharf_allocate(t.length + 1);
	if (!words) {
		refuse(unreadable);
		return;
	}
	for (uint32_t i = 0; i < t.length; i++)
		words[i] = has((wharf_text){t.at + i, 1}, "'\"`,+()[]{}") ? ' ' : t.at[i];
	scan_text((wharf_text){words, t.length}, depth + 1, 0);
}

static void judge_rm_argument(struct command *c, wharf_text w, struct word is)
{
	if (wharf_equal(w, "--")) {
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
	if (has(w, "-") && (starts(w, "-") || is.braced) && (is.expanded || is.globbed || is.braced))
		refuse(hidden_rm);
	if (is.substituted)
		refuse(hidden_rm);
	seen.rm_expanded |= is.expanded;
}

/* judge_argument judges a word by the command that it belongs to. */
static void judge_argument(struct command *c, wharf_text w, struct word is, uint32_t depth)
{
	if (c->computed && sure_flag(w))
		refuse(hidden_rm);
	if (sure_flag(w) == 2 ? !c->copy : sure_flag(w) && (c->prints || !(c->named || c->wrapper)))
		seen.flag_value = 1;
	if (c->rm && !c->rm_over)
		judge_rm_argument(c, w, is);
	if (c->find && wharf_equal(w, "-delete"))
		refuse(find_deletes);
	if (c->git_clean && starts(w, "-") && has(w, "f") && !has(w, "n"))
		refuse(git_deletes);
	c->git_clean |= c->git && wharf_equal(w, "clean");
	if (c->copy && (wharf_equal(w, "--del") || starts(w, "--delete") || long_flag(w, "--remove-files") || long_flag(w, "--remove-source-files")) && w.length > 4)
		refuse(copy_deletes);
	if (c->wrapper && starts(w, "-S")) /* env splits it into words */
		seen.runs_text = 1, remember(behind(w, 2), depth);
	wharf_text alias = find_text(w, "=!", 2); /* git runs it as a command */
	if (c->git && starts(w, "!"))
		alias = behind(w, 1);
	if (c->git && alias.length)
		seen.runs_text = 1, remember(alias, depth);
	if (c->source)
		judge_program(w, depth);
	c->source = c->program && one_of(w, program_flags);
	seen.decodes |= c->named < 0 && one_of(w, decoding_flags);
}

/* judge_name takes into account what a word means as a command's name. It may
 * be one wherever it stands: who knows what runs it. */
static void judge_name(struct command *c, wharf_text w, wharf_text base)
{
	if (one_of(base, shells))
		seen.runs_text = seen.runs_input = 1;
	if (one_of(base, interpreters) || starts(base, "python"))
		seen.runs_text = 1;
	if (!c->named && (wharf_equal(w, ".") || wharf_equal(w, "source") || starts(w, "./")))
		seen.runs_text = 1; /* a file that may just have been written */
	c->program |= one_of(base, languages) || starts(base, "python");
	if (wharf_equal(base, "rm")) {
		c->rm = 1;
		c->rm_over = 0;
		seen.rm_expanded |= c->xargs;
	}
	if (one_of(base, deleters)) {
		seen.xargs_rm |= c->xargs;
		if (c->find)
			refuse(find_deletes);
	}
	if (wharf_equal(base, "rimraf"))
		refuse(program_deletes);
	c->find |= wharf_equal(base, "find") || wharf_equal(base, "fd") || wharf_equal(base, "fdfind");
	seen.find |= c->find;
	c->xargs |= wharf_equal(base, "xargs") || wharf_equal(base, "parallel");
	c->wrapper |= one_of(base, wrappers);
	if (c->named)
		return;
	c->git = wharf_equal(base, "git");
	c->copy = wharf_equal(base, "rsync") || wharf_equal(base, "tar") || wharf_equal(base, "cp") || wharf_equal(base, "scp") || wharf_equal(base, "ln");
	c->prints = one_of(base, printers);
	if (!one_of(base, wrappers) && !starts(w, "-"))
		c->named = one_of(base, decoders) ? -1 : 1;
}

/* judge_word takes a whole word into account. */
static void judge_word(struct command *c, wharf_text w, struct word is, uint32_t depth)
{
	if (has(w, " \t\n;|&(`$<>"))
		remember(w, depth);
	if (c->redirect) {
		c->redirect = 0;
		return;
	}
	if (!c->named && is_assignment(w)) {
		seen.flag_value |= has_flag(assigned(w));
		return;
	}
	if (!c->named && one_of(w, keywords))
		return;
	if ((!c->named || c->wrapper) && (is.expanded || is.globbed || is.braced))
		c->computed = seen.runs_text = seen.computed = 1;
	judge_argument(c, w, is, depth);
	judge_name(c, w, base_name(w));
	seen.inner_rm |= c->rm && depth > 0;
}
