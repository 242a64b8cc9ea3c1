// Package demo shows what an overload does to a service, and what goodput does
// about it: one backend, one seed of arrivals, over real HTTP, first directly and
// then through the proxy.
//
// Everything runs in this process and talks over the loopback interface. The
// generator is open-loop (package load): its arrivals do not wait for answers.
//
// The same live, in the files web*.go: a smaller service whose load and protection are changed while
// it runs, by whoever looks at the page.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// The scene: a service that can do 60 / 50ms = 1200 requests a second, clients
// that give up after 2 s, and somebody who wants answers within 400 ms.
const (
	slots     = 60
	mean      = 50 * time.Millisecond
	deadline  = 2 * time.Second
	objective = 400 * time.Millisecond
)

// warmup is how long a law that does not know the limit may look for it, under the whole
// load, before the window begins.
const warmup = 5 * time.Second

// Bounds of a Config.
const (
	maxLoad     = 20 // x 1200/s = 24,000/s: about what two cores can send and answer
	maxDuration = 5 * time.Minute
	minDuration = time.Second // shorter than that the queue has not even filled
	maxLimit    = 1000        // of a number, and of where a law begins

	// maxDirect is the load above which the direct run is left out: at 4x
	// 9,600 requests wait at once (4 x 1200/s x 2s), each with three
	// goroutines in this process, and more of them say nothing new.
	maxDirect = 4
)

// A Config describes a demo.
type Config struct {
	Load     float64       // offered, as a multiple of the capacity
	Duration time.Duration // of the window of each run
	Seed     uint64        // of arrivals and service times
	Limit    limit.Law     // of the limiter; the backend has 60 slots

	// Protect returns the server that stands in front of upstream and admits
	// by lim. Required.
	Protect func(upstream *url.URL, lim *goodput.Limiter) (*http.Server, error)

	// Progress gets two live lines, redrawn if Redraw is set. Required.
	Progress io.Writer
	Redraw   bool
}

// Validate returns one sentence about the first field that is out of range, or
// nil.
func (c Config) Validate() error {
	switch {
	case !(c.Load >= 0.1 && c.Load <= maxLoad): // NaN fails too
		return fmt.Errorf("load %v is out of range: 0.1 to %d times the capacity", c.Load, maxLoad)
	case c.Duration < minDuration || c.Duration > maxDuration:
		return fmt.Errorf("duration %v is out of range: %v to %v", c.Duration, minDuration, maxDuration)
	case c.Limit == nil:
		return errors.New("limit is missing: limit.Fixed(60), or a law that finds it")
	}
	n, err := c.Limit.Start()
	switch {
	case err != nil:
		return err
	case n < 1 || n > maxLimit:
		return fmt.Errorf("limit %d is out of range: 1 to %d; the backend has %d slots", n, maxLimit, slots)
	}
	return nil
}

// warmup is how long the limiter is under load before its window begins.
func (c Config) warmup() time.Duration {
	if _, fixed := c.Limit.(limit.Fixed); fixed {
		return 0
	}
	return warmup
}

// Run runs the demo. An error means that it could not be set up; a run that
// answers nothing is in the Report and says so.
func Run(ctx context.Context, c Config) (*Report, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	defer tune()()
	report := &Report{
		Seed: c.Seed, Load: c.Load, Duration: c.Duration, Limit: c.Limit, Warmup: c.warmup(),
		Capacity: float64(slots) / mean.Seconds(),
	}
	if c.Load > maxDirect {
		report.Skipped = fmt.Sprintf("the direct run is skipped above %dx: %.0f requests would wait at once",
			maxDirect, c.Load*report.Capacity*deadline.Seconds())
	}
	show := newProgress(c.Progress, c.Redraw, report)
	if report.Skipped == "" {
		r, err := c.run(ctx, unprotected, nil, show)
		if err != nil {
			return nil, err
		}
		report.Runs = append(report.Runs, r)
	}
	if ctx.Err() != nil {
		return report, nil
	}
	lim := goodput.New(goodput.Config{Name: "demo", Limit: c.Limit, Objective: objective})
	r, err := c.run(ctx, protected, lim, show)
	if err != nil {
		return nil, err
	}
	r.Derivation = lim.Stats().Derivation.String()
	report.Runs = append(report.Runs, r)
	return report, nil
}
