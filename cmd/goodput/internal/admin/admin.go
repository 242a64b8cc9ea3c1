// Package admin is the listener of the operator: probes, metrics and the state
// in words and numbers. It is a listener of its own, never behind a limiter, so
// that it answers while the data path refuses.
//
//	GET /livez          200 while the process can answer at all
//	GET /readyz         503 only while starting or draining
//	GET /metrics        Prometheus
//	GET /api/v1/state   JSON
//	GET /api/v1/explain what a limiter does and why, in text or JSON
//	GET /api/v1/events  the state, rates and quantiles each second, as server-sent events
//	GET /version        JSON
//	POST /api/v1/observe switches observe mode: see observe.go
//	POST /-/reload      reads the policy file again; 400 with what is wrong with it
//	/api/v1/demo        of demo --web: GET reads its controls, POST sets them
//	GET /               the live page for a browser, the state in words for curl
//	GET /assets/        what the page loads
//
// Being overloaded is not being unready: taking an instance that sheds out of
// rotation moves its load to the others, which then shed too.
package admin

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/build"
	"github.com/goodput/goodput/cmd/goodput/internal/dashboard"
	"github.com/goodput/goodput/cmd/goodput/internal/live"
	"github.com/goodput/goodput/cmd/goodput/internal/metrics"
	"github.com/goodput/goodput/goodputprom"
)

// A Phase is where the process is in its life.
type Phase int32

const (
	Starting Phase = iota // listeners are not open yet
	Ready
	Draining // no new work, please
)

// String returns the word used by /readyz and the state.
func (p Phase) String() string {
	switch p {
	case Ready:
		return "ready"
	case Draining:
		return "draining"
	}
	return "starting"
}

// A Config says what to show.
type Config struct {
	Limiters func() []*goodput.Limiter
	// Longest returns the longest deadline of the class that a limiter is named after.
	Longest func(limiter string) time.Duration
	Proxy   metrics.Proxy
	// Reload reads the policy file again; the note is what it could not do. nil: there is no
	// file.
	Reload func() (note string, err error)
	// Policy returns the name of the policy file and the SHA-256 of what is in force.
	Policy func() (source, sum string)
	// Observe turns the switch of observe mode; nil: there is none.
	Observe *Observe
	// Demo is of demo --web; nil: this is none.
	Demo *Demo
}

// An Admin is the http.Handler of the admin listener.
type Admin struct {
	cfg     Config
	mux     *http.ServeMux
	events  *live.Hub
	phase   atomic.Int32
	started time.Time
}

// New returns an admin in the phase Starting.
func New(cfg Config) *Admin {
	a := &Admin{cfg: cfg, mux: http.NewServeMux(), started: time.Now()}
	a.events = a.hub()
	registry := metrics.Registry(&goodputprom.Collector{Limiters: cfg.Limiters, Longest: cfg.Longest}, cfg.Proxy)
	a.mux.HandleFunc("GET /livez", a.live)
	a.mux.HandleFunc("GET /readyz", a.ready)
	a.mux.Handle("GET /metrics", metrics.Handler(registry))
	a.mux.HandleFunc("GET /api/v1/state", a.state)
	a.mux.HandleFunc("GET /api/v1/explain", a.explain)
	a.mux.Handle("GET /api/v1/events", a.events)
	a.mux.HandleFunc("GET /version", a.version)
	browser := dashboard.Handler()
	a.mux.Handle("GET "+dashboard.Assets, browser)
	a.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept")
		if dashboard.Wanted(r) {
			browser.ServeHTTP(w, r)
			return
		}
		a.page(w, r)
	})
	a.mux.Handle("POST /-/reload", http.NewCrossOriginProtection().Handler(http.HandlerFunc(a.reload)))
	if cfg.Observe != nil {
		a.mux.Handle("POST /api/v1/observe", http.NewCrossOriginProtection().Handler(http.HandlerFunc(a.observe)))
	}
	a.demo(cfg.Demo)
	return a
}

// Enter says that the process is in phase p from now on.
func (a *Admin) Enter(p Phase) { a.phase.Store(int32(p)) }

// Server returns a server for a. Nothing it answers takes long but for events, which see to
// that themselves, and which a Shutdown of the server ends.
func (a *Admin) Server() *http.Server {
	s := &http.Server{
		Handler:           a,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	s.RegisterOnShutdown(a.events.End)
	return s
}

// ServeHTTP answers one request.
func (a *Admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !hostAllowed(r) {
		http.Error(w, fmt.Sprintf("host %q is not one of this listener's: use an address or localhost", r.Host), http.StatusForbidden)
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	a.mux.ServeHTTP(w, r)
}

// hostAllowed guards against DNS rebinding: a page in the operator's browser
// whose name was pointed at 127.0.0.1 could read us. It cannot choose an
// address as its name. Who can reach a listener on the network needs no page to
// read it, so there any name will do; but the operator's browser may be the only one
// that can, so what changes something wants an address of a browser there, too.
func hostAllowed(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	browser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
	if (!ok || !local.IP.IsLoopback()) && (reads || !browser) {
		return true
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if host == "localhost" || host == "" { // HTTP/1.0 needs no Host; browsers send one
		return true
	}
	if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	_, err = netip.ParseAddr(host)
	return err == nil
}

func (a *Admin) live(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

func (a *Admin) ready(w http.ResponseWriter, _ *http.Request) {
	phase := Phase(a.phase.Load())
	if phase != Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintln(w, phase)
}

func (a *Admin) version(w http.ResponseWriter, _ *http.Request) { writeJSON(w, build.Read()) }

// reload answers when the configuration is in force, or with what is wrong with it.
func (a *Admin) reload(w http.ResponseWriter, _ *http.Request) {
	if a.cfg.Reload == nil {
		http.Error(w, "there is no policy file: start with --config to have one that can be reloaded", http.StatusConflict)
		return
	}
	note, err := a.cfg.Reload()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintln(w, "reloaded")
	if note != "" {
		fmt.Fprintln(w, note)
	}
}

// page is for a person with curl.
func (a *Admin) page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if a.cfg.Policy != nil {
		if source, sum := a.cfg.Policy(); source != "" {
			fmt.Fprintf(w, "policy file %s, sha256 %s\n", source, sum)
		}
	}
	if r := a.cfg.Proxy.Reloads(); !r.Good {
		fmt.Fprintf(w, "the last reload failed %s ago, and what was in force is:\n%s\n", time.Since(r.FailedAt).Round(time.Second), r.Why)
	} else if r.Restart {
		fmt.Fprintln(w, "restart needed: the policy file has other listeners than those that are open")
	}
	fmt.Fprintf(w, "%s, up %s, %s\n", build.Read(), time.Since(a.started).Round(time.Second), Phase(a.phase.Load()))
	observing := a.observing()
	for _, lim := range a.cfg.Limiters() {
		fmt.Fprintf(w, "\n%s", a.says(lim))
		sayObserved(w, observedOf(observing, lim.Name()))
		fmt.Fprintln(w)
	}
	a.lasting(w)
	a.servers(w)
	fmt.Fprint(w, "\n/livez /readyz /metrics /api/v1/state /api/v1/explain /api/v1/events /version\n")
}

// lasting says what lasts in the classes in which something does.
func (a *Admin) lasting(w io.Writer) {
	for _, t := range a.cfg.Proxy.Traffic() {
		if t.Mode == "request" && t.Tunnels == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s: %d requests in flight that last (mode %s), %d upgraded connections; cut so far: %d idle, %d for their length\n",
			t.Class, t.Requests, t.Mode, t.Tunnels, t.CutIdle, t.CutTotal)
	}
}

// servers says how the servers of the upstreams are, if there is more than one or it is out.
func (a *Admin) servers(w io.Writer) {
	all := a.cfg.Proxy.Servers()
	if len(all) == 1 && all[0].Well {
		return
	}
	fmt.Fprintln(w)
	for _, s := range all {
		room := ""
		if s.Limit > 0 {
			room = fmt.Sprintf(" of %d", s.Limit)
		}
		state := "well"
		switch {
		case !s.Well:
			state = fmt.Sprintf("out for %s: %s", time.Since(s.Since).Round(time.Second), s.Why)
		case s.Share < 1:
			state = fmt.Sprintf("well, %.0f %% of its room while it starts", 100*s.Share)
		}
		fmt.Fprintf(w, "%s %s: %d%s in flight; %s\n", s.Upstream, s.Server, s.InFlight, room, state)
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // whoever asked has left
}
