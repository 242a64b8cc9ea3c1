package goodput

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A dumbGathering is what a Gather should do, computed from the delays of its calls.
type dumbGathering struct {
	outcomes string
	at       time.Duration
	short    bool
	unkept   []int // calls whose result goes to Discard, in order
}

// dumb looks at the calls one after the other, in the order in which they end.
func dumb(g Gathering[int], budget time.Duration, plans []planned) dumbGathering {
	n := len(plans)
	need, enough, parallel := cmp.Or(g.Min, min(1, n)), cmp.Or(g.Enough, n), cmp.Or(g.Parallel, 1024)
	enough = min(enough, n)
	end := time.Duration(math.MaxInt64)
	if budget > 0 {
		end = budget - cmp.Or(g.Margin, min(20*ms, budget/10))
	}
	words := make([]string, n)
	running := map[int]time.Duration{} // until when
	next, came, missing := 0, 0, 0
	at, late := time.Duration(0), false
	over := n < need || end <= 0
	late = n >= need && end <= 0
	for !over && came+missing < n {
		for len(running) < parallel && next < n {
			running[next] = at + plans[next].takes
			next++
		}
		first := -1
		for i, until := range running {
			if first < 0 || until < running[first] {
				first = i
			}
		}
		if running[first] >= end {
			at, over, late = end, true, true
			break
		}
		at = running[first]
		delete(running, first)
		switch err := plans[first].err; {
		case err == nil:
			words[first] = "came"
			came++
		case errors.Is(err, ErrRejected):
			words[first] = "rejected"
			missing++
		default:
			words[first] = "failed"
			missing++
		}
		over = came == enough || n-missing < need
	}
	d := dumbGathering{at: at, short: came < need}
	for i := range words {
		_, started := running[i]
		switch {
		case words[i] != "":
			continue
		case started && late:
			words[i] = "late"
		case started:
			words[i] = "abandoned"
		case late:
			words[i] = "expired"
		default:
			words[i] = "cancelled"
		}
		if started {
			d.unkept = append(d.unkept, i)
		}
	}
	d.outcomes = strings.Join(words, " ")
	return d
}

// randomGathering is one of every kind. No two calls end at the same instant, but for one
// in a million.
func randomGathering(r *rand.Rand) (g Gathering[int], budget time.Duration, plans []planned) {
	n := r.IntN(9)
	for range n {
		p := planned{takes: 1 + time.Duration(r.Int64N(int64(250*ms))), deaf: r.IntN(4) == 0}
		switch r.IntN(8) {
		case 0, 1:
			p.err = errBoom
		case 2:
			p.err = fmt.Errorf("call: %w", &Rejection{Reason: QueueFull})
		}
		plans = append(plans, p)
	}
	if r.IntN(3) > 0 {
		g.Min = r.IntN(n + 2)
	}
	if r.IntN(2) == 0 {
		g.Enough = max(g.Min, r.IntN(n+2))
	}
	if r.IntN(2) == 0 {
		g.Parallel = 1 + r.IntN(4)
	}
	if r.IntN(4) > 0 {
		budget = 1 + time.Duration(r.Int64N(int64(300*ms)))
	}
	if r.IntN(3) == 0 {
		g.Margin = 1 + time.Duration(r.Int64N(int64(100*ms)))
	}
	return g, budget, plans
}

// FuzzGather holds Gather to the model: who came, what became of the others, at which
// instant, and that each result that is not handed out goes to Discard once. The bubble of
// synctest sees to it that no goroutine is left.
func FuzzGather(f *testing.F) {
	for seed := range uint64(3000) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			g, budget, plans := randomGathering(rand.New(rand.NewPCG(seed, 0)))
			want := dumb(g, budget, plans)
			var mu sync.Mutex
			var unkept []int
			g.Discard = func(i, _ int, _ error) {
				mu.Lock()
				defer mu.Unlock()
				unkept = append(unkept, i)
			}
			got, at, err := gather(budget, g, plans)
			if s := outcomes(got); s != want.outcomes || at != want.at || (err != nil) != want.short {
				t.Errorf("after %v: %s, %v\nwant after %v: %s, short %v", at, s, err, want.at, want.outcomes, want.short)
			}
			if err := got.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			slices.Sort(unkept)
			if !slices.Equal(unkept, want.unkept) {
				t.Errorf("%v went to Discard, want %v", unkept, want.unkept)
			}
			if t.Failed() {
				t.Logf("%+v with a budget of %v of %+v", g, budget, plans)
			}
		})
	})
}

// Many gatherings at once, on real threads, with callers that leave, panics, deaf calls and
// late results: values are handed out once and never written again, and no goroutine stays.
func TestGatherStress(t *testing.T) {
	before := runtime.NumGoroutine()
	end := time.Now().Add(stress(t))
	for round := 0; round == 0 || time.Now().Before(end); round++ {
		var all sync.WaitGroup
		for range 8 {
			r := seeded(t)
			all.Go(func() {
				for range 500 {
					stressGather(t, r)
				}
			})
		}
		all.Wait()
	}
	for runtime.NumGoroutine() > before { // those that have returned are about to end
		runtime.Gosched()
	}
}

func stressGather(t *testing.T, r *rand.Rand) {
	n := r.IntN(20)
	g := Gathering[*int]{Min: r.IntN(n + 1), Parallel: r.IntN(5)}
	if r.IntN(2) == 0 {
		g.Enough = max(g.Min, 1)
	}
	var made, discarded atomic.Int64
	g.Discard = func(_ int, v *int, err error) {
		if v != nil && err == nil {
			*v = -1 // as one that closes it: a race with whoever has it as well
			discarded.Add(1)
		}
	}
	panics := r.IntN(10) == 0
	kinds := make([]int, n)
	for i := range kinds {
		kinds[i] = r.IntN(8)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(200))*time.Microsecond)
	defer cancel()
	if r.IntN(3) == 0 {
		ctx, cancel = context.WithCancel(context.Background())
		defer cancel()
		go cancel()
	}
	var got *Gathered[*int]
	var err error
	func() {
		defer func() {
			if p := recover(); p != nil && !panics {
				t.Errorf("panic: %v", p)
			}
		}()
		got, err = Gather(ctx, g, n, func(ctx context.Context, i int) (*int, error) {
			switch kinds[i] {
			case 0:
				return nil, errBoom
			case 1:
				<-ctx.Done()
				return nil, ctx.Err()
			case 2:
				if panics {
					panic("stress")
				}
			case 3:
				runtime.Gosched()
			}
			made.Add(1)
			v := i
			return &v, nil
		})
	}()
	if got == nil {
		return // it panicked
	}
	for i, v := range got.All() {
		if *v != i {
			t.Errorf("result %d at %d", *v, i)
		}
	}
	if short := got.Came() < g.Min || n > 0 && got.Came() == 0; short != (err != nil) {
		t.Errorf("%d came, %d needed: %v", got.Came(), g.Min, err)
	}
	if err := got.Wait(context.Background()); err != nil && !panics {
		t.Error(err)
	}
	if m, c, d := made.Load(), int64(got.Came()), discarded.Load(); m != c+d {
		t.Errorf("%d results: %d came and %d were discarded", m, c, d)
	}
}
