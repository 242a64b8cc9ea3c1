package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// offer runs a plan. In a bubble the clock is virtual: what is due is sent at
// that very instant, and every duration below is exact.
func offer(t *testing.T, p Plan, send Send) *Result {
	t.Helper()
	g, err := New(p, send)
	if err != nil {
		t.Fatal(err)
	}
	r := g.Run(t.Context())
	balanced(t, r)
	return r
}

// balanced checks that every arrival has one end, in each of the ways in which it is told.
func balanced(t *testing.T, r *Result) {
	t.Helper()
	equal := func(what string, got, want int64) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d and %d", what, got, want)
		}
	}
	equal("offered, and sent + dropped", r.Offered, r.Sent+r.Dropped)
	equal("sent, and ended", r.Sent, r.Completed+r.Refused+r.Failed+r.TimedOut+r.Errors+r.Aborted)
	equal("latenesses, and sent", r.Late.Count(), r.Sent)
	equal("latencies, and who got a slot", r.Latency.Count(), r.Completed-r.Unlike+r.TimedOut)
	equal("refusal times, and refusals", r.Refusal.Count(), r.Refused)
	equal("status, and answers", total(r.Status), r.Completed+r.AttemptsRefused()+r.Failed+r.Earlier.Failed)
	equal("reasons, and refusals", total(r.Reasons), r.AttemptsRefused())
	equal("refusals by form, and refusals", total(r.Refusals), r.AttemptsRefused())
	hints := r.RetryAfter
	equal("Retry-After, and refusals", hints.Absent+hints.Zero+hints.Malformed+total(hints.Values), r.AttemptsRefused())
	equal("followed, and what became of them", r.Followed.Asked, r.Followed.Served+r.Followed.Refused+r.Followed.Never)
	equal("attempts, and sent + earlier ones", r.Attempts, r.Sent+r.Earlier.Sum())
	if r.Attempts > r.Sent*int64(r.Plan.Attempts) {
		t.Errorf("%d attempts for %d requests of %d each", r.Attempts, r.Sent, r.Plan.Attempts)
	}
	var all Bin
	for i, b := range r.Bins {
		if open := b.Offered - b.InTime - b.Late - b.Refused - b.TimedOut - b.Failed; open < 0 || open > 0 && r.Aborted == 0 {
			t.Errorf("bin %d: %d of %d without an end", i, open, b.Offered)
		}
		all.Offered += b.Offered
		all.InTime += b.InTime
		all.Late += b.Late
		all.Refused += b.Refused
		all.TimedOut += b.TimedOut
		all.Failed += b.Failed
	}
	want := Bin{r.Offered, r.InTime, r.Completed - r.InTime - r.Unlike, r.Refused, r.TimedOut, r.Failed + r.Unlike + r.Errors + r.Dropped}
	if all != want {
		t.Errorf("the sum of the bins is %+v, of all %+v", all, want)
	}
}

func total[K comparable](m map[K]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}

// answerAfter returns a service that takes d for everybody at once.
func answerAfter(d time.Duration) Send {
	return func(ctx context.Context) Answer {
		select {
		case <-time.After(d):
			return Answer{Status: 200}
		case <-ctx.Done():
			return Answer{Err: ctx.Err()}
		}
	}
}

func constant(rate float64, d time.Duration) Plan {
	return Plan{Rate: rate, Duration: d, Constant: true, Deadline: time.Minute}
}

// quantileIs allows what three digits round: 0.1 %.
func quantileIs(t *testing.T, h *Histogram, q float64, want time.Duration) {
	t.Helper()
	got, ok := h.Quantile(q)
	if !ok || got < want || got > want+want/1000+time.Microsecond {
		t.Errorf("quantile %v is %v, want %v", q, got, want)
	}
}

// The service stands still from 10 s to 25 s. Whoever is due meanwhile waits for
// its end, and counts so: the requests are sent, not held back.
func TestC151FreezeIsChargedToThoseWhoWereDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		thaw := start.Add(25 * time.Second)
		r := offer(t, constant(500, 30*time.Second), func(ctx context.Context) Answer {
			if since := time.Since(start); since >= 10*time.Second && since < 25*time.Second {
				return answerAfter(time.Until(thaw))(ctx)
			}
			return answerAfter(time.Millisecond)(ctx)
		})
		if r.Sent != 15000 || r.InTime != 15000 {
			t.Fatalf("sent %d, in time %d, want 15000", r.Sent, r.InTime)
		}
		// The waits are 15 s, 14.998 s, ... of 30 s: the longest 1 % begin at
		// 15 s - 1 % of 30 s.
		quantileIs(t, r.Latency, 0.99, 14700*time.Millisecond)
		quantileIs(t, r.Latency, 1, 15*time.Second)
		quantileIs(t, r.Latency, 0.5, time.Millisecond)
		// Half of them waited: 2 ms, 4 ms, ... The 15 next to the median end
		// at 30 ms.
		quantileIs(t, r.Latency, 0.501, 30*time.Millisecond)
		quantileIs(t, r.Late, 1, 0)
	})
}

func TestC153PercentilesAreTheTrueOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		r := offer(t, constant(100, 100*time.Second), func(ctx context.Context) Answer {
			if n.Add(1)%10 == 0 {
				return answerAfter(time.Second)(ctx)
			}
			return answerAfter(time.Millisecond)(ctx)
		})
		quantileIs(t, r.Latency, 0.5, time.Millisecond)
		quantileIs(t, r.Latency, 0.9, time.Millisecond)
		quantileIs(t, r.Latency, 0.901, time.Second)
		quantileIs(t, r.Latency, 0.99, time.Second)
		if mean, _ := r.Latency.Mean(); mean.Round(time.Millisecond) != 101*time.Millisecond {
			t.Errorf("mean %v, want 0.9 x 1ms + 0.1 x 1s", mean) // 100.9 ms
		}
	})
}

// On the real clock, against a no-op: whatever this machine can do, the run has offered its
// load or says that it has not. All that is due is sent some time, so what counts is when: a
// valid run has sent 99 % of it by the end of the window and twice the tolerance. One more may
// have been held up between the clock of the generator and that of the test.
func TestC155OffersTheRateOrSaysSo(t *testing.T) {
	for _, rate := range []float64{100, 10_000, 50_000} {
		p := constant(rate, 300*time.Millisecond)
		start := time.Now()
		end := start.Add(p.Duration + 2*DefaultTolerance)
		var sent atomic.Int64
		g, err := New(p, func(context.Context) Answer {
			if time.Now().Before(end) {
				sent.Add(1)
			}
			return Answer{Status: 200}
		})
		if err != nil {
			t.Fatal(err)
		}
		r := g.RunAt(t.Context(), start)
		balanced(t, r)
		planned := rate * p.Duration.Seconds()
		if missing := planned - float64(sent.Load()); r.Void() == "" && missing > planned/100+1 {
			late, _ := r.Late.Quantile(0.99)
			t.Errorf("%v/s: %v of %v missing at the end, %v late, and the run is valid", rate, missing, planned, late)
		}
	}
}

func TestC155LateGeneratorVoidsTheRun(t *testing.T) {
	for _, tc := range []struct {
		oversleep time.Duration
		void      bool
	}{{0, false}, {4 * time.Millisecond, false}, {6 * time.Millisecond, true}, {time.Second, true}} {
		synctest.Test(t, func(t *testing.T) {
			g, err := New(constant(100, 10*time.Second), answerAfter(50*time.Millisecond))
			if err != nil {
				t.Fatal(err)
			}
			g.wait = func(ctx context.Context, d time.Duration) { sleep(ctx, d+tc.oversleep) }
			r := g.Run(t.Context())
			balanced(t, r)
			if why := r.Void(); (why != "") != tc.void || tc.void && !strings.Contains(why, "late") {
				t.Errorf("oversleeps by %v: void is %q", tc.oversleep, why)
			}
			quantileIs(t, r.Late, 1, tc.oversleep)
			// What the generator is late, the requests waited.
			quantileIs(t, r.Latency, 1, 50*time.Millisecond+tc.oversleep)
		})
	}
}

func TestC156DroppedArrivalsAreCountedAndVoidTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := constant(100, 10*time.Second)
		p.MaxInFlight = 10 // at 1 s an answer: 10/s
		r := offer(t, p, answerAfter(time.Second))
		if r.Offered != 1000 || r.Dropped != 900 || r.Sent != 100 {
			t.Errorf("offered %d, dropped %d, sent %d", r.Offered, r.Dropped, r.Sent)
		}
		if why := r.Void(); !strings.Contains(why, "900 of 1000 requests dropped") {
			t.Errorf("void: %q", why)
		}
		// What was not sent was not served either: it counts against goodput.
		if got := r.Ratio(100); got != 0.1 {
			t.Errorf("ratio %v, want 0.1", got)
		}
	})
}

func TestC157SendsExactlyTheProduct(t *testing.T) {
	for range 5 {
		synctest.Test(t, func(t *testing.T) {
			var sent atomic.Int64
			r := offer(t, constant(30, 30*time.Second), func(context.Context) Answer {
				sent.Add(1)
				return Answer{Status: 200}
			})
			if sent.Load() != 900 || r.Offered != 900 || r.InTime != 900 {
				t.Errorf("sent %d, offered %d, in time %d, want 900", sent.Load(), r.Offered, r.InTime)
			}
		})
	}
}

func TestC158WaitingForTheScheduleIsNoLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := offer(t, constant(1, 20*time.Second), answerAfter(50*time.Millisecond))
		if mean, _ := r.Latency.Mean(); mean.Round(100*time.Microsecond) != 50*time.Millisecond {
			t.Errorf("mean %v, want 50ms", mean)
		}
	})
}

// A service that can do 100/s and answers each after 1 s or more is offered
// 200/s throughout.
func TestC160SlowAnswersDoNotSlowTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		var perSecond [20]int
		slots := make(chan struct{}, 100)
		p := constant(200, 20*time.Second)
		p.Deadline = 4 * time.Second
		r := offer(t, p, func(ctx context.Context) Answer {
			mu.Lock()
			perSecond[int(time.Since(start).Seconds())]++
			mu.Unlock()
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return Answer{Err: ctx.Err()}
			}
			defer func() { <-slots }()
			return answerAfter(time.Second)(ctx)
		})
		for second, n := range perSecond {
			if n != 200 {
				t.Errorf("second %d: %d sent, want 200", second, n)
			}
		}
		if r.Offered != 4000 || r.TimedOut == 0 {
			t.Errorf("offered %d, timed out %d", r.Offered, r.TimedOut)
		}
		// The result shows both, side by side: what was offered, and what of it was served.
		for i, b := range r.Bins {
			if b.Offered != 20 || b.InTime+b.TimedOut != 20 {
				t.Errorf("bin %d: %+v, want 20 offered, in time or timed out", i, b)
			}
		}
		if got := r.PerSecond(r.Offered); got != 200 {
			t.Errorf("offered %v/s", got)
		}
	})
}

// A timer that rings every 15 ms only, as on Windows: the rate is right on average, since what
// is overdue is sent at once, and the jitter is reported. It voids the run unless the
// objective is so long that it does not matter.
func TestC162CoarseTimer(t *testing.T) {
	const tick = 15 * time.Millisecond
	for _, tc := range []struct {
		constant  bool
		objective time.Duration
		void      bool
	}{{true, 400 * time.Millisecond, true}, {true, 2 * time.Second, false}, {false, 400 * time.Millisecond, true}} {
		synctest.Test(t, func(t *testing.T) {
			p := Plan{Rate: 1000, Duration: 9 * time.Second, Constant: tc.constant, Seed: 1, Deadline: time.Minute}
			p.Tolerance = ToleranceFor(tc.objective)
			var want int64
			for range p.Arrivals() {
				want++
			}
			var mu sync.Mutex
			perTick := map[time.Duration]int{}
			start := time.Now()
			g, err := New(p, func(ctx context.Context) Answer {
				mu.Lock()
				perTick[time.Since(start)/tick]++
				mu.Unlock()
				return answerAfter(time.Millisecond)(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
			g.wait = func(ctx context.Context, d time.Duration) {
				now := time.Since(g.start)
				sleep(ctx, (now+d+tick-1)/tick*tick-now)
			}
			r := g.Run(t.Context())
			balanced(t, r)
			if r.Sent != want || r.Dropped != 0 {
				t.Errorf("sent %d, want %d", r.Sent, want)
			}
			if why := r.Void(); (why != "") != tc.void || tc.void && !strings.Contains(why, "late at p99") {
				t.Errorf("objective %v: void is %q", tc.objective, why)
			}
			if !tc.constant {
				return
			}
			quantileIs(t, r.Late, 1, tick-time.Millisecond)
			quantileIs(t, r.Late, 0.5, 7*time.Millisecond)
			for i := range time.Duration(9 * time.Second / tick) {
				if want := 15; i > 0 && perTick[i] != want {
					t.Errorf("tick %d: %d sent, want %d", i, perTick[i], want)
				}
			}
		})
	}
}

func TestDeadlineEndsWhoIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := Plan{Rate: 1000, Duration: time.Second, Seed: 3, Deadline: 2 * time.Second}
		r := offer(t, p, answerAfter(time.Hour))
		if r.TimedOut != r.Sent || r.Errors != 0 || r.InTime != 0 {
			t.Errorf("of %d: timed out %d, errors %d, in time %d", r.Sent, r.TimedOut, r.Errors, r.InTime)
		}
		for _, q := range []float64{0.01, 0.5, 1} {
			if got, _ := r.Latency.Quantile(q); got != p.Deadline {
				t.Errorf("quantile %v is %v, want the deadline", q, got)
			}
		}
		if took := time.Since(start); took > p.Duration+p.Deadline+reapEvery {
			t.Errorf("took %v", took)
		}
		if why := r.Void(); why != "" {
			t.Errorf("void: %s", why) // a collapse is an answer
		}
	})
}

func TestAnswerAfterTheDeadlineIsNotInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := constant(10, time.Second)
		p.Deadline = 100 * time.Millisecond
		r := offer(t, p, func(context.Context) Answer {
			time.Sleep(300 * time.Millisecond) // deaf to cancellation
			return Answer{Status: 200}
		})
		if r.Completed != 10 || r.InTime != 0 {
			t.Errorf("completed %d, in time %d, want 10 and 0", r.Completed, r.InTime)
		}
	})
}

func TestInterruptedRunIsVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		g, err := New(constant(100, 10*time.Second), answerAfter(2*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		r := g.Run(ctx)
		balanced(t, r)
		if time.Since(start) != 5*time.Second {
			t.Errorf("returned after %v", time.Since(start))
		}
		if r.Aborted == 0 || r.Errors != 0 || !strings.Contains(r.Void(), "interrupted") {
			t.Errorf("aborted %d, errors %d, void %q", r.Aborted, r.Errors, r.Void())
		}
	})
}

// Whatever the answers, each arrival has exactly one end, and Live never shows
// more ends than arrivals.
func TestEveryArrivalHasOneEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const seed = 11
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(seed, 0))
		answers := []Answer{
			{Status: 200},
			{Status: 404},
			{Status: 500},
			{Status: 503, Reason: "queue_full"},
			{Status: 504, Reason: "deadline"},
			{Err: errors.New("connection reset")},
		}
		p := Plan{Rate: 5000, Duration: 4 * time.Second, Seed: seed, Deadline: 100 * time.Millisecond, MaxInFlight: 270}
		g, err := New(p, func(ctx context.Context) Answer {
			mu.Lock()
			a := answers[rng.IntN(len(answers))]
			d := time.Duration(rng.IntN(110)) * time.Millisecond
			mu.Unlock()
			if b := answerAfter(d)(ctx); b.Err != nil {
				return b
			}
			return a
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range 300 {
				time.Sleep(10 * time.Millisecond)
				l := g.Live()
				if ends := l.InTime + l.Refused + l.TimedOut + int64(l.InFlight); ends > l.Offered || l.InFlight > 270 {
					t.Errorf("seed %d, %v: offered %d, ends and in flight %d", seed, l.Elapsed, l.Offered, ends)
				}
			}
		}()
		r := g.Run(t.Context())
		balanced(t, r)
		for name, n := range map[string]int64{
			"dropped": r.Dropped, "completed": r.Completed, "refused": r.Refused, "failed": r.Failed,
			"timed out": r.TimedOut, "errors": r.Errors, "404": r.Status[404], "queue_full": r.Reasons["queue_full"],
		} {
			if n == 0 {
				t.Errorf("seed %d: no %s", seed, name)
			}
		}
		if r.FirstError == nil {
			t.Error("errors, but not one to show")
		}
	})
}
