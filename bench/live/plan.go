package live

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"time"
)

// A Plan is a load and what serves it. Two runs of one Plan have the same requests.
type Plan struct {
	Name    string
	Rate    float64       // requests per second, Poisson
	Service time.Duration // mean of the work of a request, exponential
	Phases  []Phase       // at least one
	Seed    uint64

	Deadline  time.Duration // a caller gives up so long after its request was due
	Objective time.Duration // a second, shorter time by which an answer is counted

	// Attempts are how often a caller asks in all, after a refusal or its deadline: each time
	// with the whole Deadline, and pause after the last. 0 and 1: once.
	Attempts int
}

// pause is what naive clients wait before they ask again: no longer each time, and all alike.
const pause = 100 * time.Millisecond

// patience is how long a caller waits in all.
func (p Plan) patience() time.Duration {
	return time.Duration(max(p.Attempts, 1))*(p.Deadline+pause) - pause
}

// A Phase is a stretch in which the service has so many slots.
type Phase struct {
	Length time.Duration
	Slots  int // 0: it begins nothing, and finishes what it has begun
}

// A Request is one arrival.
type Request struct {
	Due  time.Duration // since the start
	Work time.Duration // how long it takes a slot, in whole microseconds
}

// The deadline of a caller and the objective of the limiter, as in the README.
const (
	Deadline  = 2 * time.Second
	Objective = 400 * time.Millisecond
)

// Cold is a load, as a multiple of what slots can serve, on a limiter that has seen
// nothing yet.
func Cold(load float64, slots int, service, length time.Duration, seed uint64) Plan {
	return Plan{
		Name: fmt.Sprintf("cold %gx", load), Rate: load * float64(slots) / service.Seconds(),
		Service: service, Phases: []Phase{{length, slots}},
		Seed: seed, Deadline: Deadline, Objective: Objective,
	}
}

// Step is a load, as a multiple of what slots can serve, during which two thirds of the
// slots go away and come back.
func Step(load float64, slots int, service, phase time.Duration, seed uint64) Plan {
	p := Cold(load, slots, service, phase, seed)
	p.Name = fmt.Sprintf("step %d-%d-%d at %gx", slots, slots/3, slots, load)
	p.Phases = []Phase{{phase, slots}, {phase, slots / 3}, {phase, slots}}
	return p
}

// Stall is a load, as a multiple of what slots can serve, during which the service stands still
// for five seconds, and whose callers ask three times. Without a limiter, what was asked in
// vain comes again, and the overload outlives its cause.
func Stall(load float64, slots int, service time.Duration, seed uint64) Plan {
	p := Cold(load, slots, service, 0, seed)
	p.Name = fmt.Sprintf("stall of 5 s at %gx", load)
	// 10 s for a limit to find its place; 12 s for what comes again: it has gone after three deadlines.
	p.Phases = []Phase{{10 * time.Second, slots}, {5 * time.Second, 0}, {12 * time.Second, slots}}
	p.Attempts = 3
	return p
}

// Length returns how long requests arrive.
func (p Plan) Length() time.Duration {
	var sum time.Duration
	for _, ph := range p.Phases {
		sum += ph.Length
	}
	return sum
}

// Streams of one seed: what one consumes changes nothing for the other.
const (
	streamArrivals = iota + 1
	streamWork
)

// Requests yields them in the order in which they are due.
func (p Plan) Requests() iter.Seq[Request] {
	return func(yield func(Request) bool) {
		gaps := rand.New(rand.NewPCG(p.Seed, streamArrivals))
		work := rand.New(rand.NewPCG(p.Seed, streamWork))
		gap := func() time.Duration { return time.Duration(gaps.ExpFloat64() * float64(time.Second) / p.Rate) }
		length := p.Length()
		for due := gap(); due < length; due += gap() {
			r := Request{Due: due, Work: time.Duration(work.ExpFloat64() * float64(p.Service)).Truncate(time.Microsecond)}
			if !yield(r) {
				return
			}
		}
	}
}

// could returns how many requests could be answered between two instants, of those that
// arrived then: speed is the part of a slot's time that is work.
func (p Plan) could(from, to time.Duration, speed float64, arrived int) float64 {
	capacity, begin := 0.0, time.Duration(0)
	for _, ph := range p.Phases {
		end := begin + ph.Length
		if d := min(to, end) - max(from, begin); d > 0 {
			capacity += d.Seconds() * speed * float64(ph.Slots) / p.Service.Seconds()
		}
		begin = end
	}
	return min(capacity, float64(arrived))
}
