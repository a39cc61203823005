package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ProxyConfig says what a Proxy lets through; zero means the default.
type ProxyConfig struct {
	Allow  []Entry           // none refuses all
	Audit  func(Check) error // is told of each connection before anything leaves, by several at once; its error refuses it; nil is nobody
	Dialer Dialer
	Budget int64 // bytes, both ways together; 0 is 2 GiB
}

// The other limits of a Proxy.
const (
	maxConnections = 64               // at once; more wait
	maxRequests    = 10_000           // in all, so that the record has an end
	maxRefused     = 16               // hosts that Refused tells of
	defaultBudget  = 2 << 30          // bytes
	lookTime       = 30 * time.Second // to find a name's addresses
)

// Proxy is an HTTP proxy that lets its clients reach the hosts of a list and
// nothing else: by CONNECT, and plain http:// URLs. It serves one request a
// connection. What a client cannot prove to be for a listed host is refused: a
// TLS client must name in the open the host that it was connected for, and
// another protocol than TLS is carried only to a port that the list names, and
// never to 443. Names are looked up here, once for each connection, and only if
// they are listed; what they stand for must be public.
type Proxy struct {
	cfg      ProxyConfig
	listener net.Listener
	ctx      context.Context // ends with the proxy
	end      context.CancelFunc
	headTime time.Duration // for a request's head, and for a TLS client's first message
	idle     time.Duration // without a byte in either direction
	left     atomic.Int64  // bytes of the budget
	all      sync.WaitGroup

	mu      sync.Mutex
	judged  int
	refused []Refusal
}

// Refusal is an endpoint that a Proxy refused.
type Refusal struct {
	Where    string // host:port; empty if it is the budget, which is for all
	Why      string // a sentence that names the endpoint
	Unlisted bool   // it is not on the list, and an entry would let it through
}

// StartProxy serves the connections of l until the Proxy is closed, which
// closes l too.
func StartProxy(l net.Listener, cfg ProxyConfig) *Proxy {
	p := newProxy(l, cfg)
	p.all.Go(p.serve)
	return p
}

func newProxy(l net.Listener, cfg ProxyConfig) *Proxy {
	if cfg.Budget == 0 {
		cfg.Budget = defaultBudget
	}
	p := &Proxy{cfg: cfg, listener: l, headTime: 30 * time.Second, idle: 5 * time.Minute}
	p.left.Store(cfg.Budget)
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// Close ends all connections and returns when nothing is left of them.
func (p *Proxy) Close() {
	p.end()
	_ = p.listener.Close()
	p.all.Wait()
}

// Refused returns what was refused so far, each endpoint once, in the order in
// which it was asked for, up to a limit.
func (p *Proxy) Refused() []Refusal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

// serve takes connections, as many at once as there may be.
func (p *Proxy) serve() {
	slots := make(chan struct{}, maxConnections)
	for {
		select {
		case slots <- struct{}{}:
		case <-p.ctx.Done():
			return
		}
		conn, err := p.listener.Accept()
		if err != nil {
			<-slots
			select {
			case <-p.ctx.Done():
				return
			case <-time.After(10 * time.Millisecond): // such as for a descriptor to become free
			}
			continue
		}
		p.all.Go(func() {
			p.handle(conn)
			<-slots
		})
	}
}

// handle serves the one request of a connection.
func (p *Proxy) handle(conn net.Conn) {
	client := &metered{Conn: conn, proxy: p, flow: &flow{}}
	client.endAfter(p.headTime)
	defer client.watch()()
	in := bufio.NewReader(client)
	raw, err := readHead(in)
	if errors.Is(err, errHead) || errors.Is(err, errHeadLong) {
		p.malformed(client, err)
		return
	}
	if err != nil {
		return // it left, or took too long
	}
	h, err := parseHead(raw)
	client.endAfter(0)
	switch {
	case err != nil:
		p.malformed(client, err)
	case h.url == nil:
		p.tunnel(client, in, h)
	default:
		p.forward(client, in, h, raw)
	}
}

// malformed answers, and records, what is no request for any host.
func (p *Proxy) malformed(client *metered, err error) {
	if p.count() {
		_ = p.audit(Check{Rule: err.Error()}) // nothing leaves in any case
	}
	client.answer(&refusal{http.StatusBadRequest, err.Error()})
}

// refusal is the answer to a request that is not carried out.
type refusal struct {
	status int
	text   string
}

// reach judges a request, records it, and connects to where it goes.
func (p *Proxy) reach(h head, f *flow) (*metered, *refusal) {
	if !p.count() {
		return nil, &refusal{http.StatusForbidden, fmt.Sprintf("this run has made %d requests, and more are not let through", maxRequests)}
	}
	checked, rule, no := p.judge(h)
	if no != nil {
		rule = no.text
	}
	if err := p.audit(Check{h.to.host, h.to.port, no == nil, rule}); err != nil && no == nil {
		no = &refusal{http.StatusServiceUnavailable, h.to.String() + " was not connected to: that could not be recorded"}
	}
	if no != nil {
		return nil, no
	}
	conn, err := p.cfg.Dialer.Dial(p.ctx, checked)
	if err != nil {
		return nil, &refusal{http.StatusBadGateway, fmt.Sprintf("connect to %s: %v", h.to, plainFailure(err))}
	}
	return &metered{Conn: conn, proxy: p, flow: f}, nil
}

// judge returns the addresses that a request may go to, and the entry that
// allows it.
func (p *Proxy) judge(h head) ([]netip.AddrPort, string, *refusal) {
	entry, listed := find(p.cfg.Allow, h.to)
	switch {
	case !listed:
		text := h.to.String() + " is not on this run's network allow-list"
		p.note(h.to.String(), text, true)
		return nil, "", &refusal{http.StatusForbidden, text}
	case h.url == nil && h.to.port == 80 && !entry.host.HasPort():
		text := h.to.String() + " is open for http:// requests alone: what goes through a tunnel to port 80 cannot be looked at"
		p.note(h.to.String(), text, false)
		return nil, "", &refusal{http.StatusForbidden, text}
	case p.left.Load() <= 0:
		p.note("", p.spent(), false)
		return nil, "", &refusal{http.StatusForbidden, p.spent()}
	}
	ctx, cancel := context.WithTimeout(p.ctx, lookTime)
	defer cancel()
	checked, err := p.cfg.Dialer.Resolve(ctx, h.to.host, h.to.port, entry.host.literal)
	if errors.Is(err, ErrRefused) {
		p.note(h.to.String(), h.to.String()+": "+err.Error(), false)
		return nil, "", &refusal{http.StatusForbidden, err.Error()}
	}
	if err != nil {
		return nil, "", &refusal{http.StatusBadGateway, err.Error()}
	}
	return checked, entry.String(), nil
}

// spent says that the budget is used up.
func (p *Proxy) spent() string {
	return fmt.Sprintf("this run has used up its %d MiB of network traffic", p.cfg.Budget>>20)
}

func (p *Proxy) audit(c Check) error {
	if p.cfg.Audit == nil {
		return nil
	}
	return p.cfg.Audit(c)
}

// count counts a request, and reports whether there may be another.
func (p *Proxy) count() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judged++
	return p.judged <= maxRequests
}

// note remembers a refusal.
func (p *Proxy) note(where, why string, unlisted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := slices.ContainsFunc(p.refused, func(r Refusal) bool { return r.Where == where })
	if !known && len(p.refused) < maxRefused {
		p.refused = append(p.refused, Refusal{where, why, unlisted})
	}
}
