package goodput

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// pair is a group of two with equal shares, whose queues hold whoever comes.
func pair(units int) *Group {
	return NewGroup(GroupConfig{Name: "db", Units: units, Members: []Member{
		{Config: Config{Name: "a", Depth: 1000, Order: FIFO, MaxWait: time.Hour}},
		{Config: Config{Name: "b", Depth: 1000, Order: FIFO, MaxWait: time.Hour}},
	}})
}

// checkGroup asserts that the members keep what the budget says, and nothing is left if
// empty.
func checkGroup(t testing.TB, g *Group, empty bool) {
	t.Helper()
	g.mu.Lock()
	err := g.budget.Check()
	busy := g.busy
	g.mu.Unlock()
	if err != nil || busy {
		t.Errorf("%v, busy %v", err, busy)
	}
	s := g.Stats()
	sum := 0
	for i, m := range s.Members {
		sum += max(m.Limit, m.InUse)
		checkCore(t, g.limiters[i])
		st := g.limiters[i].Stats()
		checkCounts(t, st)
		if st.InUse != m.InUse || empty && (st.InUse != 0 || st.Waiting != 0) {
			t.Errorf("%s: %d in use, %d by the group, %d waiting", m.Name, st.InUse, m.InUse, st.Waiting)
		}
	}
	if sum > s.Units {
		t.Errorf("%d granted of %d: %+v", sum, s.Units, s)
	}
}

// busy starts n requests of the given service time, which count themselves in running.
func busy(wg *sync.WaitGroup, l *Limiter, n int, took time.Duration, running *atomic.Int64) {
	for range n {
		wg.Go(func() {
			slot, err := l.Acquire(context.Background())
			if err != nil {
				return
			}
			running.Add(1)
			time.Sleep(took)
			running.Add(-1)
			slot.Release()
		})
	}
}

// A idle, B has all; A returns and has its share within one service time of B; B goes
// on with its own; A ends, and B has all again.
func TestGroupLendsAndTakesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 100 * time.Millisecond
		g := pair(60)
		a, b := g.Limiter("a"), g.Limiter("b")
		var wg sync.WaitGroup
		var runA, runB atomic.Int64
		busy(&wg, b, 600, took, &runB)
		synctest.Wait()
		if n := runB.Load(); n != 60 {
			t.Errorf("b runs %d while a is idle, want all 60", n)
		}
		time.Sleep(took / 2)
		busy(&wg, a, 90, took, &runA) // for three service times of its share
		synctest.Wait()
		s := g.Stats()
		if s.Members[0].Limit != 0 || s.Members[1].Limit != 30 || s.Members[1].InUse != 60 {
			t.Errorf("b is not cut at once: %v", s)
		}
		time.Sleep(took/2 + 1) // all that b ran has ended
		synctest.Wait()
		if runA.Load() != 30 || runB.Load() != 30 {
			t.Errorf("a runs %d, b %d once b's longest has ended, want 30 each", runA.Load(), runB.Load())
		}
		checkGroup(t, g, false)
		time.Sleep(3*took + 1)
		synctest.Wait()
		if runA.Load() != 0 || runB.Load() != 60 {
			t.Errorf("a runs %d, b %d once a has ended, want none and 60", runA.Load(), runB.Load())
		}
		wg.Wait()
		checkGroup(t, g, true)
	})
}

// While nobody wants more than it has there are no rounds, and the fast path serves.
func TestGroupIsQuietWhileAllFits(t *testing.T) {
	g := pair(60)
	a := g.Limiter("a")
	held := []*Slot{mustAcquire(t, a), mustAcquire(t, a)}
	g.mu.Lock() // whoever plays a round now hangs
	done := make(chan bool)
	go func() {
		for range 1000 {
			mustAcquire(t, a).Release()
		}
		close(done)
	}()
	<-done
	g.mu.Unlock()
	for _, s := range held {
		s.Release()
	}
	if !a.lent.isOpen() {
		t.Error("a member lends nothing to its fast path")
	}
	checkGroup(t, g, true)
}

// More and fewer units while everything is busy: never more runs than there were when
// it was granted, and all of it soon.
func TestGroupSetUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 100 * time.Millisecond
		g := pair(40)
		var wg sync.WaitGroup
		var running atomic.Int64
		for _, l := range g.limiters {
			busy(&wg, l, 400, took, &running)
		}
		for _, n := range []int{40, 10, 80, 2, 60} {
			if err := g.SetUnits(n); err != nil {
				t.Fatal(err)
			}
			time.Sleep(took + 1)
			synctest.Wait()
			if got := running.Load(); got != int64(n) {
				t.Errorf("%d run a service time after there are %d units", got, n)
			}
			checkGroup(t, g, false)
		}
		if err := g.SetUnits(1); err == nil || !strings.Contains(err.Error(), "units 1 are fewer than the members, 2") {
			t.Errorf("one unit for two: %v", err)
		}
		wg.Wait()
		checkGroup(t, g, true)
	})
}

// A member that drains gives what it has to the others, its min as well.
func TestGroupDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup(GroupConfig{Units: 10, Members: []Member{
			{Config: Config{Name: "a", Depth: 100, MaxWait: time.Hour}, Min: 4},
			{Config: Config{Name: "b", Depth: 100, MaxWait: time.Hour}},
		}})
		var wg sync.WaitGroup
		var running atomic.Int64
		busy(&wg, g.Limiter("b"), 40, time.Second, &running)
		synctest.Wait()
		if n := running.Load(); n != 6 {
			t.Errorf("%d run, want 6: the min of a is kept", n)
		}
		if err := g.Limiter("a").Drain(context.Background()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := running.Load(); n != 10 {
			t.Errorf("%d run after a has drained, want all", n)
		}
		wg.Wait()
		checkGroup(t, g, true)
	})
}

// Who never queues asks by being refused, and is served when it tries again.
func TestGroupHearsOfRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup(GroupConfig{Units: 10, Members: []Member{
			{Config: Config{Name: "a", Depth: NoQueue}},
			{Config: Config{Name: "b", Depth: 1000, MaxWait: time.Hour}},
		}})
		a := g.Limiter("a")
		var wg sync.WaitGroup
		var running atomic.Int64
		busy(&wg, g.Limiter("b"), 100, time.Second, &running)
		synctest.Wait()
		if _, err := a.Acquire(context.Background()); reason(err) != QueueFull {
			t.Fatalf("a member without a queue, all lent: %v", err)
		}
		time.Sleep(time.Second + 1) // everything that b ran has ended
		if slot, ok := a.TryAcquire(); !ok {
			t.Error("refused again, a service time later")
		} else {
			slot.Release()
		}
		wg.Wait()
		checkGroup(t, g, true)
	})
}

func TestGroupConfigSaysWhatIsWrong(t *testing.T) {
	member := func(c Config) GroupConfig { return GroupConfig{Units: 10, Members: []Member{{Config: c}}} }
	for want, cfg := range map[string]GroupConfig{
		"members are 0":                           {Units: 10},
		`member "a" has a limit, fixed(3)`:        member(Config{Name: "a", Limit: limit.Fixed(3)}),
		`member "a" observes`:                     member(Config{Name: "a", Observe: true}),
		`member 1, "a": objective -1s`:            member(Config{Name: "a", Objective: -time.Second}),
		`two members are called "a"`:              {Units: 10, Members: []Member{{Config: Config{Name: "a"}}, {Config: Config{Name: "a"}}}},
		`two members are called "default"`:        {Units: 10, Members: []Member{{}, {Config: Config{Name: DefaultName}}}},
		`member "default" observes`:               member(Config{Observe: true}),
		`weight -1 of member "a"`:                 {Units: 10, Members: []Member{{Config: Config{Name: "a"}, Weight: -1}}},
		`group: name "\x00" has a character that`: {Name: "\x00", Units: 10},
	} {
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	g := pair(10)
	a := g.Limiter("a")
	for what, err := range map[string]error{
		"set limit":   a.SetLimit(3),
		"a limit":     a.Reconfigure(Config{Name: "a", Limit: limit.Fixed(3)}),
		"other name":  a.Reconfigure(Config{Name: "c"}),
		"observation": a.Reconfigure(Config{Name: "a", Observe: true}),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if err := a.Reconfigure(Config{Name: "a", Objective: time.Second}); err != nil {
		t.Error(err)
	}
	if s := g.Stats(); s.Members[0].Limit != 5 || g.Limiter("c") != nil {
		t.Errorf("after a reload: %v", s)
	}
}

func TestGroupExplain(t *testing.T) {
	g := NewGroup(GroupConfig{Name: "db", Units: 60, Members: []Member{
		{Config: Config{Name: "search", Depth: 100}, Weight: 2, Min: 5},
		{Config: Config{Name: "batch", Depth: 100, MaxWait: time.Hour}, Max: 50},
	}})
	slots := []*Slot{}
	for range 20 {
		slots = append(slots, mustAcquire(t, g.Limiter("batch")))
	}
	done := make(chan *Slot)
	for range 21 {
		go func() { done <- mustAcquire(t, g.Limiter("batch")) }()
	}
	for range 21 {
		slots = append(slots, <-done)
	}
	s := g.Stats()
	for _, want := range []string{
		"db: 41 of 60 units in use, 41 wanted\n",
		fmt.Sprintf("search: share 40 (weight 2 of 3 x 60 units, 5 to 60), may use %d, runs 0, wants 0; lent %d\n", s.Members[0].Limit, 40-s.Members[0].Limit),
		fmt.Sprintf("batch: share 20 (weight 1 of 3 x 60 units, 0 to 50), may use %d, runs 41, wants 41; borrowed %d\n", s.Members[1].Limit, s.Members[1].Limit-20),
	} {
		if got := g.Explain(); !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	for _, slot := range slots {
		slot.Release()
	}
	checkGroup(t, g, true)
}

// Everything at once: more never runs than there are units, as the work itself counts
// them; nobody is forgotten, and nothing is left behind.
func TestGroupStress(t *testing.T) {
	rng := seeded(t)
	const units = 12
	g := NewGroup(GroupConfig{Units: units, Members: []Member{
		{Config: Config{Name: "a", Depth: 1000, MaxWait: time.Hour}, Weight: 3},
		{Config: Config{Name: "b", Objective: 50 * time.Millisecond}, Min: 1},
		{Config: Config{Name: "c", Depth: NoQueue}, Max: 6},
		{Config: Config{Name: "d", Depth: 20, Overflow: EvictOldest}},
	}})
	var now, most, served atomic.Int64
	var wg sync.WaitGroup
	until := time.Now().Add(stress(t))
	for i := range 32 {
		l, rng := g.limiters[i%4], rand.New(rand.NewPCG(rng.Uint64(), 0))
		wg.Go(func() {
			for n := 0; n < 300 || time.Now().Before(until); n++ {
				work(l, rng, &now, &most)
				served.Add(1)
			}
		})
	}
	stop := make(chan struct{})
	var change sync.WaitGroup
	change.Go(func() {
		rng := rand.New(rand.NewPCG(rng.Uint64(), 1))
		for {
			select {
			case <-stop:
				_ = g.SetUnits(units)
				return
			case <-time.After(time.Millisecond):
			}
			if err := g.SetUnits(units - rng.IntN(8)); err != nil {
				panic(err)
			}
			if s := g.Stats(); s.InUse > units || len(g.Explain()) == 0 {
				panic(s.String())
			}
		}
	})
	wg.Wait()
	close(stop)
	change.Wait()
	if n := most.Load(); n > units {
		t.Errorf("%d ran at once of %d", n, units)
	} else if n < units/2 {
		t.Errorf("only %d ever ran at once of %d: this tests nothing", n, units)
	}
	checkGroup(t, g, true)
}

// work is one request, which may leave early, cost more, and be short or long.
func work(l *Limiter, rng *rand.Rand, now, most *atomic.Int64) {
	ctx := context.Background()
	if rng.IntN(4) == 0 {
		late, cancel := context.WithTimeout(ctx, time.Duration(rng.IntN(int(2*time.Millisecond))))
		defer cancel()
		ctx = late
	}
	cost := 1 + rng.IntN(8)/7
	slot, err := l.AcquireWork(ctx, Work{Cost: cost})
	if err != nil {
		return
	}
	n := now.Add(int64(cost))
	for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
	}
	if rng.IntN(4) == 0 {
		time.Sleep(time.Duration(rng.IntN(int(time.Millisecond))))
	}
	now.Add(int64(-cost))
	slot.Release()
}

// Whoever has changed after it was looked at in a round asks for another one, although
// nobody was hungry when the round began.
func TestGroupHearsDuringARound(t *testing.T) {
	g := pair(4)
	a, b := g.Limiter("a"), g.Limiter("b")
	slot := mustAcquire(t, a)
	mustAcquire(t, a)
	looked := make(chan struct{}, 100)
	now := a.enter()
	a.journal = func(c call) {
		if c.op == "next" {
			looked <- struct{}{}
		}
	}
	a.leave(now)
	for len(looked) > 0 {
		<-looked
	}
	b.mu.Lock() // the round stops here
	done := make(chan struct{})
	go func() {
		g.balance()
		close(done)
	}()
	<-looked
	slot.Release() // a has a unit that it does not want
	g.mu.Lock()
	again := g.again
	g.mu.Unlock()
	b.mu.Unlock()
	<-done
	if !again {
		t.Error("what a released is not known to the round, and nobody asked for another")
	}
	checkGroup(t, g, false)
}

// A member that panics in a round is no fatal error: who recovers it finds the group
// unlocked, where the runtime would have ended the process.
func TestGroupPanicInARound(t *testing.T) {
	g := pair(4)
	b := g.Limiter("b")
	b.mu.Lock()
	b.journal = func(call) { panic("broken") }
	b.mu.Unlock()
	func() {
		defer func() {
			if p := recover(); p != "broken" {
				t.Errorf("%v, want the panic of the member", p)
			}
		}()
		_ = g.SetUnits(6)
	}()
	if !g.mu.TryLock() {
		t.Error("the group is locked")
	}
}

// Whoever asks while another goroutine plays a round leaves a note and waits for nobody;
// who plays finds it.
func TestGroupLeavesANote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := pair(4)
		g.mu.Lock()
		g.busy = true // somebody plays, and has looked at all members
		g.mu.Unlock()
		var wg sync.WaitGroup
		var running atomic.Int64
		busy(&wg, g.Limiter("b"), 4, time.Second, &running)
		synctest.Wait()
		if !g.again || running.Load() != 2 {
			t.Errorf("note %v, %d run, want the share of 2", g.again, running.Load())
		}
		for g.round() { // and goes on
		}
		synctest.Wait()
		if n := running.Load(); n != 4 {
			t.Errorf("%d run, want all 4", n)
		}
		wg.Wait()
		checkGroup(t, g, true)
	})
}
