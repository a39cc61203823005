package wire

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// maxReply is how many bytes a whole reply may have.
const maxReply = 64 << 20

var (
	errIdle     = errors.New("idle time-out")
	errTooLarge = errors.New("too large")
)

// idleWatch cancels a request when no byte has come for too long.
type idleWatch struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer

	mu    sync.Mutex
	limit time.Duration
}

// watchIdle returns a context that ends, with the cause errIdle, when limit has
// passed since the start or the last byte.
func watchIdle(parent context.Context, limit time.Duration) (context.Context, *idleWatch) {
	ctx, cancel := context.WithCancelCause(parent)
	w := &idleWatch{cancel: cancel, limit: limit}
	w.timer = time.AfterFunc(limit, func() { cancel(errIdle) })
	return ctx, w
}

func (w *idleWatch) touch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Reset(w.limit)
}

// tighten lowers the limit for the rest of the reply, and starts it anew.
func (w *idleWatch) tighten(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = min(w.limit, limit)
	w.timer.Reset(w.limit)
}

func (w *idleWatch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// reader returns r with the watch kept awake by what it reads, and with an end
// at maxReply.
func (w *idleWatch) reader(r io.Reader) io.Reader {
	return &watchedReader{r: r, watch: w, left: maxReply}
}

type watchedReader struct {
	r     io.Reader
	watch *idleWatch
	left  int
}

func (r *watchedReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, errTooLarge
	}
	n, err := r.r.Read(p[:min(len(p), r.left)])
	r.left -= n
	if n > 0 {
		r.watch.touch()
	}
	return n, err
}
