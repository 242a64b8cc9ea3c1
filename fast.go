package goodput

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// lent is what the core has lent to the fast path: its free slots, while nobody
// waits. Taking a slot and returning one are then one compare-and-swap each and
// the core learns of both at the next recall.
//
// The slots lie in a few words, so that processors do not fight for one cache
// line: with a single word, two of them took 25 ns a request and x/sync's
// semaphore 17; with a word each, 9. A goroutine has a word of its own by
// preference and takes from the others when that has no free slot, so a slot is
// never out of reach.
//
// A word packs all of its part, so that no two parts can disagree:
//
//	bit 63      open: slots may be returned here
//	bits 21-62  admissions since the slots were lent, and what they begin with: see begun
//	bits 0-20   free slots; limit.Max is 2^20, so there is always room
//
// Closed is the word 0: no free slot to take, not open to return one.
//
// Invariant: only the holder of the limiter's lock opens and closes words, and
// it closes all of them before it lets the core decide anything. So the core
// never decides while slots move here. Slots move between words, and the sums
// are what counts.
//
// Races, all of them settled by the compare-and-swap on a whole word:
//   - Against a recall: whoever swaps after it finds the word 0, fails, and in
//     the end takes the lock instead.
//   - Against a recall and a new loan in between (ABA): the swap succeeds if the
//     word looks the same. That is right: it says how many slots are free now,
//     and taking or returning one depends on nothing else.
//   - Slots that the core admitted may return here, and slots taken here may
//     return to the core: all are one unit of cost.
//   - A slot that returns to a word that was already looked at is not seen: that
//     caller takes the lock, recalls it, and finds it.
type lent struct {
	words [maxWords]word
	begun [maxWords]int64 // with what the admissions of a word begin; guarded by the limiter's lock
	deal  atomic.Uint64   // odd; which goroutine prefers which word
	mask  uint32          // words in use - 1: all, or the first alone
	size  int             // slots lent last; guarded by the limiter's lock
}

// A word is written by every request: it has its cache lines to itself.
type word struct {
	_ [64]byte
	atomic.Uint64
	_ [56]byte
}

// Four words cost 512 B and are looked through in about 5 ns.
const (
	wordBits = 2
	maxWords = 1 << wordBits
)

const (
	freeBits    = 21
	freeMask    = 1<<freeBits - 1
	oneAdmitted = 1 << freeBits
	admittedMax = 1<<(63-freeBits) - 1 // 4.4e12: a window of at most 100 ms never gets near
	openBit     = 1 << 63
)

func (f *lent) init() {
	if runtime.GOMAXPROCS(0) > 1 { // else there is nobody to fight with
		f.mask = maxWords - 1
	}
	f.deal.Store(0x9E3779B97F4A7C15) // any odd number
}

// preferred returns the word that the calling goroutine looks at first. Its
// stack tells goroutines apart: stacks are 2 KiB at the least, and one does not
// move often. It is a hint, and any answer is right.
func (f *lent) preferred() uint32 {
	if f.mask == 0 {
		return 0
	}
	var here byte
	stack := uint64(uintptr(unsafe.Pointer(&here))) >> 11
	return uint32(stack*f.deal.Load()>>(64-wordBits)) & f.mask // multiply-shift hashing (Dietzfelbinger et al. 1997)
}

// collided deals anew after one lost race in 64: two that race often are parted
// soon, and where there are more goroutines than words it costs little.
func (f *lent) collided(v uint64) {
	if v>>freeBits&63 == 0 {
		f.deal.Store(rand.Uint64() | 1)
	}
}

// take takes a free slot. n counts the admissions before it on the same word, in its low
// bits, over all loans: where one request in k is timed, it is every k-th, and a loan that
// ends often, with each request that fails, has no more of them timed than another.
func (f *lent) take() (n uint64, ok bool) {
	first := f.preferred()
	for i := uint32(0); i <= f.mask; i++ {
		w := &f.words[(first+i)&f.mask]
		for v := w.Load(); v&freeMask != 0; v = w.Load() {
			if w.CompareAndSwap(v, v-1+oneAdmitted) {
				return v >> freeBits, true
			}
			f.collided(v)
		}
	}
	return 0, false
}

// giveBack returns a slot, unless there is no loan.
func (f *lent) giveBack() bool {
	w := &f.words[f.preferred()]
	for v := w.Load(); v&openBit != 0; v = w.Load() {
		if w.CompareAndSwap(v, v+1) {
			return true
		}
		f.collided(v)
	}
	return false
}

// open lends n > 0 slots. The caller holds the lock and the words are closed.
func (f *lent) open(n int) {
	f.size = n
	words := int(f.mask) + 1
	for i := range words {
		f.words[i].Store(openBit | uint64(f.begun[i])<<freeBits | uint64((n+i)/words)) // the shares add up to n
	}
}

// close ends the loan and returns the free slots and the admissions. The caller
// holds the lock.
func (f *lent) close() (free int, admitted int64) {
	for i := range f.mask + 1 {
		v := f.words[i].Swap(0)
		free += int(v & freeMask)
		if v&openBit == 0 {
			continue
		}
		n := int64(v >> freeBits & admittedMax)
		admitted += n - f.begun[i]
		f.begun[i] = n % maxSkip
	}
	return free, admitted
}

// isOpen reports whether there is a loan. The caller holds the lock.
func (f *lent) isOpen() bool { return f.words[0].Load() != 0 }
