package sim

import (
	"time"

	"github.com/goodput/goodput/admission"
)

// reserve is how many retries a budget has in hand: ten, as in gRPC's retry
// throttling (gRFC A6), so that a client with little traffic can retry at all.
const reserve = 10

// An ending is how a request ended for its client, after all attempts.
type ending uint8

const (
	inTime ending = iota
	late
	refused
	failed
)

// answer tells the client of c, which is still there, that an attempt has ended.
func (w *world) answer(c *call, ok bool) {
	switch {
	case ok && c.inTime(w.now):
		w.resolve(c, inTime)
	case ok:
		w.resolve(c, late)
	case !w.again(c, -1):
		w.resolve(c, failed)
	}
}

// resolve counts how the request of c ended.
func (w *world) resolve(c *call, e ending) {
	bin, tally := w.current(), c.tally
	if !c.counted {
		tally = &w.discard
	}
	switch e {
	case inTime:
		bin.InTime++
		tally.InTime++
		if c.cohort > 0 && c.counted {
			tally.Cohorts[c.cohort-1].InTime++
		}
		tally.Good.Add(w.now - c.root)
		if n := c.sent; n > 0 {
			tally.Parts += float64(c.came) / float64(n)
		} else {
			tally.Parts++
		}
	case late:
		bin.Late++
		tally.Late++
	case refused:
		bin.Refused++
		tally.Refused++
	case failed:
		bin.Failed++
		tally.Failed++
	}
}

// again schedules another attempt of the request of c, if its client makes one.
// hint is the Retry-After that came with a refusal: 0 says that a retry cannot win,
// and below 0 that nothing was said.
func (w *world) again(c *call, hint time.Duration) bool {
	r := &c.class.Retry
	if c.attempt >= r.Attempts || r.Obey && hint == 0 {
		return false
	}
	delay := r.delay(c.attempt)
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
	if r.Budget > 0 {
		if c.class.credit < 1 {
			return false
		}
		c.class.credit--
	}
	n := w.take()
	n.class, n.tier, n.root, n.after, n.within = c.class, c.class.entry, c.root, c.after, c.within
	n.service, n.bytes, n.cost, n.size = c.service, c.bytes, c.cost, c.size
	n.who, n.toldCost, n.toldSize = c.who, c.toldCost, c.toldSize
	n.attempt, n.counted, n.state = c.attempt+1, c.counted, pauses
	w.events.push(event{at: at, what: retries, call: n, gen: n.gen})
	return true
}

// delay returns the longest wait before the attempt after the n-th.
func (r *Retry) delay(n int) time.Duration {
	most := r.Max
	if most == 0 {
		most = r.Backoff << 10
	}
	return min(cut(float64(r.Backoff)*float64(uint64(1)<<min(n-1, 62))), most)
}

// choose returns the instance that a request goes to, any that listens, or nil.
func (w *world) choose(t *tier) *instance {
	if len(t.instances) == 1 {
		if t.instances[0].down {
			return nil
		}
		return t.instances[0]
	}
	first := w.clients.IntN(len(t.instances))
	for i := range t.instances {
		if in := t.instances[(first+i)%len(t.instances)]; !in.down {
			return in
		}
	}
	return nil
}

// spread sends the sub-requests of c.
func (w *world) spread(c *call) {
	f := c.tier.Next
	c.state = spreads
	n := max(f.N, 1)
	c.pending, c.sent, c.need = n, n, f.Need
	if c.need == 0 {
		c.need = n
	}
	w.watch(c)
	if f.Wait > 0 {
		w.events.push(event{at: w.now + f.Wait, what: answers, call: c, gen: c.gen})
	}
	next, from := w.tiers[f.Tier], *c // a refusal may end c, whose place another then takes
	for range n {
		s := w.take()
		s.class, s.tier, s.parent, s.pgen = from.class, next, c, from.gen
		s.root, s.arrival, s.deadline, s.after, s.within = from.root, w.now, from.deadline, from.after, from.within
		s.service = next.service.draw(next.rand)
		s.cost, s.size, s.bytes, s.attempt, s.counted = 1, 1, from.bytes, from.attempt, from.counted
		s.who, s.toldCost, s.toldSize = from.who, 1, 1
		s.key = "" // it is about something else
		w.send(s)
	}
}

// report tells the parent of c, if it is still there, what became of c.
func (w *world) report(c *call, ok bool) {
	p, gen := c.parent, c.pgen
	w.retire(c)
	if p.gen != gen || p.state != spreads {
		return
	}
	p.pending--
	if ok {
		p.came++
	}
	partial := p.tier.Next.Wait > 0
	switch {
	case p.came >= p.need:
		w.conclude(p, true)
	case p.came+p.pending >= p.need:
		// It may still get what it needs.
	case !partial:
		w.conclude(p, false)
	case p.pending == 0:
		w.conclude(p, p.came > 0)
	}
}

// retry is the next attempt of a client.
func (w *world) retry(c *call) {
	c.state = idle
	w.attempt(c)
}

// kill loses what is in an instance. It comes back as how says.
func (w *world) kill(in *instance, how Restart) {
	if in.down {
		return
	}
	t := in.tier
	t.result.Restarts++
	in.down, in.cold = true, how
	w.events.push(event{at: w.now + how.Down, what: comes, who: in.index, gen: uint32(t.index)})

	// First everything inside is taken apart, then the clients learn of it: what
	// they do meets an instance that is down.
	var lost *call
	for c := in.alive; c != nil; c = in.alive {
		w.exit(c)
		switch c.state {
		case waits:
			in.waiting--
			t.waiting--
		case behind:
			t.remove(c)
			t.inUse--
		case works:
			t.busy--
			t.taken -= t.width(c)
			t.inUse--
		case spreads:
			t.inUse--
		}
		c.waiter = nil
		c.gen++ // what was scheduled for it does nothing
		c.state = idle
		c.next, lost = lost, c
	}
	in.reset(w.now)
	w.advanceLine(t)
	for lost != nil {
		c := lost
		lost = c.next
		w.lose(c)
	}
}

// lose ends a call whose instance has died.
func (w *world) lose(c *call) {
	if c.parent != nil {
		w.report(c, false)
		return
	}
	if !c.gone {
		w.answer(c, false)
	}
	w.retire(c)
}

// reset makes the limiter of an instance that starts anew.
func (in *instance) reset(now time.Duration) {
	in.batch.Reset()
	if in.core == nil {
		in.queue.reset(now)
		return
	}
	in.core, _ = admission.New(*in.tier.Policy.Core) // as it was made before
}
