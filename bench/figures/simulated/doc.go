// Package simulated measures what goodput promises of its core in simulated time: overloads that
// need no tuning, beside the best of other disciplines where few slots make them hard, a
// recorded trace whose sizes are known, a capacity that changes, a stall, and what the
// simulator itself can do.
//
// Everything but its speed follows from the seeds, to the last bit, on one GOARCH and Go version,
// whatever else the machine does. Speed is requests per second of processor time, not of the
// clock on the wall, so it does not suffer from who else runs beside it.
package simulated

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// A Result is what all of it came to.
type Result struct {
	Seeds []uint64 `json:"seeds"`

	Grid       []Overload `json:"grid"`                      // no tuning, where the service leaves room
	Finds      []Overload `json:"grid_auto"`                 // the same, by a limit that finds itself and has had 20 s
	Hard       []Hard     `json:"hard"`                      // elsewhere, beside the best there is
	Trace      []Sized    `json:"trace"`                     // of requests to a language model, whose sizes are known
	Steps      []Step     `json:"steps"`                     // the capacity halves, and is restored
	Stalls     []Stall    `json:"stalls"`                    // and what clients that try again make of one
	Speeds     []Speed    `json:"speeds"`                    // of the simulator
	PerRequest float64    `json:"bytes_per_further_request"` // that are allocated: 0 is constant memory
	Garbage    float64    `json:"bytes_per_further_auto"`    // the same of a limit that finds itself, which says why in each window: only the last is kept
	Same       bool       `json:"same_bytes"`                // two runs of one seed are one result
}

// A Setup says how much of it is played.
type Setup struct {
	Seeds int     // of each scene, 1 or more
	Short float64 // of the length of each scene; 1: all of it, and below 0.1 one load of the trace and two seeds of a step
	Azure string  // file of the trace
	Say   func(format string, args ...any)
}

// brief reports whether only that everything runs is asked for.
func (s Setup) brief() bool { return s.Short < 0.1 }

func (s Setup) seeds() (all []uint64) {
	for n := range s.Seeds {
		all = append(all, uint64(n)+1)
	}
	return all
}

func (s Setup) length(full time.Duration) time.Duration {
	return time.Duration(float64(full) * s.Short)
}

// Measure plays all of it, the speed first, while the machine is as it was.
func Measure(ctx context.Context, s Setup) (*Result, error) {
	r := &Result{Seeds: s.seeds()}
	for _, part := range []struct {
		what string
		play func(Setup, *Result) error
	}{
		{"the speed of the simulator", speeds},
		{"two runs of one seed", repeats},
		{"no tuning", grid},
		{"few slots, and work that varies much", hard},
		{"a capacity that changes", steps},
		{"a stall", stalls},
		{"a trace whose sizes are known", traces},
	} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.Say("%s", part.what)
		if err := part.play(s, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// A Spread is what several runs made of one figure.
type Spread struct {
	Median   float64 `json:"median"`
	Smallest float64 `json:"smallest"`
	Largest  float64 `json:"largest"`
}

// spreadOf returns the spread of v, zero without values.
func spreadOf(v []float64) Spread {
	if len(v) == 0 {
		return Spread{}
	}
	v = slices.Sorted(slices.Values(v))
	middle := v[len(v)/2]
	if len(v)%2 == 0 {
		middle = (v[len(v)/2-1] + v[len(v)/2]) / 2
	}
	return Spread{short(middle), short(v[0]), short(v[len(v)-1])}
}

// short is x with six digits: a file that is kept needs no more.
func short(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64) // it was a number a moment ago
	return y
}
