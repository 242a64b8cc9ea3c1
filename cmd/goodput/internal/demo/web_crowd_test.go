package demo

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// crowdOf is a crowd that sends to one way, without protection and with it.
func crowdOf(ctx context.Context, send load.Send) *crowd {
	return newCrowd(ctx, WebSlots/webMean.Seconds(), 1, [2]load.Send{send, send})
}

func (c *crowd) tally() tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// running runs c for the length of a test; what it returns ends it before.
func running(t *testing.T, c *crowd, cancel context.CancelFunc) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.run()
	}()
	return func() {
		cancel()
		<-done
	}
}

func at(load float64) Controls { return Controls{Load: &load} }

func ok200(context.Context) load.Answer { return load.Answer{Status: 200} }

// A change counts at once, whatever the gap was that was drawn before it: from one arrival in many
// years, and from none at all, to 2000 in the next second, and back to none.
func TestAChangeOfTheLoadCountsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := crowdOf(ctx, ok200)
		defer running(t, c, cancel)()
		second := func(load float64) float64 {
			before := c.tally().offered
			c.set(at(load))
			time.Sleep(time.Second)
			return float64(c.tally().offered - before)
		}
		time.Sleep(time.Second)
		if n := c.tally().offered; n != 0 {
			t.Errorf("%d arrivals before anybody set a load", n)
		}
		for _, tc := range []struct{ load, want float64 }{
			{math.SmallestNonzeroFloat64, 0},
			{10, 2000},
			{0, 0},
			{10, 2000},
			{1e-9, 0},
			{3, 600},
			{0.5, 100},
		} {
			// A Poisson count varies by its square root.
			if got := second(tc.load); math.Abs(got-tc.want) > 4*math.Sqrt(tc.want) {
				t.Errorf("load %v: %v arrivals in the second after, want %v +- %.0f", tc.load, got, tc.want, 4*math.Sqrt(tc.want))
			}
		}
	})
}

// Arrivals are Poisson: the counts of windows vary by as much as their mean. That holds too if the
// load is set again and again, to what it was, as a slider does that is held.
func TestArrivalsArePoisson(t *testing.T) {
	const windows = 2000
	for name, every := range map[string]time.Duration{"left alone": time.Hour, "set every 7ms": 7 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			c := crowdOf(ctx, ok200)
			defer running(t, c, cancel)()
			c.set(at(1))
			held := time.NewTicker(every)
			go func() {
				for {
					select {
					case <-held.C:
						c.set(at(1))
					case <-ctx.Done():
						return
					}
				}
			}()
			var sum, squares float64
			before := c.tally().offered
			for range windows {
				time.Sleep(50 * time.Millisecond)
				now := c.tally().offered
				n := float64(now - before)
				sum, squares, before = sum+n, squares+n*n, now
			}
			mean := sum / windows
			// The standard error of the mean is sqrt(10/2000), and that of variance/mean sqrt(2/2000).
			if want := 10.0; math.Abs(mean-want) > 4*math.Sqrt(want/windows) {
				t.Errorf("%s: %.2f arrivals in 50ms, want %v", name, mean, want)
			}
			if spread := (squares/windows - mean*mean) / mean; math.Abs(spread-1) > 4*math.Sqrt(2.0/windows) {
				t.Errorf("%s: variance / mean is %.3f, want 1", name, spread)
			}
		})
	}
}

// How a call ends, by what the client saw and whether the service had begun.
func TestHowACallEnds(t *testing.T) {
	refused := load.Answer{Status: 503, Reason: "queue_full"}
	expired := load.Answer{Status: 504, Reason: "deadline"}
	lost := load.Answer{Err: errors.New("connection reset")}
	for _, tc := range []struct {
		name  string
		begun bool
		total time.Duration
		left  bool
		a     load.Answer
		want  tally
	}{
		{"in time", true, webDeadline, false, load.Answer{Status: 200}, tally{inTime: 1}},
		{"an answer after the deadline", true, webDeadline + 1, false, load.Answer{Status: 200}, tally{late: 1}},
		{"left during the service", true, webDeadline, true, lost, tally{late: 1}},
		{"left while it waited", false, webDeadline, true, lost, tally{gone: 1}},
		{"refused", false, time.Millisecond, false, refused, tally{refused: 1}},
		{"refused after the deadline", false, webDeadline + 1, false, expired, tally{gone: 1}},
		{"cut off by the proxy at the deadline", true, webDeadline + 1, false, load.Answer{Status: 504}, tally{late: 1}},
		{"the service failed", true, time.Millisecond, false, load.Answer{Status: 500}, tally{failed: 1}},
		{"no answer", false, time.Millisecond, false, lost, tally{failed: 1}},
	} {
		c := crowdOf(t.Context(), ok200)
		c.calls[7] = new(call)
		if tc.begun {
			c.begin(7)
		}
		c.end(7, 2*time.Millisecond, tc.total, tc.left, tc.a)
		c.begin(7) // it has ended: nobody's
		if c.count != tc.want || len(c.calls) != 0 {
			t.Errorf("%s: %+v, want %+v", tc.name, c.count, tc.want)
		}
		waited := tc.want.inTime+tc.want.late+tc.want.gone > 0
		if l := c.window.latency; (len(l) == 1) != waited || waited && l[0] > webDeadline || len(c.window.late) != 1 {
			t.Errorf("%s: measured %v and %v", tc.name, l, c.window.late)
		}
	}
}

// The switch is for those who come after it. Who is under way ends where it was sent.
func TestTheSwitchIsForThoseWhoComeAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var sent [2]int
		way := func(i int) load.Send {
			return func(context.Context) load.Answer {
				sent[i]++ // one at a time: the bubble waits below
				time.Sleep(500 * time.Millisecond)
				return load.Answer{Status: 200}
			}
		}
		c := crowdOf(ctx, nil)
		c.ways = [2]load.Send{way(0), way(1)}
		defer running(t, c, cancel)()
		one := func() { // is due now
			c.mu.Lock()
			c.load, c.next = 1e-9, time.Now()
			c.mu.Unlock()
			c.set(Controls{})
			synctest.Wait()
		}
		one()
		// What is due at the instant of the switch was due before it.
		c.mu.Lock()
		c.next = time.Now()
		c.mu.Unlock()
		c.set(Controls{Protect: new(true)})
		synctest.Wait()
		if sent != [2]int{2, 0} {
			t.Errorf("before the switch: sent %v, want 2 directly", sent)
		}
		one()
		time.Sleep(time.Second)
		if n := c.tally(); sent != [2]int{2, 1} || n.inTime != 3 {
			t.Errorf("sent %v, ended %+v", sent, n)
		}
		if got := c.controls(); !*got.Protect {
			t.Error("a change of nothing has switched it off")
		}
	})
}

// At the bound an arrival is not sent, and is counted as one that failed.
func TestUnderWayIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		free := make(chan struct{})
		c := crowdOf(ctx, func(context.Context) load.Answer { // does not see that its client has left
			<-free
			return load.Answer{Status: 200}
		})
		stop := running(t, c, cancel)
		c.set(at(MaxWebLoad))
		time.Sleep(4 * time.Second)
		l := c.look()
		if n := l.count; l.underWay != MaxUnderWay || n.dropped == 0 || n.failed != n.dropped || n.offered != n.failed+MaxUnderWay {
			t.Errorf("%d under way, %+v", l.underWay, n)
		}
		if said := note(Scene{Dropped: 7}, l, 0); !strings.Contains(said, "7 requests a second were never sent, since 2048") {
			t.Errorf("the note is %q", said)
		}
		close(free)
		synctest.Wait()
		stop()
		if n := c.tally(); n.gone != MaxUnderWay || n.offered != n.failed+n.gone {
			t.Errorf("in the end %+v", n)
		}
	})
}

// A process that stood still does not send hours of arrivals at once, and says so. One that is a
// little late sends them all, and their latency has it.
func TestAProcessThatStoodStill(t *testing.T) {
	for _, tc := range []struct {
		still time.Duration
		most  float64 // arrivals of so long, in seconds
		note  string
	}{
		{60 * time.Millisecond, 0.06, "up to 60 ms late"},
		{time.Hour, 0.5, "stood still for more than 500ms"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			c := crowdOf(ctx, ok200)
			defer running(t, c, cancel)()
			c.mu.Lock()
			c.load, c.next = MaxWebLoad, time.Now().Add(-tc.still)
			c.send(time.Now())
			c.load, c.next = 0, time.Time{}
			c.mu.Unlock()
			synctest.Wait()
			l := c.look()
			want := tc.most * MaxWebLoad * c.capacity
			if got := float64(l.count.offered); math.Abs(got-want) > 4*math.Sqrt(want)+1 {
				t.Errorf("still for %v: %v arrivals, want %v", tc.still, got, want)
			}
			said := note(Scene{}, l, *quantile(l.window.late, 0.99))
			if !strings.Contains(said, tc.note) {
				t.Errorf("still for %v: the note is %q", tc.still, said)
			}
			// A client has its latency from when it was due, and none waits for longer than its deadline.
			if longest := *quantile(l.window.latency, 1); longest < 0.9*tc.most || longest > tc.most {
				t.Errorf("still for %v: the longest latency is %v", tc.still, longest)
			}
			if l = c.look(); l.skipped || len(l.window.late) > 0 {
				t.Error("it is said twice")
			}
		})
	}
}
