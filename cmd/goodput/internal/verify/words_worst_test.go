package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// whyOf is what is said of a criterion, once r is judged.
func whyOf(t *testing.T, r *Report, name string) string {
	t.Helper()
	Judge(r)
	for _, c := range r.Criteria {
		if c.Name == name && !c.Met {
			return c.Why
		}
	}
	t.Errorf("%s is met, or not judged: void %q", name, r.Void)
	return ""
}

const chance = "within two standard errors"

// Of several loads that miss a bound the worst is spoken of, and of those that are as bad the
// lowest. What may be chance at one of them is none if it cannot be so at another.
func TestTheWorstLoadIsSpokenOf(t *testing.T) {
	leave := func(r *Report, at float64, n int64) {
		x := stepOf(r, at).Result
		x.TimedOut, x.Refused = x.TimedOut+n, x.Refused-n
		if x.Refused < 0 {
			x.InTime, x.Completed, x.Refused = x.InTime+x.Refused, x.Completed+x.Refused, 0
		}
	}
	for _, c := range []struct {
		what   string
		name   string
		change func(*Report)
		want   string
		chance bool
	}{
		{"1.7 % of 1,000 and 60 % of 6,000", Hanging, func(r *Report) { leave(r, 0.5, 17); leave(r, 3, 3600) }, "at 3x 3,600 of 6,000", false},
		{"1.7 % of 1,000 and 1.2 % of 3,000", Hanging, func(r *Report) { leave(r, 0.5, 17); leave(r, 1.5, 36) }, "at 0.5x 17 of 1,000", true},
		{"1.7 % of 1,000, and for sure 1.5 % of 6,000", Hanging, func(r *Report) { leave(r, 0.5, 17); leave(r, 3, 90) }, "at 0.5x 17 of 1,000", false},
		{"2.9 % of 1,000, and by chance 1.1 % of 20,000", Hanging, func(r *Report) { leave(r, 0.5, 29); leave(r, 10, 220) }, "at 0.5x 29 of 1,000", false},
		{"90 % and 60 %", Goodput, func(r *Report) {
			x := at(r, 1.5)
			takes(x, 200, &x.Refused)
			x = at(r, 10)
			takes(x, 800, &x.Refused)
		}, "at 10x ", false},
		{"no answer at all", Flat, func(r *Report) {
			for _, l := range []float64{1.5, 3, 10} {
				slow(at(r, l), 300*ms) // the deadline
			}
		}, "at 1.5x more than one in a hundred", false},
		{"2 and 400 connections", Connections, func(r *Report) {
			for l, n := range map[float64]int64{0.5: 2, 3: 400} {
				at(r, l).Errors = n
			}
		}, "at 3x 400 of 6,000", false},
	} {
		r := good()
		c.change(r)
		if why := whyOf(t, r, c.name); !strings.Contains(why, c.want) || strings.Contains(why, chance) != c.chance {
			t.Errorf("%s: %s\nwant %q, chance %v", c.what, why, c.want, c.chance)
		}
	}
}

// Who is told that the capacity is another one is told how to say which, and not that the machine
// was too busy, though it was so in one of the loads.
func TestAnotherCapacitySaysWhatToDo(t *testing.T) {
	for given, want := range map[bool]string{
		false: "Run this again, so that it is found anew, or say what it is with --capacity",
		true:  "Give the true one with --capacity, or none, so that it is found",
	} {
		r := good()
		r.Capacity.PerSecond, r.Capacity.Given = 300, given // it does 400
		r.Steps[1].Result.Late = load.HistogramOf(map[time.Duration]int64{time.Second: 1000})
		Judge(r)
		if !strings.HasSuffix(r.Void, want) || strings.Contains(r.advice(), "too busy") || !r.tardy() {
			t.Errorf("void %q, advice %q", r.Void, r.advice())
		}
	}
}

// The answers by status are of all that was asked while the service was judged, as what is said of
// foreign ones is: what came after a load is in both.
func TestAnswersByStatusAreThoseThatAreJudged(t *testing.T) {
	r := good()
	r.Steps = r.Steps[:3]
	r.Steps[2].Calm.Status = map[int]int64{200: 998, 503: 1, 418: 1}
	all := strings.Join(r.seen(), "\n")
	if want := "Answers by status, all loads and those after them: 200 × 5,978"; !strings.Contains(all, want) || !strings.Contains(all, "418 × 1") {
		t.Errorf("%q, want %q and 418", all, want)
	}
	r.Steps = r.Steps[:1]
	if all := strings.Join(r.seen(), "\n"); !strings.Contains(all, "Answers by status, all loads: 200 × ") {
		t.Errorf("%q: there is nothing after 0.5x", all)
	}
}
