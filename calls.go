package goodput

import (
	"time"

	"github.com/goodput/goodput/admission"
)

// Every call of the core is made here, in a method that is named after it, so
// that a test can record a live run, replay it into a fresh core and compare what
// was decided. The journal is nil in production and costs a branch.

// op names a call of the core.
type op string

// A call is one call of the core, its arguments and its answer.
type call struct {
	op         op
	now        time.Duration
	request    admission.Request
	decision   admission.Decision
	end        admission.End
	waiter     *admission.Waiter
	why        Reason
	answer     bool
	n          int
	after      time.Duration
	settlement admission.Settlement
	batch      *admission.Batch // a copy: the limiter empties its own
	cfg        *admission.Config
	stats      *admission.Stats
	tenant     string
	weight     float64
	tenants    []TenantState
}

func (l *Limiter) offerCall(now time.Duration, r *admission.Request) admission.Decision {
	d := l.core.Offer(now, *r)
	if l.journal != nil {
		l.journal(call{op: "offer", now: now, request: *r, decision: d})
	}
	return d
}

func (l *Limiter) releaseCall(now time.Duration, e admission.End) {
	l.core.Release(now, e)
	if l.journal != nil {
		l.journal(call{op: "release", now: now, end: e})
	}
}

func (l *Limiter) cancelCall(now time.Duration, w *admission.Waiter, why Reason) bool {
	ok := l.core.Cancel(now, w, why)
	if l.journal != nil {
		l.journal(call{op: "cancel", now: now, waiter: w, why: why, answer: ok})
	}
	return ok
}

func (l *Limiter) nextCall() *admission.Waiter {
	w := l.core.Next()
	if l.journal != nil {
		l.journal(call{op: "next", waiter: w})
	}
	return w
}

func (l *Limiter) lendCall() int {
	n := l.core.Lend()
	if l.journal != nil {
		l.journal(call{op: "lend", n: n})
	}
	return n
}

func (l *Limiter) refillCall() time.Duration {
	at := l.core.RefillAt()
	if l.journal != nil {
		l.journal(call{op: "refill", after: at})
	}
	return at
}

func (l *Limiter) dispatchCall(now time.Duration) {
	l.core.Dispatch(now)
	if l.journal != nil {
		l.journal(call{op: "dispatch", now: now})
	}
}

func (l *Limiter) settleCall(now time.Duration, s admission.Settlement) {
	l.core.Settle(now, s)
	if l.journal != nil {
		l.journal(call{op: "settle", now: now, settlement: s})
	}
}

func (l *Limiter) observeCall(now time.Duration, b *admission.Batch) {
	if l.journal != nil {
		own := *b
		l.journal(call{op: "observe", now: now, batch: &own})
	}
	l.core.Observe(now, b)
}

func (l *Limiter) setLimitCall(now time.Duration, n int) error {
	err := l.core.SetLimit(now, n)
	if l.journal != nil {
		l.journal(call{op: "set limit", now: now, n: n})
	}
	return err
}

func (l *Limiter) reconfigureCall(now time.Duration, cfg admission.Config) error {
	err := l.core.Reconfigure(now, cfg)
	if l.journal != nil {
		own := cfg
		l.journal(call{op: "reconfigure", now: now, cfg: &own})
	}
	return err
}

func (l *Limiter) setWeightCall(now time.Duration, tenant string, weight float64) {
	l.core.SetWeight(now, tenant, weight)
	if l.journal != nil {
		l.journal(call{op: "set weight", now: now, tenant: tenant, weight: weight})
	}
}

func (l *Limiter) tenantsCall(now time.Duration, n int) []TenantState {
	top := l.core.TopTenants(now, n)
	if l.journal != nil {
		l.journal(call{op: "tenants", now: now, n: n, tenants: top})
	}
	return top
}

func (l *Limiter) drainCall(now time.Duration, queue bool) {
	l.core.Drain(now, queue)
	if l.journal != nil {
		l.journal(call{op: "drain", now: now, answer: queue})
	}
}

func (l *Limiter) setPresentCall(now time.Duration, present bool) {
	l.core.SetPresent(now, present)
	if l.journal != nil {
		l.journal(call{op: "set present", now: now, answer: present})
	}
}

func (l *Limiter) holdCall(now time.Duration, held bool) {
	l.core.Hold(now, held)
	if l.journal != nil {
		l.journal(call{op: "hold", now: now, answer: held})
	}
}

func (l *Limiter) forgetCall(now time.Duration) {
	l.core.Forget(now)
	if l.journal != nil {
		l.journal(call{op: "forget", now: now})
	}
}

func (l *Limiter) statsCall(now time.Duration) admission.Stats {
	s := l.core.Stats(now)
	if l.journal != nil {
		own := s
		l.journal(call{op: "stats", now: now, stats: &own})
	}
	return s
}

func (l *Limiter) retryAfterCall(why Reason) time.Duration {
	d := l.core.RetryAfter(why)
	if l.journal != nil {
		l.journal(call{op: "retry after", why: why, after: d})
	}
	return d
}
