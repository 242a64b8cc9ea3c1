package sim

import (
	"time"

	"github.com/goodput/goodput/admission"
)

// The life of a call: arrive or retry, send, admit, begin, work, end, conclude;
// or refuse. Whatever ends it goes through retire, once.

// take returns a call to fill in.
func (w *world) take() *call {
	c := w.free
	if c == nil {
		c = &call{}
	} else {
		w.free = c.next
		gen := c.gen
		*c = call{gen: gen}
	}
	w.open++
	return c
}

// retire ends the life of c. Nothing may be done with it afterwards.
func (w *world) retire(c *call) {
	c.gen++
	c.state = idle
	c.next = w.free
	w.free = c
	w.open--
	w.result.Ended = w.now
}

// arrive makes the first attempt of a request.
func (w *world) arrive(from *class) {
	c := w.draw(from)
	w.current().Arrivals++
	w.attempt(c)
}

// draw makes the next request of a class, or of the trace if from is nil.
func (w *world) draw(from *class) *call {
	c := w.take()
	var after time.Duration
	recorded := from == nil
	if recorded {
		j := &w.job
		from = w.classes[j.Class]
		c.service, c.cost, c.size, after = j.Service, j.Cost, j.Size, j.Deadline
		w.advanceTrace()
	} else {
		from.advance()
	}
	drawn := c.service == 0
	c.class, c.tier, c.sender = from, from.entry, &from.sender
	if c.cost == 0 {
		c.cost = max(from.Cost, 1)
	}
	if c.size == 0 {
		c.size = 1
		if from.sizes != nil {
			c.size = from.Sizes[pick(from.sizes, from.work)].Units
		}
	}
	if drawn {
		c.service = from.service.draw(from.work)
		if from.sizes != nil { // else what is drawn is a request, whatever its size
			c.service = cut(float64(c.service) * float64(c.size))
		}
	}
	if after == 0 && from.deadlines != nil {
		after = from.Deadlines[pick(from.deadlines, from.work)].After
	}
	c.after, c.within = never, never
	if after > 0 {
		c.after = after
	}
	if d := from.Retry.Within; d > 0 {
		c.within = w.now + d
	}
	c.bytes, c.root, c.arrival, c.attempt, c.tries = from.Bytes, w.now, w.now, 1, 1
	c.tally, c.tenant, c.toldCost, c.toldSize = from.tally, from.Tenant, c.cost, c.size
	if from.crowd != nil {
		from.crowd.introduce(c)
	}
	c.counted = w.now >= w.Warmup
	from.sender.first(w.now)
	if c.counted {
		c.tally.Requests++
		c.tally.Asked += uint64(c.cost)
		if c.cohort > 0 {
			c.tally.Cohorts[c.cohort-1].Requests++
		}
		if recorded {
			from.record(c, drawn)
		}
	}
	return c
}

// attempt sends c to the tier of its class, unless its client keeps it at home.
func (w *world) attempt(c *call) {
	if w.keeps(c) {
		return
	}
	c.arrival, c.deadline = w.now, never
	if c.after != never {
		c.deadline = w.now + c.after
	}
	c.deadline = min(c.deadline, c.within)
	w.current().Attempts++
	if c.counted {
		c.tally.Attempts++
	}
	w.send(c)
}

// send offers c to an instance of its tier.
func (w *world) send(c *call) {
	if c.counted {
		c.tier.result.Arrivals++
		if c.tries > 1 {
			c.tier.result.Again++
		}
	}
	in := w.choose(c.tier)
	if in == nil {
		w.refuse(c, admission.Unavailable)
		return
	}
	if c.told = c.deadline; c.class.Untold {
		c.told = never
	}
	gen := c.gen
	if w.enter(c, in); c.gen != gen { // it was one too many: the instance is dead, and c with it
		return
	}
	if in.core != nil {
		w.offer(c)
	} else {
		w.line(c)
	}
	// Only now: whoever gave way to c is gone.
	in.tier.result.PeakQueue = max(in.tier.result.PeakQueue, in.waiting)
}

// line offers c to a baseline.
func (w *world) line(c *call) {
	v, victim := c.in.queue.offer(w.now, c)
	switch v {
	case admission.Admitted:
		w.admit(c)
	case admission.Queued:
		w.queue(c, true)
	default:
		w.refuse(c, admission.QueueFull)
	}
	if victim != nil {
		w.unqueue(victim)
		w.refuse(victim, admission.Displaced)
	}
}

// offer is what a driver of the core does with an arrival.
func (w *world) offer(c *call) {
	in := c.in
	r := admission.Request{
		Cost: c.toldCost, Size: c.toldSize, Bytes: c.bytes, Priority: c.class.Priority,
		Attempt: c.attempt, Arrival: c.root, Deadline: c.told,
		Tenant: c.tenant, Cohort: c.cohort, Key: c.key,
	}
	switch d := in.core.Offer(w.now, r); d.Verdict {
	case admission.Admitted:
		c.share = d.Share
		w.admit(c)
	case admission.Queued:
		d.Waiter.Ref, c.waiter = c, d.Waiter
		w.events.push(event{at: d.Waiter.Alarm(), what: rings, call: c, gen: c.gen})
		w.queue(c, c.class.Untold)
	default:
		w.refuseUntil(c, d.Reason, d.RetryAfter)
	}
	w.collect(in)
}

// collect does what the limiter of in decided since the last call.
func (w *world) collect(in *instance) {
	if in.core == nil {
		for c, why := in.queue.next(w.now); c != nil; c, why = in.queue.next(w.now) {
			w.unqueue(c)
			w.decided(c, why)
		}
		return
	}
	for p := in.core.Next(); p != nil; p = in.core.Next() {
		c, why := p.Ref.(*call), p.Reason()
		c.share = p.Share()
		w.unqueue(c)
		w.decided(c, why)
	}
	w.await(in)
	if in.member != nil {
		w.ask(in)
	}
}

func (w *world) decided(c *call, why admission.Reason) {
	if why == admission.None {
		w.admit(c)
	} else {
		w.refuse(c, why)
	}
}

// ring is the alarm of a waiter of the core.
func (w *world) ring(c *call) {
	p, in := c.waiter, c.in
	if p == nil {
		return
	}
	if !in.core.Cancel(w.now, p, admission.None) {
		w.events.push(event{at: p.Alarm(), what: rings, call: c, gen: c.gen})
		return
	}
	if p.Verdict() == admission.Refused {
		why := p.Reason()
		w.unqueue(c)
		w.refuse(c, why)
	}
	w.collect(in)
}

// queue notes that c waits in its limiter. Where nobody else would end its wait at
// its deadline, its client does.
func (w *world) queue(c *call, alone bool) {
	c.state = waits
	c.in.waiting++
	c.tier.waiting++
	if alone {
		w.watch(c)
	}
}

func (w *world) unqueue(c *call) {
	c.state = idle
	c.in.waiting--
	c.tier.waiting--
	if c.waiter != nil {
		c.in.core.Recycle(c.waiter)
		c.waiter = nil
	}
	c.tier.result.PeakAge = max(c.tier.result.PeakAge, w.now-c.arrival)
}

// watch schedules that the client of c gives up at the deadline.
func (w *world) watch(c *call) {
	if c.watched || c.parent != nil || c.deadline == never || c.class.Patience == Stays {
		return
	}
	c.watched = true
	w.events.push(event{at: c.deadline + 1, what: leaves, call: c, gen: c.gen})
}

// admit gives c its slot.
func (w *world) admit(c *call) {
	t := c.tier
	c.start = w.now
	if c.in.core != nil {
		c.epoch = c.in.core.Epoch()
	}
	t.inUse++
	t.result.PeakInUse = max(t.result.PeakInUse, t.inUse)
	if c.counted {
		t.result.Served++
		if c.parent == nil {
			c.tally.Served++
			c.tally.Granted += uint64(c.cost)
			c.tally.Wait.Add(w.now - c.arrival)
		}
	}
	w.crowd(t, c.cost)
	if t.behind > 0 || !t.fits(c) {
		c.state = behind
		t.push(c)
		t.result.PeakBehind = max(t.result.PeakBehind, t.behind)
		w.watch(c)
		return
	}
	w.begin(c)
}

// begin starts the work of c at the resource.
func (w *world) begin(c *call) {
	t := c.tier
	t.busy++
	c.slots = t.width(c)
	t.taken += c.slots
	c.state = works
	d := c.service
	if f := t.stretch(c.in, w.now); f != 1 {
		d = cut(float64(d) * f)
	}
	end := min(t.time.end(w.now, d), horizon)
	c.began = w.now
	w.events.push(event{at: end, what: ends, call: c, gen: c.gen})
	if end > c.deadline {
		w.watch(c)
	}
}

// end is the end of the work of c at the resource.
func (w *world) end(c *call) {
	t := c.tier
	t.busy--
	t.taken -= c.slots
	w.crowd(t, -c.cost)
	if c.counted {
		tally := c.tally
		tally.Work = min(tally.Work+w.now-c.began, horizon)
		if !c.inTime(w.now) {
			tally.Wasted = min(tally.Wasted+w.now-c.began, horizon)
		}
	}
	w.advanceLine(t)
	if t.Faults != nil && t.fails(w.now) {
		w.conclude(c, false)
		return
	}
	if t.Next != nil && (c.parent != nil || !c.class.Local) {
		w.spread(c)
		return
	}
	w.conclude(c, true)
}

// conclude is the end of a call that had a slot: the slot is free again, and
// whoever asked has an answer, or knows that there will be none.
func (w *world) conclude(c *call, ok bool) {
	in, t := c.in, c.tier
	t.inUse--
	held := w.now - c.start
	if in.core != nil {
		m := admission.Sample{Hold: held, Cost: c.toldCost, Offered: c.toldSize, Size: c.size, Epoch: c.epoch}
		if c.state == spreads && w.tiers[t.Next.Tier].limits() { // its sub-requests meet limiters of their own
			m.Elsewhere = w.now - c.parted
		}
		m.Dropped = !ok && c.shed
		o, charge := admission.Failed, 0
		switch {
		case c.class.Told.Uncorrected:
			m.Size = c.toldSize
		case c.cost != c.toldCost:
			charge = c.cost
		}
		switch {
		case !ok:
		case c.gone && c.class.Patience == Leaves:
			o, m.Abandoned = admission.Abandoned, true
		case c.inTime(w.now):
			o, m.Service = admission.Completed, held
		default:
			o, m.Service = admission.Late, held
		}
		in.batch.AddSample(m)
		in.core.Release(w.now, admission.End{Cost: c.toldCost, Outcome: o, Share: c.share, Charge: charge})
	} else {
		in.queue.ended(c, held, ok && c.inTime(w.now))
		in.limit.set(w, float64(in.queue.Limit))
	}
	w.collect(in)
	w.exit(c)
	w.notes(c, true)
	switch {
	case c.parent == nil:
	case ok:
		w.report(c, true)
		return
	default:
		w.blame(c, false)
		w.miss(c, -1)
		return
	}
	if c.counted {
		c.tally.Latency.Add(w.now - c.arrival)
	}
	if !c.gone {
		w.answer(c, ok)
	}
	w.retire(c)
}

// refuse ends a call that got no slot.
func (w *world) refuse(c *call, why admission.Reason) { w.refuseUntil(c, why, 0) }

// refuseUntil is refuse with the time until the quota of its tenant has enough for it,
// 0 if that is not why.
func (w *world) refuseUntil(c *call, why admission.Reason, quota time.Duration) {
	hint := time.Duration(-1) // a limiter that gives none
	if c.counted {
		c.tier.result.Refused++
	}
	if c.in != nil {
		if core := c.in.core; core != nil && c.tier.Policy.Core != nil { // a library gives none
			hint = core.RetryAfter(why)
		}
		if quota > 0 {
			hint = quota
		}
		w.exit(c)
	}
	w.notes(c, false)
	if c.parent != nil {
		w.blame(c, true)
		w.miss(c, hint)
		return
	}
	if c.counted {
		c.tally.Reasons[why]++
		c.tally.Told.Add(w.now - c.arrival)
	}
	if !c.gone && !w.again(c, hint) {
		w.resolve(c, refused)
	}
	w.retire(c)
}

// leave is the deadline of a client that does not wait longer.
func (w *world) leave(c *call) {
	if c.gone {
		return
	}
	c.gone = true
	if !w.again(c, -1) {
		w.resolve(c, late)
	}
	if c.state != waits || c.class.Patience != Leaves {
		return
	}
	in := c.in
	if in.core != nil {
		in.core.Cancel(w.now, c.waiter, admission.Client)
	} else {
		in.queue.remove(w.now, c)
	}
	w.unqueue(c)
	w.refuse(c, admission.Client)
	w.collect(in)
}
