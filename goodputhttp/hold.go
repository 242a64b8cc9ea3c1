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
	v, ok := ctx.Value(visitKey{}).(*visit)
	if !ok || v.run == nil || !v.run.holds.add() {
		return nil, false
	}
	return sync.OnceFunc(v.run.holds.done), true
}

// holds delays the end of a slot until nobody holds it any more.
type holds struct {
	mu   sync.Mutex
	n    int
	over bool        // the handler has returned, or there is no slot any more
	end  func(error) // how it ended, if somebody still holds
	err  error
	slot *goodput.Slot
	held *atomic.Int64 // gauge of those that wait for their holds
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
	end, err := h.end, h.err
	last := h.n == 0 && end != nil
	h.mu.Unlock()
	if last {
		h.held.Add(-1)
		end(err)
	}
}

// keep reports whether somebody holds, and if so has the last one call end.
func (h *holds) keep(end func(error), err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	if h.n == 0 {
		return false
	}
	h.slot.Answered() // while it is still the handler's
	h.end, h.err = end, err
	h.held.Add(1)
	return true
}

// none says that there is no slot to hold any more.
func (h *holds) none() {
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
}
