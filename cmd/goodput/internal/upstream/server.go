package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// A server is one address with its connections, what it has in flight and how well it is.
type server struct {
	pool   *Pool
	name   string   // its URL, to show
	url    *url.URL // as configured
	target *url.URL // of outgoing requests: the URL with a scheme that net/http knows
	back   *transport

	inFlight atomic.Int64 // from RoundTrip to the end of the response body, or the error
	limit    atomic.Int64 // 0: nobody has said
	share    atomic.Int64 // thousandths of its weight: 0 while it is out, less than full while it starts slowly
	failed   atomic.Int64 // requests in a row without an answer
	closed   atomic.Int64 // of connections that were tried, how many in a row did not come about

	requests, elsewhere, failures, ejections, checks, sick atomic.Uint64 // see ServerStats

	health // guarded by the lock of the pool
}

// full is the share of a server that has all of it.
const full = 1000

func newServer(p *Pool, u *url.URL) *server {
	s := &server{pool: p, name: u.Redacted(), url: u, target: target(u)}
	s.back = newTransport(u.Scheme, p.dial, s.dialed)
	s.share.Store(full)
	s.health = health{well: true, since: time.Now(), wake: make(chan struct{}, 1)}
	return s
}

// hold counts res as in flight until its body has ended: has been read to its end, has
// failed, or was closed. A connection that is upgraded has a body that is the connection.
func (s *server) hold(res *http.Response) {
	switch body := res.Body.(type) {
	case io.ReadWriteCloser:
		res.Body = &tunnel{ReadWriteCloser: body, held: held{s: s}}
	default:
		if body == http.NoBody {
			s.inFlight.Add(-1)
			return
		}
		res.Body = &content{ReadCloser: body, held: held{s: s}}
	}
}

// held is one request in flight, ended once.
type held struct {
	s     *server
	ended atomic.Bool
}

func (h *held) end() {
	if h.ended.CompareAndSwap(false, true) {
		h.s.inFlight.Add(-1)
	}
}

// content is the body of a response.
type content struct {
	io.ReadCloser
	held
}

func (c *content) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	if err != nil {
		c.end()
	}
	return n, err
}

func (c *content) Close() error {
	c.end()
	return c.ReadCloser.Close()
}

// A tunnel is an upgraded connection. One side of it may end before the other, so it is in
// flight until it is closed.
type tunnel struct {
	io.ReadWriteCloser
	held
}

// CloseWrite tells the server that nothing more comes from the client.
func (t *tunnel) CloseWrite() error {
	if c, ok := t.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (t *tunnel) Close() error {
	t.end()
	return t.ReadWriteCloser.Close()
}

// answers notes that s has answered, whatever it has said.
func (s *server) answers() {
	if s.failed.Load() != 0 { // else every request would write it
		s.failed.Store(0)
	}
	if s.closed.Load() != 0 {
		s.closed.Store(0)
	}
}

// fails notes that s has given no answer to r, unless it is not to blame: the client left,
// our deadline passed, or the client's body broke. What could not be dialed was counted by
// dialed. A change of protocol is an answer, and some client may know how to get one.
func (s *server) fails(r *http.Request, out *outgoing, err error) {
	if errors.Is(err, ErrSwitched) {
		s.answers()
		return
	}
	if r.Context().Err() != nil || out.broke() || undialed(err) {
		return
	}
	if unexecuted(err) { // TLS
		s.closed.Add(1)
	}
	s.failing(err)
}

// dialed hears of each connection that was dialed: also of those that nobody waits for any
// more, because the deadline of the request was shorter than it took. A check counts itself.
func (s *server) dialed(ctx context.Context, err error) {
	switch {
	case err == nil && s.url.Scheme != "https" && s.closed.Load() != 0:
		s.closed.Store(0)
	case err != nil && ctx.Err() == nil && ctx.Value(checkKey{}) == nil:
		s.closed.Add(1)
		s.failing(err)
	}
}

// failing counts a failure, and takes s out when they are too many in a row. The last server
// that is well stays as long as it takes connections: no other one would answer instead, and
// whoever knows a request on which it hangs up could take the service away from everybody.
func (s *server) failing(err error) {
	s.failures.Add(1)
	n, most := s.failed.Add(1), s.pool.tolerated()
	if s.share.Load() == 0 || n < most || s.closed.Load() < most && s.pool.capacity().Well == 1 {
		return
	}
	s.out(err, "requests in a row without an answer", n)
}

// checkKey marks the context of a check.
type checkKey struct{}

// ServerStats is one server at a moment. Counters never fall.
type ServerStats struct {
	Server   string // its URL
	InFlight int
	Limit    int     // 0: nobody has said
	Well     bool    // it takes requests
	Share    float64 // of its room, 0.1 to 1 while it starts slowly; 0: it is out
	Since    time.Time
	Why      string // it is out; "" if it is well

	Requests  uint64 // sent to it
	Elsewhere uint64 // of those, given to another server if there was one: not executed, or to be repeated
	Failures  uint64 // requests and connections that it left without an answer
	Ejections uint64 // how often it was taken out
	Checks    uint64 // of its health
	Sick      uint64 // checks that failed
}

// Stats returns the servers in the order of the configuration.
func (p *Pool) Stats() []ServerStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []ServerStats
	for _, m := range *p.all.Load() {
		s := ServerStats{
			Server: m.name, InFlight: int(m.inFlight.Load()), Limit: int(m.limit.Load()),
			Well: m.well, Share: float64(m.share.Load()) / full, Since: m.since,
			Requests: m.requests.Load(), Elsewhere: m.elsewhere.Load(), Failures: m.failures.Load(),
			Ejections: m.ejections.Load(), Checks: m.checks.Load(), Sick: m.sick.Load(),
		}
		if m.why != nil {
			s.Why = m.why.Error()
		}
		all = append(all, s)
	}
	return all
}
