package goodput

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// checkBoth is checkCounts for what happened and for the shadow.
func checkBoth(t testing.TB, l *Limiter) Stats {
	t.Helper()
	s := l.Stats()
	checkCounts(t, s)
	checkCounts(t, Stats{Stats: s.Shadow})
	return s
}

func mustObserve(t testing.TB, l *Limiter, on bool) {
	t.Helper()
	if err := l.SetObserve(on); err != nil {
		t.Fatal(err)
	}
}

// One runs and four wait, each in a way of its own. The switch lets all of them run at that
// instant, each arrival is counted once, and whoever comes now runs as well. (F28)
func TestSwitchOnLetsWhoWaitsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(1, 9)
		slots := [5]*Slot{mustAcquire(t, l)}
		var runs atomic.Int32
		runs.Add(1)
		wait := func(ctx context.Context, i int, w Work) {
			go func() {
				slot, err := l.AcquireWork(ctx, w)
				if err != nil {
					t.Error(err)
				}
				slots[i] = &slot
				runs.Add(1)
			}()
			synctest.Wait()
		}
		wait(context.Background(), 1, Work{Bytes: 70, Priority: Critical})
		time.Sleep(time.Second)
		ctx, leave := context.WithTimeout(context.Background(), 3*time.Second)
		defer leave()
		wait(ctx, 2, Work{Bytes: 7})
		if err := l.Go(context.Background(), Work{}, func(slot *Slot, err error) {
			if err != nil {
				t.Error(err)
			}
			slots[3] = slot
			runs.Add(1)
		}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if s := l.Stats(); s.Waiting != 3 || s.Running != 1 || s.Shadow.Arrivals != 0 {
			t.Errorf("before: %d wait, %d run, %d arrivals in the shadow", s.Waiting, s.Running, s.Shadow.Arrivals)
		}
		mustObserve(t, l, true)
		mustObserve(t, l, true) // the same again
		synctest.Wait()
		wait(context.Background(), 4, Work{})
		s := checkBoth(t, l)
		if !s.Observe || runs.Load() != 5 || s.Running != 5 || s.InUse != 5 || s.Waiting != 0 || s.WaitingCost != 0 || s.WaitingBytes != 0 ||
			s.WaitingBy != [4]int{} || s.Age != 0 || s.Arrivals != 5 || s.Immediate != 2 || s.Dequeued != 3 {
			t.Errorf("%d run; %+v", runs.Load(), s.Stats)
		}
		if d := &s.Shadow; d.Arrivals != 4 || d.Running != 0 || d.Waiting != 4 || d.WaitingCost != 4 || d.WaitingBytes != 77 || d.WaitingBy != [4]int{1, 3} || d.Age != 2*time.Second {
			t.Errorf("the shadow: %+v", d)
		}
		slots[0].Release() // it was not observed, and makes room in the shadow
		if s = checkBoth(t, l); s.Outcomes[Late] != 1 || s.Running != 4 || s.Shadow.Running != 1 || s.Shadow.Dequeued != 1 || ended(&Stats{Stats: s.Shadow}) != 0 {
			t.Errorf("%+v\nshadow %+v", s.Stats, s.Shadow)
		}
		for i, waited := range []time.Duration{0, 2 * time.Second, time.Second, time.Second, 0} {
			if d := slots[i].Waited(); d != waited {
				t.Errorf("%d waited %v, want %v", i, d, waited)
			}
			slots[i].Release()
		}
		s = checkBoth(t, l)
		if s.Outcomes[Completed] != 3 || s.Outcomes[Late] != 2 || s.Shadow.Outcomes[Completed]+s.Shadow.Outcomes[Late] != 4 {
			t.Errorf("outcomes %v, in the shadow %v", s.Outcomes, s.Shadow.Outcomes)
		}
		mustObserve(t, l, false)
		checkEmpty(t, l)
	})
}

// Five run where two may when it is switched off. They end as they are; newcomers wait behind
// the two that the shadow had queued, and the limit holds again once those in excess have ended.
func TestSwitchOffDecidesAboutNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(2), Depth: 3, Order: FIFO, Overflow: RefuseNewest, MaxWait: time.Hour, Observe: true})
		var observed []*Slot
		for range 6 {
			observed = append(observed, mustAcquire(t, l)) // 2 run in the shadow, 3 wait, 1 is refused
		}
		mustObserve(t, l, false)
		if _, err := l.Acquire(context.Background()); reason(err) != QueueFull {
			t.Errorf("a newcomer: %v, want queue_full", err)
		}
		observed[2].Release() // the first of those that wait in the shadow
		granted := make(chan *Slot, 1)
		time.Sleep(time.Second)
		go func() { granted <- mustAcquire(t, l) }()
		synctest.Wait()
		s := checkBoth(t, l)
		if s.Observe || s.Running != 5 || s.Waiting != 1 || s.Age != 0 || s.Outcomes[Rejected] != 1 || s.Arrivals != 8 {
			t.Errorf("really: %+v", s.Stats)
		}
		if d := &s.Shadow; d.Running != 2 || d.Waiting != 2 || d.Refusals[QueueFull] != 1 || d.Arrivals != 6 || d.Age != time.Second {
			t.Errorf("the shadow: %+v", d)
		}
		for i, want := range []bool{false, false, false, true} { // 2 are in the shadow's queue before it, 1 is none of its business
			synctest.Wait()
			if got := len(granted) > 0; got != want {
				t.Errorf("after %d ends: granted %v, want %v", i, got, want)
			}
			if i < 3 {
				observed[[]int{0, 5, 1}[i]].Release()
			}
			if i == 2 {
				observed[3].Release()
			}
		}
		observed[4].Release()
		(<-granted).Release()
		for range 2 {
			slot := mustAcquire(t, l)
			defer slot.Release()
		}
		if _, ok := l.TryAcquire(); ok {
			t.Error("a third one runs on a limit of 2")
		}
	})
}

// What nothing would run otherwise runs at once when the limiter only observes.
func TestSwitchOnEndsEveryWait(t *testing.T) {
	for name, stop := range map[string]func(*Limiter){
		"paused": func(l *Limiter) { _ = l.SetLimit(0) },
		"absent": func(l *Limiter) { l.SetPresent(false) },
		"over the allowance": func(l *Limiter) {
			_ = l.Reconfigure(Config{Limit: limit.Fixed(1), Depth: 9, Allowance: Quota{Rate: 1e-3, Burst: 1}, MaxWait: time.Hour})
			slot, _ := l.TryAcquire()
			slot.Release()
		},
		"behind what runs, in a drain": func(l *Limiter) {
			slot, _ := l.TryAcquire()
			time.AfterFunc(time.Second, slot.Release)
			time.AfterFunc(time.Microsecond, func() { _ = l.Drain(context.Background()) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := fixed(1, 9)
				stop(l)
				begin := time.Now()
				began := make(chan time.Duration, 1)
				go func() {
					mustAcquire(t, l).Release()
					began <- time.Since(begin)
				}()
				synctest.Wait()
				time.Sleep(time.Millisecond)
				if s := l.Stats(); s.Waiting != 1 {
					t.Errorf("%d wait", s.Waiting)
				}
				mustObserve(t, l, true)
				if d := <-began; d != time.Millisecond {
					t.Errorf("it ran after %v, want 1ms", d)
				}
				mustAcquire(t, l).Release() // whoever comes now
				checkBoth(t, l)
				time.Sleep(time.Second)
				checkEmpty(t, l)
			})
		})
	}
}

// The same by Reconfigure, which at once lowers what may wait: nobody is lost to that.
func TestReconfigureSwitches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(1, 9)
		slot := mustAcquire(t, l)
		for range 5 {
			go func() { mustAcquire(t, l).Release() }()
		}
		synctest.Wait()
		if err := l.Reconfigure(Config{Limit: limit.Fixed(1), MaxItems: 2, Observe: true}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s := checkBoth(t, l)
		if !s.Observe || s.Running != 1 || s.Outcomes[Completed] != 5 || s.Shadow.Refusals[QueueFull]+s.Shadow.Refusals[Client] != 5 {
			t.Errorf("%+v\nshadow %+v", s.Stats, s.Shadow)
		}
		if err := l.Reconfigure(Config{Limit: limit.Fixed(1)}); err != nil {
			t.Fatal(err)
		}
		if _, ok := l.TryAcquire(); ok {
			t.Error("a second one runs on a limit of 1")
		}
		slot.Release()
		checkEmpty(t, l)
	})
}

// A weight that was set stays: the switch is no other configuration.
func TestSwitchKeepsWeights(t *testing.T) {
	l := New(Config{Limit: limit.Fixed(1), Tenants: &Tenants{Rows: []admission.Tenant{{ID: "a"}, {ID: "b"}}}})
	l.SetWeight("a", 5)
	mustObserve(t, l, true)
	mustObserve(t, l, false)
	for _, row := range l.Tenants(5) {
		if row.ID == "a" && row.Weight != 5 {
			t.Errorf("weight %v, want 5", row.Weight)
		}
	}
}

func TestMemberDoesNotObserve(t *testing.T) {
	g := NewGroup(GroupConfig{Name: "db", Units: 2, Members: []Member{{Config: Config{Name: "web"}}, {Config: Config{Name: "jobs"}}}})
	web := g.Limiter("web")
	const want = `goodput: member "web" of group "db" cannot observe: a group cannot keep its units where nothing is refused`
	for _, err := range []error{web.SetObserve(true), web.Reconfigure(Config{Name: "web", Observe: true})} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := web.SetObserve(false); err != nil || web.Stats().Observe {
		t.Errorf("switched off: %v", err)
	}
}

// A law is not asked while the limiter observes, nor until what was observed has ended; then it
// goes on from where it was. For what does not end it waits a minute. (F2)
func TestSwitchHoldsTheLaw(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			law := spying(4)
			l := New(Config{Limit: law})
			windows := func(n int) int { // how often it is asked in so many of them
				_, _ = law.notes.told()
				for range n {
					window(l)
				}
				_, each := law.notes.told()
				return len(each)
			}
			law.notes.do(6, false, "it found that")
			if n := windows(3); n != 3 {
				t.Errorf("asked %d times in 3 windows", n)
			}
			mustObserve(t, l, true)
			law.notes.do(1, false, "everything is slow")
			slot := mustAcquire(t, l)
			if n := windows(5); n != 0 {
				t.Errorf("asked %d times while the limiter observes", n)
			}
			mustObserve(t, l, false)
			if n := windows(5); n != 0 {
				t.Errorf("asked %d times while something observed runs", n)
			}
			if s := l.Stats(); s.Limit != 6 || !s.LimitHeld || !strings.Contains(l.Explain(), "held:") {
				t.Errorf("limit %d, held %v:\n%s", s.Limit, s.LimitHeld, l.Explain())
			}
			if leaves {
				time.Sleep(mostHeld)
			} else {
				slot.Release()
			}
			law.notes.do(7, false, "and goes on")
			if n := windows(3); n != 2 { // at the end of the first it is let go on
				t.Errorf("asked %d times in 3 windows afterwards", n)
			}
			if s := l.Stats(); s.Limit != 7 || s.LimitHeld {
				t.Errorf("limit %d, held %v", s.Limit, s.LimitHeld)
			}
			slot.Release()
			checkEmpty(t, l)
		})
	}
}

// Who was at the door just before the switch, and asks the core just after it, is observed.
func TestSwitchBehindTheDoor(t *testing.T) {
	l := fixed(1, NoQueue)
	defer mustAcquire(t, l).Release()
	r := l.request(context.Background(), Work{})
	mustObserve(t, l, true)
	g, refusal := l.slow(context.Background(), &r)
	if refusal != nil || g.rare.kind != observed {
		t.Fatalf("%v, %+v", refusal, g.rare)
	}
	mustObserve(t, l, false)
	if _, ok := l.pass(&r); ok { // and the other way round
		t.Error("it was let pass by a limiter that decides")
	}
	slot := Slot{of: owner{l}, start: g.start, due: g.due, rare: g.rare}
	slot.Release()
	checkBoth(t, l)
}
