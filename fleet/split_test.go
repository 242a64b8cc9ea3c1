package fleet

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSplitShare(t *testing.T) {
	for _, tt := range []struct {
		split Split
		place Place
		want  int
	}{
		{Split{Budget: 100}, Place{Count: 1}, 100},
		{Split{Budget: 100}, Place{Count: 6}, 16},         // 4 stay unused
		{Split{Budget: 100}, Place{Count: 6, Nth: 4}, 17}, // 4 x 17 + 2 x 16
		{Split{Budget: 100}, Place{Count: 6, Nth: 5}, 16}, //
		{Split{Budget: 100, Reserve: 10}, Place{Count: 6}, 15},
		{Split{Budget: 100, Surge: 2}, Place{Count: 4}, 16},
		{Split{Budget: 100, Surge: 2}, Place{Count: 4, Nth: 4}, 16}, // 100 = 4 x 17 + 2 x 16; who is not counted comes first
		{Split{Budget: 100, Surge: 2}, Place{Count: 4, Nth: 2}, 17},
		{Split{Budget: 100}, Place{Count: 4, Workers: 2}, 12},
		{Split{Budget: 100}, Place{Count: 4, Workers: 2, Worker: 1}, 13},
		{Split{Budget: 100}, Place{Count: 4, Workers: 2, Worker: 2}, 12},
		{Split{Budget: 90}, Place{Count: 2, Nth: 1, Weights: []float64{2, 1}}, 60},
		{Split{Budget: 90}, Place{Count: 2, Nth: 2, Weights: []float64{2, 0}}, 0},
		{Split{Budget: 100, Surge: 1}, Place{Count: 2, Nth: 2, Weights: []float64{2, 1}}, 20}, // 40 + 40 + 20
		{Split{Budget: 20}, Place{Count: 50}, 0},
		{Split{Budget: 20}, Place{Count: 50, Nth: 20}, 1},
		{Split{Budget: 20}, Place{Count: 50, Nth: 21}, 0},
		{Split{Budget: 20}, Place{Count: 2, Workers: 16}, 0},
	} {
		if got := tt.split.Share(tt.place); got != tt.want {
			t.Errorf("%+v.Share(%+v) = %d, want %d", tt.split, tt.place, got, tt.want)
		}
	}
}

// However processes know where they are, all and some of them, the shares of a fleet add up
// to what there is, and to all of it if everybody knows.
func TestSplitAddsUp(t *testing.T) {
	r := seeded(t)
	for range 3000 {
		s := Split{Budget: 1 + r.IntN(200), Surge: r.IntN(3)}
		s.Reserve = r.IntN(s.Budget)
		p := Place{Count: 1 + r.IntN(12), Workers: 1 + r.IntN(3)}
		if r.IntN(2) == 0 {
			p.Weights = randomWeights(r, p.Count)
		}
		known, total := true, 0
		for nth := range p.Count {
			for worker := range p.Workers {
				q := p
				q.Nth, q.Worker = nth+1, worker+1
				if p.Weights == nil && r.IntN(8) == 0 {
					q.Nth, known = 0, false
				}
				if r.IntN(8) == 0 {
					q.Worker, known = 0, false
				}
				total += s.Share(q)
			}
		}
		all := known && s.Surge == 0 && (p.Weights == nil || slices.Max(p.Weights) > 0)
		if units := s.Budget - s.Reserve; total > units || all && total != units {
			t.Fatalf("%+v of %+v: %d of %d", s, p, total, units)
		}
	}
}

// With a surge, those that are not counted fit beside those that are, whatever they weigh
// up to the heaviest and wherever they are in the order.
func TestSplitSurge(t *testing.T) {
	r := seeded(t)
	for range 3000 {
		surge := 1 + r.IntN(3)
		s := Split{Budget: 1 + r.IntN(100), Surge: surge}
		real := randomWeights(r, surge+1+r.IntN(8))
		total := 0
		for i := range real {
			// Each misses others: never itself, and at most as many as the surge.
			var seen []float64
			nth, missed := 0, 0
			for j, w := range real {
				if j != i && missed < surge && w <= real[i] && r.IntN(2) == 0 {
					missed++
					continue
				}
				seen = append(seen, w)
				if j == i {
					nth = len(seen)
				}
			}
			total += s.Share(Place{Count: len(seen), Nth: nth, Weights: seen})
		}
		if total > s.Budget {
			t.Fatalf("%+v of %v: %d", s, real, total)
		}
	}
}

// The bounds of each field, both ends, with the sentence.
func TestBounds(t *testing.T) {
	type validator interface{ Validate() error }
	one := Place{Count: 1}
	with := func(change func(*Place)) Place {
		p := Place{Count: 4, Nth: 2}
		change(&p)
		return p
	}
	for _, tt := range []struct {
		v    validator
		says string
	}{
		{Split{Budget: 1}, ""},
		{Split{Budget: MaxBudget}, ""},
		{Split{}, "a budget of 0 units is out of range: 1 to 1048576"},
		{Split{Budget: MaxBudget + 1}, "a budget of 1048577 units"},
		{Split{Budget: 10, Reserve: 9}, ""},
		{Split{Budget: 10, Reserve: 10}, "a reserve of 10 units is out of range: 0 to 9"},
		{Split{Budget: 10, Reserve: -1}, "a reserve of -1 units"},
		{Split{Budget: 1, Surge: 1024}, ""},
		{Split{Budget: 1, Surge: -1}, "a surge of -1 instances"},
		{Split{Budget: 1, Surge: 1025}, "a surge of 1025 instances is out of range: 0 to 1024"},
		{Split{Budget: 1, Settle: time.Millisecond}, ""},
		{Split{Budget: 1, Settle: 24 * time.Hour}, ""},
		{Split{Budget: 1, Settle: time.Millisecond - 1}, "settle is 999.999µs and out of range: 1ms to 24h, or 0 for 1m0s"},
		{Split{Budget: 1, Settle: 24*time.Hour + 1}, "settle is 24h0m0.000000001s"},
		{one, ""},
		{Place{Count: MaxInstances}, ""},
		{Place{}, "a fleet of 0 instances is out of range: 1 to 16384"},
		{Place{Count: MaxInstances + 1}, "a fleet of 16385 instances"},
		{with(func(p *Place) { p.Nth = 4 }), ""},
		{with(func(p *Place) { p.Nth = 5 }), "instance 5 of 4 is out of range: 1 to 4"},
		{with(func(p *Place) { p.Nth = -1 }), "instance -1 of 4"},
		{with(func(p *Place) { p.Weights = []float64{1, 2, 0, 4} }), ""},
		{with(func(p *Place) { p.Weights = []float64{1, 2} }), "2 weights for 4 instances: one for each, or none"},
		{with(func(p *Place) { p.Weights = []float64{1, 2, -3, 4} }), "weight -3 of instance 3"},
		{with(func(p *Place) { p.Nth, p.Weights = 0, []float64{1, 2, 3, 4} }), "which of them is this instance's is not known"},
		{with(func(p *Place) { p.Workers, p.Worker = 1024, 1024 }), ""},
		{with(func(p *Place) { p.Workers = -1 }), "-1 workers for each instance"},
		{with(func(p *Place) { p.Workers = 1025 }), "1025 workers for each instance are out of range: 1 to 1024"},
		{with(func(p *Place) { p.Worker = 1 }), ""},
		{with(func(p *Place) { p.Worker = 2 }), "worker 2 of 1 is out of range: 1 to 1"},
		{with(func(p *Place) { p.Worker = -1 }), "worker -1 of 1"},
		{Claim{Units: 1, Instances: 1}, ""},
		{Claim{Units: 1}, "a fleet of 0 instances"},
		{Claim{Instances: 1}, "a budget of 0 units"},
		{Claim{Units: 1, Instances: 1, Limit: MaxBudget}, ""},
		{Claim{Units: 1, Instances: 1, Limit: MaxBudget + 1}, "a limit of 1048577 for each process is out of range: 0 to 1048576"},
		{Claim{Units: 1, Instances: 1, Limit: -1}, "a limit of -1 for each process"},
		{Claim{Units: 1, Instances: 1, Surge: 1025}, "a surge of 1025"},
		{Claim{Units: 1, Instances: 1, Workers: 1025}, "1025 workers"},
	} {
		err := tt.v.Validate()
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%+v: %v, want %q", tt.v, err, tt.says)
		}
	}
	defer func() {
		if s, _ := recover().(string); !strings.Contains(s, "fleet: a fleet of 0 instances") {
			t.Errorf("Share of an invalid place: %q", s)
		}
	}()
	Split{Budget: 1}.Share(Place{})
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		claim Claim
		want  string
	}{
		{
			Claim{Resource: "the database", Units: 200, Limit: 20, Instances: 50},
			"50 instances x 20 = 1,000 > the 200 of the database: at most 4 each",
		},
		{Claim{Resource: "the database", Units: 200, Limit: 4, Instances: 50}, ""},
		{
			Claim{Resource: "the database", Units: 200, Reserve: 10, Limit: 20, Instances: 50, Surge: 5, Workers: 2},
			"(50 + 5) instances x 2 workers x 20 = 2,200 > the 190 of the database (200 less 10 for others): at most 1 each",
		},
		{
			Claim{Units: 100, Limit: 20, Instances: 5, Surge: 1},
			"5 instances x 20 = 100 fit, but (5 + 1) instances x 20 = 120 in a rolling update > the 100 of the resource: at most 16 each",
		},
		{
			Claim{Units: 200, Limit: 1, Instances: 50, Workers: 8},
			"50 instances x 8 workers = 400 processes > the 200 of the resource: not even 1 each, so run fewer or put a pooler between",
		},
		{Claim{Units: 100, Limit: 50, Instances: 1}, "1 instance x 50 = 50 leave half of the 100 of the resource or more unused: up to 100 each fit"},
		{Claim{Units: 100, Limit: 51, Instances: 1}, ""},
		{Claim{Units: 100, Instances: 2}, "a limit of 0 refuses everything: up to 50 each fit the 100 of the resource"},
		{Claim{Units: 100, Limit: 5}, "a fleet of 0 instances is out of range: 1 to 16384"},
	} {
		if got := strings.Join(Check(tt.claim), "\n"); got != tt.want {
			t.Errorf("%+v:\n%s\nwant\n%s", tt.claim, got, tt.want)
		}
	}
}

// What Check calls at most fits, and one more does not.
func TestCheckLimit(t *testing.T) {
	r := seeded(t)
	for range 3000 {
		c := Claim{Units: 1 + r.IntN(3000), Instances: 1 + r.IntN(60), Surge: r.IntN(9), Workers: 1 + r.IntN(4)}
		c.Reserve = r.IntN(c.Units)
		each := (c.Units - c.Reserve) / ((c.Instances + c.Surge) * c.Workers)
		fits := func(limit int) bool {
			c.Limit = limit
			for _, s := range Check(c) {
				if strings.Contains(s, " > ") {
					return false
				}
			}
			return true
		}
		if each > 0 && !fits(each) || fits(each+1) {
			t.Fatalf("%+v: at most %d", c, each)
		}
	}
}

// The figures of the package documentation: how many requests find the units taken at
// 70 % load, by Erlang C, of 4, of 16 and of 200.
func TestWaste(t *testing.T) {
	wait := func(n int) float64 {
		offered, b := 0.7*float64(n), 1.0
		for k := 1; k <= n; k++ { // Erlang B by its recursion
			b = offered * b / (float64(k) + offered*b)
		}
		return b / (1 - 0.7*(1-b))
	}
	if p := wait(4); p < 0.425 || p >= 0.435 {
		t.Errorf("%.3f find 4 taken, the documentation says 43 %%", p)
	}
	if p := wait(16); p < 0.125 || p >= 0.135 {
		t.Errorf("%.3f find 16 taken, the documentation says 13 %%", p)
	}
	if p := wait(200); p >= 1e-5 {
		t.Errorf("%.2g find 200 taken, the documentation says fewer than 1 in 100,000", p)
	}
}
