package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/goodput/goodput/bench/proxies"
)

// report writes a table of each part, and what the numbers to reach came to.
func report(w io.Writer, r *proxies.Report) error {
	fmt.Fprintf(w, "%d processors, %s", r.Processors, r.Go)
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		fmt.Fprintf(w, ", %s %s", name, r.Versions[name])
	}
	fmt.Fprintln(w)
	for _, part := range []func(io.Writer, *proxies.Report) error{costs, overloads, memories, numbers} {
		if err := part(w, r); err != nil {
			return err
		}
	}
	return nil
}

func table(w io.Writer, head ...string) *tabwriter.Writer {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "\n"+strings.Join(head, "\t")+"\t")
	return tw
}

// costs has the time of a request in microseconds of one processor, which is the requests
// per processor second upside down, and both beside those of the bare proxy.
func costs(w io.Writer, r *proxies.Report) error {
	if len(r.Costs) == 0 {
		return nil
	}
	tw := table(w, "protocol", "contestant", "what", "us of a processor", "requests per processor s", "of bare", "smallest", "largest", "requests/s", "passes")
	for _, c := range r.Costs {
		per := proxies.SpreadOf(c.PerCPU)
		fmt.Fprintf(tw, "%s\t%s\t%s\t%.1f\t%.0f\t", c.Protocol, c.Contestant, c.What, 1e6/per.Median, per.Median)
		if of := r.OfBare(c); of.Median > 0 {
			fmt.Fprintf(tw, "%.3f\t%.3f\t%.3f\t", of.Median, of.Smallest, of.Largest)
		} else {
			fmt.Fprint(tw, "-\t-\t-\t")
		}
		fmt.Fprintf(tw, "%.0f\t%d\t\n", proxies.SpreadOf(c.Rate).Median, len(c.PerCPU))
	}
	return tw.Flush()
}

// overloads has the median over the rounds of each figure.
func overloads(w io.Writer, r *proxies.Report) error {
	if len(r.Overloads) == 0 {
		return nil
	}
	tw := table(w, "load", "contestant", "offered/s", "capacity/s", "ratio 400 ms", "smallest", "largest", "ratio 2 s", "p50 ms", "p99 ms", "refused %", "told after ms", "late %", "proxy cpu us", "speed", "lag p99 ms", "rounds")
	for _, load := range r.Loads() {
		for _, name := range r.Contestants() {
			runs := r.Runs(name, load)
			if len(runs) == 0 {
				fmt.Fprintf(tw, "%gx\t%s\tvoid%s\t\n", load, name, strings.Repeat("\t-", 14))
				continue
			}
			of := func(figure func(*proxies.Overload) float64) proxies.Spread {
				var v []float64
				for _, o := range runs {
					v = append(v, figure(o))
				}
				return proxies.SpreadOf(v)
			}
			median := func(figure func(*proxies.Overload) float64) float64 { return of(figure).Median }
			quick := of(func(o *proxies.Overload) float64 { return o.Quick })
			fmt.Fprintf(tw, "%gx\t%s\t%.0f\t%.0f\t%.3f\t%.3f\t%.3f\t%.3f\t%.0f\t%.0f\t%.1f\t%.1f\t%.1f\t%.0f\t%.3f\t%.1f\t%d\t\n",
				load, name, runs[0].Rate, runs[0].Capacity, quick.Median, quick.Smallest, quick.Largest,
				median(func(o *proxies.Overload) float64 { return o.Ratio }),
				median(func(o *proxies.Overload) float64 { return o.P50 }), median(func(o *proxies.Overload) float64 { return o.P99 }),
				median(func(o *proxies.Overload) float64 { return 100 * o.Refused }), median(func(o *proxies.Overload) float64 { return o.No }),
				median(func(o *proxies.Overload) float64 { return 100 * o.Late }),
				median(func(o *proxies.Overload) float64 { return 1e6 * o.CPU / float64(max(o.Offered, 1)) }),
				median(func(o *proxies.Overload) float64 { return o.Speed }), median(func(o *proxies.Overload) float64 { return o.Lag }), len(runs))
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, n := range remarks(r) {
		fmt.Fprintln(w, n)
	}
	return nil
}

// remarks are what each contestant does about an overload, and why a run is void.
func remarks(r *proxies.Report) (notes []string) {
	said := map[string]bool{}
	for _, o := range r.Overloads {
		if o.Admits != "" && !said[o.Contestant] {
			said[o.Contestant] = true
			notes = append(notes, o.Contestant+": "+o.Admits)
		}
	}
	for _, o := range r.Overloads {
		if o.Void != "" {
			notes = append(notes, fmt.Sprintf("void: %s, %s, round %d: %s", o.Plan, o.Contestant, o.Round+1, o.Void))
		}
	}
	return notes
}

func memories(w io.Writer, r *proxies.Report) error {
	if len(r.Memories) == 0 {
		return nil
	}
	tw := table(w, "protocol", "contestant", "waiting", "body bytes", "bytes of each beside it")
	for _, m := range r.Memories {
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%.0f\t\n", m.Protocol, m.Contestant, m.Waiting, m.Body, m.Each)
	}
	return tw.Flush()
}

// numbers has a line for each number to reach: what it came to, with the spread of the
// passes, and the bound.
func numbers(w io.Writer, r *proxies.Report) error {
	if len(r.Numbers) == 0 {
		return nil
	}
	tw := table(w, "number", "median", "smallest", "largest", "to reach", "verdict", "beside")
	for _, n := range r.Numbers {
		sign, verdict := "<=", "reached"
		if n.Least {
			sign = ">="
		}
		switch {
		case n.Void:
			verdict = "void"
		case n.OutOfReach():
			verdict = "out of reach"
		case n.Missed():
			verdict = "missed"
		}
		fmt.Fprintf(tw, "%s\t%.5g\t%.5g\t%.5g\t%s %.5g\t%s\t%s\t\n", n.What, n.Median, n.Smallest, n.Largest, sign, n.Bound, verdict, n.Note)
	}
	return tw.Flush()
}
