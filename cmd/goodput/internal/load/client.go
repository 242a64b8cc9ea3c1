package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// HTTP describes requests: all alike.
type HTTP struct {
	URL    *url.URL
	Method string        // default GET
	Header http.Header   // beside the ones the client sets
	Body   []byte        // not changed as long as the client is used; nil: none
	Budget time.Duration // told to the server as what remains, less what is Spent; 0 tells nothing

	// Addr, if not "", is the host:port to connect to, in place of that of URL, which stays
	// the name in Host and for TLS. Nothing is resolved then.
	Addr string

	// TLS is for a URL of https. nil trusts the roots of the system.
	TLS *tls.Config

	// Stamp adds to the headers of one request, by the context that it was sent with. nil adds
	// nothing.
	Stamp func(ctx context.Context, h http.Header)

	// Again is asked before a request of HTTP/1.1 is sent once more, since the server had closed
	// the connection that was kept for it: at most twice for each. nil: it may.
	Again func() bool

	// HTTP2 speaks HTTP/2, in clear text if the URL does and else by ALPN. A few
	// connections then carry thousands of requests. HTTP/1.1 needs a connection for each
	// that waits: 7,200 of them made a generator 3.8 s late on two cores. See Speaks.
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

// A Client performs the requests of an HTTP over the network. It follows no redirect, which
// is an answer like others, and uses no proxy that the environment names: what is measured is
// the target alone.
type Client struct {
	request *http.Request // copied for each
	body    []byte
	budget  time.Duration
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
		req.Header[budgetHeader] = []string{milliseconds(h.Budget)}
	}
	req.ContentLength = int64(len(h.Body))
	protocols := new(http.Protocols)
	transport := &http.Transport{
		Protocols:          protocols,
		DialContext:        h.dial,
		TLSClientConfig:    h.TLS.Clone(),
		DisableCompression: true,
	}
	c := &Client{request: req, body: h.Body, budget: h.Budget, stamp: h.Stamp}
	if !h.HTTP2 {
		protocols.SetHTTP1(true)
		s := newStock(transport, h.URL)
		s.again = h.Again
		c.via, c.close = s, s.closeIdle
		return c, nil
	}
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	p := newPool(transport, h.URL)
	c.via, c.close = p, p.closeAll
	n := h.Conns
	if n == 0 {
		n = defaultConns
	}
	for range min(n, maxConns) {
		conn, err := p.dial(ctx)
		if err != nil {
			p.closeAll()
			return nil, fmt.Errorf("connect to %s: %w", p.addr, err)
		}
		p.add(conn)
	}
	return c, nil
}

// dial connects to Addr, or to addr if there is none.
func (h HTTP) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if h.Addr != "" {
		addr = h.Addr
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// Close gives the connections back.
func (c *Client) Close() { c.close() }

// Send performs one request. It is a Send.
func (c *Client) Send(ctx context.Context) Answer {
	req := c.request.WithContext(ctx)
	if len(c.body) > 0 {
		req.GetBody = c.open // for a connection that ends before it was sent
		req.Body, _ = c.open()
	}
	spent := Spent(ctx)
	if c.stamp != nil || spent > 0 {
		req.Header = req.Header.Clone()
	}
	if spent > 0 && c.budget > 0 {
		// Less than 1 ms is 1: 0 would be no deadline at all.
		req.Header[budgetHeader] = []string{milliseconds(max(c.budget-spent, time.Millisecond))}
	}
	if c.stamp != nil {
		c.stamp(ctx, req.Header)
	}
	resp, err := c.via.RoundTrip(req)
	if err != nil {
		return Answer{Err: err}
	}
	defer resp.Body.Close()
	a := answerOf(resp)
	if resp.ContentLength != 0 {
		if a.Content.Size, a.Content.Sum, err = drain(resp.Body); err != nil {
			return Answer{Err: err}
		}
	}
	return a
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func (c *Client) open() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(c.body)), nil
}

// answerOf returns what the head of a response says.
func answerOf(resp *http.Response) Answer {
	a := Answer{Status: resp.StatusCode, RetryAfter: strings.Join(resp.Header.Values("Retry-After"), ", ")} // two of them are none
	a.Reason, a.Marked = reason(resp)
	if a.RetryAfter != "" {
		a.Date = resp.Header.Get("Date")
	}
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	a.Content.Type = strings.ToLower(strings.TrimSpace(kind))
	return a
}

// A drainer reads bodies to their end. It is kept for the next one: 8 KiB and a hash are too
// much to allocate 12,000 times a second, and too much for each of 65,536 requests that wait
// for an answer, so it is taken when a body begins.
type drainer struct {
	hash maphash.Hash
	buf  [8 << 10]byte
}

var (
	drainers = sync.Pool{New: func() any { return new(drainer) }}
	seed     = maphash.MakeSeed() // one, so that sums can be compared
)

// drain reads a body to its end and returns its size and sum.
func drain(body io.Reader) (size int64, sum uint64, err error) {
	d := drainers.Get().(*drainer)
	defer drainers.Put(d)
	d.hash.SetSeed(seed) // resets it
	for {
		n, err := body.Read(d.buf[:])
		d.hash.Write(d.buf[:n])
		size += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, 0, err
		}
	}
	if size > 0 {
		sum = d.hash.Sum64()
	}
	return size, sum, nil
}

// reason returns why a request was not executed: the word of the header, or the
// status if that means as much, which is how other proxies put it.
func reason(resp *http.Response) (word string, marked bool) {
	if word := resp.Header.Get(refusedHeader); word != "" {
		return word, true
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return "status_429", false
	case http.StatusServiceUnavailable:
		return "status_503", false
	}
	return "", false
}
