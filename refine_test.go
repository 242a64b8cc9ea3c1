package goodput

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// A replay makes the calls of a journal to a fresh core and compares the answers.
type replay struct {
	core   *admission.Core
	places map[*admission.Waiter]*admission.Waiter // of the live run -> of the replay
}

// step makes one call and returns the answers of both, if there are any.
func (r *replay) step(c *call) (live, again any) {
	switch c.op {
	case "offer":
		d := r.core.Offer(c.now, c.request)
		if c.decision.Waiter != nil && d.Waiter != nil {
			r.places[c.decision.Waiter] = d.Waiter
			d.Waiter = c.decision.Waiter // their places are compared as they are decided
		}
		return c.decision, d
	case "release":
		r.core.Release(c.now, c.end)
	case "cancel":
		return c.answer, r.core.Cancel(c.now, r.places[c.waiter], c.why)
	case "next":
		w := r.core.Next()
		if c.waiter == nil || w == nil {
			return c.waiter == nil, w == nil
		}
		if r.places[c.waiter] != w {
			return "waiter", "another waiter"
		}
		return fate(c.waiter), fate(w)
	case "refill":
		return c.after, r.core.RefillAt()
	case "dispatch":
		r.core.Dispatch(c.now)
	case "lend":
		return c.n, r.core.Lend()
	case "settle":
		r.core.Settle(c.now, c.settlement)
	case "observe":
		r.core.Observe(c.now, c.batch)
	case "set limit":
		return nil, r.core.SetLimit(c.now, c.n)
	case "reconfigure":
		return nil, r.core.Reconfigure(c.now, *c.cfg)
	case "set weight":
		r.core.SetWeight(c.now, c.tenant, c.weight)
	case "tenants":
		return c.tenants, r.core.TopTenants(c.now, c.n)
	case "retry after":
		return c.after, r.core.RetryAfter(c.why)
	case "set present":
		r.core.SetPresent(c.now, c.answer)
	case "forget":
		r.core.Forget(c.now)
	case "hold":
		r.core.Hold(c.now, c.answer)
	case "drain":
		r.core.Drain(c.now, c.answer)
	case "stats":
		return *c.stats, r.core.Stats(c.now)
	default:
		panic(c.op)
	}
	return nil, nil
}

// fate is what became of a waiter.
func fate(w *admission.Waiter) string {
	return fmt.Sprint(w.Verdict(), w.Reason(), w.Cost(), w.Waited(), w.Share())
}

// A live run under everything at once is written down and replayed into a fresh
// core: every decision, every waiter in its turn, every number must be the same.
// That is what makes a simulation and a replay mean something.
func TestRefinement(t *testing.T) {
	seed := stressSeed(t)
	for i := range 12 {
		synctest.Test(t, func(t *testing.T) {
			cfg := stressConfig()
			cfg.Observe = i&1 != 0
			shared := i&2 != 0 // tenants, users, keys; weights and rows that change
			limited := i&4 != 0
			adapts := i >= 8
			turns := i%3 == 2 // in each of the kinds
			if limited {
				cfg.Allowance = Quota{Rate: 3000, Burst: 12}
			}
			if adapts {
				cfg.Limit = limit.AIMD{From: 8, Min: 3, Window: 100 * time.Millisecond}
			}
			l := New(cfg)
			// From the first call on: what New itself has lent is taken back first.
			var calls []call
			now := l.enter()
			core, err := admission.New(cfg.seeded(l.seed))
			if err != nil {
				t.Fatal(err)
			}
			l.core = core
			l.journal = func(c call) { calls = append(calls, c) } // under the lock
			l.holdCall(now, cfg.Observe)
			l.leave(now)
			s := &load{l: l, workers: 30, ops: 200, pause: time.Sleep, seed: seed, shared: shared, allowed: limited, turns: turns}
			if adapts {
				s.law = cfg.Limit
			}
			s.run()
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			_ = l.Drain(ctx)
			if end := l.Stats(); adapts && !cfg.Observe && !turns && end.LimitChanges == 0 || end.Dropped == 0 {
				t.Errorf("%d changes of the limit, %d drops", end.LimitChanges, end.Dropped)
			}
			ops := again(t, cfg.seeded(l.seed), calls)
			if turns && ops["hold"] < 10 {
				t.Errorf("nobody turned the switch: %v", ops)
			}
			if limited && ops["dispatch"] == 0 {
				t.Errorf("the run never waited for the allowance: %v", ops)
			}
			if shared && (ops["set weight"] == 0 || ops["tenants"] == 0 || ops["reconfigure"] == 0) {
				t.Errorf("the run did not change who has which share: %v", ops)
			}
		})
	}
}

func again(t *testing.T, cfg admission.Config, calls []call) (ops map[op]int) {
	core, err := admission.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := replay{core, map[*admission.Waiter]*admission.Waiter{}}
	ops = map[op]int{}
	for i := range calls {
		ops[calls[i].op]++
		live, again := r.step(&calls[i])
		if !reflect.DeepEqual(live, again) {
			t.Fatalf("call %d of %d, %s at %v: live %+v, replayed %+v", i, len(calls), calls[i].op, calls[i].now, live, again)
		}
	}
	t.Logf("%d calls: %v", len(calls), ops)
	if ops["offer"] == 0 || ops["next"] == 0 || ops["observe"] == 0 || ops["stats"] == 0 {
		t.Errorf("the run did not make every call: %v", ops)
	}
	return ops
}

// The same script against a limiter that lends and one that does not: everybody
// must get the same answer at the same time. Each step is let come to rest, so
// that the script is one order of events and not many.
//
// The depth is fixed and nobody has a deadline, so that the answers follow from
// slots, costs, bytes and order alone. What is estimated differs a little: lent
// admissions are spread evenly over the time of their loan, and a window ends
// when the first one looks at the clock.
func TestLendingAdmitsAlike(t *testing.T) {
	seed := stressSeed(t)
	run := func(noLend bool) (log []string, s Stats) {
		synctest.Test(t, func(t *testing.T) {
			l := New(Config{Limit: limit.Fixed(4), Objective: 50 * time.Millisecond, MaxBytes: 5000, Depth: 6})
			now := l.enter()
			l.noLend = noLend
			l.leave(now)
			log = script(l, seed)
			s = l.Stats()
			checkEmpty(t, l)
		})
		return log, s
	}
	lent, a := run(false)
	asked, b := run(true)
	for i := range min(len(lent), len(asked)) {
		if lent[i] != asked[i] {
			t.Fatalf("step %d: lending %s, asking %s", i, lent[i], asked[i])
		}
	}
	if len(lent) != len(asked) {
		t.Fatalf("%d answers against %d", len(lent), len(asked))
	}
	if a.Outcomes != b.Outcomes || a.Refusals != b.Refusals || a.Immediate != b.Immediate || a.Dequeued != b.Dequeued || a.Wait != b.Wait {
		t.Errorf("lending %+v\nasking  %+v", a.Stats, b.Stats)
	}
	for o := range a.Service {
		if x, y := a.Service[o], b.Service[o]; (x == nil) != (y == nil) || x != nil && x.Counts != y.Counts {
			t.Errorf("the histograms of the service of %v differ", Outcome(o))
		}
	}
	t.Logf("%d answers, outcomes %v", len(lent), a.Outcomes)
}

// script runs random requests, one event after the other, and returns what each
// was told and when.
func script(l *Limiter, seed uint64) []string {
	rng := rand.New(rand.NewPCG(seed, 0))
	begun := time.Now()
	var mu sync.Mutex
	var log []string
	running := map[int]*Slot{}
	// end ends the k-th of those that run, by the order in which they came.
	end := func(k int, err error) {
		mu.Lock()
		ids := slices.Sorted(maps.Keys(running))
		slot := running[ids[k]]
		delete(running, ids[k])
		mu.Unlock()
		slot.Fail(err)
		synctest.Wait()
	}
	for i := range 3000 {
		switch n := rng.IntN(10); {
		case n < 4 && len(running) > 0:
			k, err := rng.IntN(len(running)), error(nil)
			if rng.IntN(10) == 0 {
				err = errWork
			}
			end(k, err)
		case n < 6:
			time.Sleep(time.Duration(rng.IntN(int(10 * time.Millisecond))))
		default:
			w := Work{Bytes: int64(rng.IntN(2000))}
			if rng.IntN(4) == 0 {
				w.Cost = 1 + rng.IntN(3)
			}
			ctx, cancel := context.WithCancel(context.Background())
			if rng.IntN(4) == 0 { // its caller leaves at an instant of its own
				time.AfterFunc(time.Duration(1+rng.IntN(50_000))*time.Microsecond+time.Duration(i), cancel)
			}
			id := len(log)
			log = append(log, "")
			go func() {
				slot, err := l.AcquireWork(ctx, w)
				cancel()
				mu.Lock()
				defer mu.Unlock()
				log[id] = fmt.Sprintf("request %d of step %d at %v: %v", id, i, time.Since(begun), reason(err))
				if err == nil {
					running[id] = &slot
				}
			}()
		}
		synctest.Wait()
	}
	for len(running) > 0 || l.Stats().Waiting > 0 {
		if len(running) > 0 {
			end(0, nil)
		}
	}
	return log
}
