// Package passes reads what go test -bench prints in several passes, each of which ran
// every contestant once.
//
// A ratio is taken within a pass: neighbours in time share the machine's mood, so it
// holds still where nanoseconds do not.
package passes

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A Row is one contestant in one benchmark with one number of processors.
type Row struct {
	Benchmark  string    `json:"benchmark"`
	Procs      int       `json:"procs"`
	Contestant string    `json:"contestant"`
	Nanos      []float64 `json:"ns_per_op"` // of each pass
	Bytes      float64   `json:"bytes_per_op"`
	Allocs     float64   `json:"allocs_per_op"` // of the worst pass, as Bytes

	Others map[string][]float64 `json:"others,omitempty"` // by unit: what the benchmark itself reports
}

// Read takes lines of the form
//
//	BenchmarkDo/xsync-2   100000   15.97 ns/op   0 B/op   0 allocs/op
//
// and skips whatever is no benchmark. Rows come in the order of their appearance. A failed
// run is an error: its numbers are of something else.
func Read(r io.Reader) ([]*Row, error) {
	var rows []*Row
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
		row := Find(rows, name, procs, contestant)
		if row == nil {
			row = &Row{Benchmark: name, Procs: procs, Contestant: contestant}
			rows = append(rows, row)
		}
		if err := row.add(f[2:]); err != nil {
			return nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
	}
	if len(rows) == 0 && lines.Err() == nil {
		return nil, fmt.Errorf("no benchmark in the input")
	}
	return rows, lines.Err()
}

// add adds the values of a line, each followed by its unit.
func (r *Row) add(f []string) error {
	for i := 0; i+1 < len(f); i += 2 {
		v, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			return err
		}
		switch f[i+1] {
		case "ns/op":
			r.Nanos = append(r.Nanos, v)
		case "B/op":
			r.Bytes = max(r.Bytes, v)
		case "allocs/op":
			r.Allocs = max(r.Allocs, v)
		default:
			if r.Others == nil {
				r.Others = map[string][]float64{}
			}
			r.Others[f[i+1]] = append(r.Others[f[i+1]], v)
		}
	}
	return nil
}

// Find returns the row of a contestant, nil if there is none.
func Find(rows []*Row, benchmark string, procs int, contestant string) *Row {
	for _, r := range rows {
		if r.Benchmark == benchmark && r.Procs == procs && r.Contestant == contestant {
			return r
		}
	}
	return nil
}

// Over returns the ratio of r to o in each pass, nil if they have not the same passes.
func (r *Row) Over(o *Row) []float64 {
	if r == nil || o == nil || len(r.Nanos) != len(o.Nanos) {
		return nil
	}
	ratios := make([]float64, len(r.Nanos))
	for i := range ratios {
		ratios[i] = r.Nanos[i] / o.Nanos[i]
	}
	return ratios
}

// Median of a list that is not empty.
func Median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	mid := len(s) / 2
	if len(s)%2 == 1 {
		return s[mid]
	}
	return (s[mid-1] + s[mid]) / 2
}
