package virtual

import (
	"fmt"
	"time"
)

// Names of scenes, by load.
func flagship(load float64) string { return fmt.Sprintf("exponential %gx", load) }
func short(load float64) string    { return fmt.Sprintf("deadline 400ms %gx", load) }

// Edge is the name of a scene whose work takes as long as the objective leaves it.
func Edge(shape string, mean time.Duration) string { return fmt.Sprintf("edge %s %v", shape, mean) }

const (
	stepScene  = "step 60-20-60"
	halfScene  = "step 60-30-60"
	stallScene = "stall"
)

// The shapes of work.
var (
	exponential50 = Work{Shape: "exponential", Mean: Span(50 * time.Millisecond)}
	fixed50       = Work{Shape: "fixed", Mean: Span(50 * time.Millisecond)}
	lognormal50   = Work{Shape: "lognormal", Mean: Span(50 * time.Millisecond), CV: 1}
)

// Who plays: everybody, those that differ, those whose contexts matter, and those whose limits
// move.
var (
	everybody = names(func(Words) bool { return true })
	differing = names(func(w Words) bool { return w.Same == "" })
	listening = []string{"goodput/fixed", "goodput/auto", "bounded-fifo/480-ctx", "xsync/acquire-ctx", "failsafe/bulkhead-wait", "failsafe/adaptive-queue"}
	moving    = []string{"goodput/auto", "failsafe/adaptive", "failsafe/adaptive-60", "failsafe/adaptive-queue"}
)

func names(want func(Words) bool) []string {
	var all []string
	for _, c := range Contestants {
		if want(c.Words) {
			all = append(all, c.Name)
		}
	}
	return all
}

const (
	second = Span(time.Second)
	long   = 2 * second     // the deadline of callers
	brief  = second * 2 / 5 // or the objective itself
	window = 20 * second
	slots  = 60
)

// Scenes are all that the table has, in its order.
func Scenes() []Scene {
	var all []Scene
	add := func(s Scene) {
		s.Attempts = max(s.Attempts, 1)
		all = append(all, s)
	}
	steady := func(name, title string, load float64, n int, length Span, w Work, deadline Span, who []string) {
		add(Scene{Name: name, Title: title, Load: load, Phases: []Stage{{length, n}}, Work: w, Deadline: deadline, Who: who})
	}
	for _, load := range []float64{0.5, 1, 1.5, 3, 10} {
		who := everybody
		if load == 10 {
			who = differing
		}
		steady(flagship(load), "60 slots, exponential work of 50 ms, deadline 2 s", load, slots, window, exponential50, long, who)
	}
	for _, w := range []Work{fixed50, lognormal50} {
		for _, load := range []float64{1, 1.5, 3} {
			steady(fmt.Sprintf("%s %gx", w.Shape, load), "the same, "+w.Shape+" work", load, slots, window, w, long, differing)
		}
	}
	for _, load := range []float64{1, 1.5, 3, 10} {
		steady(short(load), "60 slots, exponential work of 50 ms, deadline 400 ms", load, slots, window, exponential50, brief, listening)
	}
	// The slowest percent of each takes half of the objective: 200, 198 and 197 ms; and two that
	// leave a little more. 200 s of 40/s are 8,000 served.
	for _, w := range []Work{
		{Shape: "fixed", Mean: 180 * second / 1000},
		{Shape: "fixed", Mean: 190 * second / 1000},
		{Shape: "fixed", Mean: 200 * second / 1000},
		{Shape: "exponential", Mean: 43 * second / 1000},
		{Shape: "lognormal", Mean: 31 * second / 1000, CV: 1.4},
	} {
		steady(Edge(w.Shape, time.Duration(w.Mean)), "p99 of the work half of the objective, deadline 2 s", 1.5, 8, 200*second, w, long, []string{"goodput/fixed", "goodput/auto", "chan/try"})
	}
	for _, load := range []float64{1.5, 3} {
		steady(fmt.Sprintf("180s %gx", load), "limits that move have three minutes", load, slots, 180*second, exponential50, long, moving)
	}
	for _, st := range []struct {
		name string
		n    int
	}{{stepScene, 20}, {halfScene, 30}} {
		add(Scene{
			Name: st.name, Title: "the slots change every 15 s, at 1.5x", Load: 1.5, Work: exponential50, Deadline: long, Who: differing,
			Phases: []Stage{{15 * second, slots}, {15 * second, st.n}, {15 * second, slots}},
		})
	}
	add(Scene{
		Name: stallScene, Title: "5 s in which nothing begins, at 0.9x, callers ask three times", Load: 0.9, Work: exponential50, Deadline: long,
		Phases: []Stage{{45 * second, slots}}, Stall: &Stall{10 * second, 5 * second}, Attempts: 3, Who: differing,
	})
	return all
}
