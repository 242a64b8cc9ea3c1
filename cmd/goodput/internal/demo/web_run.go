package demo

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// The scene of the live demo: 10 slots / 50ms = 200 requests a second, a sixth of what the terminal
// demo has, so that 10x of it, a browser that draws and whatever else a laptop does fit two cores.
// The service time is the same, and so are the latencies.
const (
	WebSlots = 10
	webMean  = mean

	// WebObjective is what the limiter is told: as that of the terminal demo.
	WebObjective = objective
)

const (
	// lateTolerance is how late the generator may be before the scene says so: what a slot of the
	// service makes up for. Beyond that the machine takes from goodput, and that is to be seen as
	// the machine's: on two cores at a load of 6 most seconds are at 2 to 20 ms, and those in
	// which goodput was a third lower at 60 to 240.
	lateTolerance = maxLate

	// remembered is for how many looks that is said: a burst of other work delays what was under
	// way, and the limiter has measured slower services, for some seconds after it.
	remembered = 5

	// shortest is the time from which a rate is one. The first tick is at once.
	shortest = 100 * time.Millisecond
)

// A WebConfig describes a live demo.
type WebConfig struct {
	Load float64 // to begin with, 0 to MaxWebLoad; nothing is protected then
	Seed uint64  // of arrivals and service times

	// Protect returns the server that stands in front of upstream and admits. Required.
	Protect func(upstream *url.URL) (*http.Server, error)
}

// A Web is a live demo: a service, the proxy in front of it and clients that may be steered while
// they run, all in this process and over the loopback interface.
type Web struct {
	backend *Backend
	crowd   *crowd
	stop    []func() // in the order in which they are called

	mu     sync.Mutex // of what Scene compares with
	looked time.Time
	before tally
	served int64
	lately []float64 // by how much the generator was late, seconds, p99: the last looks at which it sent
}

// Start starts it. Close ends it.
func Start(ctx context.Context, c WebConfig) (web *Web, err error) {
	if err := CheckWebLoad(c.Load); err != nil {
		return nil, err
	}
	w := &Web{backend: NewBackend(WebSlots, webMean, c.Seed)}
	defer func() {
		if err != nil {
			w.Close()
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	var ways [2]load.Send
	w.crowd = newCrowd(ctx, w.backend.Capacity(), c.Seed, [2]load.Send{})
	w.backend.Begun = w.crowd.beginRequest
	w.stop = append(w.stop, cancel, tuneLive())

	direct, closeBackend, err := serve(backendServer(w.backend))
	if err != nil {
		return nil, err
	}
	w.stop = append(w.stop, closeBackend)
	server, err := c.Protect(&url.URL{Scheme: "h2c", Host: direct.Host})
	if err != nil {
		return nil, err
	}
	through, closeProxy, err := serve(server)
	if err != nil {
		return nil, err
	}
	w.stop = append(w.stop, closeProxy)
	for i, target := range []*url.URL{direct, through} {
		client, err := load.Dial(ctx, load.HTTP{URL: target, HTTP2: true, Budget: webDeadline, Stamp: stamp})
		if err != nil {
			return nil, err
		}
		w.stop = append(w.stop, client.Close)
		ways[i] = client.Send
	}
	w.crowd.ways = ways
	w.begin(c.Load)
	return w, nil
}

// begin lets the first clients come.
func (w *Web) begin(load float64) {
	w.looked = time.Now()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.crowd.run()
	}()
	// First of all the clients leave, then what they talk to is closed.
	w.stop = slices.Insert(w.stop, 1, func() { <-ended })
	w.crowd.set(Controls{Load: &load})
}

// Close ends it: the clients leave, and what was opened is closed. Nothing is left running.
func (w *Web) Close() {
	for _, stop := range w.stop {
		stop()
	}
}

// Scene is what happened since it was last called, once a second by whoever tells the viewers. Too
// short a time counts as a part of the next.
func (w *Web) Scene() Scene {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	elapsed := now.Sub(w.looked)
	if elapsed < shortest {
		return w.setting(w.crowd.controls())
	}
	look := w.crowd.look()
	waiting, _ := w.backend.Waiting()
	served := w.backend.Served()
	per := func(now, before int64) float64 {
		return float64(now-before) / elapsed.Seconds()
	}
	s := w.setting(Controls{&look.load, &look.protect})
	s.Offered = per(look.count.offered, w.before.offered)
	s.InTime = per(look.count.inTime, w.before.inTime)
	s.Late = per(look.count.late, w.before.late)
	s.Refused = per(look.count.refused, w.before.refused)
	s.Gone = per(look.count.gone, w.before.gone)
	s.Failed = per(look.count.failed, w.before.failed)
	s.Dropped = per(look.count.dropped, w.before.dropped)
	s.UnderWay, s.Served, s.Waiting = look.underWay, per(served, w.served), waiting
	s.P50, s.P99 = quantile(look.window.latency, 0.50), quantile(look.window.latency, 0.99)
	s.GeneratorLate = quantile(look.window.late, 0.99)
	s.Note = note(s, look, w.worst(s.GeneratorLate))
	w.looked, w.before, w.served = now, look.count, served
	return s
}

// setting is a scene in which nothing was measured yet.
func (w *Web) setting(c Controls) Scene {
	return Scene{
		Load: *c.Load, Protect: *c.Protect,
		CapacityPerSecond: w.backend.Capacity(), Slots: w.backend.Slots,
		ServiceSeconds: w.backend.Mean.Seconds(), DeadlineSeconds: webDeadline.Seconds(),
	}
}

// worst is by how much the generator was late at the worst of the last looks.
func (w *Web) worst(now *float64) float64 {
	late := 0.0
	if now != nil {
		late = *now
	}
	w.lately = append(w.lately[max(0, len(w.lately)+1-remembered):], late)
	return slices.Max(w.lately)
}

// note says why the load was not offered as it should have been, or why the machine is part of
// what is measured, or "". late is of the last looks, in seconds.
func note(s Scene, l look, late float64) string {
	switch {
	case l.skipped:
		return fmt.Sprintf("This process stood still for more than %v, and who was due meanwhile was left out.", webDeadline)
	case s.Dropped > 0:
		return fmt.Sprintf("%.0f requests a second were never sent, since %d others were under way.", s.Dropped, MaxUnderWay)
	case late > lateTolerance.Seconds():
		return fmt.Sprintf("This machine is busy with something else: in the last %d s requests were sent up to %.0f ms late (p99). Goodput is lower and latencies are longer for that.", remembered, 1000*late)
	}
	return ""
}

// A look is the crowd at one instant, with what was measured since the look before.
type look struct {
	load     float64
	protect  bool
	skipped  bool
	underWay int
	count    tally
	window   window
}

func (c *crowd) look() look {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := look{c.load, c.protect, c.skipped, len(c.calls), c.count, c.window}
	c.skipped, c.window = false, window{}
	return l
}

// quantile sorts all and returns the q-quantile by nearest rank, in seconds; nil of nothing.
func quantile(all []time.Duration, q float64) *float64 {
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	rank := int(math.Ceil(q * float64(len(all))))
	return new(all[max(rank, 1)-1].Seconds())
}
