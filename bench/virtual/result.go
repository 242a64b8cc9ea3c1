package virtual

import (
	"math"
	"slices"
)

// Figures are what a run showed, or the medians of several. The window is the time in
// which requests arrive, and it is drained: what arrived in it counts wherever it ended.
type Figures struct {
	// Ratios are to what could be answered: the smaller of what arrived and of what the
	// slots serve at the mean of the work, in the window.
	Ratio  float64 `json:"ratio"`             // answered within the deadline
	Quick  float64 `json:"ratio_400ms"`       // of those, within 400 ms
	Steady float64 `json:"ratio_second_half"` // Ratio, of what arrived in the second half of the window

	// Even is Ratio as it would be if the work of those that were served had been its mean:
	// the part of the slots' time in the window that was worked, or of the work that arrived
	// if that is less, times the share of those served that was in time. No contestant knows
	// how much work a request is before it is done, so in the long run the two are one
	// number; this one is free of the noise of what the work of some thousand requests adds
	// up to, and of what is served after the window.
	Even       float64 `json:"ratio_even"`
	EvenSteady float64 `json:"ratio_even_second_half"`

	// Of all that got a slot, late ones too, from arrival to end.
	P50  float64 `json:"p50_ms"`
	P99  float64 `json:"p99_ms"`
	P999 float64 `json:"p999_ms"`

	Refused float64 `json:"refused_share,omitempty"`  // of what arrived, what got no slot: a no, or its caller left
	No50    float64 `json:"refusal_p50_ms,omitempty"` // from arrival until whoever got no slot knew
	No99    float64 `json:"refusal_p99_ms,omitempty"`
	Late    float64 `json:"late_per_s,omitempty"` // got a slot and ended after the deadline

	Waiting float64 `json:"max_waiting,omitempty"` // as an arrival finds it, before the limiter and behind it
	Limit   float64 `json:"limit_mean,omitempty"`  // in the window; 0 where there is none that moves

	Phases []Phase `json:"phases,omitempty"` // where the slots change

	// Recovered is for scenes with a stall: how long after it the answers in time were
	// back for good; absent if they were not.
	Recovered *float64 `json:"recovered_s,omitempty"`
}

// A Phase is a stretch with so many slots. Its ratios count what was answered in it.
type Phase struct {
	Slots  int      `json:"slots"`
	Ratio  float64  `json:"ratio"`
	Quick  float64  `json:"ratio_400ms"`
	First  float64  `json:"ratio_first_10s"`    // Ratio, of the first 10 s
	Settle *float64 `json:"settle_s,omitempty"` // until 2 s had 95 % of what could be; absent: never
	Limit  float64  `json:"limit_mean,omitempty"`
}

// A Result is one run. Each request has one end: Offered = InTime + Late + Refused.
type Result struct {
	Scene      string `json:"scene"`
	Contestant string `json:"contestant"`
	Seed       uint64 `json:"seed"`

	Offered  int `json:"offered"`
	InTime   int `json:"in_time"`
	TooLate  int `json:"late"`
	Rejected int `json:"refused"`

	Figures
}

// A Row is the medians of the runs of a contestant in a scene.
type Row struct {
	Scene      string  `json:"scene"`
	Contestant string  `json:"contestant"`
	Low        float64 `json:"ratio_low"` // of the runs
	High       float64 `json:"ratio_high"`
	Figures
}

// row returns the medians of runs, one at least, of one contestant in one scene.
func row(runs []*Result) Row {
	first := runs[0]
	r := Row{Scene: first.Scene, Contestant: first.Contestant, Figures: Figures{Phases: slices.Clone(first.Phases)}}
	r.Low, r.High = math.Inf(1), math.Inf(-1)
	for _, one := range runs {
		r.Low, r.High = min(r.Low, one.Ratio), max(r.High, one.Ratio)
	}
	r.Low, r.High = round(r.Low), round(r.High)
	middle := func(number func(f *Figures) *float64) {
		v := make([]float64, len(runs))
		for i, one := range runs {
			v[i] = *number(&one.Figures)
		}
		*number(&r.Figures) = round(median(v))
	}
	for i := range first.numbers() {
		middle(func(f *Figures) *float64 { return f.numbers()[i] })
	}
	orNever := func(number func(f *Figures) **float64) {
		v := make([]float64, len(runs))
		for i, one := range runs {
			v[i] = math.Inf(1)
			if x := *number(&one.Figures); x != nil {
				v[i] = *x
			}
		}
		*number(&r.Figures) = nil
		if m := round(median(v)); !math.IsInf(m, 1) {
			*number(&r.Figures) = &m
		}
	}
	orNever(func(f *Figures) **float64 { return &f.Recovered })
	for i := range first.Phases {
		orNever(func(f *Figures) **float64 { return &f.Phases[i].Settle })
	}
	return r
}

// numbers are all of f that always have a value.
func (f *Figures) numbers() []*float64 {
	all := []*float64{
		&f.Ratio, &f.Quick, &f.Steady, &f.Even, &f.EvenSteady, &f.P50, &f.P99, &f.P999,
		&f.Refused, &f.No50, &f.No99, &f.Late, &f.Waiting, &f.Limit,
	}
	for i := range f.Phases {
		p := &f.Phases[i]
		all = append(all, &p.Ratio, &p.Quick, &p.First, &p.Limit)
	}
	return all
}

// median returns the middle of v, which it sorts; of an even number the lower of two.
func median(v []float64) float64 {
	slices.Sort(v)
	return v[(len(v)-1)/2]
}

// round keeps what a table can show: four digits after the point, of what is above 10 one.
func round(x float64) float64 {
	unit := 1e4
	switch {
	case math.IsInf(x, 0):
		return x
	case math.Abs(x) > 10:
		unit = 10
	}
	return math.Round(x*unit) / unit
}
