package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/goodput/goodput"
)

// Drain ends servers of p without failing a request that was accepted:
//
//	delay    every answer is the last of its connection; new ones are accepted,
//	         because the balancer has not heard yet
//	timeout  newcomers are refused, who waits is served, who runs ends
//
// At the end of timeout who still waits is refused, and who still runs is cut:
// that is the error. Upgraded connections end with the process.
func (p *Proxy) Drain(delay, timeout time.Duration, servers ...*http.Server) error {
	p.Retire()
	time.Sleep(delay)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()

	// The last part is for telling those who waited in vain.
	queue, cancelQueue := context.WithTimeout(ctx, timeout-min(timeout/10, time.Second))
	defer cancelQueue()
	refused := p.drain(queue) // nil: nobody waits and nobody runs

	if err := shutdown(ctx, servers); err != nil {
		running := 0
		for _, lim := range p.now.Load().limiters() {
			running += lim.Stats().Running
		}
		for _, srv := range servers {
			srv.Close() // we are leaving
		}
		return fmt.Errorf("the drain timeout of %v has passed: %d running requests were cut", timeout, running)
	}
	if refused != nil {
		p.failures.log.Warn("drain timeout: whoever still waited was refused", "component", "drain")
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
