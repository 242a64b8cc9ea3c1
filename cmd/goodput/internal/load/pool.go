package load

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
)

// maxConns bounds a pool. A server that allows 100 requests on a connection, as
// most do, still takes 25,600 at once.
const maxConns = 256

// A pool spreads requests over HTTP/2 connections in turn. One that broke or
// allows no more requests is passed over; if there is no other, another one is
// opened.
type pool struct {
	transport    *http.Transport
	scheme, addr string
	turn         atomic.Uint32
	conns        atomic.Pointer[[]*http.ClientConn]

	// opening is held by who changes conns. A channel, since whoever waits for
	// it must be able to give up at its deadline.
	opening chan struct{}
}

func newPool(transport *http.Transport, target *url.URL) *pool {
	port := target.Port()
	if port == "" {
		port = target.Scheme // net knows "http" and "https"
	}
	p := &pool{
		transport: transport,
		scheme:    target.Scheme,
		addr:      net.JoinHostPort(target.Hostname(), port),
		opening:   make(chan struct{}, 1),
	}
	p.conns.Store(new([]*http.ClientConn))
	return p
}

// RoundTrip implements http.RoundTripper.
func (p *pool) RoundTrip(req *http.Request) (*http.Response, error) {
	c := p.available()
	if c == nil {
		var err error
		if c, err = p.grow(req.Context()); err != nil {
			return nil, err
		}
	}
	return c.RoundTrip(req)
}

// available returns the next connection that takes a request now, or nil.
func (p *pool) available() *http.ClientConn {
	conns := *p.conns.Load()
	turn := p.turn.Add(1)
	for i := range uint32(len(conns)) {
		if c := conns[(turn+i)%uint32(len(conns))]; c.Available() > 0 {
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
	if c := p.available(); c != nil {
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
	return p.dial(ctx)
}

// dial opens one more connection. The caller is alone, or holds opening.
func (p *pool) dial(ctx context.Context) (*http.ClientConn, error) {
	c, err := p.transport.NewClientConn(ctx, p.scheme, p.addr)
	if err != nil {
		return nil, err
	}
	conns := append([]*http.ClientConn(nil), *p.conns.Load()...)
	conns = append(conns, c)
	p.conns.Store(&conns)
	return c, nil
}

func (p *pool) closeAll() {
	for _, c := range *p.conns.Load() {
		c.Close()
	}
}
