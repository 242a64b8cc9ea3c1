package proxy

import (
	"context"
	"net/http"
	"net/http/httputil"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/limit"
)

// The limiter is the only queue: as many requests are at the service at once as
// it admits, in both protocols.
func TestTransportDoesNotQueue(t *testing.T) {
	for scheme, many := range map[string]int{
		"http": 64,
		"h2c":  300, // more than the 250 streams that a connection to Go's server has
	} {
		addr, entered, release := held(t)
		w := start(t, scheme+"://"+addr, func(_ *Config, lc *goodput.Config) { lc.Limit = limit.Fixed(many) })
		replies := make([]chan reply, many)
		for i := range replies {
			replies[i] = w.ask(w.h1, "/")
		}
		// They need milliseconds. Those that a transport holds back never come.
		enough := time.After(5 * time.Second)
		for in := range many {
			select {
			case <-entered:
			case <-enough:
				close(release)
				t.Fatalf("%s: %d of %d requests are at the service at once", scheme, in, many)
			}
		}
		close(release)
		for _, ch := range replies {
			if r := <-ch; r.err != nil || r.status != http.StatusOK {
				t.Errorf("%s: %+v", scheme, r)
			}
		}
	}
}

// What a response must not lose on the way.
func TestResponsesAreCopiedWithThePool(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	forward := w.proxy.now.Load().classes[0].carrier.next.(*httputil.ReverseProxy)
	if forward.BufferPool == nil || len(forward.BufferPool.Get()) != bufferSize {
		t.Error("response bodies are copied without the pool of buffers")
	}
}

// The bounds that keep one client from holding what belongs to all.
func TestServerIsBounded(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	s := w.proxy.Server(config.DefaultListener())
	for what, holds := range map[string]bool{
		"it serves the proxy":                           s.Handler == http.Handler(w.proxy),
		"headers arrive in time":                        s.ReadHeaderTimeout == 10*time.Second,
		"balancers hang up first":                       s.IdleTimeout > 600*time.Second,
		"headers have a size":                           s.MaxHeaderBytes == 64<<10,
		"bodies have no timeout of the server":          s.ReadTimeout == 0 && s.WriteTimeout == 0,
		"a balancer with one connection does not queue": s.HTTP2.MaxConcurrentStreams >= 1<<12, // Go has 250
		"one stream does not fill the window":           s.HTTP2.MaxReceiveBufferPerConnection > 4*s.HTTP2.MaxReceiveBufferPerStream && s.HTTP2.MaxReceiveBufferPerStream > 0,
		"both protocols are served":                     s.Protocols.HTTP1() && s.Protocols.UnencryptedHTTP2(),
		"connections are counted":                       s.ConnState != nil,
		"the log is ours":                               s.ErrorLog != nil,
	} {
		if !holds {
			t.Errorf("it does not hold that %s", what)
		}
	}
	// Without it goodputhttp cannot see that a waiting client has left.
	if s.ConnContext == nil || s.ConnContext(context.Background(), w.raw("")) == context.Background() {
		t.Error("the context of a connection does not know its connection")
	}
}
