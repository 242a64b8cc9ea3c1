package goodput

import (
	"cmp"
	"slices"
	"time"

	"github.com/goodput/goodput/admission"
)

// keptRefusals is how many refusals a limiter remembers. A value is made once per reason and
// window, 5 to 100 ms, so of one reason that is the last 1.6 s of an overload at the most,
// and 16 times 352 bytes. Tenants over their quotas have a value each, up to 1000 in a second,
// and would push out all others: of each reason the last one is kept beside them.
const keptRefusals = 16

// A Refusal is what callers were told lately, with the numbers that decided.
type Refusal struct {
	*Rejection
	Ago   time.Duration // since the first of them
	Count uint64        // how many were told this, those of the same reason in the same window; 1 or more
}

// A refusalValue is a Rejection that callers share, and how many have been told it. Guarded by the lock,
// but for the Rejection, which is immutable.
type refusalValue struct {
	Rejection
	at    time.Duration // when the first of them was
	count uint64        // 0: nobody, and it is not in the ring

	// Of the first of them, if it had waited.
	waited, service time.Duration
}

// refused is the ring of what callers were told lately. It is written once per reason and
// window and not per refusal, so that saying no stays cheap. Guarded by the lock.
//
// Invariant: while no more than keptRefusals values have been made, their counts add up to
// Stats.Refusals. One refusal is counted where one is told: by refuse, and nowhere else.
type refused struct {
	ring [keptRefusals]*refusalValue
	n    int // ever

	// latest is the last value of each reason, in the ring or not any more.
	latest [admission.Reasons]*refusalValue

	short   time.Duration // when somebody was last refused for want of capacity
	isShort bool          // somebody was
}

// refuse tells one more caller t, and keeps it if that is the first.
func (l *Limiter) refuse(now time.Duration, t *refusalValue) *Rejection {
	k := &l.refused
	if t.count == 0 {
		k.ring[k.n%keptRefusals] = t
		k.n++
		k.latest[t.Reason] = t
		t.at = now
	}
	t.count++
	if t.Reason.ForCapacity() {
		k.short, k.isShort = now, true
	}
	return &t.Rejection
}

// Refused returns what callers were told lately, the latest first: up to 16 values, and the last
// one of each reason that is not among those. Each stands for all that were refused for its reason
// in its window, or as OverQuota for all that were told the same; its numbers are those of the first
// of them, and Waited is how long that one had waited. Those of observe mode, who would have been
// refused, are not among them.
func (l *Limiter) Refused() []Refusal {
	now := l.enter()
	all := l.refused.list(now)
	l.leave(now)
	return all
}

func (k *refused) list(now time.Duration) []Refusal {
	var last []*refusalValue
	for i := range min(k.n, keptRefusals) {
		last = append(last, k.ring[(k.n-1-i)%keptRefusals])
	}
	older := len(last)
	for _, t := range k.latest {
		if t != nil && !slices.Contains(last[:older], t) {
			last = append(last, t)
		}
	}
	slices.SortFunc(last[older:], func(a, b *refusalValue) int { return cmp.Compare(b.at, a.at) })
	var all []Refusal
	for _, t := range last {
		r := &t.Rejection
		if t.waited > 0 {
			r = r.after(t.waited, t.service)
		}
		all = append(all, Refusal{Rejection: r, Ago: now - t.at, Count: t.count})
	}
	return all
}

// lately reports whether somebody was refused for want of capacity within the given time.
func (k *refused) lately(now, within time.Duration) bool { return k.isShort && now-k.short <= within }
