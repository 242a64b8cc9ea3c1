package proxy

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/limit"
)

// The switch in an incident: who waits runs at once, nobody is refused, a reload of the file does
// not put it back, and policy does. (F28)
func TestObserveIsSwitched(t *testing.T) {
	addr, entered, release := held(t)
	w := start(t, addr, nil)
	cfg := lanes(t, addr, lane{"rest", limit.Fixed(1), 5, 10 * time.Second, "app", true})
	w.reconfigure(cfg)
	w.lim = w.proxy.Limiters()[0]
	running := w.ask(w.h1, "/")
	<-entered
	waiting := w.ask(w.h1, "/")
	w.settle("one waits", func(s goodput.Stats) bool { return s.Waiting == 1 })
	say := func(name, mode string, on bool) {
		t.Helper()
		if err := w.proxy.SetObserve(name, mode); err != nil {
			t.Fatal(err)
		}
		is := w.proxy.Observing()
		if len(is) != 1 || is[0].Limiter != "rest" || is[0].On != on || is[0].Switched.IsZero() != (mode == ObserveAsPolicy) || is[0].Policy != cfg.Classes[0].Limiter.Observe {
			t.Errorf("after %s: %+v", mode, is)
		}
		if s := w.lim.Stats(); s.Observe != on {
			t.Errorf("after %s the limiter observes: %v", mode, s.Observe)
		}
	}
	say("rest", ObserveOn, true)
	<-entered // who waited has got through
	more := w.ask(w.h1, "/")
	<-entered
	w.reconfigure(cfg) // which says off
	if s := w.lim.Stats(); !s.Observe || s.Running != 3 || s.Arrivals != 3 || w.proxy.Limiters()[0] != w.lim {
		t.Errorf("after a reload: %+v", s.Stats)
	}
	say("", ObserveOff, false)
	say("rest", ObserveOn, true)
	say("rest", ObserveAsPolicy, false)
	close(release)
	for _, ch := range []chan reply{running, waiting, more} {
		if r := <-ch; r.status != 200 {
			t.Errorf("%+v", r)
		}
	}
	// And the other way round: off, where the file says on.
	cfg.Classes[0].Limiter.Observe = true
	w.reconfigure(cfg)
	if !w.lim.Stats().Observe {
		t.Error("the file says on")
	}
	say("", ObserveOff, false)
	w.reconfigure(cfg)
	if w.lim.Stats().Observe {
		t.Error("a reload has undone what was said")
	}
	say("", ObserveAsPolicy, true)
}

// What was said of a class holds when it goes and comes back, and for each alone.
func TestObserveOfClassThatGoes(t *testing.T) {
	w, both, one := reloaded(t, backend(t, echo))
	if err := w.proxy.SetObserve("comes", ObserveOn); err != nil {
		t.Fatal(err)
	}
	w.reconfigure(one)
	if is := w.proxy.Observing(); len(is) != 1 || is[0].On {
		t.Errorf("the other one: %+v", is)
	}
	w.reconfigure(both)
	if is := w.proxy.Observing(); len(is) != 2 || !is[0].On || is[1].On || !w.lim.Stats().Observe {
		t.Errorf("%+v", is)
	}
	w.reconfigure(one)
	if err := w.proxy.SetObserve("", ObserveAsPolicy); err != nil { // also of the one that is away
		t.Fatal(err)
	}
	w.reconfigure(both)
	if is := w.proxy.Observing(); is[0].On || w.lim.Stats().Observe {
		t.Errorf("policy was said of all: %+v", is)
	}
	if err := w.proxy.SetObserve("comes", ObserveOn); err != nil {
		t.Fatal(err)
	}
	for i := range maxGone + 1 { // until nothing is kept of it
		w.reconfigure(lanes(t, "127.0.0.1:1", lane{fmt.Sprint("c", i), limit.Fixed(1), 0, time.Second, "app", true}))
	}
	if n := len(w.proxy.turned); n != 0 {
		t.Errorf("%d are remembered", n)
	}
}

// Whoever looks does not wait for a reload, which may take long.
func TestObservingDoesNotWaitForAReload(t *testing.T) {
	w, _, _ := reloaded(t, backend(t, echo))
	w.proxy.reload.Lock()
	defer w.proxy.reload.Unlock()
	seen := make(chan int)
	go func() { seen <- len(w.proxy.Observing()) }()
	select {
	case n := <-seen:
		if n != 2 {
			t.Errorf("%d limiters", n)
		}
	case <-time.After(10 * time.Second): // wall clock: what would wait waits for this test
		t.Error("it waits")
	}
}

func TestObserveSaysWhatIsWrong(t *testing.T) {
	addr := backend(t, echo)
	w := start(t, addr, nil)
	cfg := lanes(t, addr, lane{"chat", nil, 0, 0, "app", false}, lane{"api", limit.Fixed(1), 0, time.Second, "app", false}, lane{"rest", limit.Fixed(1), 0, time.Second, "app", true})
	cfg.Classes[0].Mode, cfg.Classes[0].Limiter = config.Connection, goodput.Config{}
	w.reconfigure(cfg)
	for _, c := range []struct{ name, mode, want string }{
		{"apj", "on", `there is no limiter "apj": there is "api", "rest"`},
		{"chat", "on", `class "chat" has no limiter: it is of connections`},
		{"api", "yes", `observe mode "yes" is none of on, off, policy`},
		{"", "", `observe mode "" is none of on, off, policy`},
	} {
		if err := w.proxy.SetObserve(c.name, c.mode); err == nil || err.Error() != c.want {
			t.Errorf("%q, %q: %v, want %s", c.name, c.mode, err, c.want)
		}
	}
	for _, is := range w.proxy.Observing() {
		if is.On || !is.Switched.IsZero() {
			t.Errorf("something was switched: %+v", is)
		}
	}
}

// The log has one line for each reload that leaves the switch as it is; that of the switch is
// package watch's.
func TestObserveIsInTheLog(t *testing.T) {
	addr := backend(t, echo)
	var log bytes.Buffer
	cfg := lanes(t, addr, lane{"api", limit.Fixed(1), 0, time.Second, "app", false}, lane{"rest", limit.Fixed(1), 0, time.Second, "app", true})
	p, err := New(cfg, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, do := range []func() error{
		func() error { return p.SetObserve("", ObserveOn) },
		func() error { return p.SetObserve("api", ObserveAsPolicy) },
		func() error { return p.Reconfigure(cfg) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		`msg="observe mode stays as it was switched, and not as it is configured" component=proxy limiter=rest observe=true`,
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines:\n%s", len(lines), &log)
	}
	for i, line := range lines {
		if !strings.Contains(line, want[i]) || !strings.Contains(line, "level=WARN") {
			t.Errorf("%s\nwant %s", line, want[i])
		}
	}
}

// Switched again and again under requests: all are answered, and afterwards the limit holds.
func TestObserveIsSwitchedUnderLoad(t *testing.T) {
	s := newShop(func(string) time.Duration { return time.Millisecond })
	addr := backend(t, s)
	w := start(t, addr, nil)
	w.reconfigure(lanes(t, addr, lane{"rest", limit.Fixed(2), 4, 10 * time.Second, "app", true}))
	lim := w.proxy.Limiters()[0]
	var answers []chan reply
	for i := range 200 {
		answers = append(answers, w.ask(w.h1, "/x"))
		if i%10 == 0 {
			if err := w.proxy.SetObserve("", []string{ObserveOn, ObserveOff}[i/10%2]); err != nil {
				t.Fatal(err)
			}
		}
	}
	ok := 0
	for _, ch := range answers {
		switch r := <-ch; r.status {
		case 200:
			ok++
		case http.StatusServiceUnavailable:
		default:
			t.Errorf("%+v", r)
		}
	}
	if err := w.proxy.SetObserve("", ObserveAsPolicy); err != nil {
		t.Fatal(err)
	}
	w.lim = lim
	w.settle("all has ended", func(s goodput.Stats) bool { return s.Running == 0 && s.Waiting == 0 })
	st := lim.Stats()
	if done := st.Outcomes[goodput.Completed] + st.Outcomes[goodput.Late]; st.Arrivals != 200 || int(done) != ok || st.Shadow.Running+st.Shadow.Waiting != 0 {
		t.Errorf("%d answers of 200; %+v\nshadow %+v", ok, st.Stats, st.Shadow)
	}
}
