package builtin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/wharf-agent/wharf/engine/permission"
	"github.com/wharf-agent/wharf/engine/tool"
)

// The limits of the tools that look around.
const (
	maxEntries     = 1_000 // of list_dir
	maxFound       = 500   // of find_files
	defaultMatches = 250   // of grep
	maxContext     = 20    // lines around a match
	maxWalked      = 200_000
	maxDepth       = 100   // folders one in the other; the time to open one grows with its depth
	maxGlobs       = 100   // that one with braces may stand for
	maxExpression  = 1_000 // bytes of a regular expression
	longLine       = 4_096 // bytes of a line whose search can be interrupted
)

type listArgs struct {
	Path string `json:"path"`
}

func (f *files) listDir() tool.Tool {
	return define("list_dir",
		"List a folder of the workspace: folders end in /, links in @, files come with their size in bytes.",
		`"properties":{"path":{"type":"string","description":"relative to the workspace; the workspace itself if absent"}}`,
		permission.Reads, 0,
		func(_ context.Context, a listArgs) (tool.Result, error) {
			entries, _, err := f.root.ReadDir(orDot(a.Path))
			if err != nil {
				return tool.Result{}, err
			}
			if len(entries) == 0 {
				return text("[the folder is empty]"), nil
			}
			var b strings.Builder
			for _, entry := range entries[:min(len(entries), maxEntries)] {
				b.WriteString(listed(entry) + "\n")
			}
			if more := len(entries) - maxEntries; more > 0 {
				fmt.Fprintf(&b, "[%d entries more; use find_files]\n", more)
			}
			return text("%s", b.String()), nil
		})
}

func listed(entry fs.DirEntry) string {
	switch mode := entry.Type(); {
	case mode.IsDir():
		return plainName(entry.Name()) + "/"
	case mode&fs.ModeSymlink != 0:
		return plainName(entry.Name()) + "@"
	case !mode.IsRegular():
		return plainName(entry.Name()) + " (no regular file)"
	}
	info, err := entry.Info()
	if err != nil {
		return plainName(entry.Name())
	}
	return fmt.Sprintf("%s\t%d", plainName(entry.Name()), info.Size())
}

func orDot(name string) string {
	if name == "" {
		return "."
	}
	return name
}

// walk calls visit with each file below the folder at top, sorted by path,
// leaving out .git, what .gitignore files exclude, what links lead to, and what
// lies too deep. It stops when visit returns false.
func (f *files) walk(ctx context.Context, top string, visit func(rel string) bool) error {
	rel, err := f.root.Resolve(top)
	if err != nil {
		return err
	}
	if strings.Count(rel, "/") > maxDepth {
		return fmt.Errorf("%q lies more than %d folders deep: look from a folder nearer to the workspace", cutLine(top), maxDepth)
	}
	w := walker{files: f, ctx: ctx, visit: visit}
	// What is above the folder may exclude things in it.
	for _, dir := range ancestors(rel) {
		w.readIgnore(dir)
	}
	return w.dir(rel)
}

// ancestors returns the folders above rel, the workspace first.
func ancestors(rel string) []string {
	var dirs []string
	for dir := rel; dir != "."; {
		dir = path.Dir(dir)
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

type walker struct {
	*files
	ctx     context.Context
	visit   func(rel string) bool
	ignore  []gitignore.Pattern
	walked  int
	stopped bool
}

func (w *walker) dir(dir string) error {
	kept := len(w.ignore)
	defer func() { w.ignore = w.ignore[:kept] }()
	w.readIgnore(dir)
	matcher := gitignore.NewMatcher(w.ignore)
	entries, _, err := w.root.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if w.stopped {
			return nil
		}
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		if w.walked++; w.walked > maxWalked {
			return fmt.Errorf("the folder holds more than %d files: look in a part of it", maxWalked)
		}
		rel := path.Join(dir, entry.Name())
		if entry.Name() == ".git" || matcher.Match(strings.Split(rel, "/"), entry.IsDir()) || w.hidden(rel) {
			continue
		}
		switch {
		case entry.IsDir() && strings.Count(rel, "/") < maxDepth:
			err := w.dir(rel)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
				return err
			}
		case entry.Type().IsRegular():
			w.stopped = !w.visit(rel)
		}
	}
	return nil
}

// readIgnore adds the patterns of the folder's .gitignore, if it has one.
func (w *walker) readIgnore(dir string) {
	content, _, err := w.root.ReadAll(path.Join(dir, ".gitignore"), 1<<20)
	if err != nil {
		return
	}
	var domain []string
	if dir != "." {
		domain = strings.Split(dir, "/")
	}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			w.ignore = append(w.ignore, gitignore.ParsePattern(line, domain))
		}
	}
}

type findArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

func (f *files) findFiles() tool.Tool {
	return define("find_files",
		"Find files of the workspace by name. The pattern is a glob: * within a name, ** over folders, {a,b} for either. Without a slash it is compared with the name alone, at any depth. What .gitignore excludes, and what lies more than 100 folders deep, is left out.",
		`"properties":{
			"pattern":{"type":"string","minLength":1,"description":"such as *.go or src/**/*_test.py"},
			"path":{"type":"string","description":"the folder to look in; the workspace itself if absent"}
		},"required":["pattern"]`,
		permission.Reads, 0,
		func(ctx context.Context, a findArgs) (tool.Result, error) {
			match, err := globber(a.Pattern, orDot(a.Path), f)
			if err != nil {
				return tool.Result{}, err
			}
			var found []string
			err = f.walk(ctx, orDot(a.Path), func(rel string) bool {
				if match(rel) {
					found = append(found, plainName(rel))
				}
				return len(found) <= maxFound
			})
			if err != nil {
				return tool.Result{}, err
			}
			if len(found) == 0 {
				return text("[no file matches]"), nil
			}
			if len(found) > maxFound {
				return text("%s\n[more than %d files match; narrow the pattern]", strings.Join(found[:maxFound], "\n"), maxFound), nil
			}
			return text("%s", strings.Join(found, "\n")), nil
		})
}

// globber returns a function that compares a file's path, relative to the
// workspace, with a glob that is relative to the folder at top.
func globber(pattern, top string, f *files) (func(rel string) bool, error) {
	pattern = strings.TrimPrefix(pattern, "./")
	if !doublestar.ValidatePattern(pattern) {
		return nil, fmt.Errorf("pattern %q is no glob: see the tool's description", pattern)
	}
	globs := alternatives(pattern)
	if len(globs) > maxGlobs {
		return nil, fmt.Errorf("pattern %q stands for more than %d globs: use fewer {…}", cutLine(pattern), maxGlobs)
	}
	dir, err := f.root.Resolve(top)
	if err != nil {
		return nil, err
	}
	return func(rel string) bool {
		name := rel
		if dir != "." {
			name = strings.TrimPrefix(rel, dir+"/")
		}
		if !strings.Contains(pattern, "/") {
			name = path.Base(rel)
		}
		return slices.ContainsFunc(globs, func(glob string) bool { return doublestar.MatchUnvalidated(glob, name) })
	}, nil
}

// alternatives returns the globs without braces that a valid glob stands for,
// or more than maxGlobs of them if it stands for more: what matches braces by
// trying takes exponential time.
func alternatives(pattern string) []string {
	done, todo := []string{}, []string{pattern}
	for len(todo) > 0 && len(done)+len(todo) <= maxGlobs {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		before, choices, after, ok := cutBraces(next)
		if !ok {
			done = append(done, next)
		}
		for _, choice := range choices {
			todo = append(todo, before+choice+after)
		}
	}
	return append(done, todo...)
}

// cutBraces splits a valid glob around its first {a,b}.
func cutBraces(pattern string) (before string, choices []string, after string, ok bool) {
	depth, class, open, from := 0, false, 0, 0
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '{':
			if depth++; depth == 1 {
				open, from = i, i+1
			}
		case c == ',' && depth == 1:
			choices = append(choices, pattern[from:i])
			from = i + 1
		case c == '}' && depth == 1:
			return pattern[:open], append(choices, pattern[from:i]), pattern[i+1:], true
		case c == '}':
			depth--
		}
	}
	return "", nil, "", false
}

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	Context    int    `json:"context"`
	Limit      int    `json:"limit"`
	IgnoreCase bool   `json:"ignore_case"`
}

func (f *files) grep() tool.Tool {
	return define("grep",
		"Search the text files of the workspace for a regular expression (RE2 syntax), line by line. What .gitignore excludes, and what lies more than 100 folders deep, is left out.",
		`"properties":{
			"pattern":{"type":"string","minLength":1},
			"path":{"type":"string","description":"the folder or file to search; the workspace itself if absent"},
			"glob":{"type":"string","description":"search only files that match, such as *.go"},
			"context":{"type":"integer","minimum":0,"maximum":20,"description":"lines to show before and after each match"},
			"limit":{"type":"integer","minimum":1,"maximum":2000,"description":"matches to show; 250 if absent"},
			"ignore_case":{"type":"boolean"}
		},"required":["pattern"]`,
		permission.Reads, 0, f.search)
}

func (f *files) search(ctx context.Context, a grepArgs) (tool.Result, error) {
	if len(a.Pattern) > maxExpression {
		return tool.Result{}, fmt.Errorf("the pattern has %d bytes: at most %d are taken", len(a.Pattern), maxExpression)
	}
	expression := a.Pattern
	if a.IgnoreCase {
		expression = "(?i)" + expression
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return tool.Result{}, fmt.Errorf("pattern %q is no regular expression: %w", a.Pattern, err)
	}
	wanted := func(string) bool { return true }
	if a.Glob != "" {
		if wanted, err = globber(a.Glob, orDot(a.Path), f); err != nil {
			return tool.Result{}, err
		}
	}
	s := searcher{re: re, context: min(a.Context, maxContext), left: a.Limit}
	if s.left == 0 {
		s.left = defaultMatches
	}
	visit := func(rel string) bool {
		if wanted(rel) {
			if content, _, err := f.read(rel); err == nil { // what is no text, or too large, is passed over
				s.file(ctx, rel, content)
			}
		}
		return s.left > 0 && s.out.Len() < maxShown && ctx.Err() == nil
	}
	if info, rel, err := f.root.Stat(orDot(a.Path)); err != nil {
		return tool.Result{}, err
	} else if info.Mode().IsRegular() {
		content, _, err := f.read(rel)
		if err != nil {
			return tool.Result{}, err
		}
		if wanted(rel) {
			s.file(ctx, rel, content)
		}
	} else if err := f.walk(ctx, orDot(a.Path), visit); err != nil {
		return tool.Result{}, err
	}
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	if s.out.Len() == 0 {
		return text("[no line matches]"), nil
	}
	if s.left == 0 || s.out.Len() >= maxShown {
		s.out.WriteString("[there may be more; narrow the pattern, or raise the limit]\n")
	}
	return text("%s", s.out.String()), nil
}

// searcher collects matching lines: path:line: text, and path-line- text for
// those around them.
type searcher struct {
	re      *regexp.Regexp
	context int
	left    int // matches still to be shown
	out     strings.Builder
}

func (s *searcher) file(ctx context.Context, rel string, content []byte) {
	var lines []string
	scanner := bufio.NewScanner(bytes.NewReader(content))
	scanner.Buffer(nil, maxFile+1)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	shown := -1 // the last line that was
	for i, line := range lines {
		if s.left == 0 || ctx.Err() != nil {
			return
		}
		if !s.matches(ctx, line) {
			continue
		}
		s.left--
		from := max(i-s.context, shown+1)
		if s.context > 0 && shown >= 0 && from > shown+1 {
			s.out.WriteString("--\n")
		}
		for n := from; n <= min(i+s.context, len(lines)-1); n++ {
			mark := "-"
			if s.matches(ctx, lines[n]) {
				mark = ":"
			}
			fmt.Fprintf(&s.out, "%s%s%d%s %s\n", plainName(rel), mark, n+1, mark, cutLine(lines[n]))
			shown = n
		}
	}
}

// matches reports whether a line matches, unless the context ends before that
// is known.
func (s *searcher) matches(ctx context.Context, line string) bool {
	if len(line) <= longLine {
		return s.re.MatchString(line)
	}
	in := strings.NewReader(line)
	return s.re.MatchReader(runes(func() (rune, int, error) {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		return in.ReadRune()
	}))
}

// runes is a function as an io.RuneReader.
type runes func() (rune, int, error)

func (r runes) ReadRune() (rune, int, error) { return r() }
