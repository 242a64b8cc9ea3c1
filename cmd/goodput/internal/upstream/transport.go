package upstream

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// dialTimeout is how long a connect may take where no deadline ends it
	// before: one lost SYN is repeated after 1 s, a second after 3 s.
	dialTimeout = 5 * time.Second

	// idleUpstream is how long an idle connection to the service is kept. It is
	// below the shortest keep-alive that common servers have (Node.js: 5 s), so
	// that we hang up first: a POST sent into a closing connection is a 502 that
	// nobody may retry.
	idleUpstream = 4 * time.Second

	// manyIdle stands for "as many idle connections as were ever in use": the
	// limiter bounds that number. Go's default of 2 makes every other request
	// dial, which looks like a slow service.
	manyIdle = 1 << 20

	// expectContinue is how long a client's "Expect: 100-continue" waits for
	// the service's word before the body is sent anyway (RFC 9110, 10.1.1).
	expectContinue = time.Second

	// deadPeer is how long an HTTP/2 connection may be silent before it is
	// asked whether it lives; a dead one would hold its requests to their
	// deadlines.
	deadPeer = 15 * time.Second
)

// A transport speaks to the servers of a service.
//
//	http://   HTTP/1.1, except gRPC that came over HTTP/2: HTTP/2 without TLS
//	h2c://    HTTP/2 without TLS, by prior knowledge
//	https://  HTTP/2 if the service offers it in TLS, else HTTP/1.1
//
// An upgrade (WebSocket) is HTTP/1.1 in all three. Neither transport queues:
// MaxConnsPerHost is 0, and HTTP/2 opens another connection when the streams of
// the one it has are used up.
type transport struct {
	h1, h2 *http.Transport
	h2c    bool
}

// newTransport returns one; dialed hears of each connection that was dialed.
func newTransport(scheme string, dial dialing, dialed func(context.Context, error)) *transport {
	u := &transport{h1: newHTTP(dial, dialed), h2: newHTTP(dial, dialed), h2c: scheme == "h2c"}
	u.h1.Protocols = new(http.Protocols)
	u.h1.Protocols.SetHTTP1(true)
	u.h1.Protocols.SetHTTP2(scheme == "https")
	u.h2.Protocols = new(http.Protocols)
	u.h2.Protocols.SetUnencryptedHTTP2(true)
	return u
}

func newHTTP(dial dialing, dialed func(context.Context, error)) *http.Transport {
	return &http.Transport{
		// Proxy stays nil: the environment of this process says nothing about
		// the way to the service beside it.
		DialContext:            dialer(dial, dialed),
		TLSHandshakeTimeout:    dialTimeout,
		MaxIdleConnsPerHost:    manyIdle,
		IdleConnTimeout:        idleUpstream,
		ExpectContinueTimeout:  expectContinue,
		DisableCompression:     true, // the client's Accept-Encoding passes through, and so does the body
		MaxResponseHeaderBytes: 1 << 20,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: deadPeer,
			PingTimeout:     dialTimeout,
		},
	}
}

// RoundTrip sends one request over the transport that fits it.
func (u *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "http" && r.Header["Upgrade"] == nil && (u.h2c || grpc(r)) {
		return u.h2.RoundTrip(r)
	}
	return u.h1.RoundTrip(r)
}

// grpc reports whether r is gRPC, which has no HTTP/1.1 form. gRPC-Web has.
func grpc(r *http.Request) bool {
	if r.ProtoMajor != 2 {
		return false
	}
	rest, ok := strings.CutPrefix(r.Header.Get("Content-Type"), "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

func (u *transport) closeIdle() {
	u.h1.CloseIdleConnections()
	u.h2.CloseIdleConnections()
}

// target is the URL that outgoing requests are built on: the transport knows no
// scheme h2c.
func target(u *url.URL) *url.URL {
	t := *u
	if t.Scheme == "h2c" {
		t.Scheme = "http"
	}
	return &t
}
