package demo

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// The names of the runs, in the order in which they run.
const (
	unprotected = "unprotected"
	protected   = "goodput"

	warming = "warm-up" // of the second one
)

// sampleEvery is how often the limiter's queue and its limit are looked at. A queue
// that is worth the name lasts longer, and Stats, which merges histograms, takes
// 0.2 ms here: 0.5 % of a core.
const sampleEvery = 50 * time.Millisecond

// A Trial is one window of load on a fresh backend.
type Trial struct {
	Name       string
	Load       *load.Result
	Served     int64  // by the backend, whether or not somebody still waited for it
	PeakQueue  int    // the most requests that waited at once, in the limiter and in the backend
	Derivation string // of the limiter's depth; "" without one

	Warmup *load.Result // of the load before the window; nil without
	Limit  Series       // of the limiter; empty without one
}

// Wasted returns the share of what the backend served that nobody waited for any
// more.
func (t *Trial) Wasted() float64 {
	if t.Served == 0 {
		return 0
	}
	return max(0, 1-float64(t.Load.InTime)/float64(t.Served))
}

// A scene is what is under load: the backend, and the limiter before it unless it is nil.
type scene struct {
	backend *Backend
	lim     *goodput.Limiter
	send    load.Send
}

// run starts a backend, lim in front of it unless it is nil, and offers the load.
func (c Config) run(ctx context.Context, name string, lim *goodput.Limiter, show *progress) (*Trial, error) {
	b := NewBackend(slots, mean, c.Seed)
	target, closeBackend, err := serve(backendServer(b))
	if err != nil {
		return nil, err
	}
	defer closeBackend()
	if lim != nil {
		server, err := c.Protect(&url.URL{Scheme: "h2c", Host: target.Host}, lim)
		if err != nil {
			return nil, err
		}
		var closeProxy func()
		if target, closeProxy, err = serve(server); err != nil {
			return nil, err
		}
		defer closeProxy()
	}
	client, err := load.Dial(ctx, load.HTTP{URL: target, HTTP2: true, Budget: deadline})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	runtime.GC() // of what the run before left, while nobody is timed
	return c.measure(ctx, name, scene{b, lim, client.Send}, show)
}

// measure offers the load and looks on. A warm-up is load of its own that stops coming
// when the window begins, without a pause: the window has the arrivals that it has without
// one, and what is still under way is not counted in it.
func (c Config) measure(ctx context.Context, name string, s scene, show *progress) (*Trial, error) {
	r := &Trial{Name: name}
	g, err := load.New(c.plan(c.Duration, c.Seed), s.send)
	if err != nil {
		return nil, err
	}
	var before warmth
	if s.lim != nil && c.warmup() > 0 {
		if before, err = c.warm(ctx, s, show); err != nil {
			return nil, err
		}
	}
	served := s.backend.Served()
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { r.PeakQueue, r.Limit = watchRun(done, name, g, s, show) })
	r.Load = g.Run(ctx)
	close(done)
	watch.Wait()
	r.Warmup = before.result()
	r.Served = s.backend.Served() - served - before.rest()
	return r, nil
}

func (c Config) plan(length time.Duration, seed uint64) load.Plan {
	return load.Plan{
		Rate:      c.Load * float64(slots) / mean.Seconds(),
		Duration:  length,
		Seed:      seed,
		Deadline:  deadline,
		Tolerance: load.ToleranceFor(objective),
	}
}

// look returns how many wait now, the most that did since the look before, and what the
// limiter says.
func (s scene) look() (now, peak int, lim goodput.Stats) {
	now, peak = s.backend.Waiting()
	if s.lim != nil {
		lim = s.lim.Stats()
		now += lim.Waiting
	}
	return now, max(now, peak), lim
}

// watchRun looks at a run until it is done: often at its queue and its limit, for the peak
// and the series, which it returns, and rarely at all of it, for the progress.
func watchRun(done <-chan struct{}, name string, g *load.Generator, s scene, show *progress) (highest int, limits Series) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		now, peak, lim := s.look()
		highest = max(highest, peak)
		limits.add(lim)
		select {
		case <-done:
			show.last(name, g.Live(), now)
			return highest, limits
		case <-tick.C:
			show.update(name, g.Live, now)
		}
	}
}

// backendServer allows as many requests on a connection as an overload has.
func backendServer(b *Backend) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:   b,
		Protocols: protocols,
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: load.DefaultMaxInFlight},
		ErrorLog:  log.New(io.Discard, "", 0), // stderr has the live lines
	}
}

// serve serves on a free port of the loopback interface.
func serve(s *http.Server) (*url.URL, func(), error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("listen on the loopback interface: %w", err)
	}
	go s.Serve(l) // until Close
	return &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/"}, func() { s.Close() }, nil
}
