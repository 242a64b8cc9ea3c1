package virtual

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/goodput/goodput/bench/live"
	"github.com/goodput/goodput/internal/sim"
)

// The work of a request is at the same quantile whatever the shape, and adds up to the mean
// of the scene: within four deviations, CV/sqrt(n) each.
func TestRequestsOfShapes(t *testing.T) {
	of := func(w Work, seed uint64) []live.Request {
		return slices.Collect(Scene{Load: 3, Phases: []Stage{{window, slots}}, Work: w, Deadline: long}.Requests(seed))
	}
	exp := of(exponential50, 1)
	if slices.Equal(exp, of(exponential50, 2)) || !slices.Equal(exp, of(exponential50, 1)) {
		t.Error("requests do not follow from the seed")
	}
	longest := slices.MaxFunc(exp, func(a, b live.Request) int { return int(a.Work - b.Work) })
	for _, w := range []Work{fixed50, lognormal50, exponential50} {
		all := of(w, 1)
		sum, most := 0.0, live.Request{}
		for i, q := range all {
			if q.Due != exp[i].Due || q.Work < 1 {
				t.Fatalf("%s: request %d is %+v", w.Shape, i, q)
			}
			sum += q.Work.Seconds()
			if q.Work > most.Work {
				most = q
			}
		}
		n := float64(len(all))
		cv := map[string]float64{"exponential": 1, "lognormal": w.CV}[w.Shape]
		if mean := sum / n; math.Abs(mean/0.05-1) > 4*cv/math.Sqrt(n)+1e-4 { // and whole microseconds
			t.Errorf("%s: the mean of the work is %v s", w.Shape, mean)
		}
		if w.Shape == "lognormal" && most.Due != longest.Due {
			t.Errorf("lognormal: the longest is due at %v, that of exponential work at %v", most.Due, longest.Due)
		}
	}
}

// The scenes are apart, can be asked for, and have somebody who plays.
func TestScenes(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Scenes() {
		s.Phases[0].Length = min(s.Phases[0].Length, second) // a scene may have half a million requests
		if seen[s.Name] || s.Title == "" || s.Attempts < 1 || s.Work.Mean == 0 || s.Deadline == 0 {
			t.Errorf("scene %+v", s)
		}
		seen[s.Name] = true
		if got := s.players(); len(got) == 0 || len(got) != len(s.Who) {
			t.Errorf("%s: %d play of %q", s.Name, len(got), s.Who)
		}
		played := s.scenario(1)
		if err := played.Validate(); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		var first sim.Job
		for q := range s.Requests(1) {
			if !played.Trace(&first) || first.At != q.Due || first.Service != q.Work {
				t.Errorf("%s: the first request is %+v, of the simulator %+v", s.Name, q, first)
			}
			break
		}
		var back Scene
		b, err := json.Marshal(s)
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if back.Who = s.Who; err != nil || !reflect.DeepEqual(back, s) {
			t.Errorf("%s: %v: %+v became %+v", s.Name, err, s, back)
		}
	}
}

// A ceiling is not below what is reached, and refusing at once is what Erlang says.
func TestCeilings(t *testing.T) {
	c, err := scene(t, flagship(1.5)).ceiling(1)
	if err != nil || c.Blind != 1 || c.SizeAware < 1.3 || c.Clairvoyant < c.SizeAware || math.Abs(c.NoQueue-0.9715) > 1e-3 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := scene(t, stepScene).ceiling(1); err != nil || c.NoQueue != 0 || c.Clairvoyant < 1 || len(c.Missing) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := scene(t, stallScene).ceiling(1); err != nil || c.Clairvoyant != 0 || len(c.Missing) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestSpanIsInMilliseconds(t *testing.T) {
	b, err := json.Marshal(Span(1500 * time.Microsecond))
	if err != nil || string(b) != "1.5" {
		t.Errorf("%s, %v", b, err)
	}
	var s Span
	if err := json.Unmarshal([]byte("1.5"), &s); err != nil || s != Span(1500*time.Microsecond) {
		t.Errorf("%v, %v", s, err)
	}
	if err := json.Unmarshal([]byte(`"1.5"`), &s); err == nil {
		t.Error("a string is a time")
	}
}
