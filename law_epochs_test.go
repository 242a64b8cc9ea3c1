package goodput

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Of an epoch as many end as were admitted, although few of them are timed.

// Where one request in eight is timed the ends of an epoch are comparable with what was
// admitted in it: while nothing of it is left they are as many, and never more. The refused
// ones are counted each.
func TestEpochsAddUpWhenFewAreTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		law := spying(10_000)
		l := New(Config{Limit: law, Objective: 400 * time.Millisecond})
		const n, ms = 80_000, time.Millisecond
		var wg sync.WaitGroup
		var met atomic.Int64 // another one with the lock, in the only moment when nothing is lent, and was timed for that
		send := func(i int) {
			wg.Go(func() {
				slot, err := l.Acquire(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				if slot.due != sampled {
					met.Add(1)
				}
				time.Sleep(time.Duration(1+i%20) * ms)
				if i%10 == 0 {
					slot.Dropped()
					return
				}
				slot.Release()
			})
		}
		second := func(mark bool) {
			law.notes.Lock()
			law.notes.mark = mark
			law.notes.Unlock()
			for i := range n {
				if i%(n/1000) == 0 {
					time.Sleep(ms)
				}
				send(i)
			}
			wg.Wait()
			window(l)
		}
		second(false)
		all, _ := law.notes.told()
		// All of the first window are timed, and of the rest one in eight.
		if timed := n/20 + n/8 + int(met.Load()); all.Ended != n || all.Dropped != n/10 || all.Samples > timed {
			t.Errorf("%d ended, %d of them dropped, %d timed; want %d, %d, at most %d", all.Ended, all.Dropped, all.Samples, n, n/10, timed)
		}
		if e := all.Epochs[0]; e.Admitted != n || e.Ended < n-1 || e.Ended > n+1 || e.Dropped != n/10 {
			t.Errorf("of the epoch %v were admitted, %v ended, %v dropped", e.Admitted, e.Ended, e.Dropped)
		}
		second(true) // an epoch a window: 50 ms, with 10 ms of work from the one before
		_, each := law.notes.told()
		admitted, ended := 0.0, 0.0
		for _, w := range each {
			if w.Epochs[1].Admitted < n/40 { // not a whole window
				continue
			}
			// All of the one before has ended: that took 20 ms, and the window 50. Which of the
			// two that end in a window something is of, is what its samples say: 0.21 of them
			// are of the one before, so of an epoch with s samples the standard error is at most
			// sqrt(2 x 0.21 x 0.79 / s), 2.7 % of 450. It is less where every eighth is timed in
			// the order of time, as on a machine without other work.
			e := w.Epochs[1]
			if off := math.Abs(e.Ended/e.Admitted - 1); off > 4*math.Sqrt(2*0.21*0.79/e.Samples) {
				t.Errorf("of the epoch before %v were admitted, %v ended, by %v samples", e.Admitted, e.Ended, e.Samples)
			}
			admitted, ended = admitted+e.Admitted, ended+e.Ended
		}
		// What one epoch has too many the next has too few: of the sum the edges are left, a
		// standard error of 1.9 % of one epoch in 19 or 20, and of 2.7 % if only one in 16 is
		// timed, by chance.
		if math.Abs(ended/admitted-1) > 4*0.027/19 {
			t.Errorf("of all epochs %v were admitted, %v ended", admitted, ended)
		}
	})
}

// In an overload everybody waits, and who has waited is timed, at whatever rate: those stand
// for themselves, although one in several of those that find a free slot is timed.
func TestEpochsAddUpInAnOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		law := spying(20)
		l := New(Config{Limit: law, Objective: 50 * time.Millisecond})
		law.notes.mark = true
		const us = time.Microsecond
		var mu sync.Mutex
		granted, free := map[time.Duration]int{}, map[time.Duration]int{} // when; and those that found a free slot
		for i := range 30_000 {                                           // 60,000/s, three times what 20 slots of 1 ms serve
			if i%3 == 0 {
				time.Sleep(50 * us)
			}
			go func() {
				if slot, err := l.Acquire(context.Background()); err == nil {
					mu.Lock()
					at := slot.start
					if at == 0 {
						at = l.now()
					}
					granted[at]++
					if slot.due == sampled {
						free[at]++
					}
					mu.Unlock()
					time.Sleep(time.Duration(500+i%1000) * us)
					slot.Release()
				}
			}()
		}
		// 20,000/s are served, so one in 2 is timed, and after a window with some more, one in 4.
		if k := l.rec.mask.Load() + 1; k != 2 && k != 4 {
			t.Errorf("one in %d is timed, want one in 2 or 4", k)
		}
		_, each := law.notes.told()
		time.Sleep(time.Second) // the last have been served, and nobody writes any more
		mu.Lock()
		defer mu.Unlock()
		var marks [3]time.Duration // the latest three, one after each window
		for _, w := range each {
			marks = [3]time.Duration{marks[1], marks[2], marks[2] + w.Length}
			// Who is admitted at the very instant of a mark may be of either epoch. Who finds a
			// free slot stands for none or for up to 4, and in a window of an overload that is nobody
			// but for chance. And one may be told to the recorder in this window, and to the core
			// in the next.
			may := 1.01 + float64(granted[marks[0]]+granted[marks[1]])
			for at, n := range free {
				if at >= marks[0]-w.Length && at <= marks[2] {
					may += float64(4 * n)
				}
			}
			if e := w.Epochs[1]; math.Abs(e.Ended-e.Admitted) > may {
				t.Errorf("of the epoch before %v were admitted, %v ended; they may differ by %v", e.Admitted, e.Ended, may)
			}
		}
		checkEmpty(t, l)
	})
}
