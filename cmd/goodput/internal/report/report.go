// Package report shows what several policies made of the same load: as a table in
// a terminal, as JSON for programs, and as one HTML file with charts that opens
// without a network.
//
// The three say the same. The page carries the JSON and draws from it, and a
// figure that is in the table is in the JSON under the name of its column.
//
// A policy that was run with several seeds has for each figure the mean of the
// runs and the standard error of that mean, s / sqrt(n) with n - 1 in s. Quantiles
// are those of each run, averaged: the spread between runs is what a reader wants
// to know, and a pooled quantile would hide it. Series and distributions are drawn
// from the first run.
//
// Names and sentences come from files of strangers. In the terminal control
// characters are replaced; in the page everything is escaped, and a policy of
// content security lets nothing run but the script whose hash it names.
package report

import (
	"errors"
	"fmt"
	"math"

	"github.com/goodput/goodput/internal/sim"
)

// A Report is the outcome of one scenario, or of one log.
type Report struct {
	Scenario string // its name; "" is no name
	About    string // what it is, in a sentence or two
	Rule     string // what the rule of thumb predicts; "" if it says nothing
	Measured string // what came out, beside Rule; "" is said from the figures of the first policy
	Why      string // why the two differ, or do not

	Program string // name and version of the program that made it
	Command string // what makes it again
	Seed    uint64 // of the first run; run i has Seed + i

	Policies []Policy // the first is the one that is judged
	Ceilings sim.Ceilings
	Criteria []Criterion
	Notes    []string // one sentence each: what was skipped, what to be careful with
}

// A Policy is what one policy made of the load.
type Policy struct {
	Name string
	Runs []*sim.Result // one per seed, as many for each policy; the first one's series is drawn
}

// A Criterion is something that was asked for, and whether it came out.
type Criterion struct {
	Text     string // "goodput >= 99 % of capacity"
	Met      bool
	Measured string // "99.3 %"
}

// check says what keeps r from being shown. Whoever fills a Report wrongly is told
// here, once, and not by a division by zero in a column.
func (r *Report) check() error {
	if len(r.Policies) == 0 {
		return errors.New("report: no policy was run, so there is nothing to show")
	}
	runs := len(r.Policies[0].Runs)
	if runs == 0 {
		return fmt.Errorf("report: policy %q has no run", r.Policies[0].Name)
	}
	for _, p := range r.Policies {
		if len(p.Runs) != runs {
			return fmt.Errorf("report: policy %q has %d runs and %q has %d: each needs as many", p.Name, len(p.Runs), r.Policies[0].Name, runs)
		}
		for i, run := range p.Runs {
			switch {
			case run == nil:
				return fmt.Errorf("report: run %d of policy %q is missing", i+1, p.Name)
			case len(run.Classes) != len(p.Runs[0].Classes):
				return fmt.Errorf("report: run %d of policy %q has %d classes and the first %d", i+1, p.Name, len(run.Classes), len(p.Runs[0].Classes))
			case len(run.Tenants) != len(r.Policies[0].Runs[0].Tenants):
				return fmt.Errorf("report: run %d of policy %q has %d tenants and the first of all %d", i+1, p.Name, len(run.Tenants), len(r.Policies[0].Runs[0].Tenants))
			case run.Window <= 0:
				return fmt.Errorf("report: run %d of policy %q counts a window of %v: it must be positive", i+1, p.Name, run.Window)
			case math.IsNaN(run.Capacity) || math.IsInf(run.Capacity, 0) || run.Capacity < 0:
				return fmt.Errorf("report: run %d of policy %q has the capacity %v: it must be a number of requests per second", i+1, p.Name, run.Capacity)
			}
		}
	}
	return nil
}

// seeds says which seeds the runs had, and what the ± beside a figure is.
func (r *Report) seeds() string {
	n := len(r.Policies[0].Runs)
	if n == 1 {
		return fmt.Sprintf("seed %d", r.Seed)
	}
	return fmt.Sprintf("seeds %d to %d; ± is the standard error of the mean of %d runs", r.Seed, r.Seed+uint64(n)-1, n)
}

// derivations are the arithmetic of each policy that is ours, as "name: line" pairs.
func (r *Report) derivations() (lines []derived) {
	for _, p := range r.Policies {
		for _, t := range p.Runs[0].Tiers {
			if t.Stats == nil {
				continue
			}
			name := p.Name
			if len(p.Runs[0].Tiers) > 1 {
				name += ", " + t.Name
			}
			line := t.Stats.Derivation.String()
			if len(t.Limits) > 0 && t.Limits[0].Deviation > 0 { // of the first instance, as the rest
				line += fmt.Sprintf("; the limit was %.1f on average, give or take %.1f; latest move: %s",
					t.Limits[0].Mean, t.Limits[0].Deviation, t.Stats.LimitWhy)
			}
			lines = append(lines, derived{name, line})
		}
	}
	return lines
}

type derived struct{ Name, Line string }
