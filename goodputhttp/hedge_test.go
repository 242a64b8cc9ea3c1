package goodputhttp

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// takes is a base whose answers take what draw says, or until the request is cancelled.
func takes(draw func() time.Duration) base {
	return func(r *http.Request) (*http.Response, error) {
		timer := time.NewTimer(draw())
		defer timer.Stop()
		select {
		case <-timer.C:
			return respond(200, "answer"), nil
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

// sample makes n calls one after the other and returns how long each took, sorted.
func sample(t *testing.T, tr http.RoundTripper, n int) []time.Duration {
	took := make([]time.Duration, n)
	for i := range took {
		start := time.Now()
		res, err := tr.RoundTrip(get(background))
		if err != nil {
			t.Fatal(err)
		}
		text(t, res)
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took
}

// 98 % of the answers take 10 ms and 2 % take 1 s, whoever asks. A hedge makes the p99
// twice the usual answer, and costs no more than the slow ones: the fast ones, all in one
// bucket of the histogram, are not hedged.
func TestHedgeCutsTheTail(t *testing.T) {
	const calls = 5000
	seed := uint64(time.Now().UnixNano())
	run := func(h *Hedge) (p99 time.Duration, st DependencyStats) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			dep := &Dependency{Limiter: limiter(4, goodput.Config{}), Hedge: h}
			took := sample(t, to(dep, takes(func() time.Duration {
				mu.Lock()
				defer mu.Unlock()
				if rng.Float64() < 0.02 {
					return time.Second
				}
				return 10 * time.Millisecond
			})), calls)
			synctest.Wait()
			settled(t, dep.Limiter)
			p99, st = took[calls*99/100], dep.Stats()
		})
		return p99, st
	}
	bare, _ := run(nil)
	h := &Hedge{}
	hedged, st := run(h)
	t.Logf("p99 %v, hedged %v with %d more requests of %d (seed %d)", bare, hedged, st.Hedges, calls, seed)
	if bare != time.Second || hedged > 25*time.Millisecond || h.Delay() < 10*time.Millisecond || h.Delay() > 12*time.Millisecond {
		t.Errorf("p99 %v, hedged %v after %v (seed %d)", bare, hedged, h.Delay(), seed)
	}
	// 100 of 5,000 are slow, with a standard error of 9.9; the first 100 calls are not hedged.
	if st.Hedges == 0 || st.Hedges > 100+4*10 || st.HedgeWins == 0 {
		t.Errorf("%d hedges, %d won, of %d calls (seed %d)", st.Hedges, st.HedgeWins, calls, seed)
	}
}

// With answers that are spread, the part that is hedged is what the quantile leaves.
func TestHedgeCostsWhatTheQuantileSays(t *testing.T) {
	for _, q := range []float64{0.9, 0.95, 0.99} {
		synctest.Test(t, func(t *testing.T) {
			const calls = 10_000
			seed := uint64(time.Now().UnixNano())
			rng := rand.New(rand.NewPCG(seed, 2))
			var mu sync.Mutex
			dep := &Dependency{Hedge: &Hedge{Quantile: q}, Retry: &retry.Policy{Budget: &retry.Budget{Ratio: 1, Reserve: 1000}}}
			sample(t, to(dep, takes(func() time.Duration {
				mu.Lock()
				defer mu.Unlock()
				return time.Duration(rng.ExpFloat64() * float64(20*time.Millisecond))
			})), calls)
			got := float64(dep.Stats().Hedges) / calls
			// At most 1 - q, but for the error of a quantile of 100 to 2,000 answers: 4
			// standard errors of a share among the 1,000 that it is of at least, most of the
			// time. Rounded up by up to 9.1 %: exp(-1.09 x -ln(1-q)) = (1-q)^1.09 at least.
			slack := 4 * math.Sqrt(q*(1-q)/1000)
			if most, least := 1-q+slack, math.Pow(1-q, 1.0905*1.0905)-slack; got > most || got < least {
				t.Errorf("quantile %v: %.3f hedged, want %.3f to %.3f (seed %d)", q, got, least, most, seed)
			}
		})
	}
}

// Where everything became slow, hedges end with the retry budget.
func TestHedgeEndsWithTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 1000
		lim := limiter(calls, goodput.Config{})
		dep := &Dependency{Limiter: lim, Hedge: &Hedge{}}
		dep.Hedge.delay.Store(int64(10 * time.Millisecond))
		tr := to(dep, takes(func() time.Duration { return 100 * time.Millisecond }))
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() {
				if res, err := tr.RoundTrip(get(background)); err == nil {
					res.Body.Close()
				}
			})
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		if st := dep.Stats(); st.Hedges < 10 || st.Hedges > calls/10+10 {
			t.Errorf("%d hedges of %d calls, want no more than one in ten and ten in reserve", st.Hedges, calls)
		}
		settled(t, lim) // also the slots of those for which there was no budget
	})
}

// A hedged call in all its ends. first and second say what the two requests do.
func TestHedgeRace(t *testing.T) {
	type end struct {
		after  time.Duration
		status int // 0 is an error
	}
	for _, c := range []struct {
		name          string
		first, second end
		status        int // of the answer; 0 is an error
		after         time.Duration
		wins          uint64
		want          map[goodput.Outcome]uint64
	}{
		{
			"the first in time",
			end{5, 200},
			end{},
			200, 5, 0,
			map[goodput.Outcome]uint64{goodput.Completed: 1},
		},
		{
			"the first all the same",
			end{15, 200},
			end{100, 200},
			200, 15, 0,
			map[goodput.Outcome]uint64{goodput.Completed: 1, goodput.Abandoned: 1},
		},
		{
			"the second",
			end{100, 200},
			end{5, 201},
			201, 15, 1,
			map[goodput.Outcome]uint64{goodput.Completed: 1, goodput.Abandoned: 1},
		},
		{
			"the first fails early",
			end{5, 500},
			end{},
			500, 5, 0,
			map[goodput.Outcome]uint64{goodput.Failed: 1},
		},
		{
			"the first fails, the second is good",
			end{15, 500},
			end{20, 201},
			201, 30, 1,
			map[goodput.Outcome]uint64{goodput.Failed: 1, goodput.Completed: 1},
		},
		{
			"the first has an error, the second is good",
			end{15, 0},
			end{20, 201},
			201, 30, 1,
			map[goodput.Outcome]uint64{goodput.Failed: 1, goodput.Completed: 1},
		},
		{
			"the second fails, the first is good",
			end{50, 200},
			end{5, 500},
			200, 50, 0,
			map[goodput.Outcome]uint64{goodput.Failed: 1, goodput.Completed: 1},
		},
		{
			"both fail",
			end{50, 500},
			end{5, 503},
			500, 50, 0,
			map[goodput.Outcome]uint64{goodput.Failed: 2},
		},
		{
			"both have errors",
			end{50, 0},
			end{50, 0},
			0, 60, 0,
			map[goodput.Outcome]uint64{goodput.Failed: 2},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim := limiter(2, goodput.Config{})
				dep := &Dependency{Limiter: lim, Hedge: &Hedge{}}
				dep.Hedge.delay.Store(int64(10 * time.Millisecond))
				var n atomic.Int32
				tr := to(dep, base(func(r *http.Request) (*http.Response, error) {
					e := c.first
					if n.Add(1) == 2 {
						e = c.second
						if r.Header.Get("Goodput-Attempt") != "2" {
							t.Errorf("the hedge says %v", r.Header)
						}
					}
					res, err := takes(func() time.Duration { return e.after * time.Millisecond })(r)
					switch {
					case err != nil:
						return nil, err
					case e.status == 0:
						return nil, errNet
					}
					res.StatusCode = e.status
					return res, nil
				}))
				start := time.Now()
				res, err := tr.RoundTrip(get(background))
				if took := time.Since(start); took != c.after*time.Millisecond {
					t.Errorf("took %v, want %v ms", took, int(c.after))
				}
				switch {
				case c.status == 0:
					if err != errNet {
						t.Errorf("%v", err)
					}
				case err != nil || res.StatusCode != c.status || text(t, res) != "answer":
					t.Errorf("%v %v, want %d", res, err, c.status)
				}
				synctest.Wait()
				if n := lim.Stats().InUse; n != 0 {
					t.Errorf("%d slots in use, and no sweep yet", n)
				}
				time.Sleep(time.Second) // and no hedge asks for a slot after the end
				outcomes(t, lim, c.want)
				if st := dep.Stats(); st.HedgeWins != c.wins || st.OpenBodies != 0 || dep.counts.running.Load() != 0 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// A hedge is the only one of its call, also if both failed and the call goes on; and the
// time of an answer that lost counts, or the quantile would be that of those that were fast.
func TestHedgeOncePerCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dep := &Dependency{Retry: &retry.Policy{Attempts: 10}, Hedge: &Hedge{}}
		dep.Hedge.delay.Store(int64(10 * time.Millisecond))
		var n atomic.Int32
		res, err := to(dep, base(func(r *http.Request) (*http.Response, error) {
			status := 200
			if n.Add(1) <= 2 {
				status = 503
			}
			time.Sleep(20 * time.Millisecond)
			return respond(status, ""), nil
		})).RoundTrip(get(background))
		if err != nil || res.StatusCode != 200 || n.Load() != 3 || dep.Stats().Hedges != 1 {
			t.Errorf("%v %v after %d requests, %d of them hedges; want 3 and 1", res, err, n.Load(), dep.Stats().Hedges)
		}

		dep = &Dependency{Hedge: &Hedge{}}
		dep.Hedge.delay.Store(int64(10 * time.Millisecond))
		n.Store(0)
		res, err = to(dep, takes(func() time.Duration {
			if n.Add(1) == 1 {
				return time.Second
			}
			return 5 * time.Millisecond
		})).RoundTrip(get(background))
		if err != nil {
			t.Fatal(err)
		}
		text(t, res)
		// One that does not hear that it has lost is under way, and keeps its host.
		slow := &Dependency{Hedge: &Hedge{}}
		slow.Hedge.delay.Store(int64(10 * time.Millisecond))
		n.Store(0)
		if _, err := to(slow, base(func(*http.Request) (*http.Response, error) {
			time.Sleep(time.Duration(n.Add(1)) * time.Second)
			return respond(200, ""), nil
		})).RoundTrip(get(background)); err != nil {
			t.Fatal(err)
		}
		if slow.idle() {
			t.Error("idle, and a hedge is under way")
		}
		time.Sleep(2 * time.Second)
		if !slow.idle() {
			t.Error("not idle, and nothing is under way")
		}

		h := dep.Hedge
		if q, _ := h.now.Quantile(0.5); h.now.Count != 1 || q < 14*time.Millisecond {
			t.Errorf("%d answers known, of %v; want one of 15ms", h.now.Count, q)
		}
	})
}

// What may not be sent twice is not, nor what cannot, nor where there is no free slot.
func TestHedgeIsNotForAll(t *testing.T) {
	body := func(r *http.Request, again bool) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("body")), 4
		if again {
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("body")), nil }
		}
	}
	for _, c := range []struct {
		name   string
		slots  int
		req    func(*http.Request)
		hedges uint64
	}{
		{"GET", 2, func(*http.Request) {}, 1},
		{"PUT", 2, func(r *http.Request) { r.Method = http.MethodPut; body(r, true) }, 1},
		{"PUT, body gone", 2, func(r *http.Request) { r.Method = http.MethodPut; body(r, false) }, 0},
		{"POST", 2, func(r *http.Request) { r.Method = http.MethodPost; body(r, true) }, 0},
		{"POST of an idempotent context", 2, func(r *http.Request) {
			*r = *r.WithContext(retry.Idempotent(r.Context()))
			r.Method = http.MethodPost
			body(r, true)
		}, 1},
		{"DELETE", 2, func(r *http.Request) { r.Method = http.MethodDelete }, 1},
		{"one slot", 1, func(*http.Request) {}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dep := &Dependency{Limiter: limiter(c.slots, goodput.Config{}), Hedge: &Hedge{}}
				dep.Hedge.delay.Store(int64(10 * time.Millisecond))
				r := get(background)
				c.req(r)
				want := ""
				if r.Body != nil {
					want = "body"
				}
				res, err := to(dep, base(func(r *http.Request) (*http.Response, error) {
					got := ""
					if r.Body != nil {
						b, _ := io.ReadAll(r.Body)
						got = string(b)
					}
					if got != want {
						t.Errorf("sent %q", got)
					}
					return takes(func() time.Duration { return time.Second })(r)
				})).RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				text(t, res)
				if n := dep.Stats().Hedges; n != c.hedges {
					t.Errorf("%d hedges, want %d", n, c.hedges)
				}
				if n := dep.policy.Stats().Budget.Granted; n != c.hedges {
					t.Errorf("%d of the retry budget for %d hedges", n, c.hedges)
				}
				if c.slots == 1 { // it asked, and did not queue
					outcomes(t, dep.Limiter, map[goodput.Outcome]uint64{goodput.Completed: 1, goodput.Rejected: 1})
				}
			})
		})
	}
}

// Who leaves takes both with him; who has no time left starts none.
func TestHedgeEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dep := &Dependency{Limiter: limiter(2, goodput.Config{}), Hedge: &Hedge{}}
		dep.Hedge.delay.Store(int64(10 * time.Millisecond))
		ctx, cancel := context.WithCancel(background)
		time.AfterFunc(20*time.Millisecond, cancel)
		start := time.Now()
		_, err := to(dep, takes(func() time.Duration { return time.Hour })).RoundTrip(get(ctx))
		if !errors.Is(err, context.Canceled) || time.Since(start) != 20*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		synctest.Wait()
		outcomes(t, dep.Limiter, map[goodput.Outcome]uint64{goodput.Abandoned: 2})

		soon, cancelSoon := context.WithTimeout(background, HopMargin+10*time.Millisecond)
		defer cancelSoon()
		if _, err = to(dep, takes(func() time.Duration { return time.Hour })).RoundTrip(get(soon)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if n := dep.Stats().Hedges; n != 1 {
			t.Errorf("%d hedges: at the delay no time was left for a second one", n)
		}
	})
}

// A panic of Base in the first request goes on and ends the race; one in the second is
// no answer.
func TestHedgePanics(t *testing.T) {
	for _, which := range []int32{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			dep := &Dependency{Limiter: limiter(2, goodput.Config{}), Hedge: &Hedge{}}
			dep.Hedge.delay.Store(int64(10 * time.Millisecond))
			var n atomic.Int32
			tr := to(dep, base(func(r *http.Request) (*http.Response, error) {
				me := n.Add(1)
				res, err := takes(func() time.Duration { return time.Duration(40-10*me) * time.Millisecond })(r)
				if me == which {
					panic("Base")
				}
				return res, err
			}))
			p := func() (p any) {
				defer func() { p = recover() }()
				if res, err := tr.RoundTrip(get(background)); err == nil {
					text(t, res)
				}
				return nil
			}()
			if (p != nil) != (which == 1) {
				t.Errorf("%d: panic %v", which, p)
			}
			time.Sleep(time.Second)
			if st := settled(t, dep.Limiter); st.Outcomes[goodput.Failed] != 1 {
				t.Errorf("%d: %v", which, st.Outcomes)
			}
		})
	}
}

func TestHedgeValidate(t *testing.T) {
	for _, c := range []struct {
		h    *Hedge
		want string
	}{
		{&Hedge{}, ""},
		{&Hedge{Quantile: 0.5, Min: time.Microsecond}, ""},
		{&Hedge{Quantile: 0.999, Min: time.Minute}, ""},
		{&Hedge{Quantile: 0.49}, "hedge quantile 0.49 is out of range: 0.5 to 0.999, or 0 for 0.95"},
		{&Hedge{Quantile: 0.9991}, "hedge quantile 0.9991 is out of range: 0.5 to 0.999, or 0 for 0.95"},
		{&Hedge{Quantile: math.NaN()}, "hedge quantile NaN is out of range: 0.5 to 0.999, or 0 for 0.95"},
		{&Hedge{Min: 1}, "hedge min 1ns is out of range: 1µs to 1m, or 0 for 1ms"},
		{&Hedge{Min: time.Minute + 1}, "hedge min 1m0.000000001s is out of range: 1µs to 1m, or 0 for 1ms"},
	} {
		got := ""
		if err := (&Dependency{Hedge: c.h}).Validate(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// The delay is the quantile of the last 1,000 to 2,000 answers, rounded up, and never
// below Min; before there are 100 there is none.
func TestHedgeDelay(t *testing.T) {
	const ms = time.Millisecond
	notes := func(h *Hedge, n int, took time.Duration) {
		for range n {
			h.note(took)
		}
	}
	between := func(h *Hedge, least, most time.Duration) {
		t.Helper()
		if d := h.Delay(); d < least || d > most {
			t.Errorf("%v, want %v to %v", d, least, most)
		}
	}
	h := &Hedge{}
	notes(h, hedgeFirst-1, 10*ms)
	between(h, 0, 0)
	notes(h, 1, 10*ms)
	between(h, 10*ms, 12*ms) // a bucket below, and one above
	notes(h, 2000, 100*ms)
	between(h, 100*ms, 120*ms)
	notes(h, 2000, 10*ms) // the slow ones are forgotten
	between(h, 10*ms, 12*ms)

	h = &Hedge{}
	notes(h, 1000, 10*ms)
	notes(h, 50, 100*ms) // less than a twentieth of the latest 1,050
	between(h, 10*ms, 12*ms)

	h = &Hedge{}
	notes(h, hedgeFirst, 10*time.Microsecond)
	between(h, DefaultHedgeMin, DefaultHedgeMin)
	h = &Hedge{Min: 5 * ms}
	notes(h, hedgeFirst, 10*time.Microsecond)
	between(h, 5*ms, 5*ms)

	h = &Hedge{Quantile: 0.5}
	notes(h, 60, 10*ms)
	notes(h, 40, 100*ms)
	between(h, 10*ms, 12*ms)
}
