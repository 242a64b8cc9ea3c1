package demo

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
	"github.com/goodput/goodput/limit"
)

// A Report is what the runs showed.
type Report struct {
	Seed     uint64
	Load     float64
	Duration time.Duration
	Limit    limit.Law
	Warmup   time.Duration // of the limiter, before its window; 0: none
	Capacity float64       // requests per second that the backend can serve
	Skipped  string        // why there is no direct run; "" if there is one
	Runs     []*Trial
}

// Void returns one sentence about why the report answers nothing, with each run that does not, or "".
func (r *Report) Void() string {
	var all []string
	for _, t := range r.Runs {
		if why := t.Load.Void(); why != "" {
			all = append(all, fmt.Sprintf("the run %q is void: %s", t.Name, why))
		}
	}
	if len(all) > 0 {
		return strings.Join(all, "; ")
	}
	if len(r.Runs) == 0 || r.Runs[len(r.Runs)-1].Name != protected {
		return "interrupted before its end"
	}
	return ""
}

// number returns the limit that somebody knows, or false if a law finds it.
func (r *Report) number() (int, bool) {
	n, ok := r.Limit.(limit.Fixed)
	return int(n), ok
}

// limit says what the limit is, or how it comes to be.
func (r *Report) limit() string {
	if n, ok := r.number(); ok || r.Limit == nil {
		return strconv.Itoa(n)
	}
	from, _ := r.Limit.Start() // validated
	return fmt.Sprintf("%v, from %d, after a warm-up of %v", r.Limit, from, r.Warmup)
}

// A row of the table says one thing about each run.
type row struct {
	name string
	cell func(*Trial) string
}

// Text writes a table, one column a run.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	for _, row := range r.rows() {
		fmt.Fprintf(&b, "%-19s", row.name)
		for _, t := range r.Runs {
			fmt.Fprintf(&b, "%14s", row.cell(t))
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	r.notes(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) rows() []row {
	rows := []row{
		{"", func(t *Trial) string { return t.Name }},
		{"offered", rate(func(l *load.Result) int64 { return l.Offered })},
		{"completed", rate(func(l *load.Result) int64 { return l.Completed })},
		{"in time", rate(func(l *load.Result) int64 { return l.InTime })},
		{"goodput %", func(t *Trial) string { return percent(t.Load.Ratio(r.Capacity)) }},
		{"p50", func(t *Trial) string { return millis(t.Load.Latency.Quantile(0.50)) }},
		{"p99", func(t *Trial) string { return millis(t.Load.Latency.Quantile(0.99)) }},
		{"gave up", rate(func(l *load.Result) int64 { return l.TimedOut })},
		{"work in vain", func(t *Trial) string { return percent(t.Wasted()) }},
		{"refused", rate(func(l *load.Result) int64 { return l.Refused })},
	}
	for _, reason := range r.reasons() {
		rows = append(rows, row{"  " + reason, rate(func(l *load.Result) int64 { return l.Reasons[reason] })})
	}
	rows = append(rows, []row{
		{"refusal time p50", func(t *Trial) string { return millis(t.Load.Refusal.Quantile(0.50)) }},
		{"refusal time p99", func(t *Trial) string { return millis(t.Load.Refusal.Quantile(0.99)) }},
		{"peak queue", func(t *Trial) string { return fmt.Sprint(t.PeakQueue) }},
	}...)
	if _, fixed := r.number(); !fixed {
		rows = append(rows, row{"limit, mean", func(t *Trial) string { return t.Limit.text() }})
	}
	if slices.ContainsFunc(r.Runs, func(t *Trial) bool { return t.Load.Failed+t.Load.Errors+t.Load.Dropped > 0 }) {
		rows = append(rows, []row{
			{"failed", rate(func(l *load.Result) int64 { return l.Failed })},
			{"no answer", rate(func(l *load.Result) int64 { return l.Errors })},
			{"not sent", rate(func(l *load.Result) int64 { return l.Dropped })},
		}...)
	}
	return append(rows, row{"generator late p99", func(t *Trial) string { return millis(t.Load.Late.Quantile(0.99)) }})
}

// notes are the lines under the table: what it takes to read and to repeat it,
// and what it shows.
func (r *Report) notes(w io.Writer) {
	fmt.Fprintf(w, "%.3gx of %.0f/s for %v, seed %d. Clients give up after %v; their latency is then that.\n",
		r.Load, r.Capacity, r.Duration, r.Seed, deadline)
	fmt.Fprintln(w, "goodput % = in time / min(offered, capacity), over the arrivals of the window.")
	fmt.Fprintln(w, "p50, p99: of all that were not refused. Work in vain: of what the backend did.")
	if r.Skipped != "" {
		fmt.Fprintf(w, "%s.\n", r.Skipped)
	}
	for _, t := range r.Runs {
		if t.Warmup != nil {
			fmt.Fprintf(w, "Before that the limiter looked for its limit, for %v under the same load: %s of what can be\nserved was in time, and none of it is counted.\n",
				r.Warmup, percent(t.Warmup.Ratio(r.Capacity)))
			fmt.Fprintf(w, "The limit, %v: it was %d to %d in the window, and %d at its end%s.\n",
				r.Limit, t.Limit.Min, t.Limit.Max, t.Limit.Last, t.Limit.why())
		}
	}
	for _, t := range r.Runs {
		if t.Derivation != "" {
			fmt.Fprintf(w, "The queue, deepest while the service was not yet measured:\n  %s\n",
				strings.ReplaceAll(strings.ReplaceAll(t.Derivation, "; ", ";\n  "), " (rule", "\n  (rule"))
		}
	}
	if why := r.Void(); why != "" {
		fmt.Fprintf(w, "Not a clean measurement, void: %s.\nClose other programs, or try a smaller --load; the table shows what happened all the same.\n", why)
		return
	}
	for _, t := range r.Runs {
		how := "Directly"
		if t.Name == protected {
			how = "Through goodput"
		}
		p99, ok := t.Load.Latency.Quantile(0.99)
		fmt.Fprintf(w, "%s %.0f of %.0f/s that can be served were answered in time, p99 %s (objective %v).\n",
			how, t.Load.PerSecond(t.Load.InTime), min(r.Capacity, t.Load.PerSecond(t.Load.Offered)), millis(p99, ok), objective)
	}
}

// reasons returns the reasons of refusals of all runs, in alphabetical order.
func (r *Report) reasons() []string {
	words := map[string]bool{}
	for _, t := range r.Runs {
		for word := range t.Load.Reasons {
			words[word] = true
		}
	}
	return slices.Sorted(maps.Keys(words))
}

func rate(count func(*load.Result) int64) func(*Trial) string {
	return func(t *Trial) string { return fmt.Sprintf("%.1f/s", t.Load.PerSecond(count(t.Load))) }
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func millis(d time.Duration, ok bool) string {
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
