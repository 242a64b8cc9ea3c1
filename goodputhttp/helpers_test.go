package goodputhttp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// patience is how long a test waits for what must happen before it gives up. It
// is no expectation: a busy machine may take any part of it.
const patience = 20 * time.Second

// until polls what has no channel to wait on.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for give := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(give) {
			t.Fatalf("gave up waiting: %s", what)
		}
	}
}

func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("gave up waiting: %s", what)
		panic("unreachable")
	}
}

// limiter returns one with n slots and the given other settings.
func limiter(n int, cfg goodput.Config) *goodput.Limiter {
	cfg.Limit = limit.Fixed(n)
	if cfg.Objective == 0 {
		cfg.Objective = time.Minute // nobody is late by accident on a busy machine
	}
	return goodput.New(cfg)
}

func one(lim *goodput.Limiter) func(*http.Request) *goodput.Limiter {
	return func(*http.Request) *goodput.Limiter { return lim }
}

// start serves h over HTTP/1.1 and h2c on loopback, and returns the address.
func start(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Config.ConnContext = ConnContext
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv
}

// clients are an HTTP/1.1 and an h2c client.
func clients(t testing.TB) map[string]*http.Client {
	t.Helper()
	all := map[string]*http.Client{}
	for _, name := range []string{"HTTP/1.1", "h2c"} {
		p := new(http.Protocols)
		p.SetHTTP1(name == "HTTP/1.1")
		p.SetUnencryptedHTTP2(name == "h2c")
		tr := &http.Transport{Protocols: p, MaxIdleConnsPerHost: 64}
		t.Cleanup(tr.CloseIdleConnections)
		all[name] = &http.Client{Transport: tr, Timeout: patience}
	}
	return all
}

// A gate is a handler that holds its requests until it is opened.
type gate struct {
	entered chan *http.Request
	opened  chan struct{}
	once    sync.Once
}

func newGate(t testing.TB) *gate {
	g := &gate{entered: make(chan *http.Request, 1024), opened: make(chan struct{})}
	t.Cleanup(g.open)
	return g
}

func (g *gate) open() { g.once.Do(func() { close(g.opened) }) }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.entered <- r
	<-g.opened
	_, _ = io.WriteString(w, "done")
}

// hold takes the n slots of lim until the test ends or the function is called.
func hold(t testing.TB, lim *goodput.Limiter, n int) (release func()) {
	t.Helper()
	held := make([]*goodput.Slot, n)
	for i := range held {
		slot, ok := lim.TryAcquire()
		if !ok {
			t.Fatal("no slot to hold")
		}
		held[i] = &slot
	}
	release = sync.OnceFunc(func() {
		for _, s := range held {
			s.Release()
		}
	})
	t.Cleanup(release)
	return release
}

// settled waits until nothing runs and nothing waits, and checks that each
// arrival has ended in exactly one outcome.
func settled(t *testing.T, lim *goodput.Limiter) goodput.Stats {
	t.Helper()
	until(t, "limiter is idle", func() bool {
		st := lim.Stats()
		return st.InUse == 0 && st.Waiting == 0 && st.WaitingBytes == 0
	})
	st := lim.Stats()
	var ended uint64
	for _, n := range st.Outcomes {
		ended += n
	}
	if ended != st.Arrivals {
		t.Errorf("%d arrivals, %d outcomes: %v", st.Arrivals, ended, st.Outcomes)
	}
	return st
}

// outcomes checks the number of requests by outcome; what is not named is 0.
func outcomes(t *testing.T, lim *goodput.Limiter, want map[goodput.Outcome]uint64) {
	t.Helper()
	for o, n := range settled(t, lim).Outcomes {
		if n != want[goodput.Outcome(o)] {
			t.Errorf("%v: %d, want %d", goodput.Outcome(o), n, want[goodput.Outcome(o)])
		}
	}
}

// dial opens a raw connection to srv and writes what it is given.
func dial(t testing.TB, srv *httptest.Server, request string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// answer reads one response from a raw connection.
func answer(t testing.TB, c net.Conn) *http.Response {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func text(t testing.TB, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return string(b)
}

func post(size int) string {
	return fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size)
}

// request returns one without a server, for what needs none.
func request(header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	return r
}

var background = context.Background()
