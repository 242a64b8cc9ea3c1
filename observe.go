package goodput

import (
	"fmt"
	"math"
	"time"

	"github.com/goodput/goodput/admission"
)

// While a limiter observes, every request runs at once, and the core only says what it would have
// done. The core goes on as ever and counts what it is told, so what really happens is kept
// beside it, for the requests that are observed and for no others:
//
//	what really happened = the core - shadow + ran
//	Stats.Shadow         = shadow
//
// whether the limiter observes just now or not. A request is observed if it came while the
// limiter did, or waited when that began, and is so to its end. So no counter falls when
// somebody turns the switch, and what is in flight then is counted once.
//
// The shadow sees the arrival at once and the real end when it comes: a request that it queued
// holds its shadow slot from the shadow's grant to the real end, which is earlier than it would
// have been, so the shadow is a little optimistic. One that really ended before the shadow
// granted it is taken out as cancelled.

// watched is what is known of the requests that are observed; guarded by the lock of the limiter.
type watched struct {
	shadow  ledger // what the core has counted of them
	ran     ledger // what became of them; nobody waits in it
	waiting line   // those that the core has in its queue

	held  bool          // the law is. Invariant: it is while the limiter observes
	until time.Duration // after it has observed: when the law goes on at the latest

	known  bool          // what is known of the service is of work within the limit: of what runs beside more it learns nothing
	fades  time.Duration // when what it has learnt of such work weighs nothing any more, if that many have ended as well
	fadeAt uint64
	forget bool // with the samples at hand: it is to begin as a new limiter does
}

// What was measured of the service halves in weight every 5 objectives, every 2 s at the least, and no
// faster than 500 newer samples come in (admission, estimate). 2^-7 and exp(-2400/500) are less than the percent
// that a p99 is about.
const fadeEnds = 2400

func fadeTime(objective time.Duration) time.Duration { return 7 * max(5*objective, 2*time.Second) }

// unlimited reports whether what is known of the service may be of work that ran beside more than
// the limit.
func (o *watched) unlimited(now time.Duration) bool { return now < o.fades || o.served() < o.fadeAt }

func (o *watched) served() uint64 { return o.ran.outcomes[Completed] + o.ran.outcomes[Late] }

// excess returns the units of cost that run and that the shadow does not have running.
func (o *watched) excess() int { return max(o.ran.inUse-o.shadow.inUse, 0) }

// crowd looks whether more run than the core says, now that one has begun or ended. How long
// those take follows from no limit: with 980 where 20 may, each takes 50 times as long. The caller
// holds the lock.
func (l *Limiter) crowd(now time.Duration) {
	o, since := &l.watched, &l.rec.crowded
	switch more := o.excess() > 0; {
	case more && o.known:
		since.Store(math.MaxInt64)
	case more: // better than nothing
		since.Store(0)
		o.fades, o.fadeAt = now+fadeTime(l.settings.Load().objective), o.served()+fadeEnds
	case since.Load() == math.MaxInt64: // those that run beside them have some of it
		since.Store(int64(now))
	}
}

// mostHeld is for how long after it was switched off a limiter holds the law for those that still
// run: work that is slower than that is a stream, of which the law learns nothing anyway.
const mostHeld = time.Minute

// SetObserve switches the observe mode on or off while everything goes on: see Config.Observe. It
// is Reconfigure with another Observe, and is there to be fast: for an incident in which one
// suspects the limiter, and for the moment in which one trusts it. The same again changes
// nothing. It holds the lock for about a microsecond for each request that waits. A member of a
// group does not observe, which is the only error.
//
// On: who waits runs at once, all of them together, also what a limit of 0, SetPresent or Drain
// had wait or refuse. From then on nobody is refused. What ran before ends as ever.
//
// Off: from then on the limiter decides. What was observed and still runs ends as observed, and
// runs beside what is admitted: the part of it that the shadow had refused is in excess of the
// limit until it has ended. The part that the shadow had queued is in the queue, before the
// newcomers, until it ends, is granted a slot, or may wait no longer. What runs beside more than
// the limit says nothing of the service under it: it is not learnt, and what was learnt of it, as there
// was nothing better, is forgotten. A law that adapts was not asked meanwhile. It goes on from the limit that it had as soon as nothing observed runs, or after
// a minute.
func (l *Limiter) SetObserve(on bool) error {
	if err := l.mayObserve(on); err != nil {
		return err
	}
	now := l.enter()
	cfg := l.settings.Load().cfg
	cfg.Observe = on
	free := l.switched(now, on)
	l.adopt(cfg)
	l.leave(now)
	wake(free)
	return nil
}

// mayObserve returns why the limiter may not be switched on.
func (l *Limiter) mayObserve(on bool) error {
	if on && l.member != nil {
		return fmt.Errorf("goodput: member %q of group %q cannot observe: a group cannot keep its units where nothing is refused", l.Name(), l.member.group.name)
	}
	return nil
}

// switched turns the switch and returns those that waited and run now, to be woken after
// unlocking. The caller holds the lock.
func (l *Limiter) switched(now time.Duration, on bool) (free *waiter) {
	if on == l.observe.Load() {
		return nil
	}
	l.observe.Store(on)
	o := &l.watched
	if !on {
		o.forget = o.unlimited(now)
		o.known, o.until = true, now+mostHeld
		l.crowd(now)
		return nil
	}
	d := l.statsCall(now).Derivation
	o.known, o.forget = d.Samples > 0 && d.Prior == 0 && !o.unlimited(now), false
	l.holdLaw(now, true)
	last := &free
	for w, after := l.waiting.first, (*waiter)(nil); w != nil; w = after {
		if after = w.after; w.place.Verdict() == admission.Queued {
			l.letRun(now, w)
			*last, last = w, &w.after
		}
	}
	l.crowd(now)
	return free
}

// letRun has a request run that waits. For the core it goes on waiting, as one that is observed.
func (l *Limiter) letRun(now time.Duration, w *waiter) {
	l.waiting.remove(w)
	o := &l.watched
	o.shadow.arrivals++
	o.ran.arrivals++
	o.ran.dequeued++
	o.ran.run(w.place.Cost())
	w.free = &rare{kind: observed, shadow: l.shadowOf(now, w.place)}
	w.decidedAt = now
	w.decided.Store(true)
}

// pass lets r run at once if the limiter observes.
func (l *Limiter) pass(r *admission.Request) (g grant, ok bool) {
	now := l.enter()
	if !l.observe.Load() { // not any more
		l.leave(now)
		return grant{}, false
	}
	if r.Arrival == 0 {
		r.Arrival = now
	}
	own := l.watch(now, r)
	l.leave(now)
	return l.settings.Load().grant(r, now, own), true
}

// watch notes what the core decides about r, which runs whatever that is, and returns the rare
// part of its slot. The caller holds the lock.
func (l *Limiter) watch(now time.Duration, r *admission.Request) *rare {
	own := &rare{kind: observed}
	l.rec.admitted++
	d := l.offerCall(now, r)
	if d.Exempt { // it runs in the core as well, and is counted apart
		own.kind |= exempt
		return own
	}
	o := &l.watched
	o.shadow.arrivals++
	o.ran.arrivals++
	o.ran.immediate++
	o.ran.run(r.Cost)
	switch d.Verdict {
	case admission.Admitted:
		own.kind |= shadowRuns
		own.share = d.Share
		o.shadow.immediate++
		o.shadow.run(r.Cost)
	case admission.Queued:
		own.shadow = l.shadowOf(now, d.Waiter)
	default:
		o.shadow.refuse(d.Reason)
	}
	l.crowd(now)
	return own
}

// shadowOf returns the waiter of the core's queue for whom nobody waits: its request runs.
func (l *Limiter) shadowOf(now time.Duration, place *admission.Waiter) *waiter {
	w := &waiter{place: place}
	place.Ref = w
	w.timer = time.AfterFunc(place.Alarm()-now, func() { l.askShadow(w) })
	l.watched.waiting.push(w)
	l.watched.shadow.wait(place, 1)
	return w
}

// askShadow is the alarm of a request in the shadow's queue.
func (l *Limiter) askShadow(w *waiter) {
	now := l.enter()
	if !w.decided.Load() {
		if l.cancelCall(now, w.place, None) {
			l.decide(now, w)
		} else {
			// Under the lock, so that endObserved, which stops the timer,
			// comes before or after and not between.
			w.timer.Reset(w.place.Alarm() - now) // after now: it is not decided
		}
	}
	l.leave(now)
}

// decideShadow notes what the core decided about the request of w. The caller holds the lock.
func (l *Limiter) decideShadow(now time.Duration, w *waiter) {
	o := &l.watched
	o.waiting.remove(w)
	o.shadow.wait(w.place, -1)
	if w.place.Verdict() == admission.Admitted {
		o.shadow.dequeued++
		o.shadow.run(w.place.Cost())
	} else {
		o.shadow.refuse(w.place.Reason())
	}
	l.crowd(now)
}

// endObserved ends a request that is observed, really and in the shadow.
func (l *Limiter) endObserved(r *rare, out Outcome) {
	now := l.enter()
	end := r.end(out)
	if end.Exempt {
		l.releaseCall(now, end)
		l.leave(now)
		return
	}
	runs := r.kind&shadowRuns != 0
	if w := r.shadow; w != nil {
		w.timer.Stop()
		if !w.decided.Load() {
			l.cancelCall(now, w.place, Client)
			l.decide(now, w)
		}
		runs = w.place.Verdict() == admission.Admitted
		end.Share = w.place.Share()
	}
	l.watched.ran.end(end.Cost, out)
	if runs {
		l.watched.shadow.end(end.Cost, out)
		l.releaseCall(now, end)
	}
	l.crowd(now)
	l.leave(now)
}

// holdLaw has the law asked or not. The caller holds the lock.
func (l *Limiter) holdLaw(now time.Duration, held bool) {
	l.watched.held = held
	l.holdCall(now, held)
}

// letLawGoOn has the law asked again, if it is held and what it would be told follows from the
// limit again. Before that it forgets what does not. The caller holds the lock, and has just handed in what was measured.
func (l *Limiter) letLawGoOn(now time.Duration) {
	o := &l.watched
	if o.forget {
		l.forgetCall(now)
		o.forget, o.fades, o.fadeAt = false, 0, 0
	}
	if o.held && !l.observe.Load() && (o.ran.running == 0 || now >= o.until) {
		l.holdLaw(now, false)
	}
}
