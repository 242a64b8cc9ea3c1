package goodput

import "sync/atomic"

// lent is what the core has lent to the fast path: its free slots, while nobody
// waits. Taking a slot and returning one are then one compare-and-swap each and
// the core learns of both at the next recall.
//
// The word packs all of it, so that no two parts can disagree:
//
//	bit 63      open: slots may be returned here
//	bits 21-62  admissions since the slots were lent
//	bits 0-20   free slots; limit.Max is 2^20, so there is always room
//
// Closed is the word 0: no free slot to take, not open to return one.
//
// Invariant: only the holder of the limiter's lock opens and closes the word,
// and it closes it before it lets the core decide anything. So the core never
// decides while slots move here.
//
// Races, all of them settled by the compare-and-swap on the whole state:
//   - Against a recall: whoever swaps after it finds the word 0, fails, and
//     takes the lock instead.
//   - Against a recall and a new loan in between (ABA): the swap succeeds if the
//     word looks the same. That is right: it says how many slots are free now,
//     and taking or returning one depends on nothing else.
//   - Slots that the core admitted may return here, and slots taken here may
//     return to the core: all are one unit of cost.
type lent struct {
	_    [64]byte // the word is written by every request: it has its cache lines to itself
	word atomic.Uint64
	_    [64]byte
	size int // slots lent when the word was opened last; guarded by the limiter's lock
}

const (
	freeBits    = 21
	freeMask    = 1<<freeBits - 1
	oneAdmitted = 1 << freeBits
	admittedMax = 1<<(63-freeBits) - 1 // 4.4e12: a window of at most 100 ms never gets near
	openBit     = 1 << 63
)

// take takes a free slot. n counts the admissions before it since the loan, in
// its low bits.
func (f *lent) take() (n uint64, ok bool) {
	for {
		w := f.word.Load()
		if w&freeMask == 0 {
			return 0, false
		}
		if f.word.CompareAndSwap(w, w-1+oneAdmitted) {
			return w >> freeBits, true
		}
	}
}

// giveBack returns a slot, unless the word is closed.
func (f *lent) giveBack() bool {
	for {
		w := f.word.Load()
		if w&openBit == 0 {
			return false
		}
		if f.word.CompareAndSwap(w, w+1) {
			return true
		}
	}
}

// open lends n > 0 slots. The caller holds the lock and the word is closed.
func (f *lent) open(n int) {
	f.size = n
	f.word.Store(openBit | uint64(n))
}

// close ends the loan and returns the free slots and the admissions. The caller
// holds the lock.
func (f *lent) close() (free int, admitted int64) {
	w := f.word.Swap(0)
	return int(w & freeMask), int64(w >> freeBits & admittedMax)
}

// isOpen reports whether there is a loan. The caller holds the lock.
func (f *lent) isOpen() bool { return f.word.Load() != 0 }
