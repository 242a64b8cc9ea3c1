package load

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// maxConns bounds a pool. A server that allows 100 requests on a connection, as
// many do, still takes 25,600 at once.
const maxConns = 256

// Until a server has said how many requests a connection takes, net/http assumes
// 100, and those above the true number would wait at our side for others to end.
// So a new connection is given settle to hear from the server. Connections after
// the first expect the number of that one, and wait only while theirs differs.
const (
	assumedStreams = 100
	settle         = 250 * time.Millisecond // a lost packet on a fast network
)

// A pool spreads requests over HTTP/2 connections in turn. One that broke or
// allows no more requests is passed over; if there is no other, another one is
// opened.
type pool struct {
	transport    *http.Transport
	scheme, addr string
	turn         atomic.Uint32
	conns        atomic.Pointer[[]*http.ClientConn]

	// opening is held by who changes what follows and conns. A channel, since
	// whoever waits for it must be able to give up at its deadline.
	opening chan struct{}
	streams int // requests that a connection takes; 0: not known
}

func newPool(transport *http.Transport, target *url.URL) *pool {
	p := &pool{
		transport: transport,
		scheme:    target.Scheme,
		addr:      address(target),
		opening:   make(chan struct{}, 1),
	}
	p.conns.Store(new([]*http.ClientConn))
	return p
}

// address returns the host:port of a URL.
func address(target *url.URL) string {
	port := target.Port()
	if port == "" {
		port = target.Scheme // net knows "http" and "https"
	}
	return net.JoinHostPort(target.Hostname(), port)
}

// RoundTrip implements http.RoundTripper.
func (p *pool) RoundTrip(req *http.Request) (*http.Response, error) {
	c := p.reserve()
	if c == nil {
		var err error
		if c, err = p.grow(req.Context()); err != nil {
			return nil, err
		}
	}
	return c.RoundTrip(req)
}

// reserve returns the next connection that takes a request now, with a place on
// it that RoundTrip will use; nil if there is none.
func (p *pool) reserve() *http.ClientConn {
	conns := *p.conns.Load()
	turn := p.turn.Add(1)
	for i := range uint32(len(conns)) {
		if c := conns[(turn+i)%uint32(len(conns))]; c.Reserve() == nil {
			return c
		}
	}
	return nil
}

// grow returns a connection when none is available: one that another call opened
// meanwhile, a new one, or, at maxConns, any: the request then waits there for
// its turn, at the expense of its own latency.
func (p *pool) grow(ctx context.Context) (*http.ClientConn, error) {
	select {
	case p.opening <- struct{}{}:
		defer func() { <-p.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c := p.reserve(); c != nil {
		return c, nil
	}
	var working []*http.ClientConn
	for _, c := range *p.conns.Load() {
		if c.Err() == nil {
			working = append(working, c)
		}
	}
	p.conns.Store(&working)
	if len(working) >= maxConns {
		return working[p.turn.Add(1)%maxConns], nil
	}
	c, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	_ = c.Reserve() // before the others see it; without a place the request waits for one
	p.add(c)
	return c, nil
}

// dial opens one more connection and returns when it is known what it takes. The
// caller is alone, or holds opening.
func (p *pool) dial(ctx context.Context) (*http.ClientConn, error) {
	c, err := p.transport.NewClientConn(ctx, p.scheme, p.addr)
	if err != nil {
		return nil, err
	}
	known := func(n int) bool {
		if p.streams == 0 {
			return n != assumedStreams
		}
		return n == p.streams
	}
	for until := time.Now().Add(settle); !known(c.Available()) && time.Now().Before(until) && ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
	}
	p.streams = c.Available()
	return c, nil
}

// add lets everybody use c.
func (p *pool) add(c *http.ClientConn) {
	conns := append([]*http.ClientConn(nil), *p.conns.Load()...)
	conns = append(conns, c)
	p.conns.Store(&conns)
}

func (p *pool) closeAll() {
	for _, c := range *p.conns.Load() {
		c.Close()
	}
}
