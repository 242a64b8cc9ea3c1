package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/limit"
)

// reloaded is a world of two classes, one of which can be taken out.
func reloaded(t *testing.T, addr string) (w *world, both, one *config.Config) {
	two := []lane{
		{"comes", limit.Fixed(1), 10, 10 * time.Second, "app", false},
		{"rest", limit.Fixed(5), 10, 10 * time.Second, "app", true},
	}
	both, one = lanes(t, addr, two...), lanes(t, addr, two[1])
	w = start(t, addr, nil)
	if err := w.proxy.Reconfigure(both); err != nil {
		t.Fatal(err)
	}
	w.lim = w.proxy.Limiters()[0]
	return w, both, one
}

func (w *world) reconfigure(cfg *config.Config) {
	w.Helper()
	if err := w.proxy.Reconfigure(cfg); err != nil {
		w.Fatal(err)
	}
}

// A class that a reload takes out ends what it has: who runs, who waits. If it comes back
// meanwhile, it is the one that it was: its slots are still taken.
func TestClassThatGoesAndComesIsTheSame(t *testing.T) {
	addr, entered, release := held(t)
	w, both, one := reloaded(t, addr)
	running := w.ask(w.h1, "/comes/1")
	<-entered
	waiting := w.ask(w.h2, "/comes/2")
	w.settle("one waits", func(s goodput.Stats) bool { return s.Waiting == 1 })

	w.reconfigure(one)
	if n := len(w.proxy.Limiters()); n != 1 {
		t.Errorf("%d limiters are in force", n)
	}
	rest := w.ask(w.h1, "/comes/3")
	<-entered // there is no such class now, and the rest has room
	w.reconfigure(both)
	third := w.ask(w.h1, "/comes/4")
	w.settle("two wait", func(s goodput.Stats) bool { return s.Waiting == 2 && s.InUse == 1 })
	close(release)
	for i, ch := range []chan reply{running, waiting, rest, third} {
		if r := <-ch; r.status != 200 {
			t.Errorf("request %d was answered %+v", i, r)
		}
	}
	w.settle("idle", idle)
}

// A class that is of connections for a while and then of requests again is the one that it
// was: its slot is still taken.
func TestClassOfConnectionsForAWhileIsTheSame(t *testing.T) {
	addr, entered, release := held(t)
	w, both, _ := reloaded(t, addr)
	running := w.ask(w.h1, "/comes/1")
	<-entered
	other := *both
	other.Classes = slices.Clone(both.Classes)
	other.Classes[0].Mode = config.Connection
	w.reconfigure(&other)
	if n := len(w.proxy.Limiters()); n != 1 {
		t.Errorf("%d limiters are in force", n)
	}
	w.reconfigure(both)
	waiting := w.ask(w.h1, "/comes/2")
	w.settle("one runs and one waits", func(s goodput.Stats) bool { return s.Waiting == 1 && s.InUse == 1 })
	close(release)
	for _, ch := range []chan reply{running, waiting} {
		if r := <-ch; r.status != 200 {
			t.Errorf("answered %+v", r)
		}
	}
	w.settle("idle", idle)
}

// What a class has counted goes on to count when it has gone, and a drain waits for it.
func TestClassThatHasGoneCountsAndIsDrained(t *testing.T) {
	addr, entered, release := held(t)
	w, _, one := reloaded(t, addr)
	running := w.ask(w.h1, "/comes/1")
	<-entered
	if res, _ := w.answer(w.raw("POST /comes/2 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n")); res.StatusCode != 400 {
		t.Fatal(res.Status)
	}
	waiting := w.ask(w.h2, "/comes/3")
	w.settle("one waits", func(s goodput.Stats) bool { return s.Waiting == 1 })
	w.reconfigure(one)
	if n := w.proxy.Door().BadBodies; n != 1 {
		t.Errorf("%d bad bodies after the class has gone", n)
	}
	drained := make(chan error, 1)
	go func() { drained <- w.proxy.Drain(0, patience, w.server) }()
	w.settle("draining", func(s goodput.Stats) bool { return s.Draining })
	close(release)
	if a, b := <-running, <-waiting; a.status != 200 || b.status != 200 {
		t.Errorf("answers %+v and %+v", a, b)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

// Of the classes that have gone, the last maxGone are kept.
func TestClassesThatHaveGoneAreBounded(t *testing.T) {
	addr := backend(t, echo)
	w := start(t, addr, nil)
	for i := range 3 * maxGone {
		w.reconfigure(lanes(t, addr, lane{fmt.Sprint("c", i), limit.Fixed(1), 0, time.Second, "app", true}))
	}
	if n := len(w.proxy.now.Load().gone); n != maxGone {
		t.Errorf("%d are kept, want %d", n, maxGone)
	}
	if res, _ := w.get(w.h1, "/"); res.StatusCode != 200 {
		t.Error(res.Status)
	}
}

// Whoever has watched long enough turns observe off in the file. What runs goes on, and takes the
// slot; the limiter is the same, and no counter falls.
func TestReloadEndsObserve(t *testing.T) {
	addr, entered, release := held(t)
	defer close(release)
	w := start(t, addr, nil)
	cfg := lanes(t, addr, lane{"rest", limit.Fixed(1), goodput.NoQueue, time.Second, "app", true})
	cfg.Classes[0].Limiter.Observe = true
	w.reconfigure(cfg)
	for range 2 {
		w.ask(w.h1, "/")
		<-entered
	}
	strict := *cfg
	strict.Classes = []config.Class{cfg.Classes[0]}
	strict.Classes[0].Limiter.Observe = false
	w.reconfigure(&strict)
	if r := <-w.ask(w.h1, "/"); r.status != http.StatusServiceUnavailable {
		t.Errorf("beyond the limit of 1: %+v", r)
	}
	if s := w.proxy.Limiters()[0].Stats(); s.Arrivals != 3 || s.Running != 2 || s.Outcomes[goodput.Rejected] != 1 || s.Shadow.Arrivals != 2 || s.Observe {
		t.Errorf("%+v\nshadow %+v", s.Stats, s.Shadow)
	}
}

// A configuration that is wrong in its last class changes nothing in its first.
func TestBadConfigurationChangesNothing(t *testing.T) {
	w, both, _ := reloaded(t, backend(t, echo))
	was := w.proxy.now.Load()
	bad := *lanes(t, "127.0.0.1:1", lane{"comes", limit.Fixed(7), 10, 10 * time.Second, "app", true})
	bad.Classes = append([]config.Class(nil), both.Classes...)
	bad.Classes[0].Limiter.Limit = limit.Fixed(7)
	for what, breakIt := range map[string]func(*config.Class){
		"no such upstream": func(c *config.Class) { c.Upstream = "nowhere" },
		"objective":        func(c *config.Class) { c.Limiter.Objective = -1 },
		"law":              func(c *config.Class) { c.Limiter.Limit = limit.Fixed(-1) },
		"name":             func(c *config.Class) { c.Name = "comes" },
		"deadline header":  func(c *config.Class) { c.DeadlineHeaders = []config.DeadlineHeader{{Name: "X", Format: "years"}} },
	} {
		bad.Classes[1] = both.Classes[1]
		breakIt(&bad.Classes[1])
		if err := w.proxy.Reconfigure(&bad); err == nil {
			t.Errorf("%s: accepted", what)
		}
		if w.proxy.now.Load() != was || w.lim.Stats().Limit != 1 {
			t.Errorf("%s: something of it is in force: limit %d", what, w.lim.Stats().Limit)
		}
		if res, _ := w.get(w.h1, "/"); res.StatusCode != 200 {
			t.Errorf("%s: the servers are others: %s", what, res.Status)
		}
	}
}
