package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A command that fills the disk is ended, also where its files have no name any more; one
// that writes less is told of, and one that does not write is not blamed for others.
func TestDiskIsNotFilled(t *testing.T) {
	onEachRung(t, func(t *testing.T, rung Rung) {
		const write = "head -c 6000000 /dev/zero >"
		for _, tt := range []struct {
			name, line string
			others     bool // write too
			ended      bool
			note       string
		}{
			{"one file after the other", "i=0; while :; do i=$((i+1)); " + write + " f$i; done", false, true, "it was ended at the 16 MiB limit on what a command writes (sandbox.limits.disk)"},
			{"without names", "exec 3>a 4>b 5>c 6>d; rm a b c d; " + write + "&3; " + write + "&4; " + write + "&5; " + write + "&6; cat", true, true, "it was ended at the 16 MiB limit on what a command writes (sandbox.limits.disk)"},
			{"much, and not too much", write + " a; " + write + " b; touch done; cat", false, false, "it wrote 1[01] MiB; the limit is 16 MiB (sandbox.limits.disk)"},
			{"others write", "touch done; cat", true, false, ""},
		} {
			t.Run(tt.name, func(t *testing.T) {
				s := open(t, rung, Config{Limits: Limits{Disk: 16 << 20}})
				looked := atomic.Int64{}
				s.looks = time.Millisecond
				s.freeSpace = func(dir string) (uint64, int64, error) { // a disk of this command's alone
					device, _, err := freeSpace(dir)
					used := sizes(s.cfg.Workspace)
					if looks := looked.Add(1); tt.others && looks > 2 {
						used += looks << 20
					}
					return device, 1<<50 - used, err
				}
				var out bytes.Buffer
				p, err := s.Start(t.Context(), Command{Line: tt.line, Stdout: &out, Stderr: &out, Input: true})
				if err != nil {
					t.Fatal(err)
				}
				if !tt.ended { // the looks go on until the command is let go
					waitFor(t, "looks at the command", func() bool {
						_, err := os.Stat(filepath.Join(s.cfg.Workspace, "done"))
						return err == nil && looked.Load() > 20
					})
					_ = p.CloseInput(t.Context())
				}
				res, err := p.Wait()
				if notes := strings.Join(res.Notes, "; "); err != nil || !matches(tt.note, notes) || (res.ExitCode != 0) != tt.ended {
					t.Errorf("Wait = %+v, %v; want the note %q\n%s", res, err, tt.note, out.String())
				}
			})
		}
	})
}

func matches(pattern, text string) bool {
	return regexp.MustCompile("^(?:" + strings.NewReplacer("(", `\(`, ")", `\)`).Replace(pattern) + ")$").MatchString(text)
}

// sizes is how large the files of a folder are.
func sizes(dir string) (sum int64) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
	}
	return sum
}
