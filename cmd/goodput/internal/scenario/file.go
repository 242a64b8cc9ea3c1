// Package scenario reads scenario files: a service, its load, the policies to
// compare on it, and what is expected of them. A file is the whole experiment, so
// that whoever has it and the seed has the result.
//
// The short form is one service and one class of clients, its keys at the top:
//
//	version: 1
//	name: overload-3x
//	length: 60s
//	policy: {limit: 60, objective: 400ms}
//	service: 50ms exponential
//	load: 3x
//	deadline: 2s
//	compare: [goodput, fifo, none]
//	expect: [goodput.ratio >= 0.99, goodput.p99 <= 400ms]
//
// The long form has the same keys under tiers and classes.
// Reference has every key with its meaning.
package scenario

import (
	_ "embed"
	"time"

	"github.com/goodput/goodput/internal/sim"
)

// Reference is a scenario file with every key and what it means.
//
//go:embed testdata/everything.yaml
var Reference []byte

// A File is a scenario file.
type File struct {
	Version int    // 1
	Name    string // letters, digits, _, - and .
	About   string // one sentence
	Rule    string // what the rule of thumb predicts
	Why     string // why it is wrong, or right

	Seed   uint64 // of the first run; default 1
	Repeat int    // runs of each policy, with the seeds Seed, Seed+1 ...; 1 to 100, default 1

	Sim     sim.Scenario // with the policies of the file; Sim.Trace is nil, see Play
	Trace   []sim.Job    // recorded arrivals, in the order of time
	Compare []Compared   // at least one: without compare, what the tiers have
	Expect  []Criterion

	// Unjudged is how many criteria LoadFor has left out: they are about policies
	// that are not played.
	Unjudged int
}

// A Compared is a policy to play the scenario with.
type Compared struct {
	Name  string       // its label: letters, digits, _ and -; unique in the file
	Tiers []sim.Policy // one per tier, each called Name
}

// Play returns the scenario with the policies of Compare[i] and with a fresh trace,
// for one run.
func (f *File) Play(i int) sim.Scenario {
	s := f.Sim.With(f.Compare[i].Tiers...)
	if len(f.Trace) > 0 {
		next := 0
		s.Trace = func(j *sim.Job) bool {
			if next == len(f.Trace) {
				return false
			}
			*j = f.Trace[next]
			next++
			return true
		}
	}
	return s
}

// Seeds returns the seed of every run of a policy.
func (f *File) Seeds() []uint64 {
	seeds := make([]uint64, f.Repeat)
	for i := range seeds {
		seeds[i] = f.Seed + uint64(i)
	}
	return seeds
}

// Bounds of a file, within those of package sim.
const (
	month       = 30 * 24 * time.Hour // the longest time of a simulation
	maxText     = 2000                // a paragraph
	maxName     = 64
	maxTiers    = 16
	maxClasses  = 64
	maxCompare  = 32
	maxExpect   = 100
	maxRepeat   = 100
	maxParts    = 1000    // steps, modes, jobs: what a person writes
	maxSamples  = 100_000 // measured times, which nobody writes
	maxShare    = 1_000_000
	maxRequests = 1 << 20 // units of a limit, as limit.Max
)
