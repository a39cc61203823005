package patch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const whole = `*** Begin Patch
*** Add File: notes.txt
+one
+
+two
*** Update File: a/main.go
*** Move to: a/run.go
@@ func main() {
@@
 	stays
-	goes
+	comes

*** Delete File: old.txt

*** End Patch
`

func TestParse(t *testing.T) {
	files, err := Parse(whole)
	if err != nil {
		t.Fatal(err)
	}
	want := []File{
		{Kind: Add, Path: "notes.txt", Content: "one\n\ntwo\n"},
		{Kind: Update, Path: "a/main.go", MoveTo: "a/run.go", Hunks: []Hunk{{
			Anchors: []string{"func main() {"}, Lines: []Line{{' ', "\tstays"}, {'-', "\tgoes"}, {'+', "\tcomes"}, {' ', ""}},
		}}},
		{Kind: Delete, Path: "old.txt"},
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"notes.txt", "a/main.go", "a/run.go", "old.txt"}, Paths(files)); diff != "" {
		t.Error(diff)
	}
}

func TestParseRefuses(t *testing.T) {
	const form = "a patch begins with *** Begin Patch, has *** Add File: PATH, *** Update File: PATH or *** Delete File: PATH, and ends with *** End Patch"
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", form},
		{"another form", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", form},
		{"no end", "*** Begin Patch\n*** Delete File: x", form},
		{"no file", "*** Begin Patch\n*** End Patch", "the patch changes no file: " + form},
		{"no path", "*** Begin Patch\n*** Delete File: \n*** End Patch", `line 2: "*** Delete File: " names no path`},
		{"stray lines", "*** Begin Patch\n+x\n*** End Patch", `line 2: "+x" is outside of any file's part: ` + form},
		{"a new file with other lines", "*** Begin Patch\n*** Add File: x\nx\n*** End Patch", `line 3: "x" does not begin with +, as each line of a new file does`},
		{"nothing to update", "*** Begin Patch\n*** Update File: x\n*** End Patch", `line 3: nothing changes in "x"`},
		{"only context", "*** Begin Patch\n*** Update File: x\n@@\n a\n*** End Patch", "line 5: a part of the file is named, and nothing changes in it: lines that go begin with -, lines that come with +"},
		{"a line of another kind", "*** Begin Patch\n*** Update File: x\n*a\n*** End Patch", `line 3: "*a" begins with none of blank, - and +`},
		{"a patch that is too long", strings.Repeat("x", MaxSize+1), "the patch has 1048577 bytes, and one may have 1048576: make several of it"},
		{"one file twice", "*** Begin Patch\n*** Delete File: x\n*** Add File: x\n+a\n*** End Patch", `"x" is named twice: put all changes to it into one part`},
		{"a file moved onto another of the patch", "*** Begin Patch\n*** Delete File: x\n*** Update File: y\n*** Move to: x\n*** End Patch", `"x" is named twice: put all changes to it into one part`},
		{"a move to nowhere", "*** Begin Patch\n*** Update File: y\n*** Move to:\n*** End Patch", "line 3: *** Move to: names no path"},
	} {
		if _, err := Parse(tt.text); err == nil || err.Error() != tt.want {
			t.Errorf("%s:\n got %v\nwant %s", tt.name, err, tt.want)
		}
	}
}

// update returns the only file of a patch with one update.
func update(t *testing.T, hunks string) File {
	t.Helper()
	files, err := Parse("*** Begin Patch\n*** Update File: f\n" + hunks + "*** End Patch")
	if err != nil {
		t.Fatal(err)
	}
	return files[0]
}

func TestApply(t *testing.T) {
	for _, tt := range []struct{ name, hunks, content, want string }{
		{"a line is replaced", "-b\n+B\n", "a\nb\nc\n", "a\nB\nc\n"},
		{"with lines around", "@@\n a\n-b\n c\n", "a\nb\nc\n", "a\nc\n"},
		{"twice", "@@\n-a\n+A\n@@\n-c\n+C\n", "a\nb\nc\n", "A\nb\nC\n"},
		{"after an anchor", "@@ second\n-x\n+y\n", "first\nx\nsecond\nx\n", "first\nx\nsecond\ny\n"},
		{"after two anchors", "@@ class B\n@@ def f\n- x\n+ y\n", "class A\n def f\n x\nclass B\n def f\n x\n", "class A\n def f\n x\nclass B\n def f\n y\n"},
		{"at the end", "@@\n-x\n+y\n*** End of File\n", "x\nx\n", "x\ny\n"},
		{"only adds, at the end", "+z\n", "a\n", "a\nz\n"},
		{"only adds, after an anchor", "@@ a\n+z\n", "a\nb\n", "a\nz\nb\n"},
		{"into an empty file", "+z\n", "", "z\n"},
		{"all goes", "-a\n", "a\n", ""},
		{"no line break at the end stays so", "-b\n+B\n", "a\nb", "a\nB"},
		{"line breaks of Windows stay", "-b\n+B\n+C\n", "a\r\nb\r\n", "a\r\nB\r\nC\r\n"},
		{"a line that comes takes the end of the one it replaces", "-b\n+B\n", "a\r\nb\nc\r\n", "a\r\nB\nc\r\n"},
		{"of each its own, and more take the last", "-a\n-b\n+A\n+B\n+C\n", "a\r\nb\nc\r\n", "A\r\nB\nC\nc\r\n"},
		{"also where it stands before it", "+A\n-a\n b\n", "x\na\r\nb\n", "x\nA\r\nb\n"},
		{"or of the line before", " a\n+A\n", "a\r\nb\n", "a\r\nA\r\nb\n"},
		{"or of the line after", "+A\n a\n", "a\r\nb\n", "A\r\na\r\nb\n"},
		{"a last line without an end gets one when it is none any more", " b\n+c\n", "a\r\nb", "a\r\nb\r\nc"},
		{"the mark at the beginning is no part of line 1, and stays", "-a\n+A\n", "\ufeffa\nb\n", "\ufeffA\nb\n"},
		{"also if the patch has it", "-\ufeffa\n+\ufeffA\n", "\ufeffa\nb\n", "\ufeffA\nb\n"},
		{"blanks at the ends of lines do not count, and stay", " a\n-b\n+B\n", "a  \nb\t\n", "a  \nB\n"},
	} {
		got, err := update(t, tt.hunks).Apply(t.Context(), tt.content)
		if err != nil || got != tt.want {
			t.Errorf("%s: got %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestApplyRefuses(t *testing.T) {
	for _, tt := range []struct{ name, hunks, content, want string }{
		{"lines that are not there", "-x\n", "a\n", `change 1 of "f": its lines do not stand there: read the file, and copy them exactly`},
		{"lines at two places", "-x\n", "x\nx\n", `change 1 of "f": its lines stand at 2 places: add lines around them, or an @@ with a line before`},
		{"an anchor that is not there", "@@ y\n-x\n", "x\n", `change 1 of "f": the line "y", which is to stand before it, is not there (any more, after the changes before)`},
		{"a second change before the first", "@@\n-b\n@@\n-a\n", "a\nb\n", `change 2 of "f": its lines do not stand there: read the file, and copy them exactly`},
		{"not the end", "-a\n*** End of File\n", "a\nb\n", `change 1 of "f": its lines do not stand there: read the file, and copy them exactly`},
	} {
		if _, err := update(t, tt.hunks).Apply(t.Context(), tt.content); err == nil || err.Error() != tt.want {
			t.Errorf("%s:\n got %v\nwant %s", tt.name, err, tt.want)
		}
	}
}

// A patch that is made from two texts makes the one of the other.
func TestApplyMakesWhatWasMeant(t *testing.T) {
	line := rapid.SampledFrom([]string{"", "a", "b", "c", " a", "a ", "*** End Patch x", "@@", "+", "-"})
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOfN(line, 1, 12).Draw(t, "before")
		from := rapid.IntRange(0, len(before)-1).Draw(t, "from")
		to := rapid.IntRange(from, len(before)).Draw(t, "to")
		with := rapid.SliceOfN(line, 1, 4).Draw(t, "with")
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
		h := Hunk{}
		for i, l := range before { // the whole file is context, so that there is one place
			if i == from {
				for _, w := range with {
					h.Lines = append(h.Lines, Line{'+', w})
				}
			}
			op := byte(' ')
			if i >= from && i < to {
				op = '-'
			}
			h.Lines = append(h.Lines, Line{op, l})
		}
		after := append(append(append([]string{}, before[:from]...), with...), before[to:]...)
		got, err := File{Kind: Update, Path: "f", Hunks: []Hunk{h}}.Apply(context.Background(), strings.Join(before, end)+end)
		if want := strings.Join(after, end) + end; err != nil || got != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	})
}

// A line that is replaced keeps its end, and all else stays, whatever the other ends are.
func TestApplyKeepsEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var before, after strings.Builder
		n := rapid.IntRange(1, 8).Draw(t, "lines")
		k := rapid.IntRange(0, n-1).Draw(t, "replaced")
		for i := range n {
			end := rapid.SampledFrom([]string{"\n", "\r\n", "\r\r\n"}).Draw(t, "end")
			if i == n-1 {
				end = rapid.SampledFrom([]string{"\n", "\r\n", "", "\r"}).Draw(t, "last end")
			}
			line := fmt.Sprint("line ", i)
			before.WriteString(line + end)
			if i == k {
				line, end = "new", strings.TrimPrefix(end, "\r")
				if strings.HasSuffix(before.String(), "\r\n") {
					end = "\r\n"
				}
			}
			after.WriteString(line + end)
		}
		h := Hunk{Lines: []Line{{'-', fmt.Sprint("line ", k)}, {'+', "new"}}}
		got, err := File{Kind: Update, Path: "f", Hunks: []Hunk{h}}.Apply(context.Background(), before.String())
		if err != nil || got != after.String() {
			t.Fatalf("of %q got %q, %v, want %q", before.String(), got, err, after.String())
		}
	})
}

// A million equal lines are searched in one pass.
func TestManyEqualLines(t *testing.T) {
	lines := make([]string, 1_000_000)
	wanted := make([]string, 100_000)
	hunks := []Hunk{{Lines: make([]Line, 1)}}
	for _, last := range []string{"", "x"} {
		lines[len(lines)-1] = last
		v := newView(lines, hunks, strings.TrimSpace)
		n := 0
		for range v.occurrences(wanted, 0) {
			n++
		}
		if want := 900_001 - len(last); n != want {
			t.Errorf("found at %d places, want %d", n, want)
		}
	}
}

// Both ways to search find the same.
func TestSearchesAgree(t *testing.T) {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 1, 12)
	rapid.Check(t, func(t *rapid.T) {
		all, wanted := lines.Draw(t, "lines"), rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 1, 3).Draw(t, "wanted")
		from := rapid.IntRange(0, len(all)).Draw(t, "from")
		h := Hunk{}
		for _, line := range wanted {
			h.Lines = append(h.Lines, Line{'-', line})
		}
		var want []int
		for at := from; at+len(wanted) <= len(all); at++ {
			if slices.Equal(all[at:at+len(wanted)], wanted) {
				want = append(want, at)
			}
		}
		v := newView(all, []Hunk{h}, bare)
		for name, got := range map[string][]int{"search": slices.Collect(search(all, wanted, from)), "occurrences": slices.Collect(v.occurrences(wanted, from))} {
			if !slices.Equal(got, want) {
				t.Fatalf("%s finds %v, want %v", name, got, want)
			}
		}
	})
}

// Each of many hunks looks at no more of a huge file than its own lines: together they
// would otherwise take minutes.
func TestManyHunks(t *testing.T) {
	var before, after, hunks strings.Builder
	for i := range 300_000 {
		line := fmt.Sprintf("line %d\n", i)
		before.WriteString(line)
		if i%10 == 0 {
			fmt.Fprintf(&hunks, "@@\n-%s+x\n", line)
			line = "x\n"
		}
		after.WriteString(line)
	}
	if got, err := update(t, hunks.String()).Apply(t.Context(), before.String()); err != nil || got != after.String() {
		t.Errorf("%d bytes, %v; want %d", len(got), err, after.Len())
	}
}

// A cancel is noticed between hunks.
func TestApplyIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the user went away"))
	if got, err := update(t, "-a\n+b\n").Apply(ctx, "a\n"); got != "" || err == nil || err.Error() != "the user went away" {
		t.Errorf("got %q, %v", got, err)
	}
}

func FuzzPatch(f *testing.F) {
	f.Add(whole, "a\nfunc main() {\n\tstays\n\tgoes\n\n")
	f.Add("*** Begin Patch\n*** Update File: f\n-a\n*** End Patch", "a")
	f.Fuzz(func(t *testing.T, text, content string) {
		files, err := Parse(text)
		if err != nil {
			return
		}
		for _, file := range files {
			if file.Path == "" {
				t.Error("a file has no path")
			}
			_, _ = file.Apply(t.Context(), content)
		}
	})
}
