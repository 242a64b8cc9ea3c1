package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput/goodputhttp"
)

// A flow is a stream in either direction or in both: server-sent events, a long download, a
// call of gRPC. Its limits are those of the class: cut when nothing has moved for Idle, and
// after Total. Before the header of the response the client is told (504); after it, it can
// tell from an end that is none.
//
// What moves is seen where it is read from the client and where it is written to it, in
// pieces of up to 32 KiB. So a client that takes a download more slowly than 32 KiB in Idle, with
// everything on the way full, is idle: that is 546 B/s at 60 s.
type flow struct {
	http.ResponseWriter
	asked   *http.Request
	control *http.ResponseController
	h1      bool
	read    sync.Mutex   // held while the body is being read
	reading atomic.Int32 // who reads it, or is about to
	unread  atomic.Bool  // there is more of a body of HTTP/1
	counts  *traffic
	limits  limits
	cancel  context.CancelFunc // what is on its way from the service

	mu      sync.Mutex
	started bool // the header is on its way: nothing else can be said
	ended   bool // the handler returns, and the writer is not its own any more: nobody cuts
	over    ending
}

// An ending is the limit at which a stream or a tunnel was cut.
type ending uint8

const (
	none ending = iota
	idled
	expired
	endings
)

// carry runs next with w and r as a flow.
func (c *carrier) carry(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	f := &flow{
		ResponseWriter: w, asked: r, control: http.NewResponseController(w), h1: r.ProtoMajor == 1,
		counts: c.traffic, cancel: cancel,
	}
	r = r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &flowBody{ReadCloser: r.Body, flow: f}
		if f.h1 {
			// The answer may begin before the request has ended, as over HTTP/2. The rest
			// of a body that nobody reads must not be taken for the next request.
			if f.control.EnableFullDuplex() == nil {
				f.unread.Store(true)
				w.Header().Set("Connection", "close")
			}
		}
	}
	f.limits.start(c.cfg.Idle, c.cfg.Total, f.cut)
	defer f.end(c)
	c.next.ServeHTTP(f, r)
}

// restLinger is how long a client of HTTP/1 may go on to send what nobody wants, once the
// answer is complete: some round trips, in which it reads the answer. If the connection
// were closed sooner, what is on its way would destroy the answer; net/http, which reads up
// to 256 KiB of the rest, has no end for that in time.
const restLinger = 250 * time.Millisecond

// end stops the limits, and answers for a service that did not begin to in time.
func (f *flow) end(c *carrier) {
	f.limits.stop()
	if f.unread.Load() {
		// First what still reads for the service, or net/http would end that, and its own
		// reading would have no end then. Both fail for a connection that is closed.
		_ = f.control.SetReadDeadline(longAgo)
		f.read.Lock()
		_ = f.control.SetReadDeadline(time.Now().Add(restLinger))
		f.read.Unlock()
	}
	f.mu.Lock()
	f.ended = true
	over, started := f.over, f.started
	f.mu.Unlock()
	if over == none || started {
		return // a panic goes on
	}
	switch p := recover(); p {
	case nil, http.ErrAbortHandler: // of ReverseProxy, for a request that was cancelled
	default:
		panic(p)
	}
	limit := c.cfg.Idle
	if over == expired {
		limit = c.cfg.Total
	}
	say(f.ResponseWriter, f.asked, http.StatusGatewayTimeout, "4", fmt.Sprintf("the upstream has not begun to answer within %v", limit))
}

// cut ends what waits: for the service, for the client to send and for the client to take.
func (f *flow) cut(e ending) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return // the timer rang as the stream ended; over HTTP/2 its writer would panic now
	}
	f.over = e
	f.counts.cut[e].Add(1)
	f.cancel()
	if f.h1 && f.reading.Load() > 0 {
		// Otherwise it would end what net/http reads beside the handler, and with that the
		// request (golang/go#70834).
		_ = f.control.SetReadDeadline(longAgo)
	}
	if f.started {
		goodputhttp.Cut(f.asked.Context())
		_ = f.control.SetWriteDeadline(longAgo) // it fails for a connection that is closed
	}
}

// longAgo as a deadline ends what waits.
var longAgo = time.Unix(1, 0)

// Unwrap is for http.ResponseController.
func (f *flow) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// WriteHeader passes the status on, unless 504 is to be it.
func (f *flow) WriteHeader(status int) {
	if f.start(status) {
		f.ResponseWriter.WriteHeader(status)
	}
}

// start reports whether the header may go out.
func (f *flow) start(status int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over != none && !f.started {
		return false
	}
	f.started = f.started || status >= 200
	return true
}

// Write passes bytes on.
func (f *flow) Write(p []byte) (int, error) {
	if !f.start(http.StatusOK) {
		return 0, context.Canceled
	}
	n, err := f.ResponseWriter.Write(p)
	if n > 0 {
		f.limits.move()
	}
	return n, err
}

// A flowBody is what a client sends.
type flowBody struct {
	io.ReadCloser
	flow *flow
}

func (b *flowBody) Read(p []byte) (int, error) {
	b.flow.reading.Add(1)
	b.flow.read.Lock()
	n, err := b.ReadCloser.Read(p)
	b.flow.read.Unlock()
	b.flow.reading.Add(-1)
	if n > 0 {
		b.flow.limits.move()
	}
	if err == io.EOF {
		b.flow.unread.Store(false)
	}
	return n, err
}
