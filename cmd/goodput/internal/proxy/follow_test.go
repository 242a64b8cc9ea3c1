package proxy

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/limit"
)

// A mortal server can be ended and begun again at its address.
type mortal struct {
	t      *testing.T
	addr   string
	server *http.Server
}

func (m *mortal) begin() {
	m.t.Helper()
	l, err := net.Listen("tcp", m.addr)
	if err != nil {
		m.t.Fatal(err)
	}
	m.addr = l.Addr().String()
	m.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(time.Millisecond)
		io.WriteString(w, "served")
	})}
	go m.server.Serve(l) // ends with Close
	m.t.Cleanup(func() { m.server.Close() })
}

// F34, through the proxy: two servers of 10 slots each under a limit of 20. One goes, and the limit is
// 10, and nobody notices; both go, and everybody is refused as unavailable, with Retry-After,
// counted once; they are back, who waits is served, and the limit grows to what it was.
func TestLimitFollowsTheServers(t *testing.T) {
	servers := []*mortal{{t: t, addr: "127.0.0.1:0"}, {t: t, addr: "127.0.0.1:0"}}
	up := config.DefaultUpstream()
	up.SlowStart, up.MaxAbsence, up.Failures = 200*time.Millisecond, 3*time.Second, 1
	for _, s := range servers {
		s.begin()
		up.Servers = append(up.Servers, config.Server{URL: &url.URL{Scheme: "http", Host: s.addr}, Limit: 10})
	}
	w := start(t, servers[0].addr, func(_ *Config, lc *goodput.Config) { lc.Limit = limit.Fixed(20) })
	cfg := *w.proxy.Config()
	cfg.Upstreams = []config.Upstream{up}
	if err := w.proxy.Reconfigure(&cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.proxy.Close)
	served := func(n int) {
		t.Helper()
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				res, err := w.h1.Get(w.url)
				if err != nil {
					t.Error(err)
					return
				}
				defer res.Body.Close()
				if text, _ := io.ReadAll(res.Body); res.StatusCode != 200 || string(text) != "served" {
					t.Errorf("%s %s", res.Status, text)
				}
			})
		}
		all.Wait()
	}
	served(40)
	servers[0].server.Close()
	served(40)
	w.settle("the limit is that of one server", func(s goodput.Stats) bool { return s.Limit == 10 && !s.Absent })

	servers[1].server.Close()
	refused := uint64(0)
	for !w.lim.Stats().Absent || w.lim.Stats().Refusals[goodput.Unavailable] < 2 {
		res, body := w.get(w.h1, "/")
		// a kept connection may die with a request in it: whether that was executed nobody can promise
		lost := res.StatusCode == 502 && res.Header.Get("Goodput-Rejected") == ""
		if !lost && (res.StatusCode != 503 || res.Header.Get("Goodput-Rejected") != "unavailable" || res.Header.Get("Retry-After") == "") {
			t.Fatalf("%s %v %s", res.Status, res.Header, body)
		}
		refused++
	}
	if s := w.settle("all are told", idle); s.Refusals[goodput.Unavailable]+s.Outcomes[goodput.Failed] != refused || s.Outcomes[goodput.Rejected] != s.Refusals[goodput.Unavailable] {
		t.Errorf("%d were refused, counted are %v, refusals %v", refused, s.Outcomes, s.Refusals)
	}
	for _, s := range servers {
		s.begin()
	}
	served(40) // they are tried once a second, and a quarter later at the most
	w.settle("all of the limit is back", func(s goodput.Stats) bool { return s.Limit == 20 && !s.Absent })
}
