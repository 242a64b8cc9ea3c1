package soak

import (
	"slices"
	"testing"
	"time"
)

// Of any seed: every minute has a policy by each way, a restart and the bursts, all over before
// the minute is; the rests are where they belong; the same seed is the same plan.
func TestThePlanOfAnHour(t *testing.T) {
	for seed := range uint64(100) {
		events := plan(seed, time.Hour, 10*time.Minute)
		if !slices.Equal(events, plan(seed, time.Hour, 10*time.Minute)) {
			t.Fatalf("seed %d: two plans", seed)
		}
		if !slices.IsSortedFunc(events, func(a, b event) int { return int(a.at - b.at) }) {
			t.Fatalf("seed %d: not in order", seed)
		}
		var minutes [60][stopLoad + 1]int
		for _, e := range events {
			minutes[e.at/time.Minute][e.act]++
			switch within := e.at % time.Minute; {
			case e.act == stopLoad && within != time.Minute-restTime:
				t.Errorf("seed %d: a rest at %v", seed, e.at)
			case e.act == restart && within+downMost+settling > time.Minute-time.Second:
				t.Errorf("seed %d: a restart at %v is not over before the minute is", seed, e.at)
			case e.act != stopLoad && within > time.Minute-restTime-2*time.Second:
				t.Errorf("seed %d: act %d at %v runs into a rest", seed, e.act, e.at)
			}
		}
		total := [stopLoad + 1]int{}
		for m, n := range minutes {
			if n[hangup] != 1 || n[post] != 1 || n[restart]+n[blackout] != 1 || n[burst] != bursts || n[stopLoad] != 0 && m%10 != 9 {
				t.Errorf("seed %d: minute %d has %v", seed, m, n)
			}
			for a := range n {
				total[a] += n[a]
			}
		}
		if total != [stopLoad + 1]int{60, 60, 6, 6, 54, 6, 60 * bursts, 6} {
			t.Errorf("seed %d: %v", seed, total)
		}
	}
}

// A second counts if nothing of it was disturbed, and the warm-up is over.
func TestSecondsThatAreJudged(t *testing.T) {
	s := &stage{Run: Run{Length: 10 * time.Second, Warm: 2 * time.Second}, r: &Report{Took: time.Minute}, tally: newTally(10 * time.Second)}
	s.tally.sent(2500*time.Millisecond, lateMost)
	s.tally.sent(3500*time.Millisecond, lateMost+1)
	s.tally.sent(5*time.Second, time.Second)
	s.disturbed = []span{{4500 * time.Millisecond, 6 * time.Second}, {8 * time.Second, time.Minute}}
	want := []bool{false, false, true, false, false, false, true, true, false, false}
	if got := s.judged(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if s.r.Busy != 1 {
		t.Errorf("%d busy seconds, want 1: those that are not judged anyway are none", s.r.Busy)
	}
}

// What began and ended in calm counts; what touched a second without it does not.
func TestWhatHappensInCalm(t *testing.T) {
	const n = 20
	calm := make([]bool, n)
	for sec := range calm {
		calm[sec] = sec != 9
	}
	tally := newTally(n * time.Second)
	for _, s := range []seen{
		{due: 8 * time.Second, took: 999 * time.Millisecond, end: lost},
		{due: 8 * time.Second, took: time.Second, end: lost},       // ends in it
		{due: 9500 * time.Millisecond, took: time.Second, end: ok}, // begins in it
		{due: 9999 * time.Millisecond, took: time.Second, end: failed, deadline: shortDeadline},
		{due: 10 * time.Second, took: time.Second, end: failed, deadline: shortDeadline, class: 1},
		{due: 10 * time.Second, took: shortDeadline - hopMargin, end: failed, deadline: shortDeadline}, // 504
		{due: 10 * time.Second, took: time.Second, end: failed, class: -1},
		{due: 8500 * time.Millisecond, took: 4 * time.Second, end: hung}, // over it
		{due: 11 * time.Second, took: 4 * time.Second, end: hung, class: 1},
		{due: 2 * time.Second, took: 4 * time.Second, end: left},
		{due: 19 * time.Second, took: 4 * time.Second, end: hung}, // ends behind the run
	} {
		tally.add(s)
	}
	// Calm for 7 s and the second in which that ends: two due in second 10, one in 11.
	want := Calm{Requests: 3, Hung: 1, Lost: 1, Failed: 2}
	if got := tally.inCalm(calm); *got != want {
		t.Errorf("%+v, want %+v", *got, want)
	}
}
