package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/limit"
)

// A madhouse is a service that does everything that a service must not: it answers nonsense,
// half an answer, headers without end, or nothing; and it is killed and started again.
type madhouse struct {
	t    *testing.T
	addr string
	mu   sync.Mutex
	srv  *http.Server
	seed atomic.Uint64
}

func newMadhouse(t *testing.T, seed uint64) *madhouse {
	t.Helper()
	m := &madhouse{t: t, addr: "127.0.0.1:0"}
	m.seed.Store(seed)
	m.open()
	t.Cleanup(m.kill)
	return m
}

// open listens where it did before.
func (m *madhouse) open() {
	l, err := net.Listen("tcp", m.addr)
	if err != nil {
		m.t.Error(err)
		return
	}
	m.addr = l.Addr().String()
	both := new(http.Protocols)
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.srv = &http.Server{Handler: m, Protocols: both, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)}
	go m.srv.Serve(l) // ends with Close
}

// kill cuts every connection.
func (m *madhouse) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.srv.Close() // the listener, too
}

// wildAnswers are what is sent to a connection of HTTP/1.1 instead of a response.
var wildAnswers = []string{
	"",                                     // nothing: the connection is closed
	"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", // TLS
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00", // HTTP/2
	"HTTP/1.1 200 OK\r\nContent-Len",       // ends in its header
	"HTTP/1.1 999999 OK\r\n\r\n",           // no status
	"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
	"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nnonsense",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",                               // no last chunk
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nanother", // one too many
	"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nnobody asked",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
}

func (m *madhouse) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rng := rand.New(rand.NewPCG(m.seed.Add(1), 2))
	if r.Header.Get("Upgrade") != "" {
		shout(m.t).ServeHTTP(w, r)
		return
	}
	switch rng.IntN(13) {
	case 12: // early hints
		w.Header().Set("Link", "</a.css>; rel=preload")
		for range rng.IntN(50) {
			w.WriteHeader(http.StatusEarlyHints)
		}
	case 0: // stalls
		select {
		case <-r.Context().Done():
		case <-time.After(time.Duration(rng.IntN(300)) * time.Millisecond):
		}
	case 1, 2: // nonsense, in HTTP/1.1
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			defer conn.Close()
			io.WriteString(conn, wildAnswers[rng.IntN(len(wildAnswers))])
			return
		}
	case 3: // a header without end
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			line := "X-More: " + strings.Repeat("m", 10_000) + "\r\n"
			for range 1000 { // 10 MB; who reads them has hung up before
				if _, err := io.WriteString(conn, line); err != nil {
					return
				}
			}
			return
		}
	case 4: // half a body
		w.Header().Set("Content-Length", "100000")
		w.Write(make([]byte, rng.IntN(100_000)))
		panic(http.ErrAbortHandler)
	case 5: // a long one
		w.Write(make([]byte, 1<<20))
		return
	case 6: // an event now and then
		w.Header().Set("Content-Type", "text/event-stream")
		for range rng.IntN(20) {
			fmt.Fprint(w, "data: x\n\n")
			w.(http.Flusher).Flush()
			time.Sleep(time.Millisecond)
		}
		return
	case 7: // answers without reading
		http.Error(w, "no", http.StatusRequestEntityTooLarge)
		return
	case 8: // sheds itself
		w.Header().Set("Goodput-Rejected", "queue_full")
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	io.Copy(io.Discard, r.Body) // whatever came
	time.Sleep(time.Duration(rng.IntN(10)) * time.Millisecond)
	fmt.Fprint(w, "fine")
}

// comeAndGo kills the service and starts it again until end.
func (m *madhouse) comeAndGo(rng *rand.Rand, end <-chan struct{}) {
	for {
		select {
		case <-end:
			return
		case <-time.After(time.Duration(200+rng.IntN(500)) * time.Millisecond):
		}
		m.kill()
		time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
		m.open()
	}
}

// A mob is clients of every kind of bad manners.
type mob struct {
	addr   string
	h1, h2 *http.Client
}

// act does one of the things that clients do, and does not care for the answer.
func (m *mob) act(rng *rand.Rand) {
	switch rng.IntN(10) {
	case 0, 1, 2:
		m.ask(rng, m.h1)
	case 3, 4, 5:
		m.ask(rng, m.h2)
	case 6, 7:
		m.reset(rng)
	case 8:
		m.garbage(rng)
	case 9:
		m.dawdle(rng)
	}
}

// ask sends a proper request, and often leaves before the end of it.
func (m *mob) ask(rng *rand.Rand, use *http.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if rng.IntN(2) == 0 {
		time.AfterFunc(time.Duration(rng.IntN(30))*time.Millisecond, cancel)
	}
	var body io.Reader
	switch rng.IntN(4) {
	case 0:
		body = strings.NewReader(strings.Repeat("b", rng.IntN(100_000)))
	case 1: // of unknown length
		body = struct{ io.Reader }{strings.NewReader(strings.Repeat("b", rng.IntN(2<<20)))}
	}
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+m.addr+"/", body)
	if err != nil {
		panic(err)
	}
	switch rng.IntN(6) {
	case 0:
		req.Header.Set("X-Envoy-Expected-Rq-Timeout-Ms", fmt.Sprint(rng.IntN(100)))
	case 1:
		req.Header.Set("Expect", "100-continue")
	case 2:
		req.Header.Set("Content-Type", "application/grpc")
		req.Header.Set("TE", "trailers")
	}
	res, err := use.Do(req)
	if err != nil {
		return
	}
	defer res.Body.Close()
	io.CopyN(io.Discard, res.Body, rng.Int64N(2<<20)) // then it has seen enough
}

// Requests that are cut anywhere.
var rawRequests = []string{
	"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3000\r\n\r\n" + strings.Repeat("b", 3000),
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n" + strings.Repeat("b", 100_000),
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nhello\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5000000\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello\n",
}

// reset sends a part of a request, reads a part of the answer, and resets.
func (m *mob) reset(rng *rand.Rand) {
	c, err := net.Dial("tcp", m.addr)
	if err != nil {
		return
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience)) // TCP
	request := rawRequests[rng.IntN(len(rawRequests))]
	if rng.IntN(2) == 0 {
		request = request[:rng.IntN(len(request))]
	}
	io.WriteString(c, request)                                             // it may be cut off
	time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)             // where the request is then
	c.SetReadDeadline(time.Now().Add(time.Duration(rng.IntN(30)+1) * 1e6)) // ms
	io.CopyN(io.Discard, c, rng.Int64N(200_000))
	c.(*net.TCPConn).SetLinger(0) // Close sends a reset
}

// garbage sends what is no HTTP, or is until a certain point.
func (m *mob) garbage(rng *rand.Rand) {
	c, err := net.Dial("tcp", m.addr)
	if err != nil {
		return
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second)) // TCP
	begin := []string{
		"", "GET ", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		"GET / HTTP/1.1\r\nHost: h\r\nX: ", "\x16\x03\x01",
	}
	b := make([]byte, 1+rng.IntN(4000))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	io.WriteString(c, begin[rng.IntN(len(begin))]+string(b)) // it may be cut off
	io.Copy(io.Discard, io.LimitReader(c, 1<<20))            // what is said of it
}

// dawdle sends or reads slowly, for half a second.
func (m *mob) dawdle(rng *rand.Rand) {
	c, err := net.Dial("tcp", m.addr)
	if err != nil {
		return
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience)) // TCP
	c.(*net.TCPConn).SetReadBuffer(4 << 10)
	request := rawRequests[rng.IntN(len(rawRequests))]
	in := bufio.NewReaderSize(c, 16)
	for i, step := 0, 1+len(request)/10; i < 10; i++ {
		from, to := min(i*step, len(request)), min((i+1)*step, len(request))
		if _, err := io.WriteString(c, request[from:to]); err != nil {
			return
		}
		time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
	}
	for range 50 {
		if _, err := in.ReadByte(); err != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Chaos for 6 seconds, or for as long as GOODPUT_STRESS says: clients reset in every phase,
// send nonsense and dawdle; the service is killed, comes back, stalls and answers nonsense; the
// configuration changes all the time.
// Afterwards every request has ended in exactly one way, and nothing of any is left.
func TestChaosLeavesNothing(t *testing.T) {
	before, _ := working()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	mad := newMadhouse(t, seed)
	cfg := lanes(t, mad.addr, lane{"rest", limit.Fixed(8), 0, 200 * time.Millisecond, "app", true})
	one := &cfg.Classes[0]
	one.SlowClient, one.DeadlineCap, one.MaxUpgraded, one.Limiter.MaxBytes = 300*time.Millisecond, 2*time.Second, 4, 1<<20
	cfg.Listeners[0].HeaderTimeout = 300 * time.Millisecond
	cfg.Upstreams[0].Failures = 1000 // it never works, and must be asked all the same
	c := newCrowd(t, cfg)
	served := c.countServed()

	end := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { mad.comeAndGo(rand.New(rand.NewPCG(seed, 3)), end) })
	all.Go(func() { c.reloads(cfg, end) })
	m := &mob{c.addr, c.clients[0], c.clients[1]}
	for i := range 48 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(100+i)))
			for {
				select {
				case <-end:
					return
				default:
					m.act(rng)
				}
			}
		})
	}
	time.Sleep(long(t, 6*time.Second))
	close(end)
	all.Wait()

	s := c.settled(served)
	t.Logf("%d requests: %v; %+v", served.began.Load(), s.Outcomes, c.proxy.Door())
	for _, o := range []goodput.Outcome{goodput.Completed, goodput.Failed, goodput.Rejected, goodput.Cancelled, goodput.Abandoned} {
		if s.Outcomes[o] == 0 {
			t.Errorf("nothing of it was %v: this was no chaos", o)
		}
	}
	c.nothingRuns(before)
}

// reloads changes the limit and the deadline to and fro until end.
func (c *crowd) reloads(cfg *config.Config, end <-chan struct{}) {
	other := *cfg
	other.Classes = []config.Class{cfg.Classes[0]}
	other.Classes[0].Limiter.Limit, other.Classes[0].Deadline = limit.Fixed(4), time.Second
	for i := 0; ; i++ {
		select {
		case <-end:
			return
		case <-time.After(50 * time.Millisecond):
		}
		if err := c.proxy.Reconfigure([]*config.Config{cfg, &other}[i%2]); err != nil {
			c.Error(err)
		}
	}
}

// A tally counts the requests that the handler of a server has begun and ended.
type tally struct{ began, ended atomic.Uint64 }

// countServed counts what comes to the proxy. Nothing has yet.
func (c *crowd) countServed() *tally {
	n, next := new(tally), c.server.Handler
	c.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.began.Add(1)
		defer n.ended.Add(1) // also after a panic
		next.ServeHTTP(w, r)
	})
	return n
}

// settled waits until nothing runs, waits or is kept, and checks that each request was either
// offered to the limiter, and has ended there in one way, or was answered before.
func (c *crowd) settled(served *tally) goodput.Stats {
	c.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		s, door := c.all()[0].Stats(), c.proxy.Door()
		var ended uint64
		for _, n := range s.Outcomes {
			ended += n
		}
		began := served.began.Load()
		answered := door.SlowBodies + door.BadBodies + door.LargeBodies + door.UpgradedRefused
		if idle(s) && s.WaitingBytes == 0 && s.Exempt == 0 && door.Buffered == 0 && door.Held == 0 && door.Upgraded == 0 &&
			served.ended.Load() == began && ended == s.Arrivals && s.Arrivals+answered == began {
			return s
		}
		if time.Now().After(end) {
			c.Fatalf("%d requests began, %d ended; %d were offered and %d ended there, %d were answered before\n%+v\n%+v",
				began, served.ended.Load(), s.Arrivals, ended, answered, door, s.Stats)
		}
	}
}
