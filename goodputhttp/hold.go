package goodputhttp

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/goodput/goodput"
)

// Hold keeps the slot of a request beyond the return of its handler, until
// release is called: the caller is answered or has left, and the work goes on
// all the same, in a goroutine or in a service that does not notice. Without it
// the limit would be on how many wait for an answer and not on what runs.
//
// ctx is the context of the request, or one below it. Hold returns false where
// there is no slot to keep: the request is not limited, has been upgraded, or
// its handler has returned. The outcome is that of the handler; how long the slot
// is held counts in the rate of the service. release may be called more than
// once and from any goroutine. Whoever holds has to release in bounded time.
func Hold(ctx context.Context) (release func(), ok bool) {
	h := holdsOf(ctx)
	if h == nil || !h.add() {
		return nil, false
	}
	return sync.OnceFunc(h.done), true
}

// SetCost corrects what a request was said to cost, in units, once its handler knows: see
// goodput.Slot.SetCost. Its tenant is charged n when the slot ends. The last call counts.
//
// ctx is the context of the request, or one below it. SetCost returns false where there is
// no slot to correct: as Hold does, but as long as somebody holds the slot it is
// there, although the handler has returned. It may be called from any goroutine.
func SetCost(ctx context.Context, n int) bool {
	h := holdsOf(ctx)
	return h != nil && h.write(func(s *goodput.Slot) {
		s.SetCost(n)
		if h.tally != nil {
			h.tally.Work.Cost = max(n, 1)
		}
	})
}

// SetSize corrects what a request was said to be in size, once its handler knows: see
// goodput.Slot.SetSize. The service time that the limiter learns is then that of n. For ctx
// and the result see SetCost.
func SetSize(ctx context.Context, n int) bool {
	h := holdsOf(ctx)
	return h != nil && h.write(func(s *goodput.Slot) {
		s.SetSize(n)
		if h.tally != nil {
			h.tally.Work.Size = max(n, 1)
		}
	})
}

// Dropped says that what the work of a request needs has refused it, being over a limit of its
// own: a database that takes no more connections, or a service that cannot be reached. The
// slot then ends as failed whatever is answered, unless the client leaves; it gives no service
// sample, and tells the law of the limit to ask for less: see goodput.Slot.Dropped. A response
// that carries a marker of a refusal needs no call. A limiter of this process that refused
// is none of it: it has a limit of its own, and fewer requests here would not make that larger.
//
// For ctx and the result see SetCost.
func Dropped(ctx context.Context) bool {
	h := holdsOf(ctx)
	return h != nil && h.drop()
}

// Cut says that a stream is ended by a limit of its handler's: nothing has moved in it, or it
// has lasted long enough. The handler then panics with http.ErrAbortHandler, so that its client
// can tell that from the end of the stream. One that has begun has not failed by that: see
// Server.Stream, without which it changes nothing.
//
// For ctx and the result see SetCost.
func Cut(ctx context.Context) bool {
	h := holdsOf(ctx)
	return h != nil && h.write(func(*goodput.Slot) { h.cut = true })
}

// holdsOf returns the holds of the request of a context; nil without a slot.
func holdsOf(ctx context.Context) *holds {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok && v.run != nil {
		return &v.run.holds
	}
	return nil
}

// holds delays the end of a slot until nobody holds it any more. A Slot is for one
// goroutine at a time, and here it is whoever has mu; the one that ends it has made sure
// before that nobody comes after it.
type holds struct {
	mu    sync.Mutex
	n     int
	now   bool  // the slot ended with the handler
	over  bool  // the handler has returned, or there is no slot any more
	kept  bool  // the last hold ends the slot, with err
	err   error // how the handler ended, as for Slot.Fail
	less  bool  // what it needed refused it
	cut   bool  // see Cut
	slot  *goodput.Slot
	held  *atomic.Int64 // gauge of those that wait for their holds
	tally *tally        // for Server.Ended; nil: nobody is told
}

// write does something with the slot, if it has not ended.
func (h *holds) write(how func(*goodput.Slot)) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over && !(h.kept && h.n > 0) {
		return false
	}
	how(h.slot)
	return true
}

// drop notes that what the request needed refused it.
func (h *holds) drop() bool { return h.write(func(*goodput.Slot) { h.less = true }) }

// isCut reports whether Cut was called.
func (h *holds) isCut() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cut
}

// isDropped reports whether it did.
func (h *holds) isDropped() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.less
}

// finish ends the slot of a request that ended with err. Nobody comes after it.
func (h *holds) finish(err error) {
	if h.less && err != context.Canceled { // who left says nothing
		h.slot.Dropped()
	} else {
		h.slot.Fail(err)
	}
	h.gone(h.slot)
}

func (h *holds) add() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	h.n++
	return true
}

func (h *holds) done() {
	h.mu.Lock()
	h.n--
	last := h.n == 0 && h.kept
	h.mu.Unlock()
	if last {
		h.held.Add(-1)
		h.finish(h.err)
	}
}

// end ends the slot as Slot.Fail does, now or with the last hold.
func (h *holds) end(err error) {
	h.mu.Lock()
	h.over = true
	if h.n == 0 {
		h.mu.Unlock()
		h.now = true // nobody else looks at it
		h.finish(err)
		return
	}
	h.slot.Answered() // while it is still the handler's
	h.kept, h.err = true, err
	h.keep()
	h.held.Add(1)
	h.mu.Unlock()
}

// none says that there is no slot to hold any more.
func (h *holds) none() {
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
}
