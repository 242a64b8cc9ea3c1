package report

import (
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/hist"
	"github.com/goodput/goodput/internal/sim"
)

// JSONVersion is the "version" of the document. A key that is added leaves it as it
// is; one that is renamed, removed or means something else raises it.
const JSONVersion = 1

// JSON writes r as one document on one line. Names of keys end in their unit: durations are
// seconds, shares are 0 to 1, sizes are bytes. What there is no number for, as the
// p99 of nothing, is null; an array that is empty is [].
func (r *Report) JSON(w io.Writer) error {
	if err := r.check(); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(r.document())
}

// A number is null where it is none.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(f)
}

func secs(d time.Duration) number { return number(d.Seconds()) }

type document struct {
	Version  int        `json:"version"`
	Program  string     `json:"program"`
	Command  string     `json:"command"`
	Scenario string     `json:"scenario"`
	About    string     `json:"about"`
	Rule     string     `json:"rule_of_thumb"`
	Measured string     `json:"measured"`
	Why      string     `json:"why"`
	Seed     uint64     `json:"seed"`
	Runs     int        `json:"runs"` // with the seeds seed, seed+1, ...
	Policies []policy   `json:"policies"`
	Ceilings ceilings   `json:"ceilings"`
	Criteria []criteria `json:"criteria"`
	Notes    []string   `json:"notes"`
}

// A policy has its figures over all runs, each run, and the series of the first.
type policy struct {
	Name    string   `json:"name"`
	Figures figures  `json:"figures"`
	Classes []class  `json:"classes"` // empty if there is but one
	Tenants []tenant `json:"tenants"` // empty if there is but one
	Runs    []run    `json:"runs"`
	Series  series   `json:"series"`
}

// A class has its figures over all runs. Its goodput_ratio is the share of its own
// requests; it has no capacity and no queue of its own.
type class struct {
	Name    string  `json:"name"`
	Figures figures `json:"figures"`
}

// A tenant has its figures over all runs; rates are units of cost.
type tenant struct {
	Name     string  `json:"name"`
	Asked    *figure `json:"asked_per_second"`
	Entitled *figure `json:"entitled_per_second"`
	Granted  *figure `json:"granted_per_second"`
	Ratio    *figure `json:"goodput_ratio"`
	Refused  *figure `json:"refused_ratio"`
	P99      *figure `json:"latency_p99_seconds"`
}

type figures struct {
	Offered   *figure `json:"offered_per_second"`
	Capacity  *figure `json:"capacity_per_second"`
	Goodput   *figure `json:"goodput_per_second"`
	Ratio     *figure `json:"goodput_ratio"`
	Refused   *figure `json:"refused_ratio"`
	Late      *figure `json:"late_ratio"`
	Failed    *figure `json:"failed_ratio"`
	Kept      *figure `json:"kept_ratio"` // told no by their clients, without a call
	Attempts  *figure `json:"attempts_per_request"`
	Wasted    *figure `json:"wasted_ratio"`
	P50       *figure `json:"latency_p50_seconds"`
	P99       *figure `json:"latency_p99_seconds"`
	GoodP50   *figure `json:"good_p50_seconds"`
	Told      *figure `json:"told_p50_seconds"`
	PeakQueue *figure `json:"peak_queue"`
}

type figure struct {
	Mean  float64  `json:"mean"`
	Error *float64 `json:"standard_error"` // null with one run
	Runs  int      `json:"runs"`
}

type run struct {
	Seed     uint64    `json:"seed"`
	Window   number    `json:"window_seconds"`
	Ended    number    `json:"ended_seconds"`
	Capacity number    `json:"capacity_per_second"`
	Ratio    number    `json:"goodput_ratio"`
	Total    tally     `json:"total"`
	Classes  []tally   `json:"classes"`
	Tenants  []account `json:"tenants"`
	Tiers    []tier    `json:"tiers"`
	Groups   []group   `json:"groups"`
}

// A group is what tiers that share a resource did with it; units are 0 if they did not.
type group struct {
	Name      string `json:"name"`
	Units     int    `json:"units"`
	PeakInUse int    `json:"peak_units"`
	Used      number `json:"used_unit_seconds"`
}

// An account is what became of one tenant in a run.
type account struct {
	tally
	Entitled number `json:"entitled_units"`
}

type tally struct {
	Name     string            `json:"name"`
	Requests uint64            `json:"requests"`
	InTime   uint64            `json:"in_time"`
	Late     uint64            `json:"late"`
	Refused  uint64            `json:"refused"`
	Failed   uint64            `json:"failed"`
	Kept     uint64            `json:"kept"`
	Asked    uint64            `json:"asked_units"` // of cost, as are those granted
	Granted  uint64            `json:"granted_units"`
	Attempts uint64            `json:"attempts"`
	Served   uint64            `json:"served"`
	Reasons  map[string]uint64 `json:"reasons"` // every reason there is, those that did not occur too
	Wasted   number            `json:"wasted_seconds"`
	Work     number            `json:"work_seconds"`
	Latency  distribution      `json:"latency"`
	Good     distribution      `json:"good"`
	Wait     distribution      `json:"wait"`
	Told     distribution      `json:"told"`
	Parts    number            `json:"parts"`
	Cohorts  []cohort          `json:"cohorts"`      // by when they are shed, the last first; empty without users
	Steady   number            `json:"steady_share"` // of requests, of users who are served almost always or almost never; null without users
}

type cohort struct {
	Requests uint64 `json:"requests"`
	InTime   uint64 `json:"in_time"`
}

// A distribution has the buckets that are not empty: Counts[i] durations are at most
// Bounds[i], and more than that bound of the histogram before it. The last bucket
// has no bound: null.
type distribution struct {
	Count  uint64   `json:"count"`
	Mean   number   `json:"mean_seconds"`
	P50    number   `json:"p50_seconds"`
	P90    number   `json:"p90_seconds"`
	P95    number   `json:"p95_seconds"`
	P99    number   `json:"p99_seconds"`
	P999   number   `json:"p999_seconds"`
	Bounds []number `json:"bounds_seconds"`
	Counts []uint64 `json:"counts"`
}

type tier struct {
	Name       string `json:"name"`
	PeakQueue  int    `json:"peak_queue"`
	PeakBytes  int64  `json:"peak_bytes"`
	PeakInUse  int    `json:"peak_running"`
	PeakAge    number `json:"peak_age_seconds"`
	PeakBehind int    `json:"peak_behind"`

	// At the resource, worked on or waiting there, and the limits of the instances, one each.
	InFlight     number    `json:"in_flight_mean"`
	PeakInFlight int       `json:"in_flight_peak"`
	Limits       []average `json:"limits"`

	Restarts int      `json:"restarts"`
	Arrivals uint64   `json:"arrivals"`
	Again    uint64   `json:"sent_again"` // of the arrivals
	Kept     uint64   `json:"kept"`       // not among them
	Served   uint64   `json:"served"`
	Refused  uint64   `json:"refused"`
	Capacity number   `json:"capacity_per_second"`
	Limiter  *limiter `json:"limiter"` // null for a baseline
}

// An average is that of a limit over the window.
type average struct {
	Mean      number `json:"mean"`
	Deviation number `json:"deviation"`
}

type limiter struct {
	Limit        int        `json:"limit"`
	Depth        int        `json:"depth"`
	Order        string     `json:"order"`
	Overload     bool       `json:"overload"`
	Load         number     `json:"load"`
	LimitChanges uint64     `json:"limit_changes"`
	Derivation   derivation `json:"derivation"`
}

type derivation struct {
	Text        string `json:"text"`
	Limit       int    `json:"limit"`
	Mean        number `json:"mean_seconds"`
	Rate        number `json:"rate_per_second"`
	Allowance   quota  `json:"allowance"` // 0 without one
	Objective   number `json:"objective_seconds"`
	Percentile  number `json:"percentile"`
	Service     number `json:"service_seconds"`
	Depth       int    `json:"depth"`
	Rule        int    `json:"rule_depth"`
	RuleLatency number `json:"rule_latency_seconds"`
	Reachable   bool   `json:"reachable"`
	Fixed       bool   `json:"fixed"`
	Tight       bool   `json:"tight"`   // fewer than 4 requests at once
	Chances     bool   `json:"chances"` // the service leaves the objective nothing to wait, but most of it fits
	Samples     int    `json:"samples"`
	Prior       number `json:"prior_seconds"`
	Declared    number `json:"declared_seconds"`
	Drifted     bool   `json:"drifted"`
	Growth      number `json:"search_growth"`         // how many times the limit is counted on while it is searched; 0: it is not
	Sizes       string `json:"sizes"`                 // what they say about service times: scales, trusted or ignored
	Explained   number `json:"sizes_explained_ratio"` // of the variance of service times
	SizeBase    number `json:"size_base_seconds"`     // where trusted: what each takes whatever its size
	SizeEach    number `json:"size_each_seconds"`     // and for each unit
}

// A quota is a rate with a burst, both in units of cost.
type quota struct {
	Rate  number `json:"rate_per_second"`
	Burst number `json:"burst_units"`
}

// A series has one element per bin in each array. Counts are of the bin, the rest is
// so at its end; -1 is no bound. It is about the first tier. Waiting, running and
// behind are requests, limit and depth are units of cost: where requests cost two,
// 30 of them take a limit of 60.
type series struct {
	End      []number `json:"end_seconds"`
	Arrivals []uint64 `json:"arrivals"`
	InTime   []uint64 `json:"in_time"`
	Late     []uint64 `json:"late"`
	Refused  []uint64 `json:"refused"`
	Failed   []uint64 `json:"failed"`
	Kept     []uint64 `json:"kept"`
	Attempts []uint64 `json:"attempts"`
	Waiting  []int    `json:"waiting"`
	InUse    []int    `json:"running"`
	Age      []number `json:"age_seconds"`
	Limit    []int    `json:"limit"`
	Depth    []int    `json:"depth"`
	Derived  []int    `json:"derived_depth"`
	Behind   []int    `json:"behind"`
}

type ceilings struct {
	Offered     number   `json:"offered_per_second"`
	Capacity    number   `json:"capacity_per_second"`
	Exact       bool     `json:"clairvoyant_exact"` // the optimum of the pooled server, not a bound above it
	NoQueue     *float64 `json:"no_queue_ratio"`    // null if it is not known
	SizeAware   *float64 `json:"size_aware_ratio"`
	Clairvoyant *float64 `json:"clairvoyant_ratio"`
	Jobs        int      `json:"clairvoyant_jobs"`
	Missing     []string `json:"missing"`
}

type criteria struct {
	Text     string `json:"text"`
	Met      bool   `json:"met"`
	Measured string `json:"measured"`
}

func (r *Report) document() document {
	d := document{
		Version: JSONVersion, Program: r.Program, Command: r.Command, Scenario: r.Scenario, About: r.About,
		Rule: r.Rule, Measured: r.measured(), Why: r.Why, Seed: r.Seed, Runs: len(r.Policies[0].Runs),
		Ceilings: ceilings{
			Offered: number(r.Ceilings.Offered), Capacity: number(r.Ceilings.Capacity), Exact: r.Ceilings.Exact,
			NoQueue: known(r.Ceilings.NoQueue), SizeAware: known(r.Ceilings.SizeAware),
			Clairvoyant: known(r.Ceilings.Clairvoyant), Jobs: r.Ceilings.Jobs,
			Missing: append([]string{}, r.Ceilings.Missing...),
		},
		Criteria: []criteria{}, Notes: append([]string{}, r.Notes...),
	}
	for _, c := range r.Criteria {
		d.Criteria = append(d.Criteria, criteria(c))
	}
	for _, p := range r.Policies {
		out := policy{Name: p.Name, Figures: figuresOf(p.Figures()), Classes: []class{}, Tenants: []tenant{}, Series: seriesOf(p.Runs[0].Series)}
		for i, c := range p.classes() {
			out.Classes = append(out.Classes, class{c.Name, figuresOf(p.Class(i))})
		}
		for _, t := range p.tenants() {
			out.Tenants = append(out.Tenants, tenant{
				Name: t.Name, Asked: t.Asked.json(), Entitled: t.Entitled.json(), Granted: t.Granted.json(),
				Ratio: t.Ratio.json(), Refused: t.Refused.json(), P99: t.P99.json(),
			})
		}
		for _, one := range p.Runs {
			out.Runs = append(out.Runs, runOf(one))
		}
		d.Policies = append(d.Policies, out)
	}
	return d
}

func figuresOf(f Figures) figures {
	return figures{
		Offered: f.Offered.json(), Capacity: f.Capacity.json(), Goodput: f.Goodput.json(), Ratio: f.Ratio.json(),
		Refused: f.Refused.json(), Late: f.Late.json(), Failed: f.Failed.json(), Kept: f.Kept.json(), Attempts: f.Attempts.json(),
		Wasted: f.Wasted.json(), P50: f.P50.json(), P99: f.P99.json(), GoodP50: f.GoodP50.json(), Told: f.Told.json(), PeakQueue: f.PeakQueue.json(),
	}
}

func (f Figure) json() *figure {
	if f.Runs == 0 {
		return nil
	}
	out := &figure{Mean: f.Mean, Runs: f.Runs}
	if f.Runs > 1 {
		out.Error = &f.Error
	}
	return out
}

// known is nil for 0, which is how Ceilings says that it does not know.
func known(ratio float64) *float64 {
	if ratio == 0 {
		return nil
	}
	return &ratio
}

func runOf(r *sim.Result) run {
	out := run{
		Seed: r.Seed, Window: secs(r.Window), Ended: secs(r.Ended), Capacity: number(r.Capacity),
		Ratio: number(ratio(r)), Total: tallyOf(&r.Total), Classes: []tally{}, Tenants: []account{}, Tiers: []tier{}, Groups: []group{},
	}
	for i := range r.Classes {
		out.Classes = append(out.Classes, tallyOf(&r.Classes[i]))
	}
	for i := range r.Tenants {
		t := &r.Tenants[i]
		out.Tenants = append(out.Tenants, account{tallyOf(&t.Tally), number(t.Entitled)})
	}
	for i := range r.Tiers {
		out.Tiers = append(out.Tiers, tierOf(&r.Tiers[i]))
	}
	for _, g := range r.Groups {
		out.Groups = append(out.Groups, group{Name: g.Name, Units: g.Units, PeakInUse: g.PeakInUse, Used: number(g.Used)})
	}
	return out
}

func tallyOf(t *sim.Tally) tally {
	out := tally{
		Name: t.Name, Requests: t.Requests, InTime: t.InTime, Late: t.Late, Refused: t.Refused, Failed: t.Failed, Kept: t.Kept,
		Asked: t.Asked, Granted: t.Granted, Cohorts: []cohort{}, Steady: number(math.NaN()),
		Attempts: t.Attempts, Served: t.Served, Reasons: map[string]uint64{},
		Wasted: secs(t.Wasted), Work: secs(t.Work), Parts: number(t.Parts),
		Latency: distributionOf(&t.Latency), Good: distributionOf(&t.Good),
		Wait: distributionOf(&t.Wait), Told: distributionOf(&t.Told),
	}
	if x, ok := t.Steady(); ok {
		out.Steady = number(x)
		for _, c := range t.Cohorts {
			out.Cohorts = append(out.Cohorts, cohort(c))
		}
	}
	for i, n := range t.Reasons {
		if why := admission.Reason(i); why != admission.None {
			out.Reasons[why.String()] = n
		}
	}
	return out
}

func distributionOf(h *hist.Histogram) distribution {
	mean := math.NaN()
	if d, ok := h.Mean(); ok {
		mean = d.Seconds()
	}
	out := distribution{
		Count: h.Count, Mean: number(mean),
		P50: number(quantile(h, 0.50)), P90: number(quantile(h, 0.90)), P95: number(quantile(h, 0.95)),
		P99: number(quantile(h, 0.99)), P999: number(quantile(h, 0.999)),
		Bounds: []number{}, Counts: []uint64{},
	}
	for i, n := range h.Counts {
		if n > 0 {
			out.Bounds, out.Counts = append(out.Bounds, number(hist.Bound(i))), append(out.Counts, n)
		}
	}
	return out
}

func tierOf(t *sim.TierResult) tier {
	out := tier{
		Name: t.Name, PeakQueue: t.PeakQueue, PeakBytes: t.PeakBytes, PeakInUse: t.PeakInUse,
		PeakAge: secs(t.PeakAge), PeakBehind: t.PeakBehind, Restarts: t.Restarts,
		Arrivals: t.Arrivals, Again: t.Again, Kept: t.Kept, Served: t.Served, Refused: t.Refused, Capacity: number(t.Capacity),
	}
	out.InFlight, out.PeakInFlight, out.Limits = number(t.InFlight), t.PeakInFlight, []average{}
	for _, l := range t.Limits {
		out.Limits = append(out.Limits, average{number(l.Mean), number(l.Deviation)})
	}
	if s := t.Stats; s != nil {
		d := s.Derivation
		out.Limiter = &limiter{
			Limit: s.Limit, Depth: s.Depth, Order: s.Order.String(), Overload: s.Overload,
			Load: number(s.Load), LimitChanges: s.LimitChanges,
			Derivation: derivation{
				Text: d.String(), Limit: d.Limit, Mean: secs(d.Mean), Rate: number(d.Rate), Objective: secs(d.Objective),
				Allowance:  quota{number(d.Allowance.Rate), number(d.Allowance.Burst)},
				Percentile: number(d.Percentile), Service: secs(d.Service), Depth: d.Depth, Rule: d.Rule,
				RuleLatency: secs(d.RuleLatency), Growth: number(d.Growth), Reachable: d.Reachable, Fixed: d.Fixed, Tight: d.Tight, Chances: d.Chances, Samples: d.Samples,
				Prior: secs(d.Prior), Declared: secs(d.Declared), Drifted: d.Drifted,
				Sizes: d.Sizes.String(), Explained: number(d.Explained), SizeBase: secs(d.SizeBase), SizeEach: secs(d.SizeEach),
			},
		}
	}
	return out
}

func seriesOf(bins []sim.Bin) series {
	return series{
		End:      pick(bins, func(b sim.Bin) number { return secs(b.End) }),
		Arrivals: pick(bins, func(b sim.Bin) uint64 { return b.Arrivals }),
		InTime:   pick(bins, func(b sim.Bin) uint64 { return b.InTime }),
		Late:     pick(bins, func(b sim.Bin) uint64 { return b.Late }),
		Refused:  pick(bins, func(b sim.Bin) uint64 { return b.Refused }),
		Failed:   pick(bins, func(b sim.Bin) uint64 { return b.Failed }),
		Kept:     pick(bins, func(b sim.Bin) uint64 { return b.Kept }),
		Attempts: pick(bins, func(b sim.Bin) uint64 { return b.Attempts }),
		Waiting:  pick(bins, func(b sim.Bin) int { return b.Waiting }),
		InUse:    pick(bins, func(b sim.Bin) int { return b.InUse }),
		Age:      pick(bins, func(b sim.Bin) number { return secs(b.Age) }),
		Limit:    pick(bins, func(b sim.Bin) int { return b.Limit }),
		Depth:    pick(bins, func(b sim.Bin) int { return b.Depth }),
		Derived:  pick(bins, func(b sim.Bin) int { return b.Derived }),
		Behind:   pick(bins, func(b sim.Bin) int { return b.Behind }),
	}
}

func pick[T any](bins []sim.Bin, f func(sim.Bin) T) []T {
	out := make([]T, 0, len(bins))
	for _, b := range bins {
		out = append(out, f(b))
	}
	return out
}
