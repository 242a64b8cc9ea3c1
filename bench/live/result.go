package live

import (
	"math"
	"time"
)

// A Result is what one contestant made of one plan. Ratios are answers in time per
// request that could have been answered in time: the smaller of what was offered and
// of what the slots could do at the speed of this run's sleeps. What was answered
// after the last arrival does not count.
type Result struct {
	Contestant string  `json:"contestant"`
	Plan       string  `json:"plan"`
	Load       float64 `json:"load_x"` // offered / capacity at first
	Seed       uint64  `json:"seed"`
	Void       string  `json:"void,omitempty"`

	Rate     float64 `json:"offered_per_s"`
	Capacity float64 `json:"capacity_per_s"` // at first
	Speed    float64 `json:"speed"`          // of 1: see Backend.Speed
	Lag      float64 `json:"generator_lag_p99_ms"`
	CPU      float64 `json:"processors_used"` // by client, limiter and service together

	Ratio   float64 `json:"ratio_2s"`
	Quick   float64 `json:"ratio_400ms"`
	P50     float64 `json:"p50_ms"` // of who got a slot, from due; given up counts as the deadline
	P99     float64 `json:"p99_ms"`
	Refused float64 `json:"refused_share"`  // of what was offered
	Late    float64 `json:"late_share"`     // of what was offered
	No      float64 `json:"refusal_p50_ms"` // until a refused one knew, from due

	Limit  *float64 `json:"limit_mean,omitempty"`      // over the run
	Spread *float64 `json:"limit_deviation,omitempty"` // standard, of half-second means in the second half of the last phase

	Model *Estimate `json:"model_ratio_2s,omitempty"` // of the same requests in simulated time
	Quiet *Estimate `json:"model_ratio_400ms,omitempty"`

	// Recovered is how long after a phase without slots each second had answers for its
	// arrivals again, for good; nil: there was no such phase, or it never was so.
	Recovered *float64 `json:"recovered_s,omitempty"`

	Phases []PhaseResult `json:"phases"`
	Series []Bin         `json:"series,omitempty"`
}

// A PhaseResult is a Result of one phase.
type PhaseResult struct {
	Slots   int       `json:"slots"`
	Ratio   float64   `json:"ratio_2s"`
	Quick   float64   `json:"ratio_400ms"`
	First   float64   `json:"ratio_2s_first_10s"`
	Settle  *float64  `json:"settle_s"` // until 95 % of what could be was answered in time, for 2 s; null: never
	Limit   float64   `json:"limit_mean"`
	Waiting float64   `json:"backend_waiting_mean"`
	Model   *Estimate `json:"model_ratio_2s,omitempty"`
}

const (
	// first is the time after a step in which the mean is judged.
	first = 10 * time.Second

	// settled is the part of what could be, over rolling windows of steady: 2,400
	// answers at 1,200/s, which vary by 2 %, so that noise alone seldom hides it.
	settled = 0.95
	steady  = 2 * time.Second
)

// result sums up a tally.
func (t *tally) result(contestant string, speed, cpu float64, exposes bool) *Result {
	p, ms := t.plan, func(d time.Duration) float64 { return float64(d) / 1e6 }
	capacity := float64(p.Phases[0].Slots) / p.Service.Seconds()
	r := &Result{
		Contestant: contestant, Plan: p.Name, Load: p.Rate / capacity, Seed: p.Seed,
		Void: t.void(speed), Rate: p.Rate, Capacity: capacity, Speed: speed, CPU: cpu,
		Lag: ms(quantile(t.lateness, 0.99)), P50: ms(quantile(t.latency, 0.5)), P99: ms(quantile(t.latency, 0.99)),
		Refused: share(t.refused, t.offered), Late: share(t.late, t.offered), No: ms(quantile(t.refusal, 0.5)),
		Series: t.bins,
	}
	r.Ratio, r.Quick = t.ratios(0, p.Length(), speed)
	limits := func(b *Bin) float64 { return b.Limit }
	begin := time.Duration(0)
	for _, ph := range p.Phases {
		end := begin + ph.Length
		one := PhaseResult{Slots: ph.Slots, Settle: t.settle(begin, end, speed)}
		one.Ratio, one.Quick = t.ratios(begin, end, speed)
		one.First, _ = t.ratios(begin, min(end, begin+first), speed)
		one.Limit, _ = spread(of(t.between(begin, end), limits))
		one.Waiting, _ = spread(of(t.between(begin, end), func(b *Bin) float64 { return b.Waiting }))
		r.Phases = append(r.Phases, one)
		begin = end
	}
	r.Recovered = t.recovered()
	if exposes {
		mean, _ := spread(of(t.bins, limits))
		last := p.Phases[len(p.Phases)-1].Length
		_, dev := spread(of(t.between(begin-last/2, begin), limits))
		r.Limit, r.Spread = &mean, &dev
	}
	return r
}

// between returns the bins from one instant to another.
func (t *tally) between(from, to time.Duration) []Bin {
	return t.bins[min(int(from/binLength), len(t.bins)):min(int(to/binLength), len(t.bins))]
}

// ratios returns the two ratios between two instants, both at the end of bins. What was
// offered is the number that came, not its mean, and what was not answered in time
// before its arrivals ended is lost.
func (t *tally) ratios(from, to time.Duration, speed float64) (good, quick float64) {
	arrived := 0
	for _, b := range t.between(from, to) {
		good += float64(b.Good)
		quick += float64(b.Quick)
		arrived += b.Arrived
	}
	could := t.plan.could(from, to, speed, arrived)
	if could == 0 {
		return 0, 0
	}
	return good / could, quick / could
}

// settle returns the seconds from one instant until the answers of a window of steady
// were settled of what could be; nil if that was not before to.
func (t *tally) settle(from, to time.Duration, speed float64) *float64 {
	for at := from; at+steady <= to; at += binLength {
		if good, _ := t.ratios(at, at+steady, speed); good >= settled {
			s := (at - from).Seconds()
			return &s
		}
	}
	return nil
}

// recovered returns Result.Recovered: from where on each second has answers for 0.95 of its
// arrivals, less what is no news: what is under way at the two ends of a second, 54 +- 7 of
// 1,080/s for 50 ms, differs by sqrt(2 x 54) = 10, and four times that is 0.04 of them. The
// seconds begin with bins.
func (t *tally) recovered() *float64 {
	resumes, begin, stalled := time.Duration(0), time.Duration(0), false
	for _, ph := range t.plan.Phases {
		if begin += ph.Length; ph.Slots == 0 {
			resumes, stalled = begin, true
		}
	}
	if !stalled {
		return nil
	}
	const second = int(time.Second / binLength)
	noise := 4 * math.Sqrt(2*t.plan.Rate*t.plan.Service.Seconds()) / t.plan.Rate
	last := len(t.bins) - second
	for i := last; i >= int(resumes/binLength); i-- {
		good, arrived := 0, 0
		for _, b := range t.bins[i : i+second] {
			good += b.Good
			arrived += b.Arrived
		}
		if float64(good) >= (settled-noise)*float64(arrived) {
			continue
		}
		if i == last {
			return nil
		}
		after := (time.Duration(i+1)*binLength - resumes).Seconds()
		return &after
	}
	return new(float64)
}

// of returns one number of each bin.
func of(bins []Bin, number func(*Bin) float64) []float64 {
	v := make([]float64, len(bins))
	for i := range bins {
		v[i] = number(&bins[i])
	}
	return v
}

// spread returns the mean and the standard deviation, 0 and 0 without values.
func spread(v []float64) (mean, dev float64) {
	if len(v) == 0 {
		return 0, 0
	}
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		dev += (x - mean) * (x - mean) / float64(len(v))
	}
	return mean, math.Sqrt(dev)
}

func share(n, all int) float64 {
	if all == 0 {
		return 0
	}
	return float64(n) / float64(all)
}
