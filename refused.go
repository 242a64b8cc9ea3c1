package goodput

import (
	"slices"
	"time"

	"github.com/goodput/goodput/admission"
)

// keptRefusals is how many refusals a limiter remembers. A value is made once per reason and
// window, 5 to 100 ms, so of one reason that is the last 1.6 s of an overload at the most,
// and 16 times some 500 bytes.
const keptRefusals = 16

// A Refusal is what callers were told lately, with the numbers that decided.
type Refusal struct {
	*Rejection
	Ago   time.Duration // since the first of them
	Count uint64        // how many were told this, those of the same reason in the same window
}

// kept is a Refusal in the ring.
type kept struct {
	rejection *Rejection
	at        time.Duration
	first     uint64 // the number of the first of them, among all of its reason
}

// refused is the ring of what callers were told lately. It is written once per reason and
// window and not per refusal, so that saying no stays cheap. Guarded by the lock.
type refused struct {
	ring [keptRefusals]kept
	n    int // ever
}

// note keeps r, the number n of its reason.
func (k *refused) note(now time.Duration, r *Rejection, n uint64) {
	k.ring[k.n%keptRefusals] = kept{r, now, n}
	k.n++
}

// Refused returns what callers were told lately, the latest first: up to 16 values. Each
// stands for all that were refused for its reason in its window; its numbers are those of
// the first. Those of observe mode, who would have been refused, are not among them.
func (l *Limiter) Refused() []Refusal {
	now := l.enter()
	st := l.statsCall(now)
	all := l.refused.list(now, &st.Refusals, &l.gone)
	l.leave(now)
	return all
}

func (k *refused) list(now time.Duration, core, gone *[admission.Reasons]uint64) []Refusal {
	next := *core // the number of the first that an entry does not stand for
	for i, n := range gone {
		next[i] += n
	}
	for i := range next {
		next[i]++
	}
	var all []Refusal
	for i := range min(k.n, keptRefusals) {
		e := k.ring[(k.n-1-i)%keptRefusals]
		reason := e.rejection.Reason
		all = append(all, Refusal{Rejection: e.rejection, Ago: now - e.at, Count: next[reason] - e.first})
		next[reason] = e.first
	}
	return slices.Clip(all)
}
