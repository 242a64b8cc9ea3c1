package sim

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/rivals"
	"github.com/goodput/goodput/limit"
)

// A rival is an adaptive limit of others, as it was measured.
type rival struct {
	name string
	law  limit.Law
}

// measured are the libraries of the benchmark, with the bounds that they have by default.
func measured(t testing.TB) (failsafe, told, aimd, gradient2, vegas rival) {
	t.Helper()
	port := func(name string) rival {
		l, err := rivals.Published(name)
		if err != nil {
			t.Fatal(err)
		}
		return rival{name, l}
	}
	return rival{"failsafe", rivals.Failsafe{}}, rival{"failsafe from 60", rivals.Failsafe{From: 60}},
		port("gcl_aimd"), port("gcl_gradient2"), port("gcl_vegas")
}

// benchmark is how they were measured: 60 slots of 50 ms, refused at once, from a cold
// start, and what ends in time within its length counts.
func (r rival) benchmark(load float64, shape Dist, length time.Duration) Scenario {
	s := plain(load, shape, 2*time.Second, 0).With(Policy{Name: r.name, Baseline: &Baseline{Law: r.law}})
	s.Length, s.Warmup, s.Bins = length, 0, int(length/time.Second)
	s.Tiers[0].Slots = slots
	return s
}

// ended returns the rate of what ended in time in the seconds [from, to), over want.
func ended(from, to int, want float64) func(*Result) float64 {
	return func(r *Result) float64 {
		n := uint64(0)
		for _, b := range r.Series[from:to] {
			n += b.InTime
		}
		return float64(n) / float64(to-from) / want
	}
}

// as fails unless e is as published: within 0.05, or, where runs differ so much that the
// published figure says less, within three standard errors of the difference. It is the
// median of three runs: see published.
func (e estimate) as(t testing.TB, what string, want float64) {
	t.Helper()
	most := max(0.05, 3*e.published(e.n).se)
	t.Logf("%s: %v, want %.2f within %.2f", what, e, want, most)
	if !(math.Abs(e.mean-want) <= most) {
		t.Errorf("%s: %v, want %.2f within %.2f", what, e, want, most)
	}
}

// Others' adaptive limits do here what the libraries themselves did in a benchmark in
// virtual time: 20 s from a cold start, deadline 2 s, medians of three runs.
func TestRivalsAsMeasured(t *testing.T) {
	failsafe, told, aimd, gradient2, vegas := measured(t)
	loads := []float64{0.5, 1, 1.5, 3, 10}
	for _, c := range []struct {
		rival  rival
		shape  Dist
		ratios [5]float64
	}{
		{failsafe, exponential50, [5]float64{.82, .35, .34, .35, .35}},
		{told, exponential50, [5]float64{1, .83, .87, .88, .89}},
		{aimd, exponential50, [5]float64{.61, .33, .33, .33, .33}},
		{gradient2, exponential50, [5]float64{.72, .43, .44, .41, .39}},
		{vegas, exponential50, [5]float64{.47, .26, .28, .29, .27}},

		// In real time, one run, its condition on the processor away.
		{rival{"bbr", rivals.BBR{}}, exponential50, [5]float64{.06, .03, .06, .03, .06}},

		{failsafe, fixed50, [5]float64{.85, .49, .50, .50, .50}},
		{told, fixed50, [5]float64{1, .95, 1, 1, 1}},
		{aimd, fixed50, [5]float64{.60, .32, .33, .33, .33}},
		{gradient2, fixed50, [5]float64{.80, .45, .45, .46, .46}},
		{vegas, fixed50, [5]float64{.96, .83, .85, .86, .86}},
	} {
		ours, theirs := 0.0, 0.0
		for i, load := range loads {
			runs := 4
			switch {
			case c.shape.Kind == Fixed && load > 1 && load != 3:
				continue // as at 3, and a second of the suite
			case c.shape.Kind == Fixed:
				runs = 2 // arrivals alone vary
			case load == 10:
				runs = 2
			}
			s := c.rival.benchmark(load, c.shape, 20*time.Second)
			e := over(t, s, runs, ended(0, 20, min(load, 1)*capacity))
			e[0].as(t, fmt.Sprintf("%s, %s at %v", c.rival.name, c.shape.name(), load), c.ratios[i])
			ours, theirs = ours+e[0].mean/5, theirs+c.ratios[i]/5
		}
		// Of all loads no such noise is left.
		if math.Abs(ours-theirs) > 0.05 {
			t.Errorf("%s, %s: %.3f over all loads, want %.3f", c.rival.name, c.shape.name(), ours, theirs)
		}
	}
}

// The same at 1.5 times the capacity, while the slots are 60, from 15 s on 20, and from
// 30 s on 60 again.
func TestRivalsInAStep(t *testing.T) {
	failsafe, told, aimd, gradient2, vegas := measured(t)
	for _, c := range []struct {
		rival  rival
		ratios [3]float64
	}{
		{failsafe, [3]float64{.34, 1, .34}},
		{told, [3]float64{.89, .99, .87}},
		{aimd, [3]float64{.29, 1, .77}},
		{gradient2, [3]float64{.41, .99, .37}},
		{vegas, [3]float64{.29, .59, .12}},
	} {
		s := c.rival.benchmark(1.5, exponential50, 45*time.Second)
		s.Tiers[0].SlotSteps = []SlotStep{{15 * time.Second, 20}, {30 * time.Second, slots}}
		e := over(t, s, 4, ended(0, 15, capacity), ended(15, 30, capacity/3), ended(30, 45, capacity))
		for i, phase := range []string{"60", "20", "60 again"} {
			e[i].as(t, c.rival.name+", "+phase, c.ratios[i])
		}
	}
}

// The published laws with the mean of a second, as their comments say: at 3 times the
// capacity, in the first 20 s and after a minute.
func TestPublishedFromCold(t *testing.T) {
	for _, c := range []struct {
		rival        rival
		runs         int
		first, later float64
	}{
		{rival{"aimd", limit.AIMD{}}, 4, 0.485, 1},
		// .3 to 1, from run to run.
		{rival{"vegas", limit.Vegas{}}, 12, 0.48, 0.78},
		{rival{"gradient2", limit.Gradient2{}}, 4, 0.45, 1},
	} {
		s := c.rival.benchmark(3, exponential50, 90*time.Second)
		e := over(t, s, c.runs, ended(0, 20, capacity), ended(70, 90, capacity))
		e[0].near(t, c.rival.name+", first", c.first, 0.01)
		e[1].near(t, c.rival.name+", later", c.later, 0.01)
	}
}

// To measure the shortest time costs Envoy 2 points where it does so every half minute: a
// second at 3 slots of 60.
func TestEnvoyPaysForItsMeasurement(t *testing.T) {
	share := func(every time.Duration) float64 {
		s := rival{"envoy", rivals.Envoy{Interval: every}}.benchmark(1.5, fixed50, 90*time.Second)
		return ended(20, 90, capacity)(play(t, s, 1))
	}
	if without, with := share(24*time.Hour), share(30*time.Second); without < 0.999 || with > 0.99 || with < 0.97 {
		t.Errorf("%.4f without measurements, want 1; %.4f with one each half minute, want 0.98", without, with)
	}
}

// A law that refuses at once without a queue is told what a core with one tells, and a
// limit that stays does what Erlang says.
func TestBaselineWithALaw(t *testing.T) {
	law := Policy{Name: "fixed law", Baseline: &Baseline{Law: limit.Fixed(slots)}}
	plainly := Policy{Name: "reject", Baseline: &Baseline{Limit: slots}}
	s := plain(1.5, exponential50, 2*time.Second, 20*time.Second)
	a, b := play(t, s.With(law), 1), play(t, s.With(plainly), 1)
	if a.Total.InTime != b.Total.InTime || a.Total.Refused != b.Total.Refused {
		t.Errorf("a law that stays: %d in time, %d refused; without a law: %d, %d", a.Total.InTime, a.Total.Refused, b.Total.InTime, b.Total.Refused)
	}
	moves := Policy{Name: "moves", Baseline: &Baseline{Law: limit.AIMD{}}}
	r := play(t, s.With(moves), 1)
	if st := r.Tiers[0].Stats; st == nil || !strings.HasPrefix(st.LimitWhy, "aimd: ") || st.Limit <= 20 {
		t.Errorf("a law that moves: %+v", st)
	}
	if r.Total.Reasons[admission.QueueFull] != r.Total.Refused {
		t.Errorf("refused: %v", r.Total.Reasons)
	}
	for _, b := range []Baseline{
		{Law: limit.AIMD{}, Limit: 60},
		{Law: limit.AIMD{}, Depth: 10},
		{Law: limit.AIMD{}, Expire: true},
		{Law: limit.AIMD{From: -1}},
	} {
		if err := plain(1, exponential50, 0, time.Second).With(Policy{Name: "wrong", Baseline: &b}).Validate(); err == nil {
			t.Errorf("%+v is accepted", b)
		} else {
			t.Log(err)
		}
	}
}

// A restart begins the law anew.
func TestRestartOfALaw(t *testing.T) {
	r := rival{"gcl_aimd", limit.AIMD{From: 1, Min: 1}}
	s := r.benchmark(1.5, exponential50, 30*time.Second)
	s.Tiers[0].Restarts = []Restart{{At: 20*time.Second + time.Millisecond}}
	b := play(t, s, 1).Series
	if was, is := b[19].Limit, b[21].Limit; was < 15 || is > 3 {
		t.Errorf("limit %d before a restart, %d two seconds after", was, is)
	}
}
