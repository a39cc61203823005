package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wharf-agent/wharf/engine/sandbox"
)

// TestContainment tries for real all that must be refused, by "wharf sandbox run",
// under each rung, as root and as an ordinary user, and looks from outside whether
// anything got through. Each attempt is made without a sandbox too, where it has
// to get through: what fails by itself proves nothing.
func TestContainment(t *testing.T) {
	for _, program := range []string{"bwrap", "unshare", "setpriv", "mount", "fallocate", "git"} {
		if !isThere(t, program) {
			t.Skipf("%s is needed: apt install bubblewrap util-linux mount git", program)
		}
	}
	var open openGaps
	t.Run("threats", func(t *testing.T) {
		for _, threat := range threats() {
			for _, r := range threat.rows {
				t.Run(threat.name+"/"+r.name, func(t *testing.T) {
					t.Parallel()
					tryRow(t, r, &open)
				})
			}
		}
	})
	for gap, open := range open.seen {
		if !open {
			t.Errorf("Landlock holds %q, which is said to be a gap: take it out of the list", gap)
		}
	}
}

// openGaps says of each gap of Landlock that was tried whether anything got through.
type openGaps struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (o *openGaps) add(gap string, through bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	o.seen[gap] = o.seen[gap] || through
}

// users are those that commands are tried as.
func users() []int {
	if os.Getuid() == 0 {
		return []int{0, ordinary}
	}
	return []int{os.Getuid()} // root is nobody's to become
}

// ordinaryUser is one of them who is not root.
func ordinaryUser() int { return users()[len(users())-1] }

func tryRow(t *testing.T, r row, open *openGaps) {
	for _, rung := range []sandbox.Rung{sandbox.Bubblewrap, sandbox.Landlock} {
		for _, uid := range users() {
			if uid == 0 && (r.ordinary || rung == sandbox.Landlock && r.gap != "") {
				continue
			}
			t.Run(fmt.Sprintf("%s as %d", rung, uid), func(t *testing.T) {
				s := newStage(t, uid, rung, r.prepare)
				var out string
				if r.try != nil {
					out = r.try(t, s, r)
				} else {
					out = s.tried(t, s.expand(r.flags), r.line)
					if !has(out, "begun") {
						t.Fatalf("the attempt did not begin:\n%s", out)
					}
				}
				through := s.through(t, out)
				for _, line := range r.says {
					if !has(out, line) {
						through = append(through, fmt.Sprintf("it does not say %q", line))
					}
				}
				switch {
				case rung == sandbox.Landlock && r.gap != "":
					open.add(r.gap, len(through) > 0)
				case len(through) > 0:
					t.Errorf("got through: %s\n%s", strings.Join(through, "\n"), out)
				}
			})
		}
	}
	if r.alone == "" && r.try == nil {
		t.Run("unconfined", func(t *testing.T) { tryFree(t, r) })
	}
}

// tryFree wants an attempt to get through where nothing is in its way.
func tryFree(t *testing.T, r row) {
	s := newStage(t, ordinaryUser(), sandbox.Unconfined, r.prepare)
	out := s.free(t, r.line)
	held := slices.ContainsFunc(r.says, func(line string) bool { return !has(out, line) })
	if !held && len(s.through(t, out)) == 0 {
		t.Errorf("it fails without a sandbox too, and proves nothing:\n%s", out)
	}
}

// has reports whether the lines of text hold line.
func has(text, line string) bool { return slices.Contains(strings.Split(text, "\n"), line) }

// expand puts a stage's addresses into flags.
func (s *stage) expand(flags []string) []string {
	flags = slices.Clone(flags)
	_, port, _ := strings.Cut(s.ears.at("TCP"), ":")
	for i := range flags {
		flags[i] = strings.NewReplacer("$TCP", s.ears.at("TCP"), "$PORT", port).Replace(flags[i])
	}
	return flags
}
