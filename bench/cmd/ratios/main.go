// Command ratios reads the output of go test -bench with several passes and
// prints, for each benchmark, what each contestant costs and how that compares
// with two rivals.
//
//	go test -bench . -count 6 | go run ./cmd/ratios
//
// A ratio is the median over the passes of the ratio within a pass: neighbours in
// time share the machine's mood, so it holds still where nanoseconds do not.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/goodput/goodput/bench/figures/passes"
)

// rivals are the columns: the least that a limiter can cost, and the least that
// one with a queue and an estimate of service times did cost.
var rivals = []string{"xsync", "failsafe-adaptive"}

func main() {
	table, err := parse(os.Stdin)
	if err == nil {
		err = table.print(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
}

// A benchmark is one with a number of processors.
type benchmark struct {
	name  string
	procs int
}

// A table has the rows of each benchmark in the order of their appearance.
type table []*passes.Row

func parse(r io.Reader) (table, error) {
	rows, err := passes.Read(r)
	return rows, err
}

// benchmarks are those of t, in the order of their appearance.
func (t table) benchmarks() (all []benchmark) {
	for _, r := range t {
		if b := (benchmark{r.Benchmark, r.Procs}); !slices.Contains(all, b) {
			all = append(all, b)
		}
	}
	return all
}

// print writes one block for each benchmark.
func (t table) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, b := range t.benchmarks() {
		fmt.Fprintf(tw, "%-30s\tns/op\tspread\tB/op\tallocs/op\t", fmt.Sprintf("%s, GOMAXPROCS %d", b.name, b.procs))
		for _, rival := range rivals {
			fmt.Fprintf(tw, "x %s\t", rival)
		}
		fmt.Fprintln(tw)
		for _, r := range t {
			if (benchmark{r.Benchmark, r.Procs}) != b {
				continue
			}
			m := passes.Median(r.Nanos)
			spread := 100 * (slices.Max(r.Nanos) - slices.Min(r.Nanos)) / m
			fmt.Fprintf(tw, "%-30s\t%.4g\t%.0f %%\t%.0f\t%.0f\t", r.Contestant, m, spread, r.Bytes, r.Allocs)
			for _, rival := range rivals {
				fmt.Fprintf(tw, "%s\t", t.ratio(r, rival))
			}
			fmt.Fprintln(tw)
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

// ratio compares r with the rival in the same benchmark, or returns "-".
func (t table) ratio(r *passes.Row, rival string) string {
	ratios := r.Over(passes.Find(t, r.Benchmark, r.Procs, rival))
	if len(ratios) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", passes.Median(ratios))
}
