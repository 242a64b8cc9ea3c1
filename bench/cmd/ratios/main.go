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
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
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

// A row is one contestant in one benchmark, a number for each pass.
type row struct {
	contestant    string
	nanos         []float64
	bytes, allocs float64
}

// A table has the rows of each benchmark in the order of their appearance.
type table struct {
	order []benchmark
	rows  map[benchmark][]*row
}

// row returns the row of a contestant, a new one if need be.
func (t *table) row(b benchmark, contestant string) *row {
	if t.rows[b] == nil {
		t.order = append(t.order, b)
	}
	for _, r := range t.rows[b] {
		if r.contestant == contestant {
			return r
		}
	}
	r := &row{contestant: contestant}
	t.rows[b] = append(t.rows[b], r)
	return r
}

// parse takes lines of the form
//
//	BenchmarkDo/xsync-2   100000   15.97 ns/op   0 B/op   0 allocs/op
//
// and skips whatever is no benchmark. A failed run is an error: its numbers are
// of something else.
func parse(r io.Reader) (*table, error) {
	t := &table{rows: map[benchmark][]*row{}}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if strings.HasPrefix(lines.Text(), "FAIL") || strings.HasPrefix(lines.Text(), "--- FAIL") {
			return nil, fmt.Errorf("the benchmarks failed: %s", lines.Text())
		}
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		full := strings.TrimPrefix(f[0], "Benchmark")
		procs := 1
		if i := strings.LastIndexByte(full, '-'); i >= 0 {
			if n, err := strconv.Atoi(full[i+1:]); err == nil {
				full, procs = full[:i], n
			}
		}
		name, contestant, ok := strings.Cut(full, "/")
		if !ok {
			continue
		}
		row := t.row(benchmark{name, procs}, contestant)
		for i := 2; i+1 < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", lines.Text(), err)
			}
			switch f[i+1] {
			case "ns/op":
				row.nanos = append(row.nanos, v)
			case "B/op":
				row.bytes = max(row.bytes, v)
			case "allocs/op":
				row.allocs = max(row.allocs, v)
			}
		}
	}
	if len(t.order) == 0 && lines.Err() == nil {
		return nil, fmt.Errorf("no benchmark in the input")
	}
	return t, lines.Err()
}

// print writes one block for each benchmark.
func (t *table) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, b := range t.order {
		fmt.Fprintf(tw, "%-30s\tns/op\tspread\tB/op\tallocs/op\t", fmt.Sprintf("%s, GOMAXPROCS %d", b.name, b.procs))
		for _, rival := range rivals {
			fmt.Fprintf(tw, "x %s\t", rival)
		}
		fmt.Fprintln(tw)
		for _, r := range t.rows[b] {
			m := median(r.nanos)
			spread := 100 * (slices.Max(r.nanos) - slices.Min(r.nanos)) / m
			fmt.Fprintf(tw, "%-30s\t%.4g\t%.0f %%\t%.0f\t%.0f\t", r.contestant, m, spread, r.bytes, r.allocs)
			for _, rival := range rivals {
				fmt.Fprintf(tw, "%s\t", t.ratio(b, r, rival))
			}
			fmt.Fprintln(tw)
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

// ratio compares r with the rival in the same benchmark, or returns "-".
func (t *table) ratio(b benchmark, r *row, rival string) string {
	for _, o := range t.rows[b] {
		if o.contestant != rival || len(o.nanos) != len(r.nanos) {
			continue
		}
		ratios := make([]float64, len(r.nanos))
		for i := range ratios {
			ratios[i] = r.nanos[i] / o.nanos[i]
		}
		return fmt.Sprintf("%.2f", median(ratios))
	}
	return "-"
}

// median of a list that is not empty.
func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	mid := len(s) / 2
	if len(s)%2 == 1 {
		return s[mid]
	}
	return (s[mid-1] + s[mid]) / 2
}
