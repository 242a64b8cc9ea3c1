package watch

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// A story is snapshots, a second apart, and the lines that the log then has.
func TestStory(t *testing.T) {
	base := goodput.Stats{Name: "default"}
	base.Derivation = goodput.Derivation{
		Limit: 60, Mean: 50 * time.Millisecond, Rate: 1200, Objective: 400 * time.Millisecond,
		Percentile: 0.99, Service: 230 * time.Millisecond, Depth: 201, Reachable: true,
	}
	s := base
	var buf bytes.Buffer
	w := New(slog.New(slog.NewTextHandler(&buf, nil)))
	now := time.Unix(1000, 0)
	step := func(what string, want ...string) {
		t.Helper()
		buf.Reset()
		w.Step(now, s)
		now = now.Add(time.Second)
		lines := strings.Split(strings.TrimSpace(buf.String()), "\n")
		if buf.Len() == 0 {
			lines = nil
		}
		if len(lines) != len(want) {
			t.Fatalf("%s: %d lines, want %d:\n%s", what, len(lines), len(want), buf.String())
		}
		for i, words := range want {
			for word := range strings.SplitSeq(words, "; ") {
				if !strings.Contains(lines[i], word) {
					t.Errorf("%s: line %d has no %s:\n%s", what, i, word, lines[i])
				}
			}
		}
	}
	// settles is a step after which the log says nothing for a while, and then that.
	settles := func(what string, want ...string) {
		t.Helper()
		now = now.Add(spaced)
		for range int(quiet / time.Second) {
			step(what)
		}
		step(what, want...)
	}
	step("start", `msg="derived depth"; depth=201; limiter=default`)
	step("idle")
	s.Arrivals, s.Immediate = 1000, 1000
	step("busy")

	s.Arrivals, s.Dequeued, s.Refusals[goodput.QueueFull], s.Outcomes[goodput.Completed] = 4600, 200, 2395, 1100
	s.Refusals[goodput.Doomed], s.Refusals[goodput.Client] = 5, 7
	step("overload", `msg="overload began"; level=WARN`,
		`msg=shedding; seconds=1; arrivals=3600; admitted=200; completed=1100; refused=2400; reason.queue_full=2395; reason.doomed=5; reason.client=7`)
	s.Refusals[goodput.QueueFull] += 10
	step("still", `msg=shedding; refused=10; reason.queue_full=10; condition=`)
	s.Refusals[goodput.Client]++
	step("somebody left: no refusal")
	s.Overload = true
	step("quiet, but the queue stands")
	step("still")
	s.Overload = false
	step("and gone", `msg="overload ended"`)
	step("idle")

	s.Derivation.Depth = 210
	step("the depth moved by 4 %")
	s.Derivation.Depth = 240
	settles("by 16 % of what was told", `msg="derived depth"; derived_depth=240`)
	s.Derivation.Drifted = true
	settles("drifted", `msg="derived depth"; level=WARN`)
	s.Limit, s.Derivation.Limit = 61, 61
	step("somebody set the limit", `msg="derived depth"; limit=61`)
	if strings.Contains(buf.String(), "limit_why") {
		t.Errorf("nothing moved by itself: %s", buf.String())
	}

	// A law that moves the limit tries what is next to it all the time.
	move := func(limit, depth int) {
		s.Limit, s.Derivation.Limit, s.Derivation.Depth = limit, limit, depth
		s.LimitWhy = "one more makes the others slower"
	}
	move(66, 264)
	step("a tenth up")
	move(91, 364)
	settles("to a third of what it is now: 61 is two thirds of 91.5, and 240 of 360", `msg="derived depth"; limit=91; limit_why="one more`)
	move(61, 243)
	step("back by a third of it, less a little: 60.67 is two thirds of 91")
	move(60, 243)
	settles("by more", `msg="derived depth"; limit=60`)
	move(60, 161)
	settles("the depth alone: 162 is two thirds of 243", `msg="derived depth"; derived_depth=161`)
}

// In observe mode nobody is refused; the shadow says who would have been.
func TestObserveTellsTheShadow(t *testing.T) {
	s := goodput.Stats{Name: "default", Observe: true}
	s.Derivation.Reachable = true
	var buf bytes.Buffer
	w := New(slog.New(slog.NewTextHandler(&buf, nil)))
	w.Step(time.Unix(0, 0), s)
	s.Shadow.Refusals[goodput.QueueFull] = 3
	buf.Reset()
	w.Step(time.Unix(1, 0), s)
	if got := buf.String(); !strings.Contains(got, `msg="would refuse"`) || !strings.Contains(got, "reason.queue_full=3") {
		t.Errorf("%s", got)
	}
}

// C085: a client that leaves the queue has no line of its own. The line of the
// second counts it, by its reason, and not as refused.
func TestWhoLeftIsInTheSummary_C085(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var buf bytes.Buffer
		lim := goodput.New(goodput.Config{Limit: limit.Fixed(1), Depth: 3})
		stop, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			Run(stop, slog.New(slog.NewTextHandler(&buf, nil)), func() []*goodput.Limiter { return []*goodput.Limiter{lim} })
		})
		slot, err := lim.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		for range 4 { // three wait, the last is refused
			all.Go(func() { lim.Acquire(ctx) })
			synctest.Wait()
		}
		leave()
		synctest.Wait()
		slot.Release()
		time.Sleep(interval + time.Millisecond)
		cancel()
		all.Wait()
		log := buf.String()
		if strings.Count(log, "reason.client=3") != 1 || strings.Count(log, "refused=1 ") != 1 || strings.Count(log, "\n") != 3 {
			t.Errorf("want the derivation, a beginning and a line with refused=1 and reason.client=3:\n%s", log)
		}
	})
}

// An objective on the edge of the p99 is reachable and unreachable by turns. That fills no log: what
// lasts less than a moment has no line, and what lasts longer two a minute; another objective or
// another limit has one at once.
func TestTheEdgeOfTheObjective(t *testing.T) {
	for _, c := range []struct{ period, most int }{{1, 1}, {2, 1}, {3, 1}, {5, 20}, {60, 11}} {
		s := goodput.Stats{Name: "default"}
		s.Derivation.Reachable, s.Derivation.Depth, s.Derivation.Objective = true, 100, time.Second
		var buf bytes.Buffer
		w := New(slog.New(slog.NewTextHandler(&buf, nil)))
		now := time.Unix(1000, 0)
		for i := range 600 { // ten minutes
			s.Derivation.Reachable = i/c.period%2 == 0
			s.Derivation.Depth = []int{100, 1}[i/c.period%2]
			w.Step(now, s)
			now = now.Add(time.Second)
		}
		if n := strings.Count(buf.String(), "\n"); n > c.most || n < min(c.most, 10) {
			t.Errorf("turns of %d s have %d lines, want at most %d", c.period, n, c.most)
		}
		for _, change := range []func(){
			func() { s.Derivation.Objective += time.Second },
			func() { s.Derivation.Limit++ },
		} {
			buf.Reset()
			change()
			w.Step(now, s)
			now = now.Add(time.Second)
			if strings.Count(buf.String(), "\n") != 1 {
				t.Errorf("another configuration: %q", buf.String())
			}
		}
	}
}
