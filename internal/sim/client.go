package sim

import (
	"time"

	"github.com/goodput/goodput/admission"
)

// An ending is how a request ended for its client, after all attempts.
type ending uint8

const (
	inTime ending = iota
	late
	refused
	failed
	kept
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
	case kept:
		bin.Kept++
		tally.Kept++
	}
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
	c.state, c.parted = spreads, w.now
	n := max(f.N, 1)
	c.pending, c.sent, c.need = n, n, f.Need
	if c.need == 0 {
		c.need = n
	}
	w.watch(c)
	if f.Wait > 0 {
		w.events.push(event{at: w.now + f.Wait, what: answers, call: c, gen: c.gen})
	}
	next, sender, within := w.tiers[f.Tier], &c.in.sender, never
	if d := f.Retry.Within; d > 0 {
		within = w.now + d
	}
	from := *c // a refusal may end c, whose place another then takes
	for range n {
		s := w.take()
		s.class, s.tier, s.sender, s.parent, s.pgen = from.class, next, sender, c, from.gen
		s.root, s.deadline, s.after, s.within = from.root, min(from.deadline, within), from.after, min(from.told, within)
		s.service = from.tier.fan.draw(next.rand)
		s.cost, s.size, s.bytes, s.attempt, s.tries, s.counted = 1, 1, from.bytes, from.attempt, 1, from.counted
		s.who, s.toldCost, s.toldSize = from.who, 1, 1
		s.key = "" // it is about something else
		sender.first(w.now)
		w.dispatch(s)
	}
}

// dispatch sends a sub-request, unless its sender keeps it at home.
func (w *world) dispatch(c *call) {
	c.arrival = w.now
	if !w.keeps(c) {
		w.send(c)
	}
}

// awaited reports whether the request that c is a part of is still there and waits.
func (c *call) awaited() bool { return c.parent.gen == c.pgen && c.parent.state == spreads }

// miss ends a sub-request without an answer, with the hint that came with it: it is
// sent again, or its parent is told.
func (w *world) miss(c *call, hint time.Duration) {
	if c.awaited() && w.again(c, hint) {
		w.retire(c)
		return
	}
	w.report(c, false)
}

// blame notes in the parent of c, if that waits, what came of c: it was refused, or it failed.
// Of several, what came of the latest is what the parent fails with.
func (w *world) blame(c *call, refused bool) {
	if c.awaited() {
		c.parent.shed = refused
	}
}

// report tells the parent of c, if it is still there, what became of c.
func (w *world) report(c *call, ok bool) {
	p, awaited := c.parent, c.awaited()
	w.retire(c)
	if !awaited {
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
			w.crowd(t, -c.cost)
		case works:
			t.busy--
			t.taken -= c.slots
			t.inUse--
			w.crowd(t, -c.cost)
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
		w.miss(c, -1)
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
	if f := in.tier.Next; f != nil {
		in.sender = newSender(f.Retry)
	}
	if in.core == nil {
		in.queue.reset(now)
		return
	}
	in.seed++
	in.core, _ = admission.New(in.config()) // as it was made before
	in.due = never
}

// config is that of its core, with a seed of its own.
func (in *instance) config() admission.Config {
	cfg := *in.tier.cores()
	cfg.Seed = in.seed
	return cfg
}
