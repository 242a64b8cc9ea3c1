package watch

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

var message = regexp.MustCompile(`msg=("[^"]*"|\S+)`)

// messages returns those of a log, in their order.
func messages(log string) (all []string) {
	for _, m := range message.FindAllStringSubmatch(log, -1) {
		all = append(all, strings.Trim(m[1], `"`))
	}
	return all
}

// Each state has one line when it begins and one when it is over, however long it lasts, and
// none for what comes and goes within a moment.
func TestTurns(t *testing.T) {
	base := goodput.Stats{Name: "default"}
	base.Derivation.Reachable = true
	for _, c := range []struct {
		name  string
		set   func(*goodput.Stats, int) // in the second n of it
		began string
		over  string
		after int // quiet seconds before that
		facts string
	}{
		{"floor", func(s *goodput.Stats, n int) { s.LimitFloored, s.LimitMin = time.Duration(n+3)*time.Second, 4 }, "limit at its floor", "limit off its floor", 3, "limit_min=4"},
		{"search", func(s *goodput.Stats, _ int) { s.LimitSearch = true }, "", "capacity found", 3, "limit=0 capacity_per_second=0"},
		{"slowed", func(s *goodput.Stats, _ int) { s.Slowed, s.SlowedBy = true, 2.5 }, "dependency slowed", "dependency normal again", 3, "slowed_by=2.5"},
		{"absent", func(s *goodput.Stats, _ int) { s.Absent, s.MaxAbsence = true, time.Second }, "nothing to run on", "something to run on again", 0, "max_absence_seconds=1"},
		{"observe", func(s *goodput.Stats, _ int) { s.Observe = true }, "observe mode on", "observe mode off", 0, "running=0"},
	} {
		var log bytes.Buffer
		w := New(slog.New(slog.NewTextHandler(&log, nil)))
		now := time.Unix(1000, 0)
		step := func(in bool, n int) []string {
			log.Reset()
			s := base
			if in {
				c.set(&s, n)
			}
			w.Step(now, s)
			now = now.Add(time.Second)
			return messages(log.String())
		}
		one := func(what string) []string {
			if what == "" {
				return nil
			}
			return []string{what}
		}
		expect := func(when string, got, want []string) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: %q, want %q", c.name, when, got, want)
			}
		}
		expect("the start", step(false, 0), one("derived depth"))
		for range 2 { // each time again
			expect("the beginning", step(true, 0), one(c.began))
			if c.began != "" && !strings.Contains(log.String(), c.facts) {
				t.Errorf("%s: no %s in %s", c.name, c.facts, log.String())
			}
			for n := range 20 {
				expect("later", step(true, n+1), nil)
			}
			if c.after > 0 {
				expect("a moment without it", step(false, 0), nil)
				expect("and again", step(true, 1), nil)
			}
			for range c.after {
				expect("not over yet", step(false, 0), nil)
			}
			expect("the end", step(false, 0), one(c.over))
			if c.began == "" && !strings.Contains(log.String(), c.facts) {
				t.Errorf("%s: no %s in %s", c.name, c.facts, log.String())
			}
			for range 10 {
				expect("nothing", step(false, 0), nil)
			}
		}
	}
	// Less than a moment at the floor is none.
	var log bytes.Buffer
	w := New(slog.New(slog.NewTextHandler(&log, nil)))
	s := base
	s.LimitFloored = quiet - 1
	w.Step(time.Unix(0, 0), s)
	if got := messages(log.String()); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// A hundred limiters that shed have a hundred lines a second, and none while nothing is
// refused, whatever goes through them.
func TestAHundredLimiters(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	const n = 100
	watchers, stats := make([]*Watcher, n), make([]goodput.Stats, n)
	for i := range n {
		watchers[i], stats[i] = New(logger), goodput.Stats{Name: fmt.Sprint("class-", i)}
		stats[i].Derivation.Reachable, stats[i].Derivation.Depth = true, 100
	}
	now := time.Unix(1000, 0)
	step := func(refuse uint64) map[string]int {
		log.Reset()
		for i, w := range watchers {
			s := &stats[i]
			s.Arrivals += 100 + refuse
			s.Immediate, s.Outcomes[goodput.Completed] = s.Immediate+100, s.Outcomes[goodput.Completed]+100
			s.Refusals[goodput.QueueFull], s.Outcomes[goodput.Rejected] = s.Refusals[goodput.QueueFull]+refuse, s.Outcomes[goodput.Rejected]+refuse
			w.Step(now, *s)
		}
		now = now.Add(interval)
		count := map[string]int{}
		for _, m := range messages(log.String()) {
			count[m]++
		}
		return count
	}
	want := func(got map[string]int, all ...string) {
		t.Helper()
		if len(got) != len(all) {
			t.Errorf("%v, want %v", got, all)
		}
		for _, m := range all {
			if got[m] != n {
				t.Errorf("%d lines %q, want %d", got[m], m, n)
			}
		}
	}
	want(step(0), "derived depth")
	for range 5 {
		want(step(0))
	}
	want(step(50), "overload began", "shedding")
	for i := range 20 {
		for j := range stats { // an estimate moves, and the depth is in the line
			stats[j].Derivation.Depth = 120 - i%2*20
		}
		want(step(50), "shedding")
	}
	want(step(0))
	want(step(0))
	want(step(0), "overload ended")
	want(step(0))
}

// The second in which observe mode is switched has one line: what was refused in it, if
// anything was. What happens and what would is never mixed.
func TestSwitchOfObserve(t *testing.T) {
	var log bytes.Buffer
	w := New(slog.New(slog.NewTextHandler(&log, nil)))
	s := goodput.Stats{Name: "default"}
	s.Derivation.Reachable = true
	now := time.Unix(0, 0)
	step := func(want ...string) string {
		t.Helper()
		log.Reset()
		w.Step(now, s)
		now = now.Add(time.Second)
		if got := messages(log.String()); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		return log.String()
	}
	step("derived depth")
	s.Refusals[goodput.QueueFull], s.Outcomes[goodput.Rejected] = 10, 10
	step("overload began", "shedding")
	s.Refusals[goodput.QueueFull], s.Outcomes[goodput.Rejected] = 15, 15
	s.Shadow.Refusals[goodput.QueueFull], s.Shadow.Outcomes[goodput.Rejected] = 4, 4
	s.Observe = true
	if got := step("observe mode on", "shedding"); !strings.Contains(got, "refused=5") {
		t.Error(got)
	}
	s.Shadow.Refusals[goodput.Doomed], s.Shadow.Outcomes[goodput.Expired] = 7, 7
	if got := step("would refuse"); !strings.Contains(got, "refused=7") || !strings.Contains(got, "reason.doomed=7") {
		t.Error(got)
	}
	s.Observe = false
	step("observe mode off")
}

// A limiter that takes the name of another is not compared with it, and a limiter that has gone
// is not kept.
func TestAnotherOfTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		made := func(refusals int) *goodput.Limiter {
			lim := goodput.New(goodput.Config{Name: "default", Limit: limit.Fixed(1), Depth: goodput.NoQueue})
			slot, err := lim.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer slot.Release()
			for range refusals {
				if _, err := lim.Acquire(t.Context()); err == nil {
					t.Fatal("not refused")
				}
			}
			return lim
		}
		var now atomic.Pointer[goodput.Limiter]
		now.Store(made(1000))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			Run(ctx, slog.New(slog.NewTextHandler(&log, nil)), func() []*goodput.Limiter { return []*goodput.Limiter{now.Load()} })
		}()
		time.Sleep(2500 * time.Millisecond)
		now.Store(made(3)) // fewer than before
		time.Sleep(2 * time.Second)
		cancel()
		<-done
		if got := messages(log.String()); !slices.Equal(got, []string{"derived depth", "derived depth"}) {
			t.Errorf("%q", got)
		}
	})
}
