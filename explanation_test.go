package goodput

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/goodput/goodput/limit"
)

// fact returns what an explanation says about a topic, "" if that is nothing.
func fact(e Explanation, topic string) string {
	for _, f := range e.Facts {
		if f.Topic == topic {
			return f.Text
		}
	}
	return ""
}

// Explain is Explanation and nothing else, in lines of 80 columns under topics of 8 letters, and says
// no "NaN" (C126). The longest sentences are those of tenants in a flood, which TestExplainShowsShares reads.
func TestExplainFitsATerminal(t *testing.T) {
	check := func(name, text string) {
		t.Helper()
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > 80 || strings.TrimRight(line, " ") != line || strings.Contains(line, "NaN") {
				t.Errorf("%s: %d columns: %q", name, n, line)
			}
		}
	}
	text, _ := flooded(t, true)
	check("flooded", text)
	for _, cfg := range []Config{
		{},
		{Name: "search", Limit: limit.Fixed(60), Objective: 400 * time.Millisecond, Service: 50 * time.Millisecond},
		{Limit: limit.Fixed(2), Objective: 400 * time.Millisecond, Allowance: Quota{Rate: 3}, Observe: true},
		{Limit: limit.Fixed(1), Depth: NoQueue, Reserve: Reserve{Critical: 0.5}},
	} {
		l := New(cfg)
		for range 5 {
			_, _ = l.AcquireWork(context.Background(), Work{})
		}
		e := l.Explanation()
		check(e.Limiter, e.String())
		for _, f := range e.Facts {
			if n := utf8.RuneCountInString(f.Topic); n == 0 || n > 8 || f.Text == "" || strings.Contains(f.Text, "\n\n") {
				t.Errorf("%s: %q: %q", e.Limiter, f.Topic, f.Text)
			}
		}
		for _, topic := range []string{"limit", "depth", "queue", "order", "load", "latency", "ended"} {
			if fact(e, topic) == "" {
				t.Errorf("%s: nothing about %s", e.Limiter, topic)
			}
		}
	}
	long := strings.Repeat("x", 100)
	var b strings.Builder
	wrap(&b, "  head     ", "a "+long+" "+strings.Repeat("é", 69)+" b", 11)
	if want := "  head     a\n           " + long + "\n           " + strings.Repeat("é", 69) + "\n           b\n"; b.String() != want {
		t.Errorf("wrapped as %q", b.String())
	}
}

// The order in force, and why: fifo while nobody is late for it, another once a queue has
// stood, or what the configuration says.
func TestExplainSaysWhyTheOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		wait []time.Duration // deadlines of those that wait, 0: none
		is   time.Duration   // after which it is asked
		want string
	}{
		{"nobody", Config{}, nil, 0, `fifo: nobody waits`},
		{"a burst", Config{}, []time.Duration{0, 0}, 20 * time.Millisecond, `fifo: the queue has stood for 20ms, and whoever is first still makes the objective; it takes 1s for another order`},
		{"standing", Config{}, []time.Duration{0, 0}, 10 * time.Second, `newest_first: the queue has stood for 10s, more than 1s, and who came first would be late: who came last is not; fifo again once it has drained`},
		{"deadlines", Config{}, []time.Duration{time.Minute, time.Hour}, 10 * time.Second, `edf: the queue has stood for 10s, more than 1s, and deadlines differ; fifo again once it has drained`},
		{"configured", Config{Order: EDF}, []time.Duration{0}, 0, `edf: the configuration says so \(Order\)`},
	} {
		synctest.Test(t, func(t *testing.T) {
			c.cfg.Limit, c.cfg.Depth, c.cfg.MaxWait = limit.Fixed(1), 10, time.Hour
			c.cfg.Objective, c.cfg.Service = 2*time.Second, 10*time.Millisecond
			l := New(c.cfg)
			slot := mustAcquire(t, l)
			defer time.Sleep(2 * time.Hour)
			defer slot.Release()
			for _, d := range c.wait {
				go func() {
					ctx, cancel := context.WithTimeout(context.Background(), max(d, time.Nanosecond))
					defer cancel()
					if d == 0 {
						ctx = context.Background()
					}
					if slot, err := l.Acquire(ctx); err == nil {
						slot.Release()
					}
				}()
				synctest.Wait()
			}
			time.Sleep(c.is)
			_, _ = l.TryAcquire() // a call of the core: orders change with those
			if got := fact(l.Explanation(), "order"); !regexp.MustCompile("^" + c.want + "$").MatchString(got) {
				t.Errorf("%s: %q", c.name, got)
			}
		})
	}
}

// The latency of all that got a slot against the objective, and no number where there is none; and the
// baseline, once there is one.
func TestExplainSaysTheLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(2), Objective: 40 * time.Millisecond})
		run := func(n int, d time.Duration) {
			for range n {
				slot := mustAcquire(t, l)
				time.Sleep(d)
				slot.Release()
			}
		}
		is := func(topic, want string) {
			t.Helper()
			if got := fact(l.Explanation(), topic); !regexp.MustCompile("^" + want + "$").MatchString(got) {
				t.Errorf("%s: %q, want %s", topic, got, want)
			}
		}
		is("latency", `no data: nothing that was timed has ended`)
		is("held", ``)
		run(50, 20*time.Millisecond)
		is("latency", `p99 \d\d(\.\d+)?ms of all that got a slot so far, within the objective of 40ms; p50 \d\d(\.\d+)?ms`)
		run(10, 100*time.Millisecond)
		is("latency", `p99 1\d\d(\.\d+)?ms of all that got a slot so far, above the objective of 40ms; p50 \d\d(\.\d+)?ms`)
		run(6000, 20*time.Millisecond)
		is("held", `a unit is held for 20ms now, and was for 20(\.\d)?ms over the last minutes, (0\.9\d|1\.00)x: as is usual`)
		run(20, 80*time.Millisecond)
		is("held", `a unit is held for [\d.]+ms now, and was for 2[\d.]+ms over the last minutes, \d\.\d\dx: which is not called slow: .*`)
		run(100, 80*time.Millisecond)
		is("held", `a unit is held for [\d.]+ms now, and was for 2[\d.]+ms over the last minutes, 3\.\d\dx: what it depends on has slowed, .*`)
		slot := mustAcquire(t, l)
		if s := l.Stats(); s.Condition() != ConditionSlowed || !strings.HasPrefix(s.State(), "slowed: a unit is held 3.") {
			t.Errorf("%v: %q", s.Condition(), s.State())
		}
		slot.Release()
		run(800, 4*time.Millisecond)
		is("held", `a unit is held for .*: faster than usual`)
	})
}

// The last refusals, the latest first, with what decided each.
func TestExplainSaysTheLastRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(2), Depth: 1, MaxBytes: 100})
		defer mustAcquire(t, l).Release()
		defer mustAcquire(t, l).Release()
		ctx, cancel := context.WithCancel(t.Context())
		defer time.Sleep(time.Minute)
		defer cancel()
		c := &crowd{t, l, ctx}
		c.wait(1, Work{})
		c.wait(2, Work{})
		time.Sleep(150 * time.Millisecond) // a window is 100 ms
		c.wait(1, Work{})
		time.Sleep(50 * time.Millisecond)
		c.wait(1, Work{Bytes: 101})
		time.Sleep(900 * time.Millisecond) // the one that waits is refused after 1s
		const want = "\n" +
			"  last     1 x wait_bound, 100ms ago and after a wait of 1s: MaxWait 1s, which\n" +
			"           is the Objective; 2 of 2 in use, 0 waiting; retry after 2s\n" +
			"           1 x too_large, 900ms ago: MaxBytes 100 B, of which it has 101 B; 2 of\n" +
			"           2 in use, 1 waiting\n" +
			"           3 x queue_full, from 1.1s to 950ms ago: Depth 1; 2 of 2 in use, 1\n" +
			"           waiting; retry after 1s\n"
		if text := l.Explain(); !strings.HasSuffix(text, want) {
			t.Errorf("%s\nwant at the end:%s", text, want)
		}
		if e := l.Explanation(); len(e.Refused) != 4 || e.Condition != ConditionBoundary || e.Limiter != DefaultName {
			t.Errorf("%+v", e)
		}
	})
}
