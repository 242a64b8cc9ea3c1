package goodput

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goodput/goodput/limit"
)

// Slot has an owner so that go vet reports copies of it.
var _ sync.Locker = (*owner)(nil)

func TestLentWord(t *testing.T) {
	var f lent
	if _, ok := f.take(); ok || f.giveBack() || f.isOpen() {
		t.Error("a closed word lends or takes back")
	}
	f.open(limit.Max)
	for i := range uint64(3) {
		if n, ok := f.take(); !ok || n&63 != i {
			t.Errorf("take %d: %d, %v", i, n, ok)
		}
	}
	// Two of them come back, and two that the core had admitted before.
	for range 4 {
		if !f.giveBack() {
			t.Error("an open word does not take back")
		}
	}
	if free, admitted := f.close(); free != limit.Max+1 || admitted != 3 {
		t.Errorf("%d free, %d admitted, want %d and 3", free, admitted, limit.Max+1)
	}
	if _, ok := f.take(); ok || f.giveBack() || f.isOpen() {
		t.Error("a word that was closed lends or takes back")
	}
	f.open(1)
	if _, ok := f.take(); !ok {
		t.Error("one slot: none")
	}
	if _, ok := f.take(); ok {
		t.Error("one slot: two")
	}
}

// Loans begin and end while others take and return: each slot is in one place.
func TestLentWordUnderRaces(t *testing.T) {
	const slots, workers = 3, 4
	var f lent
	var mu sync.Mutex // stands for the lock of the limiter
	free, held := slots, 0
	recall := func() {
		if f.isOpen() {
			n, admitted := f.close()
			held += int(admitted) - (n - f.size + int(admitted)) // admitted less ended
			free = n
		}
		if free+held != slots || held < 0 {
			t.Errorf("%d free and %d held of %d", free, held, slots)
		}
	}
	var running atomic.Int64
	var wg sync.WaitGroup
	n := rounds(t, 20_000, 1_000_000)
	for range workers {
		wg.Go(func() {
			for range n {
				if _, ok := f.take(); !ok {
					mu.Lock()
					recall()
					if free > 0 {
						f.open(free)
					}
					mu.Unlock()
					continue
				}
				if running.Add(1) > slots {
					t.Errorf("more than %d run", slots)
				}
				running.Add(-1)
				if !f.giveBack() {
					mu.Lock()
					recall()
					free, held = free+1, held-1
					f.open(free)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	recall()
	if free != slots {
		t.Errorf("%d free of %d in the end", free, slots)
	}
}
