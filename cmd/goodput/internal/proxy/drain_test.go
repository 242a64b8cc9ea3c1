package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
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

// During the delay everything is served, and each answer moves its client on.
func TestRetiringServesAndCloses(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	w.proxy.Retire()
	for _, c := range []*http.Client{w.h1, w.h2} {
		for range 5 {
			res, body := w.get(c, "/")
			if res.StatusCode != 200 || res.ProtoMajor == 1 && !res.Close {
				t.Errorf("%s %v %s", res.Status, res.Close, body)
			}
		}
	}
	w.settle("idle", idle)
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
