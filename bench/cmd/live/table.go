package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/goodput/goodput/bench/live"
)

// columns of the table of loads.
const columns = 16

// report writes a table of the loads, why a run is void, and a table of the steps.
func report(w io.Writer, results []*live.Result) error {
	var voids []string
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "load\tcontestant\tratio 2 s\tmodel\tratio 400 ms\tmodel\tp50 ms\tp99 ms\trefused %\tlate %\tlimit mean\tsd\t95 % after s\tspeed\tlag p99 ms\tcpus\t")
	for _, r := range results {
		fmt.Fprintf(tw, "%s\t%s\t", r.Plan, r.Contestant)
		if r.Void != "" {
			fmt.Fprintln(tw, "void"+strings.Repeat("\t-", columns-3)+"\t")
			voids = append(voids, fmt.Sprintf("void: %s, %s: %s", r.Plan, r.Contestant, r.Void))
			continue
		}
		fmt.Fprintf(tw, "%.3f\t%s\t%.3f\t%s\t%.0f\t%.0f\t%.2f\t%.2f\t%s\t%s\t%s\t%.3f\t%.1f\t%.2f\t\n",
			r.Ratio, model(r.Model), r.Quick, model(r.Quiet), r.P50, r.P99, 100*r.Refused, 100*r.Late,
			number(r.Limit), number(r.Spread), settle(r), r.Speed, r.Lag, r.CPU)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, v := range voids {
		fmt.Fprintln(w, v)
	}
	if err := printSteps(w, results); err != nil {
		return err
	}
	if err := printStalls(w, results); err != nil {
		return err
	}
	return printModel(w, results)
}

// printStalls writes a line for each plan with a phase without slots.
func printStalls(w io.Writer, results []*live.Result) error {
	for _, r := range results {
		if r.Void != "" || !slices.ContainsFunc(r.Phases, func(p live.PhaseResult) bool { return p.Slots == 0 }) {
			continue
		}
		after := "never within the run"
		if r.Recovered != nil {
			after = fmt.Sprintf("after %.1f s", *r.Recovered)
		}
		if _, err := fmt.Fprintf(w, "%s, %s: every second is answered again, for good, %s\n", r.Plan, r.Contestant, after); err != nil {
			return err
		}
	}
	return nil
}

// printModel writes, for each contestant that was modelled, how far its runs are from
// what the model of the same requests made of them.
func printModel(w io.Writer, results []*live.Result) error {
	var names []string
	farthest := map[string]*live.Result{}
	for _, r := range results {
		if r.Model == nil || r.Void != "" {
			continue
		}
		last := farthest[r.Contestant]
		if last == nil {
			names = append(names, r.Contestant)
		}
		if last == nil || off(r) > off(last) {
			farthest[r.Contestant] = r
		}
	}
	if len(names) > 0 {
		fmt.Fprintln(w)
	}
	for _, name := range names {
		r := farthest[name]
		if _, err := fmt.Fprintf(w, "%s and its model differ by %.1f points of the ratio at 2 s, at the most: %s\n", name, 100*off(r), r.Plan); err != nil {
			return err
		}
	}
	return nil
}

// off is how far a run is from its model.
func off(r *live.Result) float64 { return math.Abs(r.Ratio - r.Model.Mean) }

// printSteps writes a line for each phase of the plans that have several.
func printSteps(w io.Writer, results []*live.Result) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := false
	for _, r := range results {
		if len(r.Phases) < 2 || r.Void != "" {
			continue
		}
		if !head {
			fmt.Fprintln(tw, "\ncontestant\tslots\tratio 2 s\tmodel\tratio 400 ms\tfirst 10 s (2 s)\t95 % after s\tlimit mean\twaiting at the service\t")
			head = true
		}
		for _, p := range r.Phases {
			limit := "-"
			if r.Limit != nil {
				limit = fmt.Sprintf("%.1f", p.Limit)
			}
			fmt.Fprintf(tw, "%s\t%d\t%.3f\t%s\t%.3f\t%.3f\t%s\t%s\t%.1f\t\n",
				r.Contestant, p.Slots, p.Ratio, model(p.Model), p.Quick, p.First, seconds(p.Settle), limit, p.Waiting)
		}
	}
	return tw.Flush()
}

// settle formats how long a load took to be answered: "never", or "-" of a plan with
// phases, which have a line each.
func settle(r *live.Result) string {
	if len(r.Phases) != 1 {
		return "-"
	}
	return seconds(r.Phases[0].Settle)
}

// seconds formats when something was so first.
func seconds(v *float64) string {
	if v == nil {
		return "never"
	}
	return fmt.Sprintf("%.1f", *v)
}

// number formats what may not be there.
func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *v)
}

// model formats what the model played.
func model(e *live.Estimate) string {
	if e == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f±%.3f", e.Mean, e.Deviation)
}
