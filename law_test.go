package goodput

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// A spy is a law that holds its limit and keeps what it was told. Two are equal if they
// write to the same notes.
type spy struct {
	at    int
	notes *notes
}

// notes are what a spy was told, and what it does.
type notes struct {
	sync.Mutex
	windows []limit.Window
	begun   int
	mark    bool   // with every move
	search  bool   // likewise
	to      int    // the limit that it says; 0: the one in force
	why     string // of it
}

func spying(n int) spy { return spy{n, new(notes)} }

func (s spy) Start() (int, error) { return s.at, nil }

func (s spy) Begin(uint64) limit.State {
	s.notes.Lock()
	defer s.notes.Unlock()
	s.notes.begun++
	return s.notes
}

func (s spy) String() string { return "spy" }

func (n *notes) Next(current int, w *limit.Window) limit.Move {
	n.Lock()
	defer n.Unlock()
	own := *w
	own.Times = nil // not to be kept
	n.windows = append(n.windows, own)
	to := current
	if n.to != 0 {
		to = n.to
	}
	return limit.Move{Limit: to, Mark: n.mark, Search: n.search}
}

func (n *notes) Why() string {
	n.Lock()
	defer n.Unlock()
	return n.why
}

// do sets what the law does from now on.
func (n *notes) do(to int, search bool, why string) {
	n.Lock()
	defer n.Unlock()
	n.to, n.search, n.why = to, search, why
}

// told returns the windows since the last call, with the sums in one.
func (n *notes) told() (all limit.Window, each []limit.Window) {
	n.Lock()
	defer n.Unlock()
	each, n.windows = n.windows, nil
	for i := range each {
		w := &each[i]
		all.Arrived += w.Arrived
		all.Ended += w.Ended
		all.Dropped += w.Dropped
		all.Samples += w.Samples
		all.Quiet = max(all.Quiet, w.Quiet)
	}
	if len(each) > 0 {
		all.Epochs = each[len(each)-1].Epochs
	}
	return all, each
}

// window lets the current window of l end.
func window(l *Limiter) {
	time.Sleep(l.settings.Load().window)
	l.Stats()
}

// F33: what the resource refused is a drop and no service time, whether it is timed or not,
// what it costs counts, and a probe says nothing. Failures and callers that left are no drops.
func TestTheLawIsToldOfDrops(t *testing.T) {
	for _, c := range []struct {
		name                    string
		mask                    uint32 // k - 1
		end                     func(*Slot)
		work                    Work
		ended, drops, samples   int
		epochEnded, epochDroppd float64
	}{
		{"dropped", 0, (*Slot).Dropped, Work{}, 8, 8, 0, 8, 8},
		{"dropped, one in eight timed", 7, (*Slot).Dropped, Work{}, 8, 8, 0, 8, 8},
		{"dropped, three units", 0, (*Slot).Dropped, Work{Cost: 3}, 8, 8, 0, 24, 24},
		{"a dropped probe", 0, (*Slot).Dropped, Work{Exempt: true}, 0, 0, 0, 0, 0},
		{"a dropped probe, not timed", 7, (*Slot).Dropped, Work{Exempt: true}, 0, 0, 0, 0, 0},
		{"failed", 0, func(s *Slot) { s.Fail(errWork) }, Work{}, 8, 0, 0, 8, 0},
		{"the caller left", 0, func(s *Slot) { s.Fail(context.Canceled) }, Work{}, 8, 0, 0, 8, 0},
		{"abandoned", 0, (*Slot).Abandon, Work{}, 8, 0, 0, 8, 0},
		{"completed", 0, (*Slot).Release, Work{}, 8, 0, 8, 8, 0},
		{"completed, one in eight timed", 7, (*Slot).Release, Work{}, 8, 0, 1, 8, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			law := spying(100)
			l := New(Config{Limit: law})
			l.rec.mask.Store(c.mask)
			var slots []*Slot
			for range 8 {
				slot, err := l.AcquireWork(t.Context(), c.work)
				if err != nil {
					t.Fatal(err)
				}
				slots = append(slots, &slot)
			}
			time.Sleep(10 * time.Millisecond)
			for _, slot := range slots {
				c.end(slot)
			}
			window(l)
			w, _ := law.notes.told()
			if w.Ended != c.ended || w.Dropped != c.drops || w.Samples != c.samples {
				t.Errorf("%s: %d ended, %d dropped, %d samples, want %d, %d, %d", c.name, w.Ended, w.Dropped, w.Samples, c.ended, c.drops, c.samples)
			}
			if e := w.Epochs[0]; e.Ended != c.epochEnded || e.Dropped != c.epochDroppd || e.Left() != 0 {
				t.Errorf("%s: of the epoch %v ended, %v dropped, %v left, want %v, %v, 0", c.name, e.Ended, e.Dropped, e.Left(), c.epochEnded, c.epochDroppd)
			}
			if s := l.Stats(); s.Outcomes[Failed] != 0 && c.samples > 0 || c.drops > 0 && s.Outcomes[Failed] != 8 {
				t.Errorf("%s: outcomes %v", c.name, s.Outcomes)
			}
			checkEmpty(t, l)
		})
	}
}

// A process that stood still for 5 s has a quiet spell of 5 s, wherever the standstill fell
// in the window and whether slots are lent or not. An idle time has none.
func TestQuietIsAStandstill(t *testing.T) {
	const work, still = 10 * time.Millisecond, 5 * time.Second
	for _, noLend := range []bool{false, true} {
		for _, inFlight := range []int{1, 20} {
			synctest.Test(t, func(t *testing.T) {
				law := spying(100)
				l := New(Config{Limit: law, Objective: 400 * time.Millisecond})
				now := l.enter()
				l.noLend = noLend
				l.leave(now)
				// busy has inFlight requests at once for half a second, those of the middle for
				// as long as the process stands still in it.
				busy := func(pause time.Duration) {
					var wg sync.WaitGroup
					if inFlight > 1 { // that one of them takes long is no standstill
						wg.Go(func() {
							slot := mustAcquire(t, l)
							time.Sleep(20 * work)
							slot.Release()
						})
					}
					for range inFlight {
						wg.Go(func() {
							for i := range 50 {
								slot, err := l.Acquire(context.Background())
								if err != nil {
									t.Error(err)
									return
								}
								time.Sleep(work)
								if i == 23 {
									time.Sleep(pause)
								}
								slot.Release()
							}
						})
					}
					wg.Wait()
				}
				busy(0)
				time.Sleep(still) // idle
				busy(0)
				time.Sleep(still)
				window(l)
				all, _ := law.notes.told()
				if all.Quiet > 2*work {
					t.Errorf("lends %v, %d in flight: a quiet spell of %v in an idle time", !noLend, inFlight, all.Quiet)
				}
				busy(still)
				window(l)
				all, _ = law.notes.told()
				if all.Quiet < still || all.Quiet > still+2*work {
					t.Errorf("lends %v, %d in flight: a quiet spell of %v, want %v", !noLend, inFlight, all.Quiet, still)
				}
			})
		}
	}
}

// Nothing else than a Dropped is one, and the zero Slot is nobody's.
func TestDroppedOnce(t *testing.T) {
	var none Slot
	none.Dropped()
	l := fixed(2, 1)
	slot := mustAcquire(t, l)
	slot.Fail(errors.New("gone"))
	slot.Dropped() // it does nothing
	s := l.Stats()
	if s.Outcomes[Failed] != 1 {
		t.Errorf("outcomes %v", s.Outcomes)
	}
	checkEmpty(t, l)
}

// C037: the law is asked once a window as long as anything happens, whether it has begun an
// epoch or not, and how long ago that was is in Stats.
func TestTheLawIsAskedEveryWindow_C037(t *testing.T) {
	for _, objective := range []time.Duration{10 * time.Millisecond, 400 * time.Millisecond, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			law := spying(10)
			l := New(Config{Limit: law, Objective: objective})
			every := l.settings.Load().window
			for i := range 50 {
				law.notes.Lock()
				law.notes.mark = i%5 == 0
				law.notes.Unlock()
				slot := mustAcquire(t, l)
				time.Sleep(every)
				slot.Release()
				if s := l.Stats(); s.LimitAsked != 0 {
					t.Errorf("%v: asked %v ago", objective, s.LimitAsked)
				}
			}
			time.Sleep(every / 2)
			if s := l.Stats(); s.LimitAsked != every/2 {
				t.Errorf("%v: asked %v ago, want %v", objective, s.LimitAsked, every/2)
			}
			if _, each := law.notes.told(); len(each) != 50 {
				t.Errorf("%v: asked %d times in 50 windows", objective, len(each))
			}
		})
	}
}

// SetLimit replaces a law that adapts. Reconfigure with an equal one keeps what it has
// learnt: the limit, its state and the epoch; with another one it begins anew.
func TestReconfigureKeepsAnEqualLaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		law, other := spying(20), spying(30)
		l := New(Config{Limit: law})
		law.notes.do(25, false, "because")
		window(l)
		law.notes.do(0, false, "because")
		is := func(step string, n, begun int, why string, epoch uint32) {
			t.Helper()
			window(l)
			if s := l.Stats(); s.Limit != n || s.LimitWhy != why {
				t.Errorf("%s: limit %d because %q, want %d because %q", step, s.Limit, s.LimitWhy, n, why)
			}
			if law.notes.begun+other.notes.begun != begun {
				t.Errorf("%s: a law was begun %d times, want %d", step, law.notes.begun+other.notes.begun, begun)
			}
			if e := l.core.Epoch(); e != epoch || e != l.rec.epochs.Load().tag {
				t.Errorf("%s: epoch %d, and %d for samples, want %d", step, e, l.rec.epochs.Load().tag, epoch)
			}
		}
		change := func(cfg Config) {
			t.Helper()
			if err := l.Reconfigure(cfg); err != nil {
				t.Fatal(err)
			}
		}
		is("new", 25, 1, "because", 0)
		change(Config{Limit: law, Objective: 3 * time.Second, MaxItems: 5})
		is("an equal one", 25, 1, "because", 0)
		change(Config{Limit: other})
		is("another one", 30, 2, "", 1)
		change(Config{Limit: law})
		is("the first again", 20, 3, "because", 2) // the notes of the spy are the test's
		if err := l.SetLimit(7); err != nil {
			t.Fatal(err)
		}
		is("set", 7, 3, "", 3)
		_, _ = law.notes.told()
		window(l)
		if _, each := law.notes.told(); len(each) != 0 {
			t.Errorf("the law is asked on after SetLimit")
		}
		change(Config{Limit: law})
		is("and again", 20, 4, "because", 4)
	})
}

// In a group the limit is granted: a law is refused in one sentence that says so.
func TestGroupRefusesALaw(t *testing.T) {
	bad := GroupConfig{Name: "db", Units: 10, Members: []Member{{Config: Config{Name: "a", Limit: limit.Auto{}}}}}
	if err := bad.Validate(); err == nil || err.Error() != `member "a" has a limit, auto: in a group it is granted, leave it out` {
		t.Error(err)
	}
	bad.Members[0].Config.Limit = nil
	a := NewGroup(bad).Limiter("a")
	if err := a.Reconfigure(Config{Name: "a", Limit: limit.Auto{}}); err == nil ||
		err.Error() != `goodput: the limit of "a" is granted by group "db": leave out the limit auto` {
		t.Error(err)
	}
	if err := a.SetLimit(3); err == nil || err.Error() != `goodput: the limit of "a" is granted by group "db": set the units of that` {
		t.Error(err)
	}
	sayings(t, a, []string{"granted by its group"}, []string{"asked", "moved", "until"})
}

// C040: what a request waits in the queue of the limiter is no service time for the law; the
// two are series of their own.
func TestTheLawDoesNotSeeTheQueue_C040(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		law := spying(1)
		l := New(Config{Limit: law, Objective: 100 * time.Millisecond, Depth: 5})
		for range 6 { // each leaves 10 ms of work behind for the others
			go func() {
				for range 50 {
					slot, err := l.Acquire(context.Background())
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(10 * time.Millisecond)
					slot.Release()
				}
			}()
		}
		time.Sleep(time.Second)
		_, each := law.notes.told()
		for _, w := range each {
			if w.Samples > 0 && (w.Mean != 10*time.Millisecond || w.Own != w.Mean) {
				t.Errorf("the law sees a mean of %v, %v its own, want 10ms", w.Mean, w.Own)
			}
		}
		s := l.Stats()
		if wait, _ := s.Wait[WaitAdmitted].Quantile(0.5); wait < 45*time.Millisecond || wait > 55*time.Millisecond {
			t.Errorf("half waited for %v, want 50ms to within a bucket of 9 %%", wait)
		}
		if took, _ := s.Service[Completed].Quantile(0.5); took < 9*time.Millisecond || took > 11*time.Millisecond {
			t.Errorf("half took %v, want 10ms to within a bucket of 9 %%", took)
		}
		time.Sleep(10 * time.Second)
	})
}

// A client that gives up on everything does not shrink the limit of the others
// (Netflix/concurrency-limits#146), whatever way its handler ends; a resource that refuses
// does.
func TestCallersThatLeaveDoNotLowerTheLimit(t *testing.T) {
	for _, c := range []struct {
		name  string
		end   func(*Slot)
		falls bool
	}{
		{"abandoned", (*Slot).Abandon, false},
		{"failed as cancelled", func(s *Slot) { s.Fail(context.Canceled) }, false},
		{"failed as timed out", func(s *Slot) { s.Fail(context.DeadlineExceeded) }, false},
		{"failed", func(s *Slot) { s.Fail(errWork) }, false},
		{"dropped", (*Slot).Dropped, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := New(Config{Limit: limit.AIMD{From: 20, Min: 1}})
			for range 500 { // 5 s
				slot := mustAcquire(t, l)
				time.Sleep(10 * time.Millisecond)
				c.end(slot)
			}
			if s := l.Stats(); s.Limit < 20 != c.falls {
				t.Errorf("%s: a limit of 20 is %d", c.name, s.Limit)
			}
		})
	}
}
