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
)

// sampleEvery is how often the limiter's queue is looked at for its peak. A queue
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
}

// Wasted returns the share of what the backend served that nobody waited for any
// more.
func (t *Trial) Wasted() float64 {
	if t.Served == 0 {
		return 0
	}
	return max(0, 1-float64(t.Load.InTime)/float64(t.Served))
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
	g, err := load.New(load.Plan{
		Rate:      c.Load * b.Capacity(),
		Duration:  c.Duration,
		Seed:      c.Seed,
		Deadline:  deadline,
		Tolerance: load.ToleranceFor(objective),
	}, client.Send)
	if err != nil {
		return nil, err
	}
	waiting := func() (now, peak int) {
		now, peak = b.Waiting()
		if lim != nil {
			now += lim.Stats().Waiting
		}
		return now, max(now, peak)
	}
	r := &Trial{Name: name}
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { r.PeakQueue = watchRun(done, name, g, waiting, show) })
	r.Load = g.Run(ctx)
	close(done)
	watch.Wait()
	r.Served = b.Served()
	return r, nil
}

// watchRun looks at a run until it is done: often at its queue, for the peak,
// which it returns, and rarely at all of it, for the progress.
func watchRun(done <-chan struct{}, name string, g *load.Generator, waiting func() (int, int), show *progress) int {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	highest := 0
	for {
		now, peak := waiting()
		highest = max(highest, peak)
		select {
		case <-done:
			show.last(name, g.Live(), now)
			return highest
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
