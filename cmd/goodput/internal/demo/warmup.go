package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// warmupSeed keeps the arrivals of the warm-up apart from those of the window: they are
// other ones, and the window has the same with it and without.
const warmupSeed = 0x7761726d7570

// A warmth is the load before the window, of which some is still under way when that
// begins.
type warmth struct {
	ended  chan *load.Result // nil without a warm-up
	all    *load.Result
	inTime int64 // answered in time when the window began
}

// warm offers the load for a while and returns when its last arrival is due.
func (c Config) warm(ctx context.Context, s scene, show *progress) (w warmth, err error) {
	g, err := load.New(c.plan(c.warmup(), c.Seed^warmupSeed), s.send)
	if err != nil {
		return w, err
	}
	w.ended = make(chan *load.Result, 1)
	go func() { w.ended <- g.Run(ctx) }()
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	over := time.After(c.warmup())
	for {
		select {
		case <-tick.C:
			now, _, _ := s.look()
			show.update(warming, g.Live, now)
		case <-over:
			s.look() // the peak is that of the window
			show.next()
			w.inTime = g.Live().InTime
			return w, nil
		case <-ctx.Done():
			return w, nil
		}
	}
}

// result waits for the end of the load and returns it, or nil if there was none.
func (w *warmth) result() *load.Result {
	if w.ended != nil {
		w.all = <-w.ended
	}
	return w.all
}

// rest is what was answered in time after the window had begun: the backend served it
// meanwhile.
func (w *warmth) rest() int64 {
	if w.all == nil {
		return 0
	}
	return w.all.InTime - w.inTime
}

// A Series is the limit over the window, looked at every 50 ms.
type Series struct {
	Min, Max int
	Last     int
	Why      string        // it last moved
	Moved    time.Duration // how long before the end that was

	sum, n int
}

func (s *Series) add(l goodput.Stats) {
	if l.Name == "" {
		return // there is no limiter
	}
	if s.n == 0 {
		s.Min = l.Limit
	}
	s.Min, s.Max, s.Last = min(s.Min, l.Limit), max(s.Max, l.Limit), l.Limit
	s.Why, s.Moved = l.LimitWhy, l.LimitMoved
	s.sum += l.Limit
	s.n++
}

func (s *Series) text() string {
	if s.n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", s.Mean())
}

// why says why the limit last moved, if it ever did.
func (s *Series) why() string {
	if s.Why == "" {
		return ""
	}
	return fmt.Sprintf("; it last moved %v before that:\n  %s", s.Moved.Round(time.Millisecond), s.Why)
}

// Mean returns the mean, 0 of an empty series.
func (s *Series) Mean() float64 { return float64(s.sum) / float64(max(s.n, 1)) }
