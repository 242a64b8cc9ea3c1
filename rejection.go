package goodput

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/goodput/goodput/admission"
)

// ErrRejected is matched by every *Rejection.
var ErrRejected = errors.New("goodput: not admitted")

// A Rejection says why work did not start. It was not executed, so a caller may
// send it again, unless RetryAfter is 0. What was refused as Draining may be sent to another
// instance, at once; this one serves nobody any more.
//
// Reason is Client if the caller's context was cancelled, and Parent if it was
// cancelled with a cause (context.Cause): whoever owns the caller ended it, and
// said why. Outcome is what the counters of Stats say, but for a caller that left
// at the moment at which it got its slot: it did not run, and is told Cancelled or
// Expired; the core had admitted it, and counts it as abandoned.
//
// errors.Is: ErrRejected always; context.Canceled if the caller had left;
// context.DeadlineExceeded if its deadline had passed.
//
// Refusals at the door share one Rejection per reason and window (an eighth of
// the objective, 5 to 100 ms), so that saying no allocates nothing: it is
// immutable and its numbers are those of the first request of the window. A refusal as
// OverQuota says when there is enough for just this request: it is shared with others of
// the same tenant as long as that is right to a millisecond, and never too short. A
// tenant that is over its quota with requests of different costs gets a value each,
// 352 bytes.
type Rejection struct {
	Limiter       string
	Outcome       Outcome
	Reason        Reason
	Waited        time.Duration // 0 at the door
	RetryAfter    time.Duration // whole seconds before jitter, but exact for OverQuota, where Error rounds it up to 1 ms; 0: a retry cannot win
	Limit         int
	InUse         int
	Waiting       int
	Depth         int           // in force
	PredictedWait time.Duration // at the door, of the request that built this value
	Service       time.Duration // the service quantile that had to fit, as known when it came
	Remaining     time.Duration // at the door, its budget; 0 if it had no deadline
	Quota         Quota         // of its tenant, of one refused as OverQuota
	Derivation    Derivation

	// Nested says that the caller, by its context, holds a slot of the same limiter: it waited
	// for a second one, which it may have kept itself from getting.
	Nested bool

	declined bool             // see Declined
	ground   admission.Ground // of one that was displaced

	of    *settings // in force when it was built; nil for one that no limiter has built
	asked asked     // by the request that built it
}

// asked is what a refused request asked for, as far as that decides; zero where it is not known.
type asked struct {
	cost    int
	bytes   int64
	noWait  bool // it asked for a free slot, and for nothing else
	waiting int  // units of cost that waited then
}

// ownQueueFull is the sentence of QueueFull where there are tenants.
const ownQueueFull = "the queue, or its tenant's part of it, is full"

// grounds say why one was displaced.
var grounds = [...]string{
	admission.NoGround:   "it gave its place to a more important, younger or shorter request",
	admission.ByPriority: "it gave its place to a more important request",
	admission.ByShare:    "it gave its place to one whose tenant has less than its share",
	admission.ByRetry:    "it was a retry and gave its place to a first attempt",
	admission.ByCohort:   "it gave its place to one whose user is shed later",
	admission.BySize:     "it gave its place to a shorter request, as not all could be served in time",
	admission.ByAge:      "it gave its place to a younger request",
}

// sentences say the reasons in words.
var sentences = [admission.Reasons]string{
	QueueFull:   "the queue is full",
	BytesFull:   "the request bodies that wait fill their memory",
	TooCostly:   "it costs more than the limit, the burst of its allowance, or what its tenant or group may ever have",
	TooLarge:    "its body is larger than all that may wait",
	NoBudget:    "it could not be served within its deadline",
	OverQuota:   "its tenant has had what its quota allows for now",
	Shed:        "those that wait are more important, or shed after it",
	Displaced:   grounds[admission.NoGround],
	Replaced:    "a newer one of the same key has its place",
	WaitBound:   "it waited as long as a request may",
	Unavailable: "there is nothing to run it on",
	Draining:    "the service is shutting down; another instance may take it at once",
	Deadline:    "its deadline has passed",
	Doomed:      "what is left until its deadline is too short to serve it",
	Client:      "the caller left",
	Parent:      "the caller was ended by whoever owns it",
}

// Error returns one sentence with the numbers that decided. They are different each time:
// a log or an error tracker that groups by text goes by Limiter and Reason instead.
func (r *Rejection) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "goodput: %s did not admit the request", r.Limiter)
	if r.Waited > 0 {
		fmt.Fprintf(&b, " after %v", short(r.Waited))
	}
	b.WriteString(": " + r.sentence())
	if r.Nested {
		b.WriteString(", and its caller holds a slot of this limiter itself")
	}
	switch {
	case r.Reason == NoBudget && r.PredictedWait+r.Service <= r.Remaining:
		b.WriteString(" together with others that take less") // sizes are trusted: see admission.SizeTrusted
	case r.Reason == NoBudget:
		fmt.Fprintf(&b, " (wait %s + service %s > %s left)", short(r.PredictedWait), short(r.Service), short(r.Remaining))
	case r.Reason == Doomed:
		fmt.Fprintf(&b, " (service %s)", short(r.Service))
	case r.Reason == OverQuota:
		fmt.Fprintf(&b, " (%s, enough for it in %s)", quotaWords(r.Quota), short(r.RetryAfter))
	}
	fmt.Fprintf(&b, "; %d of %d in use, %d waiting, %d may wait", r.InUse, r.Limit, r.Waiting, r.Depth)
	if r.Depth < r.Derivation.Depth {
		b.WriteString(" while the overload lasts")
	}
	switch r.Reason {
	case QueueFull, NoBudget, Shed, Displaced, WaitBound, Doomed:
		if r.Derivation.Allowance.Rate > 0 && r.InUse < r.Limit {
			b.WriteString("; slots are free, the allowance is what is used up")
		}
	}
	fmt.Fprintf(&b, "; %v", r.Derivation)
	if r.RetryAfter > 0 {
		fmt.Fprintf(&b, "; retry after %v", (r.RetryAfter + time.Millisecond - 1).Truncate(time.Millisecond))
	}
	return b.String()
}

// sentence says the reason in words, as closely as r knows it.
func (r *Rejection) sentence() string {
	cost := r.asked.cost
	switch a := r.Derivation.Allowance; {
	case r.Reason == Displaced:
		return grounds[r.ground]
	case r.Reason == QueueFull && r.of != nil && r.of.cfg.Tenants != nil:
		return ownQueueFull
	case r.Reason != TooCostly || cost == 0:
		return sentences[r.Reason]
	case cost > r.Limit:
		return fmt.Sprintf("it costs %d, and the limit is %d", cost, r.Limit)
	case a.Rate > 0 && float64(cost) > a.Burst:
		return fmt.Sprintf("it costs %d, and the burst of its allowance is %.6g", cost, a.Burst)
	}
	return fmt.Sprintf("it costs %d, more than its tenant or group may ever have", cost)
}

// quotaWords is a quota in words, its defaults included.
func quotaWords(q Quota) string {
	burst := q.Burst
	if burst == 0 {
		burst = max(q.Rate, 1)
	}
	return fmt.Sprintf("quota %.6g/s, burst %.6g", q.Rate, burst)
}

func short(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// Is makes errors.Is tell the cases apart that a caller must.
func (r *Rejection) Is(target error) bool {
	switch target {
	case ErrRejected:
		return true
	case context.Canceled:
		return r.Outcome == Cancelled
	case context.DeadlineExceeded:
		return r.Reason == Deadline
	}
	return false
}

// Jittered returns RetryAfter spread evenly over the whole seconds from
// RetryAfter to one and a half times that, rounded up: 1 to 30 s of the 1 to 20 s
// that the core says. It is a fresh value per answer, so that those that are
// refused together do not come back together. 0 stays 0.
//
// The time of a quota is only rounded up: it is exact, of one tenant, and may be days.
func (r *Rejection) Jittered() time.Duration {
	if r.RetryAfter <= 0 {
		return 0
	}
	low := int64((r.RetryAfter-1)/time.Second) + 1
	if r.Reason == OverQuota {
		return time.Duration(low) * time.Second
	}
	return time.Duration(low+rand.Int64N((low+1)/2+1)) * time.Second
}

// after returns a copy for one who was refused after a wait. What the request that
// built r was told about itself is left out.
func (r *Rejection) after(waited, service time.Duration) *Rejection {
	own := *r
	own.Waited, own.Service, own.PredictedWait, own.Remaining = waited, service, 0, 0
	return &own
}

// refusalFor returns what r is told that the core refused at the door. The caller holds
// the lock.
func (l *Limiter) refusalFor(now time.Duration, d *admission.Decision, r *admission.Request) *Rejection {
	if d.Reason == OverQuota {
		return l.refuse(now, l.overQuota(now, d, r))
	}
	return l.refuse(now, l.refusal(now, d.Reason, d, r))
}

// refusal returns the value that this window shares for reason, made from d and
// the request if there is none yet; both may be nil. The caller holds the lock.
func (l *Limiter) refusal(now time.Duration, reason Reason, d *admission.Decision, by *admission.Request) *refusalValue {
	s := l.settings.Load()
	if r := l.refusals[reason]; r != nil && now-l.built[reason] < s.window {
		return r
	}
	st := l.statsCall(now)
	r := &refusalValue{Rejection: Rejection{
		Limiter:    s.cfg.Name,
		Outcome:    reason.Outcome(),
		Reason:     reason,
		Limit:      st.Limit,
		InUse:      st.InUse,
		Waiting:    st.Waiting,
		Depth:      st.Depth,
		Service:    st.Derivation.Service,
		Derivation: st.Derivation,
		RetryAfter: l.retryAfterCall(reason),
		of:         s,
	}}
	if d != nil {
		r.PredictedWait = d.PredictedWait
		if d.Service > 0 {
			r.Service = d.Service
		}
	}
	if by != nil {
		r.asked = asked{cost: max(by.Cost, 1), bytes: by.Bytes, noWait: by.NoWait, waiting: st.WaitingCost}
		if by.Deadline != admission.Never {
			r.Remaining = max(by.Deadline-now, 0)
		}
	}
	l.refusals[reason], l.built[reason] = r, now
	return r
}

// refuseGone counts an arrival whose caller had left before it asked, and
// returns the refusal. The core has no say in it and does not hear of it.
func (l *Limiter) refuseGone(ctx context.Context) *Rejection {
	reason := cancelled(ctx)
	now := l.enter()
	l.gone[reason]++
	r := l.refuse(now, l.refusal(now, reason, nil, nil))
	l.leave(now)
	return r
}

// cancelled returns who ended a context that was cancelled: the caller, or
// whoever owns it and said why.
func cancelled(ctx context.Context) Reason {
	if context.Cause(ctx) != context.Canceled {
		return Parent
	}
	return Client
}
