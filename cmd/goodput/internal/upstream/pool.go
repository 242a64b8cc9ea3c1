// Package upstream is the service behind the proxy: one or more servers before which
// there is one queue.
//
// The model: late binding. A request that was admitted is sent to the server that is well
// and has the most room at that moment, so the next free slot of any server takes the next
// request, and none waits behind a server that is slow while another one is idle. Neither
// the pool nor its transports queue: who waits, waits in the limiter, where a deadline
// bounds it.
//
// A server is well until it leaves several requests in a row without an answer, or checks
// say otherwise: see health.go. Any answer is one, a refusal too: overload is no sickness, and
// a pool that took servers out for it would bury the others under what is left. What
// there is to send work to at the moment is a Capacity, of which Watch tells.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// ErrAbsent is matched by the error of a request that found no server well. It was not
// executed. It is rare: the limiter admits nobody then, and only who was admitted just
// before meets it.
var ErrAbsent = errors.New("no server of the upstream is well")

// A Pool is the servers of one upstream. It is an http.RoundTripper for requests whose URL
// has a path and a query and no host.
type Pool struct {
	log   *slog.Logger
	dial  dialing
	all   atomic.Pointer[[]member] // of the configuration in force; nobody changes what it points to
	ends  context.Context          // over with Close
	end   context.CancelFunc
	work  sync.WaitGroup // of checks
	picks sync.Mutex     // held while a request gets its server: see pick

	mu       sync.Mutex // of what follows and of health; nothing is called, waited for or logged under it
	cfg      config.Upstream
	watchers []*watcher
	telling  bool // somebody is telling the watchers
	again    bool // and is to look again
}

// New returns the pool of cfg. All servers are taken for well. Close ends it.
func New(cfg config.Upstream, log *slog.Logger) *Pool { return newPool(cfg, log, dial) }

func newPool(cfg config.Upstream, log *slog.Logger, dial dialing) *Pool {
	p := &Pool{dial: dial, log: log.With("component", "upstream", "upstream", cfg.Name)}
	p.ends, p.end = context.WithCancel(context.Background())
	p.all.Store(new([]member))
	p.Reconfigure(cfg)
	return p
}

// Reconfigure puts cfg in force. A server whose URL stays keeps its connections, what is in
// flight and how well it is; one that is not in cfg takes nothing new, and what is in
// flight there ends; a new one is taken for well.
func (p *Pool) Reconfigure(cfg config.Upstream) {
	p.mu.Lock()
	old := map[string]*server{}
	for _, m := range *p.all.Load() {
		old[m.name] = m.server
	}
	p.cfg = cfg
	members := make([]member, 0, len(cfg.Servers))
	for _, s := range cfg.Servers {
		name := s.URL.Redacted()
		known := old[name]
		delete(old, name) // the same URL again is another server
		if known == nil {
			known = newServer(p, s.URL)
		}
		known.limit.Store(int64(s.Limit))
		members = append(members, member{known, 1})
	}
	weigh(members)
	p.all.Store(&members)
	for _, m := range members {
		m.server.recheck()
	}
	for _, s := range old {
		s.remove()
	}
	p.mu.Unlock()
	for _, s := range old {
		s.back.closeIdle()
	}
	p.tell()
}

// maxTries bounds to how many servers one request is sent, whatever their number is.
const maxTries = 8

// RoundTrip sends r to a server, and to another one if it was not executed there, or, once, if
// it may be repeated: see another. No server gets it twice.
func (p *Pool) RoundTrip(r *http.Request) (*http.Response, error) {
	var (
		tried [maxTries]*server
		out   = outgoing{in: r, path: *r.URL, host: r.Host}
		last  = ErrAbsent
	)
	early := screen(r)
	for n := range tried {
		s := p.pick(tried[:n])
		if s == nil {
			break
		}
		if n > 0 {
			tried[n-1].elsewhere.Add(1)
		}
		tried[n] = s
		s.requests.Add(1)
		res, err := s.back.RoundTrip(out.to(s))
		if err == nil {
			out.settle()
			s.answers()
			if err := amiss(r, res); err != nil {
				s.inFlight.Add(-1)
				return nil, err
			}
			s.hold(res)
			return res, nil
		}
		s.inFlight.Add(-1)
		err = early.why(err)
		s.fails(r, &out, err)
		if last = early.sent(err); !out.another(last) {
			break
		}
	}
	out.settle()
	if last == ErrAbsent {
		last = p.absent()
		if r.Body != nil {
			r.Body.Close()
		}
	}
	return nil, last
}

// absent returns ErrAbsent with why the server is out that went last.
func (p *Pool) absent() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var last *server
	for _, m := range *p.all.Load() {
		if m.why != nil && (last == nil || m.since.After(last.since)) {
			last = m.server
		}
	}
	if last == nil {
		return ErrAbsent
	}
	return fmt.Errorf("%w: %w", ErrAbsent, last.why)
}

// CloseIdle closes the connections that carry nothing.
func (p *Pool) CloseIdle() {
	for _, m := range *p.all.Load() {
		m.back.closeIdle()
	}
}

// Close ends the health checks, waits until they have, and closes idle connections. What is
// in flight goes on. Nobody is told anything any more.
func (p *Pool) Close() {
	p.end()
	p.mu.Lock()
	for _, m := range *p.all.Load() {
		m.stopRamp()
	}
	p.watchers = nil
	p.mu.Unlock()
	p.work.Wait()
	p.CloseIdle()
}
