package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/limit"
)

// held is a service whose requests end when the test says so.
func held(t *testing.T) (addr string, entered chan struct{}, release chan struct{}) {
	entered, release = make(chan struct{}, 100), make(chan struct{})
	addr = backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		io.WriteString(w, "done")
	}))
	return addr, entered, release
}

type reply struct {
	status int
	header http.Header
	closed bool
	err    error
}

func (w *world) ask(c *http.Client, path string) chan reply {
	ch := make(chan reply, 1)
	go func() {
		res, err := c.Get(w.url + path)
		if err != nil {
			ch <- reply{err: err}
			return
		}
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		ch <- reply{res.StatusCode, res.Header, res.Close, err}
	}()
	return ch
}

// Drain serves who runs and who waits, and sends newcomers elsewhere; the
// answers close their connections.
func TestDrainServesTheQueue(t *testing.T) {
	addr, entered, release := held(t)
	w := start(t, addr, func(_ *Config, lc *goodput.Config) { lc.Limit = limit.Fixed(1); lc.Service = time.Second })
	running := w.ask(w.h1, "/running")
	<-entered
	waiting := w.ask(w.h2, "/waiting")
	w.settle("one waits", func(s goodput.Stats) bool { return s.Waiting == 1 })

	drained := make(chan error, 1)
	go func() { drained <- w.proxy.Drain(0, patience, w.server) }()
	w.settle("draining", func(s goodput.Stats) bool { return s.Draining })
	late := <-w.ask(w.h1, "/late")
	if late.status != http.StatusServiceUnavailable || late.header.Get("Goodput-Rejected") != "draining" ||
		late.header.Get("Retry-After") != "" || !late.closed { // another instance takes it at once
		t.Errorf("a newcomer was answered %+v", late)
	}
	close(release)
	if r := <-running; r.status != 200 || !r.closed {
		t.Errorf("who ran was answered %+v", r)
	}
	if r := <-waiting; r.status != 200 {
		t.Errorf("who waited was answered %+v", r)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", w.addr); err == nil {
		t.Error("the listener is still open")
	}
}

// What does not end within the timeout is told: who waits is refused, who runs
// is cut, and the error says how many.
func TestDrainTimeout(t *testing.T) {
	addr, entered, _ := held(t)
	w := start(t, addr, func(_ *Config, lc *goodput.Config) { lc.Limit = limit.Fixed(1); lc.Service = time.Second })
	running := w.ask(w.h1, "/running")
	<-entered
	waiting := w.ask(w.h1, "/waiting")
	w.settle("one waits", func(s goodput.Stats) bool { return s.Waiting == 1 })
	err := w.proxy.Drain(0, 300*time.Millisecond, w.server)
	if err == nil || !strings.Contains(err.Error(), "300ms") || !strings.Contains(err.Error(), "1 running") {
		t.Errorf("error %v", err)
	}
	if r := <-waiting; r.status != http.StatusServiceUnavailable || r.header.Get("Goodput-Rejected") != "draining" {
		t.Errorf("who waited was answered %+v", r)
	}
	if r := <-running; r.err == nil {
		t.Errorf("who ran was answered %+v", r)
	}
	w.settle("idle", idle)
}

// Who waits in vain is told before the timeout is over, when its answer still has the last
// tenth of it, of at most a second, to go out.
func TestDrainTellsWhoWaitsInTime(t *testing.T) {
	for timeout, told := range map[time.Duration]time.Duration{2 * time.Second: 1800 * time.Millisecond, 25 * time.Second: 24 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			cfg := config.One(mustURL(t, "http://192.0.2.1"))
			lc := &cfg.Classes[0].Limiter
			lc.Limit, lc.Service, lc.Objective = limit.Fixed(1), time.Second, time.Minute
			p, err := New(cfg, Options{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			lim := p.Limiters()[0]
			slot, ok := lim.TryAcquire()
			if !ok {
				t.Fatal("nobody runs")
			}
			begun, refused := time.Now(), make(chan time.Duration, 1)
			go func() {
				_, err := lim.Acquire(context.Background())
				if no := (*goodput.Rejection)(nil); !errors.As(err, &no) || no.Reason != goodput.Draining {
					t.Errorf("who waited got %v", err)
				}
				refused <- time.Since(begun)
			}()
			synctest.Wait()
			if err := p.Drain(0, timeout); err != nil { // nobody is connected
				t.Error(err)
			}
			if at := <-refused; at != told {
				t.Errorf("of %v the refusal came after %v, want %v", timeout, at, told)
			}
			slot.Release()
		})
	}
}

// During the delay everything is served (C090, C092), and answers move their clients on:
// those over HTTP/1.1 from its beginning, those over HTTP/2 near its end, and once.
func TestRetiringServesAndMovesOn_C092(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	for _, stage := range []struct {
		name  string
		begin func()
		h1    [3]bool // of three requests, which go over a connection that was kept
		h2    [3]bool
	}{
		{"before", func() {}, [3]bool{false, true, true}, [3]bool{false, true, true}},
		{"closing", w.proxy.Retire, [3]bool{true, false, false}, [3]bool{true, true, true}},
		{"leaving", w.proxy.goAway, [3]bool{}, [3]bool{true, false, true}},
	} {
		stage.begin()
		for i := range stage.h1 {
			if got := w.overKept(w.h1); got != stage.h1[i] {
				t.Errorf("%s, HTTP/1.1, request %d: over a kept connection: %v", stage.name, i, got)
			}
			if got := w.overKept(w.h2); got != stage.h2[i] {
				t.Errorf("%s, HTTP/2, request %d: over a kept connection: %v", stage.name, i, got)
			}
		}
	}
	w.settle("idle", idle)
}

// overKept sends a request, which must be served, and reports whether its connection had
// served another before.
func (w *world) overKept(c *http.Client) (kept bool) {
	w.Helper()
	ctx := httptrace.WithClientTrace(w.Context(), &httptrace.ClientTrace{
		GotConn: func(g httptrace.GotConnInfo) { kept = g.Reused },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/", nil)
	if err != nil {
		w.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	_, err = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if err != nil || res.StatusCode != http.StatusOK {
		w.Errorf("%s, %v", res.Status, err)
	}
	return kept
}

// Who is in flight when the stage changes is moved on too: its answer says so.
func TestRetiringMovesOnWhoRuns(t *testing.T) {
	addr, entered, release := held(t)
	w := start(t, addr, nil)
	one, two := w.ask(w.h1, "/"), w.ask(w.h2, "/")
	<-entered
	<-entered
	w.proxy.Retire()
	w.proxy.goAway()
	close(release)
	if r := <-one; r.status != http.StatusOK || !r.closed {
		t.Errorf("HTTP/1.1 was answered %+v", r)
	}
	if r := <-two; r.status != http.StatusOK {
		t.Errorf("HTTP/2 was answered %+v", r)
	}
	if w.overKept(w.h2) {
		t.Error("the HTTP/2 connection of the request that ran is used again")
	}
}

// Every class drains at the same time: while the one cannot end, the other one serves who
// waits and refuses newcomers.
func TestDrainOfSeveralClasses(t *testing.T) {
	addr, entered, release := held(t)
	w := start(t, addr, nil)
	cfg := config.One(mustURL(t, "http://"+addr))
	other := cfg.Classes[0]
	other.Name, other.Match = "other", config.Match{Paths: []string{"/other"}}
	cfg.Classes = []config.Class{other, cfg.Classes[0]}
	for i := range cfg.Classes {
		lc := &cfg.Classes[i].Limiter
		lc.Name, lc.Limit, lc.Objective, lc.Service = cfg.Classes[i].Name, limit.Fixed(1), patience, time.Second
	}
	if err := w.proxy.Reconfigure(cfg); err != nil {
		t.Fatal(err)
	}
	limiters := w.proxy.Limiters()
	if len(limiters) != 2 {
		t.Fatalf("%d limiters", len(limiters))
	}
	both := func(what string, is func(goodput.Stats) bool) {
		t.Helper()
		for _, lim := range limiters {
			w.lim = lim
			w.settle(lim.Name()+": "+what, is)
		}
	}
	var all []chan reply
	for _, path := range []string{"/", "/other"} { // one runs, one waits
		all = append(all, w.ask(w.h1, path))
		<-entered
		all = append(all, w.ask(w.h1, path))
	}
	both("one waits", func(s goodput.Stats) bool { return s.Waiting == 1 })
	drained := make(chan error, 1)
	go func() { drained <- w.proxy.Drain(0, patience, w.server) }()
	both("draining", func(s goodput.Stats) bool { return s.Draining && s.Waiting == 1 })
	for _, path := range []string{"/", "/other"} {
		if r := <-w.ask(w.h2, path); r.status != http.StatusServiceUnavailable || r.header.Get("Goodput-Rejected") != "draining" {
			t.Errorf("a newcomer to %s was answered %+v", path, r)
		}
	}
	close(release)
	for i, ch := range all {
		if r := <-ch; r.status != http.StatusOK {
			t.Errorf("%d was answered %+v", i, r)
		}
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

// A WebSocket that is opened during the delay is one: its Connection header says
// Upgrade and nothing else.
func TestRetiringLeavesUpgradesAlone(t *testing.T) {
	w := start(t, backend(t, shout(t)), nil)
	w.proxy.Retire()
	res, err := http.ReadResponse(bufio.NewReader(w.raw(upgradeRequest)), nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols || len(res.Header["Connection"]) != 1 {
		t.Errorf("%v, %v", res, err)
	}
}

// C088: probes get through a limiter that is full, up to their own bound; what
// only pretends to be one beyond it waits like everybody.
func TestProbesPassUnderLoad_C088(t *testing.T) {
	addr, entered, release := held(t)
	w := start(t, addr, func(_ *Config, lc *goodput.Config) {
		lc.Limit, lc.Depth, lc.Exempt = limit.Fixed(1), goodput.NoQueue, 2
	})
	first := w.ask(w.h1, "/work")
	<-entered
	if r := <-w.ask(w.h1, "/more"); r.status != http.StatusServiceUnavailable {
		t.Fatalf("%+v", r)
	}
	one, two := w.ask(w.h1, "/livez"), w.ask(w.h2, "/healthz")
	<-entered
	<-entered
	if r := <-w.ask(w.h1, "/livez"); r.status != http.StatusServiceUnavailable {
		t.Errorf("the third probe at once was answered %+v", r)
	}
	close(release)
	for i, ch := range []chan reply{first, one, two} {
		if r := <-ch; r.status != 200 {
			t.Errorf("%d: %+v", i, r)
		}
	}
	w.settle("idle", func(s goodput.Stats) bool { return idle(s) && s.Exempt == 0 })
}

func TestConfigIsChecked(t *testing.T) {
	good := config.One(mustURL(t, "http://h"))
	odd := *good
	odd.Classes = []config.Class{{Name: "a", Upstream: "nowhere"}}
	for _, c := range []*config.Config{{}, {Upstreams: good.Upstreams}, {Classes: good.Classes}, &odd} {
		if _, err := New(c, Options{}); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v", err)
		}
	}
}
