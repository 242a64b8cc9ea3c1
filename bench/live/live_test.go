package live

import (
	"math"
	"testing"
	"time"
)

// These play real seconds over real sockets: // wall clock: the rivals and the kernel
// have no other. Nothing is timed. What is compared are shares of answers between
// contestants, or with the model of the same requests, and a run that the machine spoilt
// proves nothing and is left out.

func play(t *testing.T, name string, p Plan) *Result {
	t.Helper()
	for _, c := range Contestants(p.Phases[0].Slots) {
		if c.Name != name {
			continue
		}
		r, err := Run(t.Context(), c, p)
		if err != nil {
			t.Fatal(err)
		}
		if c.Law != nil {
			if err := Model(c, p, r); err != nil {
				t.Fatal(err)
			}
		}
		if r.Void != "" {
			t.Skipf("%s, %s is void: %s", p.Name, name, r.Void)
		}
		return r
	}
	t.Fatalf("no contestant is called %s", name)
	return nil
}

// Every contestant answers, and all requests end somewhere.
func TestEachContestantPlays(t *testing.T) {
	p := Cold(0.5, 20, 20*time.Millisecond, second/2, 5)
	for _, c := range Contestants(20) {
		r, err := Run(t.Context(), c, p)
		if err != nil {
			t.Fatal(err)
		}
		arrived, good, refused := 0, 0, 0
		for _, b := range r.Series {
			arrived, good, refused = arrived+b.Arrived, good+b.Good, refused+b.Refused
		}
		if good == 0 || good+refused > arrived {
			t.Errorf("%s: %d good and %d refused of %d, void %q", c.Name, good, refused, arrived, r.Void)
		}
		if r.Limit != nil && !(*r.Limit > 0) {
			t.Errorf("%s: limit %v", c.Name, *r.Limit)
		}
		if r.Limit == nil && c.Name != "gozero-shedder" {
			t.Errorf("%s tells no limit", c.Name)
		}
	}
}

// From cold at 3x, 40 slots of 40 ms.
//
// A limit that was told: the wire and the model answer the same share. Both serve 4,000
// requests of exponential work, not the same ones, which varies by 1.6 % each, 2.2 % the
// difference. One that finds itself: after 2 s it answers what the told one does, and 3 %
// less is what finding may cost. 2 s of 1,000 answers vary by 2.2 % each, 3.2 % the
// difference. One that starts at 20 and does not find 40: it answers half. Three
// deviations each.
func TestAutoFindsWhatToldKnows(t *testing.T) {
	p := Cold(3, 40, 40*time.Millisecond, 4*second, 7)
	last := func(r *Result) float64 {
		y := &tally{plan: p, bins: r.Series}
		ratio, _ := y.ratios(2*second, 4*second, r.Speed)
		t.Logf("%s: %.3f of what could be after 2 s, limit %.1f", r.Contestant, ratio, *r.Limit)
		return ratio
	}
	told := play(t, "goodput-told", p)
	if d := math.Abs(told.Ratio - told.Model.Mean); d > 3*0.022 {
		t.Errorf("told: ratio %.3f, model %.3f", told.Ratio, told.Model.Mean)
	}
	if told.Phases[0].Limit != 40 {
		t.Errorf("limit %v, told 40", told.Phases[0].Limit)
	}
	known, found, rival := last(told), last(play(t, "goodput-auto", p)), last(play(t, "failsafe-cold", p))
	if found < known-0.03-3*0.032 {
		t.Errorf("auto answers %.3f of what could be, told %.3f", found, known)
	}
	if found < rival+3*0.032 {
		t.Errorf("auto answers %.3f of what could be, failsafe-go from cold %.3f", found, rival)
	}
}
