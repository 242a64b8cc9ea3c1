package simulated

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/sim"
	"github.com/goodput/goodput/internal/theory"
	"github.com/goodput/goodput/limit"
)

// A Sized is the trace at one load, in front of two slots, with callers that wait for ten
// seconds.
type Sized struct {
	Load     float64 `json:"load_x"`
	Requests int     `json:"requests"`
	Bound    float64 `json:"bound"` // the part that one server of twice the speed could serve, who knew the future
	Known    float64 `json:"known"` // that goodput serves, which is told each size
	Blind    float64 `json:"blind"` // without
	Best     string  `json:"best_blind"`
	Rival    float64 `json:"best_blind_share"`
	OfBound  Spread  `json:"known_of_bound"`
}

// turns are the rotations of the trace: it begins at so many thirds of itself, and what was
// before comes after. They are as near to repetitions as one trace gets.
const turns = 3

const (
	azureSlots    = 2
	azureDeadline = 10 * time.Second

	// The work of a request to a language model: 0.1 ms for each token that it reads, 20 ms for
	// each that it writes.
	reading = 100 * time.Microsecond
	writing = 20 * time.Millisecond
)

// traces plays the trace at each load, by stretching or squeezing the time between requests.
func traces(s Setup, r *Result) error {
	jobs, err := read(s.Azure)
	if err != nil {
		return err
	}
	loads := []float64{0.65, 1, 2, 3}
	if s.brief() {
		loads = loads[2:3] // the hardest
	}
	for _, load := range loads {
		one, err := sized(jobs, load)
		if err != nil {
			return err
		}
		r.Trace = append(r.Trace, one)
	}
	return nil
}

// read returns the requests of a file of the Azure trace in order, its columns being
// TIMESTAMP, ContextTokens and GeneratedTokens.
func read(file string) ([]sim.Job, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("the trace is not there: %w", err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("the trace is no CSV: %w", err)
	}
	if len(rows) < 2 || len(rows[0]) != 3 {
		return nil, fmt.Errorf("the trace has %d lines, want a head of three columns and requests", len(rows))
	}
	var jobs []sim.Job
	var first time.Time
	for i, row := range rows[1:] {
		at, err := time.Parse("2006-01-02 15:04:05.0000000", row[0])
		reads, err2 := strconv.Atoi(row[1])
		writes, err3 := strconv.Atoi(row[2])
		if err != nil || err2 != nil || err3 != nil || reads < 0 || writes < 0 {
			return nil, fmt.Errorf("line %d of the trace is %q, want a time and two numbers of tokens", i+2, row)
		}
		if i == 0 {
			first = at
		}
		work := time.Duration(reads)*reading + time.Duration(writes)*writing
		jobs = append(jobs, sim.Job{At: at.Sub(first), Service: max(work, 1), Size: 1 + int(work/time.Millisecond)})
	}
	return jobs, nil
}

// offered returns the load that jobs are.
func offered(jobs []sim.Job) float64 {
	var work time.Duration
	for _, j := range jobs {
		work += j.Service
	}
	return work.Seconds() / jobs[len(jobs)-1].At.Seconds() / azureSlots
}

func sized(recorded []sim.Job, load float64) (Sized, error) {
	factor := offered(recorded) / load
	jobs, samples := make([]sim.Job, len(recorded)), make([]time.Duration, len(recorded))
	for i, j := range recorded {
		jobs[i], samples[i] = j, j.Service
		jobs[i].At = time.Duration(float64(j.At) * factor)
	}
	length := jobs[len(jobs)-1].At + 1
	work := sim.Dist{Kind: sim.Empirical, Samples: samples}
	one := Sized{Load: load, Requests: len(jobs)}
	var ratios []float64
	core := sim.Policy{Name: "goodput", Core: &admission.Config{Limit: limit.Fixed(azureSlots), Objective: azureDeadline}}
	for k := range turns {
		turned := rotate(jobs, k*len(jobs)/turns, length)
		bound := clairvoyant(turned)
		known, err := share(turned, core, work, length, true)
		if err != nil {
			return one, err
		}
		blind, err := share(turned, core, work, length, false)
		if err != nil {
			return one, err
		}
		one.Bound += bound / turns
		one.Known += known / turns
		one.Blind += blind / turns
		ratios = append(ratios, known/bound)
	}
	one.OfBound = spreadOf(ratios)
	for _, name := range []string{"fifo", "fifo_expiry", "fifo_doomed_mean", "fifo_doomed_p95", "lifo", "codel", "edf_expiry", "reject"} {
		// Depth by the rule of thumb: what the slots do within the deadline.
		depth := int(math.Ceil(azureSlots * azureDeadline.Seconds() / (offered(jobs) * length.Seconds() * azureSlots / float64(len(jobs)))))
		p, err := sim.Named(name, azureSlots, depth, work)
		if err != nil {
			return one, err
		}
		got := 0.0
		for k := range turns {
			served, err := share(rotate(jobs, k*len(jobs)/turns, length), p, work, length, false)
			if err != nil {
				return one, err
			}
			got += served / turns
		}
		if got > one.Rival {
			one.Best, one.Rival = name, got
		}
	}
	return one, nil
}

// rotate begins jobs at cut.
func rotate(jobs []sim.Job, cut int, length time.Duration) []sim.Job {
	turned := append(append([]sim.Job(nil), jobs[cut:]...), jobs[:cut]...)
	for i := range turned {
		if turned[i].At -= jobs[cut].At; i >= len(jobs)-cut {
			turned[i].At += length
		}
	}
	return turned
}

// clairvoyant is the share that somebody could serve in time who knew the future, on one
// server of twice the speed.
func clairvoyant(jobs []sim.Job) float64 {
	all := make([]theory.Job, len(jobs))
	for i, j := range jobs {
		all[i] = theory.Job{Release: j.At, Service: j.Service, Deadline: j.At + azureDeadline}
	}
	most, _ := theory.Clairvoyant(theory.Pool(all, nil, azureSlots))
	return float64(most) / float64(len(jobs))
}

// share returns the part of jobs that p serves in time, told their sizes or not.
func share(jobs []sim.Job, p sim.Policy, work sim.Dist, length time.Duration, told bool) (float64, error) {
	next := 0
	r, err := sim.Run(sim.Scenario{
		Length: length, Tiers: []sim.Tier{{Policy: p, Service: work}},
		Classes: []sim.Class{{Patience: sim.Vanishes, Deadlines: []sim.Deadline{{After: azureDeadline, Share: 1}}}},
		Trace: func(j *sim.Job) bool {
			if next == len(jobs) {
				return false
			}
			*j = jobs[next]
			if next++; !told {
				j.Size = 0
			}
			return true
		},
	}, 1)
	if err != nil {
		return 0, err
	}
	return float64(r.Total.InTime) / float64(r.Total.Requests), nil
}
