package load

import (
	"container/list"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// A stock keeps HTTP/1.1 connections, each for one request at a time.
//
// It does what http.Transport does but for one thing. That one dials for each request that
// finds no connection, whatever comes free meanwhile: a generator that stood still for 100 ms
// at 10,000/s then makes 1,000 connections, at five times the cost of a request, is late again
// for that, and never finds its way back. Here a connection that comes free goes to who waits
// the longest, and nobody dials for those who wait no more.
type stock struct {
	transport    *http.Transport
	scheme, addr string
	ctx          context.Context // of the dials, which outlive the request that began them
	stop         context.CancelFunc
	again        func() bool // nil: always

	mu      sync.Mutex
	idle    []*http.ClientConn // the last one was used last: the others may be closed by the server
	waiting list.List          // of chan taken, in the order of their coming, each with room for one
	dialing int                // <= maxDials
}

const (
	// maxDials is how many connections are made at once. A network of 20 ms then gives 12,800/s.
	maxDials = 256

	// dialFor bounds one attempt. Who still waits for it has another one: the place that it
	// holds is not lost to a packet that nobody answers.
	dialFor = 5 * time.Second

	// maxTries bounds how often a request is sent again because the server had closed the
	// connection that was kept for it.
	maxTries = 3
)

// taken is a connection for one request, or why there is none.
type taken struct {
	conn *http.ClientConn
	used bool // by another request before
	err  error
}

// room is for the descriptors of as many connections as there may be requests.
var room = sync.OnceFunc(func() { makeRoom(DefaultMaxInFlight) })

func newStock(transport *http.Transport, target *url.URL) *stock {
	room()
	s := &stock{transport: transport, scheme: target.Scheme, addr: address(target)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// RoundTrip implements http.RoundTripper.
func (s *stock) RoundTrip(req *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		t := s.take(req.Context())
		if t.err != nil {
			return nil, t.err
		}
		resp, err := t.conn.RoundTrip(req)
		if err == nil {
			resp.Body = &lent{ReadCloser: resp.Body, stock: s, conn: t.conn, ended: resp.ContentLength == 0, last: resp.Close}
			return resp, nil
		}
		t.conn.Close()
		if !t.used || try == maxTries || req.Context().Err() != nil || !replayable(req) || s.again != nil && !s.again() {
			return nil, err
		}
	}
}

// replayable reports whether a request may be sent again without being asked: RFC 9110,
// section 9.2.2.
func replayable(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return req.Body == nil // or it has been read
	}
	return false
}

// take returns a connection that is free, or waits for one.
func (s *stock) take(ctx context.Context) taken {
	s.mu.Lock()
	for n := len(s.idle); n > 0; n = len(s.idle) {
		c := s.idle[n-1]
		s.idle[n-1] = nil
		s.idle = s.idle[:n-1]
		if c.Err() == nil {
			s.mu.Unlock()
			return taken{conn: c, used: true}
		}
	}
	mine := make(chan taken, 1)
	place := s.waiting.PushBack(mine)
	if s.dialing < min(s.waiting.Len(), maxDials) {
		s.dialing++
		go s.dial()
	}
	s.mu.Unlock()

	select {
	case t := <-mine:
		return t
	case <-ctx.Done():
	}
	s.mu.Lock()
	select {
	case t := <-mine: // came at the same time, and place is no longer in the list
		s.mu.Unlock()
		s.give(t)
	default:
		s.waiting.Remove(place)
		s.mu.Unlock()
	}
	return taken{err: ctx.Err()}
}

// give hands a connection, or the error of one, to who waits the longest, and keeps a
// connection that nobody waits for.
func (s *stock) give(t taken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.waiting.Front(); first != nil {
		s.waiting.Remove(first).(chan taken) <- t // has room
		return
	}
	if t.conn == nil {
		return
	}
	if s.ctx.Err() != nil {
		t.conn.Close()
		return
	}
	s.idle = append(s.idle, t.conn)
}

// dial makes connections as long as more wait for one than are being made. It looks before the
// first one, too: on a busy machine those who waited may have been served meanwhile.
func (s *stock) dial() {
	for s.needed() {
		ctx, cancel := context.WithTimeout(s.ctx, dialFor)
		c, err := s.transport.NewClientConn(ctx, s.scheme, s.addr)
		tooLong := errors.Is(ctx.Err(), context.DeadlineExceeded)
		cancel()
		if err == nil || !tooLong {
			s.give(taken{conn: c, err: err})
		}
	}
}

// needed reports whether one of the dials is to go on; if not, it is one less.
func (s *stock) needed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting.Len() >= s.dialing {
		return true
	}
	s.dialing--
	return false
}

// closeIdle ends the dials and closes what is not in use; what is will be when it comes back.
func (s *stock) closeIdle() {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.idle {
		c.Close()
	}
	s.idle = nil
}

// lent is the body of an answer, whose Close gives the connection back.
type lent struct {
	io.ReadCloser
	stock *stock
	conn  *http.ClientConn
	ended bool // nothing is left to read
	last  bool // the server closes the connection
}

func (l *lent) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	l.ended = l.ended || err == io.EOF
	return n, err
}

func (l *lent) Close() error {
	err := l.ReadCloser.Close()
	if l.ended && !l.last {
		l.stock.give(taken{conn: l.conn, used: true})
	} else {
		l.conn.Close()
	}
	return err
}
