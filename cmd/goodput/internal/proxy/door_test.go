package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/limit"
)

// A setting of a class is worth what a client sees of it: here each is seen once, so that none
// is read from a file and then goes nowhere.

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// beforeUpstream puts the configuration in force with what change does to its upstream.
func (w *world) beforeUpstream(change func(*config.Upstream)) {
	w.Helper()
	cfg := *w.proxy.Config()
	cfg.Upstreams = slices.Clone(cfg.Upstreams)
	change(&cfg.Upstreams[0])
	if err := w.proxy.Reconfigure(&cfg); err != nil {
		w.Fatal(err)
	}
}

// What refusals carry is of the class: their status, how long they waited; and
// its probes pass while they are refused.
func TestRefusalsAreOfTheClass(t *testing.T) {
	addr, entered, release := held(t)
	w := start(t, addr, func(c *Config, lc *goodput.Config) {
		lc.Limit, lc.Depth = limit.Fixed(1), goodput.NoQueue
		c.OverloadStatus, c.ServerTiming, c.Exempt = http.StatusTooManyRequests, true, []string{"/up"}
	})
	running := w.ask(w.h1, "/")
	<-entered
	for _, client := range []*http.Client{w.h1, w.h2} {
		res, _ := w.get(client, "/")
		h := res.Header
		if res.StatusCode != http.StatusTooManyRequests || h.Get("Goodput-Rejected") != "queue_full" || !strings.HasPrefix(h.Get("Server-Timing"), "queue;") {
			t.Errorf("%s: %s %v", res.Proto, res.Status, h)
		}
	}
	probe := w.ask(w.h1, "/up")
	select {
	case <-entered:
	case r := <-probe:
		t.Errorf("the probe was answered %+v by us", r)
	}
	close(release)
	if r := <-running; r.status != http.StatusOK || r.header.Get("Server-Timing") == "" {
		t.Errorf("%+v", r)
	}
}

// Nor are markers there that the class does not have.
func TestMarkersAreOfTheClass(t *testing.T) {
	for _, set := range [][]string{nil, {"envoy"}, {"finagle"}, {"envoy", "finagle"}} {
		addr, entered, release := held(t)
		w := start(t, addr, func(c *Config, lc *goodput.Config) {
			lc.Limit, lc.Depth, c.Markers = limit.Fixed(1), goodput.NoQueue, set
		})
		running := w.ask(w.h1, "/")
		<-entered
		res, _ := w.get(w.h1, "/")
		for name, header := range map[string]string{"envoy": "X-Envoy-Overloaded", "finagle": "Finagle-Http-Nack"} {
			if there := res.Header.Get(header) != ""; there != slices.Contains(set, name) {
				t.Errorf("markers %v: %v", set, res.Header)
			}
		}
		close(release)
		<-running
	}
}

// left is what the service is told that is left, in the unit of the header; -1: nothing.
func (w *world) left(name string, headers ...string) int {
	w.Helper()
	_, body := w.answer(w.raw("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n"))
	n, err := strconv.ParseFloat(line(body, name), 64)
	if err != nil {
		return -1
	}
	return int(n)
}

// What the service is told of a deadline is of the class and of its upstream. The bounds are
// half a minute from what they tell apart.
func TestDeadlinesAreOfTheClass(t *testing.T) {
	const envoy, connect = "X-Envoy-Expected-Rq-Timeout-Ms", "Connect-Timeout-Ms"
	const minute = 60_000
	addr := backend(t, echo)
	says := func(ms int) string { return fmt.Sprintf("%s: %d", envoy, ms) }
	ago := fmt.Sprintf("X-Request-Start: t=%d", time.Now().Add(-8*time.Second).UnixMilli())
	for _, c := range []struct {
		name     string
		change   func(*Config)
		upstream func(*config.Upstream)
		sent     []string
		header   string
		from, to int
	}{
		{"as it came", nil, nil, []string{says(2 * minute)}, envoy, minute, 2 * minute},
		{"less the margin", func(c *Config) { c.HopMargin = 50 * time.Second }, nil, []string{says(minute)}, envoy, 0, minute / 2},
		{"capped", func(c *Config) { c.DeadlineCap = 30 * time.Second }, nil, []string{says(2 * minute)}, envoy, 0, minute / 2},
		{"of who may say more", func(c *Config) { c.DeadlineCap, c.TrustDeadline = 30*time.Second, loopback }, nil, []string{says(2 * minute)}, envoy, minute, 2 * minute},
		{"of another who may", func(c *Config) {
			c.DeadlineCap, c.TrustDeadline = 30*time.Second, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		}, nil, []string{says(2 * minute)}, envoy, 0, minute / 2},
		{"in a header of the class", func(c *Config) { c.DeadlineHeaders = []config.DeadlineHeader{{Name: "X-Left", Format: "s"}} }, nil, []string{"X-Left: 120"}, "X-Left", 60, 119},
		{"after a stamp of a proxy that is trusted", func(c *Config) { c.TrustedProxies = loopback }, nil, []string{says(15_000), ago}, envoy, 0, 7_000},
		{"after a stamp of anybody", nil, nil, []string{says(15_000), ago}, envoy, 8_000, 15_000},
		{"by default in Envoy's", func(c *Config) { c.Deadline = 2 * time.Minute }, nil, nil, envoy, minute, 2 * minute},
		{"in the upstream's own", func(c *Config) { c.Deadline = 2 * time.Minute }, func(u *config.Upstream) { u.Forward = connect }, nil, connect, minute, 2 * minute},
		{"in none", func(c *Config) { c.Deadline = 2 * time.Minute }, func(u *config.Upstream) { u.Forward = "none" }, nil, envoy, -1, -1},
		{"in the caller's", nil, func(u *config.Upstream) { u.Forward = connect }, []string{says(2 * minute)}, envoy, minute, 2 * minute},
		{"in the upstream's alone", nil, func(u *config.Upstream) { u.Forward, u.ForwardOnly = connect, true }, []string{says(2 * minute)}, connect, minute, 2 * minute},
		{"not in the caller's then", nil, func(u *config.Upstream) { u.Forward, u.ForwardOnly = connect, true }, []string{says(2 * minute)}, envoy, -1, -1},
	} {
		w := start(t, addr, func(cc *Config, _ *goodput.Config) {
			if c.change != nil {
				c.change(cc)
			}
		})
		if c.upstream != nil {
			w.beforeUpstream(c.upstream)
		}
		if got := w.left(c.header, c.sent...); got < c.from || got > c.to {
			t.Errorf("%s: %s says %d, want %d to %d", c.name, c.header, got, c.from, c.to)
		}
	}
}

// How long a client may be waited for is of the class. By default it is twice what the deadline
// here leaves it, which would end the request otherwise.
func TestSlowClientsAreOfTheClass(t *testing.T) {
	addr := backend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	w := start(t, addr, func(c *Config, _ *goodput.Config) {
		c.SlowClient, c.Deadline = 100*time.Millisecond, goodputhttp.DefaultSlowClient/2
	})
	w.raw("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8388608\r\n\r\n") // and nothing of it
	w.settle("it has had its slot", func(s goodput.Stats) bool { return s.Arrivals == 1 && idle(s) })
	if slow, late := w.proxy.Door().SlowClients, w.proxy.Failures()[TimedOut.String()]; slow != 1 || late != 0 {
		t.Errorf("%d clients were too slow, %d deadlines passed", slow, late)
	}
}

// How many connections may be upgraded is of the class.
func TestUpgradesAreOfTheClass(t *testing.T) {
	up := switching(t, func(_ *net.TCPConn, in *bufio.Reader) { io.Copy(io.Discard, in) }) // to the end of the test
	w := start(t, up, func(c *Config, _ *goodput.Config) { c.MaxUpgraded = 1 })
	w.upgrade("echo", "")
	res, _ := w.answer(w.raw(upgradeTo("echo")))
	if res.StatusCode != http.StatusServiceUnavailable || w.proxy.Door().UpgradedRefused != 1 {
		t.Errorf("%s; %+v", res.Status, w.proxy.Door())
	}
}

// A reload that changes the mode is none either, and every mode has its connections in what is
// counted.
func TestUpgradesCountOnOverModes(t *testing.T) {
	up := switching(t, func(_ *net.TCPConn, in *bufio.Reader) { io.Copy(io.Discard, in) }) // to the end of the test
	for _, from := range []config.Mode{config.Request, config.Stream, config.Connection} {
		for _, to := range []config.Mode{config.Request, config.Stream, config.Connection} {
			w := start(t, up, func(c *Config, lc *goodput.Config) {
				c.MaxUpgraded, c.Mode, lc.Depth = 2, from, goodput.NoQueue
			})
			one, _ := w.upgrade("echo", "")
			w.turn(to)
			w.upgrade("echo", "")
			if res, _ := w.answer(w.raw(upgradeTo("echo"))); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Goodput-Rejected") != "unavailable" {
				t.Errorf("%v, then %v: the third: %s %v", from, to, res.Status, res.Header)
			}
			if d := w.proxy.Door(); d.Upgraded != 2 || d.UpgradedTotal != 2 || d.UpgradedRefused != 1 {
				t.Errorf("%v, then %v: %+v", from, to, d)
			}
			if got := w.proxy.Traffic()[0]; got.Tunnels != 2 || got.TunnelsTotal != 2 || got.UpgradesRefused != 1 {
				t.Errorf("%v, then %v: %+v", from, to, got)
			}
			one.Close()
			w.eventually("a place is free", func() bool { return w.proxy.Door().Upgraded == 1 })
			w.eventually("and is taken", func() bool {
				res, err := http.ReadResponse(bufio.NewReader(w.raw(upgradeTo("echo"))), nil)
				return err == nil && res.StatusCode == http.StatusSwitchingProtocols
			})
			w.turn(from)
			if d := w.proxy.Door(); d.Upgraded != 2 || d.UpgradedTotal != 3 {
				t.Errorf("%v again: %+v", from, d)
			}
		}
	}
}

// turn makes the class one of another mode.
func (w *world) turn(to config.Mode) {
	w.Helper()
	cfg := *w.proxy.Config()
	cfg.Classes = slices.Clone(cfg.Classes)
	cfg.Classes[0].Mode = to
	if err := w.proxy.Reconfigure(&cfg); err != nil {
		w.Fatal(err)
	}
}

// Who finds no server waits for as long as the upstream says, or as requests of the class wait
// at all, and is then refused because of it. The other bound is an hour.
func TestAbsenceIsOfTheUpstream(t *testing.T) {
	for name, c := range map[string]struct{ absence, objective time.Duration }{
		"of the upstream": {50 * time.Millisecond, time.Hour},
		"of the class":    {time.Hour, 200 * time.Millisecond},
	} {
		w := start(t, closedPort(t), func(_ *Config, lc *goodput.Config) { lc.Limit, lc.Objective = limit.Fixed(1), c.objective })
		w.beforeUpstream(func(u *config.Upstream) {
			u.MaxAbsence, u.Failures = c.absence, 1
			u.Health = &config.Health{Path: "/", Interval: time.Hour, Timeout: time.Second, Fall: 1, Rise: 1}
		})
		for i := range 2 { // the first finds out
			res, body := w.get(w.h1, "/")
			if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Goodput-Rejected") != "unavailable" {
				t.Errorf("%s, %d: %s %q", name, i, res.Status, body)
			}
		}
		w.settle(name+": the second waited", func(s goodput.Stats) bool { return s.Outcomes[goodput.Rejected] == 1 })
	}
}

// A reload is no way to more: what is open counts on against the bound, and no counter falls.
func TestDoorsCountOnOverAReload(t *testing.T) {
	up := switching(t, func(_ *net.TCPConn, in *bufio.Reader) { io.Copy(io.Discard, in) }) // to the end of the test
	w := start(t, up, func(c *Config, _ *goodput.Config) { c.MaxUpgraded = 1 })
	w.upgrade("echo", "")
	for n := range 3 {
		w.beforeUpstream(func(*config.Upstream) {})
		if res, _ := w.answer(w.raw(upgradeTo("echo"))); res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("after %d reloads one more is upgraded: %s", n+1, res.Status)
		}
		if d := w.proxy.Door(); d.Upgraded != 1 || d.UpgradedTotal != 1 || d.UpgradedRefused != uint64(n+1) {
			t.Errorf("after %d reloads: %+v", n+1, d)
		}
	}
}

// A class that a reload has given another upstream no longer hears of the one that it had, and
// nobody asks the servers of an upstream that is in no file.
func TestClassLeavesItsUpstream(t *testing.T) {
	var checks atomic.Int64
	asked := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/check" {
			checks.Add(1)
		}
	})
	first := &mortal{t: t, addr: "127.0.0.1:0"}
	first.begin()
	const interval = 10 * time.Millisecond
	up := func(name, addr string) config.Upstream {
		u := config.DefaultUpstream(mustURL(t, "http://"+addr))
		u.Name, u.Failures = name, 1
		u.Health = &config.Health{Path: "/check", Interval: interval, Timeout: time.Second, Fall: 1, Rise: 1}
		return u
	}
	a, b := up("a", first.addr), up("b", backend(t, asked))
	w := start(t, first.addr, nil)
	t.Cleanup(w.proxy.Close)
	to := func(name string, all ...config.Upstream) {
		cfg := *w.proxy.Config()
		cfg.Upstreams, cfg.Classes = all, slices.Clone(cfg.Classes)
		cfg.Classes[0].Upstream = name
		w.reconfigure(&cfg)
	}
	to("a", a, b)
	to("b", a, b)
	first.server.Close()
	w.settle("the server of the other is out", func(s goodput.Stats) bool {
		return !w.proxy.Upstreams()["a"][0].Well
	})
	if s := w.lim.Stats(); s.Absent {
		t.Error("the class misses a server that is not its own")
	}
	if res, body := w.get(w.h1, "/"); res.StatusCode != http.StatusOK {
		t.Errorf("%s %q", res.Status, body)
	}
	w.settle("it is asked", func(goodput.Stats) bool { return checks.Load() > 0 })
	first.begin()
	to("a", a)
	before := checks.Load()
	time.Sleep(10 * interval) // wall clock: the program's own
	if n := checks.Load(); n != before {
		t.Errorf("%d checks of a server that is in no file", n-before)
	}
}

// A server has the times and bounds of its listener, not those of another.
func TestServerIsOfTheListener(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	l := config.DefaultListener()
	l.HeaderTimeout, l.IdleTimeout, l.MaxHeader, l.MaxStreams = 7*time.Second, 11*time.Second, 13<<10, 17
	s := w.proxy.Server(l)
	if s.ReadHeaderTimeout != l.HeaderTimeout || s.IdleTimeout != l.IdleTimeout || s.MaxHeaderBytes != l.MaxHeader || s.HTTP2.MaxConcurrentStreams != l.MaxStreams {
		t.Errorf("%+v of %+v", s, l)
	}
}

// A drain waits for the whole delay, and for nothing else where nothing is left: HTTP/1.1 is
// told at once, HTTP/2 in the last second.
func TestDelayIsWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(config.One(mustURL(t, "http://192.0.2.1")), Options{})
		if err != nil {
			t.Fatal(err)
		}
		begun, stages := time.Now(), map[time.Duration]int32{0: closing, 38 * time.Second: closing, 40 * time.Second: leaving}
		for at, want := range stages {
			time.AfterFunc(at+time.Second/2, func() {
				if got := p.retiring.stage.Load(); got != want {
					t.Errorf("after %v at stage %d, want %d", time.Since(begun), got, want)
				}
			})
		}
		if err := p.Drain(40*time.Second, time.Minute); err != nil || time.Since(begun) != 40*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		time.Sleep(time.Second) // for the last look
	})
}
