package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// HTTP describes requests: all alike, with no body.
type HTTP struct {
	URL    *url.URL
	Method string        // default GET
	Header http.Header   // beside the ones the client sets
	Budget time.Duration // told to the server as what remains; 0 tells nothing

	// Stamp adds to the headers of one request, by the context that it was sent with. nil adds
	// nothing.
	Stamp func(ctx context.Context, h http.Header)

	// HTTP2 speaks HTTP/2, in clear text if the URL does. A few connections
	// then carry thousands of requests. HTTP/1.1 needs a connection for each
	// that waits: 7,200 of them made a generator 3.8 s late on two cores.
	HTTP2 bool

	// Conns is how many HTTP/2 connections share the requests, default 4; more
	// are opened when the server allows too few requests on each. HTTP/1.1 has
	// as many as are needed.
	Conns int
}

const (
	budgetHeader  = "X-Envoy-Expected-Rq-Timeout-Ms"
	refusedHeader = "Goodput-Rejected"

	defaultConns = 4 // one lock and one writer each: 3,000 requests/s a connection at 10x of the demo
)

// A Client performs the requests of an HTTP over the network.
type Client struct {
	request *http.Request // copied for each
	stamp   func(context.Context, http.Header)
	via     http.RoundTripper
	close   func()
}

// Dial connects, so that no request of the run pays for it, and returns a
// Client. With HTTP/1.1 the connections are made as they are needed.
func Dial(ctx context.Context, h HTTP) (*Client, error) {
	req, err := http.NewRequest(h.Method, h.URL.String(), nil)
	if err != nil {
		return nil, err
	}
	if h.Header != nil {
		req.Header = h.Header.Clone()
	}
	req.Header["User-Agent"] = []string{"goodput-load"}
	if h.Budget > 0 {
		// The budget at the due instant. What the generator is late is not
		// taken off: a run in which it matters is void.
		req.Header[budgetHeader] = []string{strconv.FormatInt(h.Budget.Milliseconds(), 10)}
	}
	protocols := new(http.Protocols)
	transport := &http.Transport{
		Protocols:           protocols,
		DisableCompression:  true,
		MaxIdleConnsPerHost: DefaultMaxInFlight,
	}
	if !h.HTTP2 {
		protocols.SetHTTP1(true)
		return &Client{request: req, stamp: h.Stamp, via: transport, close: transport.CloseIdleConnections}, nil
	}
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	p := newPool(transport, h.URL)
	n := h.Conns
	if n == 0 {
		n = defaultConns
	}
	for range min(n, maxConns) {
		c, err := p.dial(ctx)
		if err != nil {
			p.closeAll()
			return nil, fmt.Errorf("connect to %s: %w", p.addr, err)
		}
		p.add(c)
	}
	return &Client{request: req, stamp: h.Stamp, via: p, close: p.closeAll}, nil
}

// Close gives the connections back.
func (c *Client) Close() { c.close() }

// Send performs one request. It is a Send.
func (c *Client) Send(ctx context.Context) Answer {
	req := c.request.WithContext(ctx)
	if c.stamp != nil {
		req.Header = req.Header.Clone()
		c.stamp(ctx, req.Header)
	}
	resp, err := c.via.RoundTrip(req)
	if err != nil {
		return Answer{Err: err}
	}
	defer resp.Body.Close()
	if resp.ContentLength != 0 {
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return Answer{Err: err}
		}
	}
	return Answer{Status: resp.StatusCode, Reason: reason(resp)}
}

// reason returns why a request was not executed: the word of the header, or the
// status if that means as much, which is how other proxies put it.
func reason(resp *http.Response) string {
	if word := resp.Header.Get(refusedHeader); word != "" {
		return word
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return "status_" + strconv.Itoa(resp.StatusCode)
	}
	return ""
}
