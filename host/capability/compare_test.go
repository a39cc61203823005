package capability

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wharf-agent/wharf/engine/egress"
)

// sets makes sets whose items often lie within each other.
func sets() *rapid.Generator[Set] {
	folder := rapid.Custom(func(t *rapid.T) Folder {
		return Folder{rapid.SampledFrom([]string{".", "a", "a/b", "a/b/c", "ab"}).Draw(t, "path"), rapid.Bool().Draw(t, "write")}
	})
	secret := rapid.Custom(func(t *rapid.T) Secret {
		return Secret{rapid.SampledFrom([]string{"A", "B"}).Draw(t, "name"), "h.example", "X-Key", "{}"}
	})
	some := func(t *rapid.T, key string, items ...string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(items), 0, len(items), rapid.ID).Draw(t, key)
	}
	return rapid.Custom(func(t *rapid.T) Set {
		return Set{
			HTTP:    patterns(some(t, "http", "GET https://a.example/*", "* https://a.example/x", "GET https://*.example/")),
			Secrets: rapid.SliceOfNDistinct(secret, 0, 2, rapid.ID).Draw(t, "secrets"),
			FS:      rapid.SliceOfNDistinct(folder, 0, 4, rapid.ID).Draw(t, "fs"),
			KV:      Size(rapid.Int64Range(0, 3).Draw(t, "kv")),
			Exec:    some(t, "exec", "*", "go *", "go vet *", "go vet", "* vet", "go -x=*", "go * a", "'go' vet a*", "go vet a"),
			Tools:   some(t, "tools", "read_file", "grep"),
			Session: rapid.Bool().Draw(t, "session"),
			LLM:     rapid.Int64Range(0, 3).Draw(t, "llm"),
			Env:     some(t, "env", "A", "B"),
			Events:  rapid.Bool().Draw(t, "events"),
			Approve: rapid.Bool().Draw(t, "approve"),
		}
	})
}

func patterns(texts []string) []egress.Pattern {
	var all []egress.Pattern
	for _, text := range texts {
		p, err := egress.ParsePattern(text)
		if err != nil {
			panic(err)
		}
		all = append(all, p)
	}
	return all
}

// needs makes needs that such sets may or may not cover.
func needs() *rapid.Generator[Need] {
	return rapid.Custom(func(t *rapid.T) Need {
		return rapid.SampledFrom([]Need{
			KV("x"), Session(), LLM("m"), Events("e"), must(Tool("grep")), must(Env("B")),
			request("GET", "https://a.example/x"), must(File("a/b/x", false)), must(File("a/b/c", true)), must(File("ab", true)),
			must(Exec("go vet")), must(Exec("go vet a/b")), must(Exec("go vet a/../b")), must(Exec("go -x=1 a")), must(Exec("ls '*'")),
		}).Draw(t, "need")
	})
}

func TestIntersectionNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := sets().Draw(t, "a"), sets().Draw(t, "b")
		both := a.Intersect(b)
		if !a.Includes(both) || !b.Includes(both) {
			t.Errorf("a ∩ b reaches more:\n%s", both)
		}
		if other := b.Intersect(a); !both.Includes(other) || !other.Includes(both) {
			t.Errorf("a ∩ b:\n%s\nb ∩ a:\n%s", both, other)
		}
		if same := a.Intersect(a); !same.Includes(a) {
			t.Errorf("a ∩ a lost something:\n%s", same)
		}
		if need := needs().Draw(t, "need"); both.Covers(need) && (!a.Covers(need) || !b.Covers(need)) {
			t.Errorf("a ∩ b covers %+v, which a and b do not both", need)
		}
	})
}

// An item within another covers no more than it does.
func TestInclusionIsWhatIsCovered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, need := sets().Draw(t, "a"), sets().Draw(t, "b"), needs().Draw(t, "need")
		if a.Includes(b) && b.Covers(need) && !a.Covers(need) {
			t.Errorf("a includes b, which alone covers %+v", need)
		}
	})
}

// What an upgrade adds, beside what it had, is all that it asks for.
func TestMinus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was, now := sets().Draw(t, "old"), sets().Draw(t, "new")
		more := now.Minus(was)
		if more.Empty() != was.Includes(now) {
			t.Errorf("the difference is %q, and old includes new: %v", more, was.Includes(now))
		}
		if !now.Includes(more) {
			t.Errorf("the difference is more than new:\n%s", more)
		}
		need := needs().Draw(t, "need")
		if now.Covers(need) && !was.Covers(need) && !more.Covers(need) {
			t.Errorf("new covers %+v, and neither old nor the difference does", need)
		}
	})
}

func TestPrintedSetsReadTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sets().Draw(t, "set")
		again, err := parse(s.String())
		if err != nil || again.String() != s.String() {
			t.Errorf("printed:\n%s\nread again:\n%s\n%v", s, again, err)
		}
	})
}

func TestMinusShowsWhatIsNew(t *testing.T) {
	was := mustParse(t, everything)
	now := mustParse(t, strings.NewReplacer(`"GET https`, `"GET https://b.example/", "GET https`, "20000", "20001", `"gofmt *"`, `"gofmt -l *", "go *"`,
		`"write"`, `"read"`, `"1MiB"`, `"1KiB"`).Replace(everything))
	want := `http = ["GET https://b.example/"]
exec = ["go *"]
llm = { tokens = 20001 }`
	if got := now.Minus(was).String(); got != want {
		t.Errorf("new:\n%s\nwant:\n%s", got, want)
	}
}

// Whatever is accepted can be compared, and no comparison widens it.
func FuzzCompare(f *testing.F) {
	f.Add(everything, `exec = ["gofmt -l *", "* x"]`)
	f.Add(`fs = [{ path = ".", mode = "read" }]`, `fs = [{ path = "a/b", mode = "write" }]`)
	f.Add(`http = ["* https://*.example.com:8443/*"]`, `http = ["GET https://a.b.example.com:8443/x"]`)
	f.Fuzz(func(t *testing.T, first, second string) {
		a, err1 := parse(first)
		b, err2 := parse(second)
		if err1 != nil || err2 != nil {
			return
		}
		both := a.Intersect(b)
		if !a.Includes(a) || !a.Includes(both) || !b.Includes(both) {
			t.Errorf("a ∩ b reaches more than a and b:\n%s", both)
		}
		if again, err := parse(both.String()); err != nil || again.String() != both.String() {
			t.Errorf("a ∩ b does not read as it is printed: %v\n%s", err, both)
		}
		if more := a.Minus(b); more.Empty() != b.Includes(a) || !a.Includes(more) {
			t.Errorf("a - b is\n%s", more)
		}
	})
}

// What was granted, and what is granted in addition, are both there, and no more.
func TestPlus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := sets().Draw(t, "a"), sets().Draw(t, "b")
		sum := a.Plus(b)
		if !sum.Includes(a) || !sum.Includes(b) {
			t.Errorf("a + b lost something:\n%s", sum)
		}
		if !sum.Minus(a).Minus(b).Empty() {
			t.Errorf("a + b reaches more than a and b:\n%s", sum)
		}
		if again, err := parse(sum.String()); err != nil || again.String() != sum.String() {
			t.Errorf("a + b does not read as it is printed: %v\n%s", err, sum)
		}
	})
}

func TestWithout(t *testing.T) {
	all := mustParse(t, everything)
	for _, key := range Keys {
		less := all.Without(key)
		if less.Line(key) != "" || less.Plus(all).String() == less.String() {
			t.Errorf("without %s there is\n%s", key, less)
		}
	}
	if left := all.Without(Keys...); !left.Empty() {
		t.Errorf("without all there is\n%s", left)
	}
}
