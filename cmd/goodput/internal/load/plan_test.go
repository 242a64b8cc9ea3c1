package load

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPlanValidate(t *testing.T) {
	good := Plan{Rate: 1200, Duration: 20 * time.Second, Deadline: 2 * time.Second}
	if err := good.Validate(); err != nil {
		t.Fatalf("a good plan: %v", err)
	}
	for _, tc := range []struct {
		name string
		set  func(*Plan)
		want string
	}{
		{"no rate", func(p *Plan) { p.Rate = 0 }, "rate"},
		{"negative rate", func(p *Plan) { p.Rate = -1 }, "rate"},
		{"rate is not a number", func(p *Plan) { p.Rate = math.NaN() }, "rate"},
		{"infinite rate", func(p *Plan) { p.Rate = math.Inf(1) }, "rate"},
		{"no duration", func(p *Plan) { p.Duration = 0 }, "duration"},
		{"overflowed duration", func(p *Plan) { p.Duration = math.MinInt64 }, "duration"},
		{"endless", func(p *Plan) { p.Duration = math.MaxInt64 }, "duration"},
		{"too many", func(p *Plan) { p.Rate, p.Duration = 1e6, time.Minute }, "requests"},
		{"no deadline", func(p *Plan) { p.Deadline = 0 }, "deadline"},
		{"negative in flight", func(p *Plan) { p.MaxInFlight = -1 }, "in flight"},
		{"negative tolerance", func(p *Plan) { p.Tolerance = -1 }, "tolerance"},
		{"negative attempts", func(p *Plan) { p.Attempts = -1 }, "attempts"},
		{"too many attempts", func(p *Plan) { p.Attempts = 11 }, "attempts"},
		{"attempts without a backoff", func(p *Plan) { p.Attempts = 2 }, "backoff"},
		{"negative follow", func(p *Plan) { p.Follow = -1 }, "follow"},
		{"endless follow", func(p *Plan) { p.Follow = math.MaxInt64 }, "follow"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := good
			tc.set(&p)
			err := p.Validate()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a sentence about %s", err, tc.want)
			}
			if _, err := New(p, nil); err == nil {
				t.Error("New took it")
			}
		})
	}
}

func TestConstantArrivals(t *testing.T) {
	for _, tc := range []struct {
		rate     float64
		duration time.Duration
		want     int
		last     time.Duration
	}{
		{1, time.Second, 1, 0},
		{1, 10 * time.Second, 10, 9 * time.Second},
		{30, 30 * time.Second, 900, 29*time.Second + 966666667},
		{0.5, 4 * time.Second, 2, 2 * time.Second},
		{1000, 1500 * time.Millisecond, 1500, 1499 * time.Millisecond},
		{3, 100 * time.Second, 300, 99*time.Second + 666666667}, // a gap that no float has
		{0.1, time.Second, 0, 0},
	} {
		p := Plan{Rate: tc.rate, Duration: tc.duration, Constant: true}
		due := slices.Collect(p.Arrivals())
		if len(due) != tc.want {
			t.Errorf("%v/s for %v: %d arrivals, want %d", tc.rate, tc.duration, len(due), tc.want)
			continue
		}
		if len(due) > 0 && (due[0] != 0 || due[len(due)-1] != tc.last) {
			t.Errorf("%v/s for %v: due from %v to %v, want 0 to %v", tc.rate, tc.duration, due[0], due[len(due)-1], tc.last)
		}
	}
}

func TestPoissonArrivals(t *testing.T) {
	p := Plan{Rate: 1000, Duration: 100 * time.Second, Seed: 7}
	due := slices.Collect(p.Arrivals())
	if !slices.IsSorted(due) || due[len(due)-1] >= p.Duration {
		t.Error("not in order, or past the window")
	}
	// A Poisson count of mean n has the standard deviation sqrt(n); the seed
	// is fixed, so this holds always or never. 4 sigma of 100,000: 1265.
	if n := float64(len(due)); math.Abs(n-1e5) > 4*math.Sqrt(1e5) {
		t.Errorf("%v arrivals, want 100000 +- 1265", n)
	}
	// Counts per 100 ms: mean and variance are equal for Poisson, 100. The
	// variance of a variance over 1000 bins is about 2 x 100^2 / 1000: 4 sigma
	// are 18.
	bins := make([]float64, 1000)
	for _, d := range due {
		bins[d/(100*time.Millisecond)]++
	}
	mean := float64(len(due)) / float64(len(bins))
	var variance float64
	for _, n := range bins {
		variance += (n - mean) * (n - mean) / float64(len(bins))
	}
	if math.Abs(variance-mean) > 18 {
		t.Errorf("variance of the counts is %.1f with a mean of %.1f: not Poisson", variance, mean)
	}
}

func TestArrivalsAreAFunctionOfThePlan(t *testing.T) {
	for _, constant := range []bool{false, true} {
		p := Plan{Rate: 3600, Duration: 2 * time.Second, Seed: 42, Constant: constant}
		first := slices.Collect(p.Arrivals())
		if again := slices.Collect(p.Arrivals()); !slices.Equal(first, again) {
			t.Errorf("constant %v: one plan, two schedules", constant)
		}
		// What happens to the requests is not the schedule's business.
		p.Deadline, p.MaxInFlight, p.Tolerance = time.Second, 1, time.Hour
		if again := slices.Collect(p.Arrivals()); !slices.Equal(first, again) {
			t.Errorf("constant %v: the schedule depends on more than rate, duration and seed", constant)
		}
	}
	a := slices.Collect(Plan{Rate: 3600, Duration: time.Second, Seed: 1}.Arrivals())
	b := slices.Collect(Plan{Rate: 3600, Duration: time.Second, Seed: 2}.Arrivals())
	if slices.Equal(a, b) {
		t.Error("two seeds, one schedule")
	}
}

// The first arrivals of a seed, written down: a change of them makes every seed
// that somebody noted worthless.
func TestArrivalsOfSeedOne(t *testing.T) {
	var got []time.Duration
	for due := range (Plan{Rate: 1000, Duration: time.Second, Seed: 1}).Arrivals() {
		if got = append(got, due); len(got) == 4 {
			break
		}
	}
	want := []time.Duration{882036, 1024081, 2149592, 2727652}
	if !slices.Equal(got, want) {
		t.Errorf("got %d, want %d", got, want)
	}
}

func TestToleranceFor(t *testing.T) {
	for objective, want := range map[time.Duration]time.Duration{
		0: 5 * time.Millisecond, 400 * time.Millisecond: 5 * time.Millisecond, 2 * time.Second: 20 * time.Millisecond,
	} {
		if got := ToleranceFor(objective); got != want {
			t.Errorf("objective %v: %v, want %v", objective, got, want)
		}
	}
}
