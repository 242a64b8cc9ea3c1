package virtual

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// Words say who a Contestant is.
type Words struct {
	Name  string `json:"name"`
	Setup string `json:"setup"` // how it is set up
	Why   string `json:"why"`   // so
	Told  bool   `json:"told"`  // it knows the slots that there are at first

	// Same names a contestant that decides the same, by other means: it plays in the first
	// scenes, where the rows show that, and the other stands for it elsewhere.
	Same string `json:"same_as,omitempty"`
}

// A Contestant is a limiter as a service would have it.
type Contestant struct {
	Words

	// New returns a fresh one, before so many slots.
	New func(slots int) Door
}

// A Door is one limiter. Acquire returns once there is a slot, with what gives it back, or
// an error if there is none; ctx ends when the caller leaves. Limit tells the limit, nil
// where none moves.
type Door struct {
	Acquire func(ctx context.Context) (release func(), err error)
	Limit   func() int
}

var errFull = errors.New("full")

// The objective of the limiter, and the largest wait of those that bound one.
const objective = 400 * time.Millisecond

// Contestants are all of them, ours first.
var Contestants = []Contestant{
	{
		Words: Words{"goodput/fixed", "Config{Limit: limit.Fixed(slots), Objective: 400ms}", "the README's first example: the resource has a known size", true, ""},
		New:   func(slots int) Door { return own(limit.Fixed(slots)) },
	},
	{
		Words: Words{"goodput/auto", "Config{Limit: limit.Auto{}, Objective: 400ms}", "the default law, without tuning: nobody told it the slots", false, ""},
		New:   func(int) Door { return own(limit.Auto{}) },
	},
	{
		Words: Words{"base/none", "no limiter", "what most services run with: all wait at the resource", false, ""},
		New: func(int) Door {
			return Door{Acquire: func(context.Context) (func(), error) { return func() {}, nil }}
		},
	},
	{
		Words: Words{"chan/wait", "make(chan struct{}, slots), a send that blocks", "the semaphore of Effective Go", true, "base/none"},
		New: func(slots int) Door {
			return channel(slots, func(c chan struct{}) bool { c <- struct{}{}; return true })
		},
	},
	{
		Words: Words{"chan/try", "make(chan struct{}, slots), select with default", "the usual way to refuse at once", true, ""},
		New: func(slots int) Door {
			return channel(slots, func(c chan struct{}) bool {
				select {
				case c <- struct{}{}:
					return true
				default:
					return false
				}
			})
		},
	},
	byHand("bounded-fifo/480", 480, "the rule of thumb, 1,200/s x 400 ms: what is taught for this objective"),
	byHand("bounded-fifo/10000", 10_000, "a round number, large enough never to refuse"),
	{
		Words: Words{"bounded-fifo/480-ctx", "as bounded-fifo/480, and who waits leaves with its context", "the same, written with care", true, ""},
		New:   func(slots int) Door { return bounded(slots, 480, true) },
	},
	semaphoreTry, semaphoreWait,
	bulkheadTry, bulkheadWait, adaptiveCold, adaptiveTold, adaptiveQueue,
}

func own(law limit.Law) Door {
	l := goodput.New(goodput.Config{Limit: law, Objective: objective})
	d := Door{Acquire: func(ctx context.Context) (func(), error) {
		slot, err := l.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return func() { slot.Release() }, nil
	}}
	if _, fixed := law.(limit.Fixed); !fixed {
		d.Limit = func() int { return l.Stats().Limit }
	}
	return d
}

// channel is a semaphore made of a channel.
func channel(slots int, take func(c chan struct{}) bool) Door {
	c := make(chan struct{}, slots)
	return Door{Acquire: func(context.Context) (func(), error) {
		if !take(c) {
			return nil, errFull
		}
		return func() { <-c }, nil
	}}
}

func byHand(name string, depth int, why string) Contestant {
	return Contestant{
		Words: Words{name, "make(chan struct{}, slots), and a counter of those that wait for it", why, true, ""},
		New:   func(slots int) Door { return bounded(slots, depth, false) },
	}
}

// bounded lets depth callers wait for a channel, first come first served.
func bounded(slots, depth int, leaves bool) Door {
	c := make(chan struct{}, slots)
	var waiting atomic.Int64
	return Door{Acquire: func(ctx context.Context) (func(), error) {
		release := func() { <-c }
		select {
		case c <- struct{}{}:
			return release, nil
		default:
		}
		if waiting.Add(1) > int64(depth) {
			waiting.Add(-1)
			return nil, errFull
		}
		defer waiting.Add(-1)
		gone := ctx.Done()
		if !leaves {
			gone = nil
		}
		select {
		case c <- struct{}{}:
			return release, nil
		case <-gone:
			return nil, ctx.Err()
		}
	}}
}
