package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputhttp"
)

// A retirement is how far the proxy has told its clients that it leaves. HTTP/1.1 is
// told first: an answer that closes its connection costs nobody a request. HTTP/2 is told
// by GOAWAY, and net/http names in it the last stream that it has seen: those which cross
// it on the way are dropped. Their senders know that nobody has executed them, but not
// every one sends them again (HAProxy passes the refusal on). So a balancer gets the time
// to take us out by itself, and GOAWAY comes when the delay is nearly over. Who connects
// again after that has just been told once: such a connection is left alone, because a
// request that crosses a second GOAWAY is not sent a third time (gRPC A6: a transparent
// retry happens once).
type retirement struct{ stage atomic.Int32 }

const (
	staying = iota
	closing // of HTTP/1.1 every answer is the last of its connection
	leaving // of HTTP/2 as well
)

// goingAway is the end of a delay in which GOAWAY is sent: a quarter of it, so that the
// balancer has most of it, and a second is many round trips.
func goingAway(delay time.Duration) time.Duration { return min(delay/4, time.Second) }

// againKey marks the context of a connection that came when GOAWAY was being sent.
type againKey struct{}

func (r *retirement) connContext(ctx context.Context, c net.Conn) context.Context {
	if r.stage.Load() == leaving {
		ctx = context.WithValue(ctx, againKey{}, true)
	}
	return goodputhttp.ConnContext(ctx, c)
}

// last reports whether the answer to r is the last of its connection. The request to the
// server has the version and the context of the client's.
func (r *retirement) last(req *http.Request) bool {
	stage := r.stage.Load()
	if req.ProtoMajor == 1 {
		return stage != staying
	}
	return stage == leaving && req.Context().Value(againKey{}) == nil
}

// Retire makes every answer over HTTP/1.1 from now on the last one of its connection. The
// listener stays open: who has not heard yet that we are leaving is served.
func (p *Proxy) Retire() { p.retiring.stage.Store(closing) }

// goAway does that for HTTP/2 as well.
func (p *Proxy) goAway() { p.retiring.stage.Store(leaving) }

// lastAnswer does for the requests that were in flight when Retire was called
// what ServeHTTP does for those that come later.
func (p *Proxy) lastAnswer(res *http.Response) error {
	p.answers(res)
	if p.retiring.last(res.Request) && res.StatusCode != http.StatusSwitchingProtocols &&
		res.Request.Context().Value(closingKey{}) == nil {
		res.Header.Set("Connection", "close")
	}
	return nil
}

// Drain ends servers of p without failing a request that was accepted:
//
//	delay    HTTP/1.1 closes its connections after an answer, and in the last part
//	         HTTP/2 closes those from before; new ones are accepted, because the balancer has not heard yet
//	timeout  newcomers are refused, who waits is served, who runs ends; WebSockets are
//	         closed with a word, and other upgraded connections end by themselves
//
// At the end of timeout who still waits is refused, and who still runs is cut, upgraded
// connections as well: that is the error.
func (p *Proxy) Drain(delay, timeout time.Duration, servers ...*http.Server) error {
	p.Retire()
	time.Sleep(delay - goingAway(delay))
	p.goAway()
	time.Sleep(goingAway(delay))
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()

	tunnels := make(chan int, 1)
	go func() { tunnels <- p.tunnels.drain(ctx) }()

	// The last part is for telling those who waited in vain.
	queue, cancelQueue := context.WithTimeout(ctx, timeout-min(timeout/10, time.Second))
	defer cancelQueue()
	refused := p.drain(queue) // nil: nobody waits and nobody runs

	if err := shutdown(ctx, servers); err != nil {
		running := 0
		for _, lim := range p.now.Load().limiters() {
			running += lim.Stats().Running
		}
		for _, c := range p.now.Load().all() {
			if c.lim == nil {
				running += int(c.carrier.traffic.requests.Load())
			}
		}
		for _, srv := range servers {
			srv.Close() // we are leaving
		}
		return fmt.Errorf("the drain timeout of %v has passed: %d running requests and %d upgraded connections were cut", timeout, running, <-tunnels)
	}
	if cut := <-tunnels; cut > 0 {
		return fmt.Errorf("the drain timeout of %v has passed: %d upgraded connections were cut", timeout, cut)
	}
	if refused != nil {
		p.log.Warn("drain timeout: whoever still waited was refused", "component", "drain")
	}
	p.Close()
	return nil
}

// drain drains all limiters at once, also those of classes that a reload has taken out.
func (p *Proxy) drain(ctx context.Context) error {
	return atOnce(p.now.Load().limiters(), func(lim *goodput.Limiter) error { return lim.Drain(ctx) })
}

func shutdown(ctx context.Context, servers []*http.Server) error {
	return atOnce(servers, func(srv *http.Server) error { return srv.Shutdown(ctx) })
}

// atOnce does something to all of several at the same time.
func atOnce[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var done sync.WaitGroup
	for i, one := range all {
		done.Go(func() { errs[i] = do(one) })
	}
	done.Wait()
	return errors.Join(errs...)
}
