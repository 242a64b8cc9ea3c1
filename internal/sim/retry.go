package sim

import (
	"fmt"
	"time"

	"github.com/goodput/goodput/internal/attempts"
)

// A Retry says whether and when a call is sent again after a refusal, a failure or,
// by a client, its deadline. The delay before attempt n+1 is drawn from 0 to
// min(Max, Backoff x 2^(n-1)): full jitter (Brooker, "Exponential Backoff And
// Jitter", 2015). What decides is package attempts, as it does in package retry: the
// same code.
type Retry struct {
	Attempts int           // in all; 0 and 1 mean that nobody tries again; at most 100
	Backoff  time.Duration // at most an hour; 0 means at once
	Max      time.Duration // 0 means 2^10 times Backoff
	NoJitter bool          // the whole delay, always: everybody comes back together

	Budget   Budget   // of retries; the zero value: as many as Attempts says
	Throttle Throttle // of calls to a server that refuses them; the zero value: none

	// Obey waits at least for the Retry-After of a refusal, jittered by up to half
	// of it as the adapters do, and does not try again where our core gives none,
	// which says that a retry cannot win. Baselines give none and say nothing by it.
	Obey bool

	// Within bounds the request with all of its attempts, from the first one: no
	// attempt starts later, and none may end later. 0: each attempt of a client has
	// the whole deadline, again; of a sub-request, what is left of the deadline of
	// the request that it belongs to, if that was told.
	Within time.Duration
}

// A Budget bounds the retries of the population of a class, or of an instance that sends
// sub-requests: those of the last Window are at most Ratio for each of its first
// attempts, or Reserve if that is more.
type Budget struct {
	Ratio   float64       // above 0, to 1; 0: there is no budget
	Reserve int           // to 1000; 0 means 10, with which a client of little traffic can retry at all
	Window  time.Duration // 1 s to 10 min; 0 means 10 s
}

// A Throttle keeps calls at home that the server would most likely refuse. It sends at most
// K times what the server took in the last Window, and one in ten of the rest, but for the
// first ten calls of a Window (attempts.Throttle). Whoever asked for a call that is kept has his no at
// once, and it is not sent again.
type Throttle struct {
	K      float64       // 1.1 to 100; 0: there is none
	Window time.Duration // 1 s to 10 min; 0 means 10 s
}

// The defaults of package retry, which says where they are from.
const (
	defaultReserve = 10
	defaultWindow  = 10 * time.Second // of a budget and of a throttle
)

func (r *Retry) validate() error {
	b, t := &r.Budget, &r.Throttle
	switch {
	case r.Attempts < 0 || r.Attempts > maxAttempts:
		return fmt.Errorf("attempts %d is out of range: 1 to %d, or 0 for 1", r.Attempts, maxAttempts)
	case r.Backoff < 0 || r.Backoff > time.Hour || r.Max < 0 || r.Max > maxTime || r.Within < 0 || r.Within > maxTime:
		return fmt.Errorf("backoff %v, max %v, within %v are out of range: backoff 0 to 1h, the others 0 to %v", r.Backoff, r.Max, r.Within, maxTime)
	case !(b.Ratio >= 0 && b.Ratio <= 1):
		return fmt.Errorf("budget: ratio %v is out of range: above 0, to 1 retry per first attempt, or 0 for as many as attempts says", b.Ratio)
	case b.Ratio == 0 && *b != Budget{}:
		return fmt.Errorf("budget: reserve %d, window %v are those of a budget, and there is none: ratio is 0", b.Reserve, b.Window)
	case b.Reserve < 0 || b.Reserve > 1000:
		return fmt.Errorf("budget: reserve %d is out of range: 1 to 1000, or 0 for %d", b.Reserve, defaultReserve)
	case b.Window != 0 && (b.Window < time.Second || b.Window > 10*time.Minute):
		return fmt.Errorf("budget: window %v is out of range: 1s to 10m, or 0 for %v", b.Window, defaultWindow)
	case t.K != 0 && !(t.K >= 1.1 && t.K <= 100):
		return fmt.Errorf("throttle: k %v is out of range: 1.1 to 100 calls for each that is taken, or 0 for no throttle", t.K)
	case t.K == 0 && t.Window != 0:
		return fmt.Errorf("throttle: window %v is that of a throttle, and there is none: k is 0", t.Window)
	case t.Window != 0 && (t.Window < time.Second || t.Window > 10*time.Minute):
		return fmt.Errorf("throttle: window %v is out of range: 1s to 10m, or 0 for %v", t.Window, defaultWindow)
	}
	return nil
}

// delay returns the longest wait before the attempt after the n-th.
func (r *Retry) delay(n int) time.Duration {
	if r.Backoff == 0 {
		return 0
	}
	most := r.Max
	if most == 0 {
		most = r.Backoff << 10
	}
	return attempts.Bound(r.Backoff, most, n)
}

// A sender is a Retry being played: that of a class, or of one instance with
// sub-requests, with what it remembers.
type sender struct {
	Retry
	budget   attempts.Budget
	throttle attempts.Throttle
}

func newSender(r Retry) sender {
	s := sender{Retry: r}
	if b := r.Budget; b.Ratio > 0 {
		s.budget = attempts.Budget{Ratio: b.Ratio, Reserve: orElse(b.Reserve, defaultReserve), Window: orElse(b.Window, defaultWindow)}
	}
	if t := r.Throttle; t.K > 0 {
		s.throttle = attempts.Throttle{K: t.K, Window: orElse(t.Window, defaultWindow)}
	}
	return s
}

func orElse[T int | time.Duration](v, other T) T {
	if v == 0 {
		return other
	}
	return v
}

// first notes a first attempt at now.
func (s *sender) first(now time.Duration) {
	if s.Budget.Ratio > 0 {
		s.budget.Request(now)
	}
}

// notes tells the sender of c, if it still listens, that the server took c, or refused
// it. A call that it took may still have failed.
func (w *world) notes(c *call, took bool) {
	if c.sender.Throttle.K == 0 {
		return
	}
	switch listens := c.parent == nil && !c.gone || c.parent != nil && c.awaited(); {
	case !listens:
	case took:
		c.sender.throttle.Accepted(w.now)
	default:
		c.sender.throttle.Refused(w.now)
	}
}

// keeps reports whether the sender of c does not send it, which ends it: who asked has
// his no.
func (w *world) keeps(c *call) bool {
	s := c.sender
	if s.Throttle.K == 0 || !s.throttle.Refuses(w.now, w.clients.Float64()) {
		return false
	}
	if c.counted {
		c.tier.result.Kept++
	}
	if c.parent != nil {
		w.report(c, false)
		return true
	}
	w.resolve(c, kept)
	w.retire(c)
	return true
}

// again schedules another attempt of c, if its sender makes one. hint is the
// Retry-After that came with a refusal: 0 says that a retry cannot win, and below 0
// that nothing was said.
func (w *world) again(c *call, hint time.Duration) bool {
	r := c.sender
	if int(c.tries) >= r.Attempts || r.Obey && hint == 0 {
		return false
	}
	delay := r.delay(int(c.tries))
	if !r.NoJitter && delay > 0 {
		delay = time.Duration(w.clients.Int64N(int64(delay) + 1))
	}
	if r.Obey && hint > 0 {
		// The adapters spread what they say by up to half.
		delay = max(delay, hint+time.Duration(w.clients.Int64N(int64(hint)/2+1)))
	}
	at := w.now + delay
	if at >= c.within {
		return false
	}
	if r.Budget.Ratio > 0 && !r.budget.Spend(w.now) {
		return false
	}
	n := w.take()
	n.class, n.tier, n.sender, n.parent, n.pgen = c.class, c.tier, c.sender, c.parent, c.pgen
	n.root, n.after, n.within, n.deadline = c.root, c.after, c.within, c.deadline
	n.service, n.bytes, n.cost, n.size = c.service, c.bytes, c.cost, c.size
	n.who, n.toldCost, n.toldSize = c.who, c.toldCost, c.toldSize
	n.attempt, n.tries, n.counted, n.state = c.attempt+1, c.tries+1, c.counted, pauses
	w.events.push(event{at: at, what: retries, call: n, gen: n.gen})
	return true
}

// retry is the next attempt of a client, or of a sub-request whose sender still waits.
func (w *world) retry(c *call) {
	c.state = idle
	switch {
	case c.parent == nil:
		w.attempt(c)
	case c.awaited():
		w.dispatch(c)
	default:
		w.retire(c)
	}
}
