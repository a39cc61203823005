package extensions_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wharf-agent/wharf/engine/tool"
	"github.com/wharf-agent/wharf/extensions"
	"github.com/wharf-agent/wharf/host"
)

// csvQuery runs a query.
func csvQuery(t testing.TB, s *host.Session, query map[string]any) tool.Result {
	t.Helper()
	arguments, err := json.Marshal(query)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Tools()[0].Run(t.Context(), tool.Call{Name: "csv_query", Arguments: arguments})
	if err != nil {
		t.Fatalf("%.300s: %v", arguments, err)
	}
	return got
}

// written is a table as encoding/csv writes it.
func written(t testing.TB, rows [][]string) string {
	t.Helper()
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What Go writes is read, and what is written Go reads: the same rows, in the same
// order or in that of their numbers.
func TestCSVQueryReadsAndWrites(t *testing.T) {
	s := join(t, extensions.CSVQuery, host.Options{})
	field := rapid.StringMatching(`[ab,;"' |\n1é]{1,6}`) // an empty row is none, so no field is
	rapid.Check(t, func(rt *rapid.T) {
		width := rapid.IntRange(1, 4).Draw(rt, "width")
		rows := rapid.SliceOfN(rapid.SliceOfN(field, width, width), 1, 8).Draw(rt, "rows")
		got := csvQuery(t, s, map[string]any{"csv": written(t, rows), "header": false, "limit": 1000, "format": "csv"})
		if got.IsError {
			rt.Fatalf("%q: %s", rows, got.Content)
		}
		read, err := csv.NewReader(strings.NewReader(got.Content)).ReadAll()
		if err != nil {
			rt.Fatalf("%q: it wrote %q: %v", rows, got.Content, err)
		}
		if diff := cmp.Diff(rows, read[1:]); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// Numbers are sorted and added up as math/big does.
func TestCSVQueryCounts(t *testing.T) {
	s := join(t, extensions.CSVQuery, host.Options{})
	rapid.Check(t, func(rt *rapid.T) {
		numbers := rapid.SliceOfN(rapid.StringMatching(`-?[0-9]{1,9}(\.[0-9]{1,9})?`), 1, 10).Draw(rt, "numbers")
		text := "n\n" + strings.Join(numbers, "\n") + "\n"
		worth := func(text string) *big.Rat {
			r, ok := new(big.Rat).SetString(text)
			if !ok {
				rt.Fatalf("%q is no number", text)
			}
			return r
		}
		sum := new(big.Rat)
		for _, n := range numbers {
			sum.Add(sum, worth(n))
		}
		got := csvQuery(t, s, map[string]any{"csv": text, "format": "csv", "aggregates": []any{map[string]string{"fn": "sum", "column": "n"}}})
		if r := worth(strings.TrimSpace(strings.TrimPrefix(got.Content, "sum(n)\n"))); r.Cmp(sum) != 0 {
			rt.Fatalf("the sum of %v is %v, and should be %v", numbers, got.Content, sum.FloatString(9))
		}
		slices.SortStableFunc(numbers, func(a, b string) int { return worth(a).Cmp(worth(b)) })
		got = csvQuery(t, s, map[string]any{"csv": text, "format": "csv", "sort": []any{map[string]string{"by": "n"}}})
		if want := "n\n" + strings.Join(numbers, "\n") + "\n"; got.Content != want {
			rt.Fatalf("sorted: %q; want %q", got.Content, want)
		}
	})
}

// A large text is queried in time, and what is too large says so.
func TestCSVQueryOfALargeText(t *testing.T) {
	s := join(t, extensions.CSVQuery, host.Options{})
	rows := strings.Repeat("1,x,0.5\n2,y,0.25\n", 20_000)
	got := csvQuery(t, s, map[string]any{
		"csv": "a,b,c\n" + rows, "group_by": []string{"b"}, "format": "csv", "sort": []any{map[string]any{"by": "b", "desc": true}},
		"aggregates": []any{map[string]string{"fn": "sum", "column": "c"}, map[string]string{"fn": "count"}},
	})
	if want := "b,sum(c),count()\ny,5000,20000\nx,10000,20000\n"; got.IsError || got.Content != want {
		t.Errorf("got %+v; want %q", got, want)
	}
	got = csvQuery(t, s, map[string]any{"csv": strings.Repeat(",", 1000)})
	if want := "line 1: the CSV is too large: at most 1000 columns, and 2000000 fields in all"; !got.IsError || got.Content != want {
		t.Errorf("got %+v; want %q", got, want)
	}
	got = csvQuery(t, s, map[string]any{"csv": "a\n" + strings.Repeat(strings.Repeat("x", 1000)+"\n", 900), "limit": 1000})
	if !strings.HasSuffix(got.Content, "\n260 rows, of 900 that match, of 900 in all; there was no room for more") {
		t.Errorf("a large result ends with %q", got.Content[max(0, len(got.Content)-100):])
	}
}

// Whatever the data, a call ends with a result.
func FuzzCSVQuery(f *testing.F) {
	f.Add("a,b\n1,\"x\"\"y\"\n", "a", "sum")
	f.Add("\xef\xbb\xbfa;b\r\n\"", "", "avg")
	s := join(f, extensions.CSVQuery, host.Options{})
	f.Fuzz(func(t *testing.T, text, column, fn string) {
		for _, query := range []map[string]any{
			{"csv": text, "sort": []any{map[string]any{"by": column}}},
			{"csv": text, "group_by": []string{column}, "aggregates": []any{map[string]string{"fn": fn, "column": column}}},
			{"csv": text, "header": false, "where": []any{map[string]any{"column": "c1", "op": "<", "value": column}}, "format": "csv"},
		} {
			if got := csvQuery(t, s, query); got.Code != "" || strings.Contains(got.Content, "the guest trapped") {
				t.Errorf("%q: %+v", query, got)
			}
		}
	})
}
