package host

import (
	"math"
	"slices"
	"testing"
	"time"
)

// BenchmarkGuest is guest code's own time under the deadline and the depth
// limit, as a ratio to unprotected wazero. Both take turns; the median of the
// ratios counts.
func BenchmarkGuest(b *testing.B) {
	logs, n := 0.0, 0
	for _, language := range []string{"C", "Go"} {
		bare, protected := workers(b, language)
		for _, w := range work {
			if w.language != language {
				continue
			}
			b.Run("guest="+language+"/"+w.name, func(b *testing.B) {
				var ratios []float64
				for b.Loop() {
					ratios = append(ratios, float64(timed(b, protected, w.name, w.rounds))/float64(timed(b, bare, w.name, w.rounds)))
				}
				slices.Sort(ratios)
				ratio := ratios[len(ratios)/2]
				b.ReportMetric(ratio, "x-bare")
				logs += math.Log(ratio)
				n++
			})
		}
	}
	b.Run("mean", func(b *testing.B) {
		for b.Loop() {
		}
		b.ReportMetric(math.Exp(logs/float64(n)), "x-bare")
	})
}

func timed(b *testing.B, w *worker, name string, rounds uint64) time.Duration {
	begin := time.Now()
	w.do(b, name, rounds)
	return time.Since(begin)
}
