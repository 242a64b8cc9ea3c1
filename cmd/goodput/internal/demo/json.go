package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// The JSON of a report. Its version changes when a field goes or changes its
// meaning; new fields may come. Durations are seconds, null where there is none.
type (
	reportJSON struct {
		Version  int       `json:"version"`
		Seed     uint64    `json:"seed"`
		Load     float64   `json:"load"`
		Duration float64   `json:"duration_seconds"`
		Limit    *int      `json:"limit"` // null: a law finds it
		Law      string    `json:"law"`
		Warmup   float64   `json:"warmup_seconds"` // of a limit that is found, before the window; not counted
		Slots    int       `json:"backend_slots"`
		Service  float64   `json:"backend_mean_seconds"`
		Deadline float64   `json:"deadline_seconds"`
		Target   float64   `json:"objective_seconds"`
		Skipped  string    `json:"skipped,omitempty"`
		Void     string    `json:"void,omitempty"` // there is no answer: do not use the numbers
		Runs     []runJSON `json:"runs"`
	}
	runJSON struct {
		Name       string           `json:"name"`
		Offered    float64          `json:"offered_per_second"`
		Capacity   float64          `json:"capacity_per_second"`
		Completed  float64          `json:"completed_per_second"`
		InTime     float64          `json:"in_time_per_second"`
		Ratio      float64          `json:"goodput_ratio"`
		P50        *float64         `json:"p50_seconds"`
		P99        *float64         `json:"p99_seconds"`
		GaveUp     float64          `json:"gave_up_per_second"`
		Wasted     float64          `json:"served_in_vain_ratio"`
		Refused    float64          `json:"refused_per_second"`
		Rejected   map[string]int64 `json:"rejected"` // how many, by reason
		RefusalP50 *float64         `json:"refusal_p50_seconds"`
		RefusalP99 *float64         `json:"refusal_p99_seconds"`
		PeakQueue  int              `json:"peak_queue"`
		Failed     int64            `json:"failed"`
		Errors     int64            `json:"errors"`
		Dropped    int64            `json:"dropped"`
		Lateness   latenessJSON     `json:"generator_lateness"`
		Derivation string           `json:"derivation,omitempty"`
		Series     *seriesJSON      `json:"limit_series,omitempty"`         // without a limiter there is none
		Warmup     *float64         `json:"warmup_goodput_ratio,omitempty"` // not counted
		Void       string           `json:"void,omitempty"`
	}
	seriesJSON struct {
		Mean  float64  `json:"mean"`
		Min   int      `json:"min"`
		Max   int      `json:"max"`
		Last  int      `json:"last"`
		Why   string   `json:"why,omitempty"` // it last moved
		Moved *float64 `json:"moved_seconds"` // before the end; null: it never did
	}
	latenessJSON struct {
		P50 *float64 `json:"p50_seconds"`
		P99 *float64 `json:"p99_seconds"`
		Max *float64 `json:"max_seconds"`
	}
)

// JSON writes one line of JSON.
func (r *Report) JSON(w io.Writer) error {
	out := reportJSON{
		Version: 1, Seed: r.Seed, Load: r.Load, Duration: r.Duration.Seconds(), Law: fmt.Sprint(r.Limit), Warmup: r.Warmup.Seconds(),
		Slots: slots, Service: mean.Seconds(), Deadline: deadline.Seconds(), Target: objective.Seconds(),
		Skipped: r.Skipped, Void: r.Void(), Runs: []runJSON{},
	}
	if n, fixed := r.number(); fixed {
		out.Limit = &n
	}
	for _, t := range r.Runs {
		out.Runs = append(out.Runs, t.json(r.Capacity))
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // the derivation has an arrow
	return enc.Encode(out)
}

func (t *Trial) json(capacity float64) runJSON {
	l := t.Load
	out := runJSON{
		Name:       t.Name,
		Offered:    l.PerSecond(l.Offered),
		Capacity:   capacity,
		Completed:  l.PerSecond(l.Completed),
		InTime:     l.PerSecond(l.InTime),
		Ratio:      l.Ratio(capacity),
		P50:        seconds(l.Latency, 0.50),
		P99:        seconds(l.Latency, 0.99),
		GaveUp:     l.PerSecond(l.TimedOut),
		Wasted:     t.Wasted(),
		Refused:    l.PerSecond(l.Refused),
		Rejected:   l.Reasons,
		RefusalP50: seconds(l.Refusal, 0.50),
		RefusalP99: seconds(l.Refusal, 0.99),
		PeakQueue:  t.PeakQueue,
		Failed:     l.Failed,
		Errors:     l.Errors,
		Dropped:    l.Dropped,
		Lateness: latenessJSON{
			P50: seconds(l.Late, 0.50), P99: seconds(l.Late, 0.99), Max: seconds(l.Late, 1),
		},
		Derivation: t.Derivation,
		Series:     t.Limit.json(),
		Void:       l.Void(),
	}
	if t.Warmup != nil {
		ratio := t.Warmup.Ratio(capacity)
		out.Warmup = &ratio
	}
	return out
}

func (s *Series) json() *seriesJSON {
	if s.n == 0 {
		return nil
	}
	out := &seriesJSON{Mean: s.Mean(), Min: s.Min, Max: s.Max, Last: s.Last, Why: s.Why}
	if s.Why != "" {
		moved := s.Moved.Round(time.Microsecond).Seconds()
		out.Moved = &moved
	}
	return out
}

func seconds(h *load.Histogram, q float64) *float64 {
	d, ok := h.Quantile(q)
	if !ok {
		return nil
	}
	s := d.Round(time.Microsecond).Seconds()
	return &s
}
