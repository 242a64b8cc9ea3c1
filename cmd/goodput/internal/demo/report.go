package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// A Report is what the runs showed.
type Report struct {
	Seed     uint64
	Load     float64
	Duration time.Duration
	Limit    int
	Capacity float64 // requests per second that the backend can serve
	Skipped  string  // why there is no direct run; "" if there is one
	Runs     []*Trial
}

// Void returns one sentence about why the report answers nothing, or "".
func (r *Report) Void() string {
	for _, run := range r.Runs {
		if why := run.Load.Void(); why != "" {
			return fmt.Sprintf("the run %q is void: %s", run.Name, why)
		}
	}
	if len(r.Runs) == 0 || r.Runs[len(r.Runs)-1].Name != protected {
		return "interrupted before its end"
	}
	return ""
}

// Text writes a table, one column a run.
func (r *Report) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	row := func(name string, cell func(*Trial) string) {
		fmt.Fprint(t, name, "\t")
		for _, run := range r.Runs {
			fmt.Fprint(t, cell(run), "\t")
		}
		fmt.Fprintln(t)
	}
	count := func(n func(*load.Result) int64) func(*Trial) string {
		return func(run *Trial) string {
			return fmt.Sprintf("%.1f/s", run.Load.PerSecond(n(run.Load)))
		}
	}
	quantile := func(h func(*load.Result) *load.Histogram, q float64) func(*Trial) string {
		return func(run *Trial) string { return millis(h(run.Load).Quantile(q)) }
	}
	latency := func(l *load.Result) *load.Histogram { return l.Latency }
	refusal := func(l *load.Result) *load.Histogram { return l.Refusal }
	late := func(l *load.Result) *load.Histogram { return l.Late }

	row("", func(run *Trial) string { return run.Name })
	row("offered", count(func(l *load.Result) int64 { return l.Offered }))
	row("completed", func(run *Trial) string { return fmt.Sprintf("%.1f/s", run.Load.PerSecond(run.Served)) })
	row("in time", count(func(l *load.Result) int64 { return l.InTime }))
	row("goodput", func(run *Trial) string { return fmt.Sprintf("%.1f %%", 100*run.Load.Ratio(r.Capacity)) })
	row("p50", quantile(latency, 0.50))
	row("p99", quantile(latency, 0.99))
	row("gave up", count(func(l *load.Result) int64 { return l.TimedOut }))
	row("refused", count(func(l *load.Result) int64 { return l.Refused }))
	for _, reason := range r.reasons() {
		row(reason, count(func(l *load.Result) int64 { return l.Reasons[reason] }))
	}
	row("refusal time p50", quantile(refusal, 0.50))
	row("refusal time p99", quantile(refusal, 0.99))
	row("peak queue", func(run *Trial) string { return fmt.Sprint(run.PeakQueue) })
	if slices.ContainsFunc(r.Runs, func(run *Trial) bool { return run.Load.Failed+run.Load.Errors+run.Load.Dropped > 0 }) {
		row("failed", count(func(l *load.Result) int64 { return l.Failed }))
		row("no answer", count(func(l *load.Result) int64 { return l.Errors }))
		row("not sent", count(func(l *load.Result) int64 { return l.Dropped }))
	}
	row("generator late p99", quantile(late, 0.99))
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, r.notes())
	return err
}

// notes are the lines under the table: what it takes to read and to repeat it.
func (r *Report) notes() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%.3gx of %.0f/s for %v, seed %d. Clients give up after %v and then count with that time.\n",
		r.Load, r.Capacity, r.Duration, r.Seed, deadline)
	fmt.Fprintf(&b, "goodput = in time / min(offered, capacity), over the arrivals of the window.\n")
	if r.Skipped != "" {
		fmt.Fprintln(&b, r.Skipped)
	}
	for _, run := range r.Runs {
		if run.Derivation != "" {
			fmt.Fprintf(&b, "queue: %s\n", run.Derivation)
		}
		if why := run.Load.Void(); why != "" {
			fmt.Fprintf(&b, "void: the run %q: %s\n", run.Name, why)
		}
	}
	return b.String()
}

// reasons returns the reasons of refusals of all runs, in the order of the
// alphabet.
func (r *Report) reasons() []string {
	words := map[string]bool{}
	for _, run := range r.Runs {
		for word := range run.Load.Reasons {
			words[word] = true
		}
	}
	return slices.Sorted(maps.Keys(words))
}

func millis(d time.Duration, ok bool) string {
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// The JSON of a report. Its version changes when a field changes its meaning or
// goes; new fields may come.
type (
	reportJSON struct {
		Version int       `json:"version"`
		Seed    uint64    `json:"seed"`
		Load    float64   `json:"load"`
		Window  float64   `json:"duration_seconds"`
		Limit   int       `json:"limit"`
		Skipped string    `json:"skipped,omitempty"`
		Void    string    `json:"void,omitempty"`
		Runs    []runJSON `json:"runs"`
	}
	runJSON struct {
		Name       string             `json:"name"`
		Offered    float64            `json:"offered_per_second"`
		Capacity   float64            `json:"capacity_per_second"`
		Completed  float64            `json:"completed_per_second"`
		InTime     float64            `json:"in_time_per_second"`
		Ratio      float64            `json:"goodput_ratio"`
		P50        *float64           `json:"p50_seconds"` // null: nothing got a slot
		P99        *float64           `json:"p99_seconds"`
		TimedOut   int64              `json:"timed_out"`
		Refused    int64              `json:"refused"`
		Rejected   map[string]int64   `json:"rejected"` // refusals by reason
		RefusalP50 *float64           `json:"refusal_p50_seconds"`
		RefusalP99 *float64           `json:"refusal_p99_seconds"`
		PeakQueue  int                `json:"peak_queue"`
		Failed     int64              `json:"failed"`
		Errors     int64              `json:"errors"`
		Dropped    int64              `json:"dropped"`
		Lateness   map[string]float64 `json:"generator_lateness_seconds"`
		Derivation string             `json:"derivation,omitempty"`
		Void       string             `json:"void,omitempty"`
	}
)

// JSON writes one line of JSON.
func (r *Report) JSON(w io.Writer) error {
	out := reportJSON{
		Version: 1, Seed: r.Seed, Load: r.Load, Window: r.Duration.Seconds(), Limit: r.Limit,
		Skipped: r.Skipped, Void: r.Void(), Runs: []runJSON{},
	}
	for _, run := range r.Runs {
		l := run.Load
		out.Runs = append(out.Runs, runJSON{
			Name:       run.Name,
			Offered:    l.PerSecond(l.Offered),
			Capacity:   r.Capacity,
			Completed:  l.PerSecond(run.Served),
			InTime:     l.PerSecond(l.InTime),
			Ratio:      l.Ratio(r.Capacity),
			P50:        seconds(l.Latency.Quantile(0.50)),
			P99:        seconds(l.Latency.Quantile(0.99)),
			TimedOut:   l.TimedOut,
			Refused:    l.Refused,
			Rejected:   l.Reasons,
			RefusalP50: seconds(l.Refusal.Quantile(0.50)),
			RefusalP99: seconds(l.Refusal.Quantile(0.99)),
			PeakQueue:  run.PeakQueue,
			Failed:     l.Failed,
			Errors:     l.Errors,
			Dropped:    l.Dropped,
			Lateness:   lateness(l.Late),
			Derivation: run.Derivation,
			Void:       l.Void(),
		})
	}
	return json.NewEncoder(w).Encode(out)
}

func lateness(h *load.Histogram) map[string]float64 {
	out := map[string]float64{}
	for name, q := range map[string]float64{"p50": 0.5, "p99": 0.99, "max": 1} {
		if d, ok := h.Quantile(q); ok {
			out[name] = d.Seconds()
		}
	}
	return out
}

func seconds(d time.Duration, ok bool) *float64 {
	if !ok {
		return nil
	}
	s := d.Seconds()
	return &s
}
