package goodput

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// Failures of other systems: fairness that is none, and tables of tenants that are an
// attack.

// A relay is a limiter that serves one request after the other, in 10 ms each, and
// writes down whose they were. It is filled while nothing moves.
type relay struct {
	l     *Limiter
	begin *Slot
	mu    sync.Mutex
	order []string        // of tenants, as they began
	begun []time.Duration // when, since the first slot was free
	since time.Time
}

const lap = 10 * time.Millisecond

func newRelay(t *testing.T, slots, depth int, tenants *Tenants) *relay {
	l := New(Config{Limit: limit.Fixed(slots), Depth: depth, Order: FIFO, MaxWait: 24 * time.Hour, Tenants: tenants})
	begin, err := l.AcquireWork(context.Background(), Work{Tenant: "the one that holds all slots", Cost: slots})
	if err != nil {
		t.Fatal(err)
	}
	return &relay{l: l, begin: &begin}
}

// queue has n requests of a tenant wait, one after the other.
func (q *relay) queue(tenant string, n int) {
	for range n {
		go func() {
			slot, err := q.l.AcquireWork(context.Background(), Work{Tenant: tenant})
			if err != nil {
				panic(err) // there is room for all of them
			}
			q.mu.Lock()
			q.order, q.begun = append(q.order, tenant), append(q.begun, time.Since(q.since))
			q.mu.Unlock()
			time.Sleep(lap)
			slot.Release()
		}()
	}
	synctest.Wait()
}

// start frees the slots.
func (q *relay) start() {
	q.since = time.Now()
	q.begin.Release()
}

// among counts a tenant among those that began from one place to another.
func (q *relay) among(tenant string, from, to int) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range q.order[from:to] {
		if id == tenant {
			n++
		}
	}
	return n
}

// end lets the rest be served.
func (q *relay) end(t *testing.T) {
	t.Helper()
	for q.l.Stats().Running > 0 {
		time.Sleep(time.Minute)
	}
	checkEmpty(t, q.l)
}

// wavelens/gradient#111, postel-sh/postel#126: plain FIFO, so that a burst of one tenant
// was worked off before anybody else.
func TestC099BurstOfOneTenant(t *testing.T) {
	for _, c := range []struct {
		tenants *Tenants
		rounds  int // until the newcomer begins, at most
	}{
		{&Tenants{Rows: []Tenant{{ID: "a"}, {ID: "b"}}}, 1},
		{&Tenants{}, 2}, // strangers: the first fills the 8 buckets of its hand, so it has 8 turns for one
		{nil, 250},      // one after the other: 1000 in rounds of 4
	} {
		synctest.Test(t, func(t *testing.T) {
			q := newRelay(t, 4, 2000, c.tenants)
			q.queue("a", 1000)
			q.queue("b", 1)
			q.start()
			q.end(t)
			for i, id := range q.order {
				if id != "b" {
					continue
				}
				if rounds := int(q.begun[i] / lap); rounds > c.rounds || c.tenants == nil && rounds < c.rounds {
					t.Errorf("%+v: it begins after %d rounds, want %d", c.tenants, rounds, c.rounds)
				}
			}
		})
	}
}

// kubernetes-sigs/kueue#13479, #13481: a weight of 0 gave 0/0, and NaN sorted first, so
// that the least important was served first.
func TestC101WeightOfNothing(t *testing.T) {
	for _, w := range []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1), 1e-300, math.SmallestNonzeroFloat64} {
		err := Config{Limit: limit.Fixed(1), Tenants: &Tenants{Rows: []Tenant{{ID: "z", Weight: w}}}}.Validate()
		if err == nil || !strings.Contains(err.Error(), `weight `) || !strings.Contains(err.Error(), `"z"`) {
			t.Errorf("weight %v: %v", w, err)
		}
	}
	// At run time it is the least that there may be: a millionth of the heaviest.
	for _, w := range []float64{0, -1, math.Inf(-1)} {
		synctest.Test(t, func(t *testing.T) {
			q := newRelay(t, 1, 2000, &Tenants{Rows: []Tenant{{ID: "z"}, {ID: "a"}, {ID: "b"}}})
			q.l.SetWeight("z", w)
			q.queue("a", 200)
			q.queue("b", 200)
			q.start()
			time.Sleep(99*lap + lap/2) // it was idle so far
			q.queue("z", 10)
			q.end(t)
			// One of it may be served when it comes, as of anybody whose account is
			// even. Its next turn is a million turns of the others later.
			if z := q.among("z", 0, 401); z > 1 {
				t.Errorf("weight %v: %d of z are served before the others", w, z)
			}
			if a, b := q.among("a", 0, 100), q.among("b", 0, 100); a != b {
				t.Errorf("weight %v: %d of a and %d of b", w, a, b)
			}
			if s := q.l.Stats(); s.Stats.Tenants.Clamped != 1 {
				t.Errorf("%d clamped", s.Stats.Tenants.Clamped)
			}
		})
	}
}

// minpeter/kiro-lb#18: equal weights of next to nothing fell back to the order of
// insertion, and the later tenants starved.
func TestC103WeightsOfNextToNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenants := &Tenants{Others: Tenant{Weight: 1e-12}}
		for _, id := range []string{"a", "b", "c"} {
			tenants.Rows = append(tenants.Rows, Tenant{ID: id, Weight: 1e-12})
		}
		q := newRelay(t, 1, 4000, tenants)
		for _, row := range tenants.Rows {
			q.queue(row.ID, 1000)
		}
		q.start()
		time.Sleep(1500*lap - lap/2) // while all of them wait
		for _, row := range tenants.Rows {
			if n := q.among(row.ID, 0, 1500); n < 475 || n > 525 {
				t.Errorf("%s has %d of 1500", row.ID, n)
			}
		}
		q.end(t)
	})
}

// mckinsey/agents-at-scale-ark#3458: the mark that a tenant waits expired before it was
// asked again, and fairness turned silently into first come, first served.
func TestC105DeepBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newRelay(t, 1, 10_000, &Tenants{Rows: []Tenant{{ID: "a", Weight: 1000}, {ID: "b"}}})
		q.queue("a", 5000)
		q.queue("b", 10)
		q.start()
		// Ten seconds pass between two turns of b, a hundred windows and ten
		// objectives, in which nothing of it comes or goes.
		time.Sleep(5000*lap - lap/2)
		if n := q.among("b", 0, 5000); n < 4 || n > 6 {
			t.Errorf("b has %d of 5000, want 5", n)
		}
		if s := account(t, q.l, "b"); s.Waiting == 0 {
			t.Errorf("b waits, and is shown as %+v", s)
		}
		q.end(t)
	})
}

// SandeepVashishtha/Eventra#9240, boinkor-net/governor#171: one entry for ever for each id
// that a client chose. A million ids come in ten minutes, two thirds of them over quota.
func TestC106MillionIDs(t *testing.T) {
	if testing.Short() {
		t.Skip("a million requests")
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(4), Tenants: rowsOf(10, Tenant{Quota: Quota{Rate: 1000}})})
		before := heap()
		told := map[Reason]int{}
		for i := range 1_000_000 {
			slot, err := l.AcquireWork(context.Background(), Work{Tenant: fmt.Sprintf("id %d", i), User: fmt.Sprintf("user %d", i)})
			told[reason(err)]++
			if i%1000 == 999 {
				time.Sleep(600 * time.Millisecond)
			}
			slot.Release()
		}
		if after := heap(); after > before+1<<20 {
			t.Errorf("%d KiB more than before", (after-before)>>10)
		}
		if told[None] == 0 || told[OverQuota] == 0 {
			t.Errorf("told %v: the test is about both", told)
		}
		if n := l.Stats().Stats.Tenants.Rows; n != 10 {
			t.Errorf("%d rows, want 10", n)
		}
		checkEmpty(t, l)
	})
}

// SweetSophia/noosphere#276: whoever could force the eviction of its own entry got a fresh
// allowance.
func TestC108FloodOfOthersRegainsNoQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(100), Tenants: &Tenants{
			Rows:   []Tenant{{ID: "a", Quota: Quota{Rate: 1, Burst: 5}}},
			Others: Tenant{Quota: Quota{Rate: 1, Burst: 5}},
		}})
		served := func(id string, n int) (served int) {
			for range n {
				slot, err := l.AcquireWork(context.Background(), Work{Tenant: id})
				if err == nil {
					served++
				} else if reason(err) != OverQuota {
					t.Fatal(err)
				}
				slot.Release()
			}
			return served
		}
		if a, stranger := served("a", 10), served("stranger", 10); a != 5 || stranger != 5 {
			t.Fatalf("%d and %d served of a burst of 5", a, stranger)
		}
		for i := range 100_000 {
			if n := served(fmt.Sprint("flood ", i), 1); n != 0 {
				t.Fatal("an invented id has an allowance of its own")
			}
		}
		if err := l.Reconfigure(l.settings.Load().cfg); err != nil { // nor does a reload give one
			t.Fatal(err)
		}
		if a, stranger := served("a", 10), served("stranger", 10); a != 0 || stranger != 0 {
			t.Errorf("%d and %d served after the flood", a, stranger)
		}
		time.Sleep(2 * time.Second)
		if a := served("a", 10); a != 2 {
			t.Errorf("%d served of what two seconds bring", a)
		}
		checkEmpty(t, l)
	})
}

// arumes31/uplarr#103, latebit-io/demarkus#114: with a full table each request got a
// limiter of its own, so that there was no limit.
func TestC109UnknownIDsShareOneLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenants := rowsOf(4096, Tenant{MaxInUse: 3})
		l := New(Config{Limit: limit.Fixed(50), Depth: 2000, Order: FIFO, MaxWait: time.Hour, Tenants: tenants})
		var mu sync.Mutex
		var all sync.WaitGroup
		running, most := 0, 0
		begun := time.Now()
		for i := range 1200 {
			id := "stranger" // 1000 at once
			if i >= 1000 {
				id = fmt.Sprint("another ", i)
			}
			all.Go(func() {
				err := l.Do(WithTenant(context.Background(), id), func(context.Context) error {
					mu.Lock()
					running++
					most = max(most, running)
					mu.Unlock()
					time.Sleep(lap)
					mu.Lock()
					running--
					mu.Unlock()
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		slot, err := l.AcquireWork(context.Background(), Work{Tenant: tenants.Rows[4095].ID})
		if err != nil || slot.Waited() != 0 {
			t.Errorf("a tenant with a row: %v", err)
		}
		slot.Release()
		all.Wait()
		if took := time.Since(begun); most != 3 || took != 400*lap {
			t.Errorf("%d of them ran at once, for %v: want 3 and 1200/3 turns", most, took)
		}
		checkEmpty(t, l)
	})
}
