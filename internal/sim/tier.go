package sim

import "time"

// push puts c at the end of the line at the resource.
func (t *tier) push(c *call) {
	t.behind++
	c.next, c.prev = nil, t.newest
	if t.newest != nil {
		t.newest.next = c
	} else {
		t.oldest = c
	}
	t.newest = c
}

func (t *tier) remove(c *call) {
	t.behind--
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		t.oldest = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		t.newest = c.prev
	}
	c.next, c.prev = nil, nil
}

// width is how many slots c takes at the resource: its cost, or all there are.
func (t *tier) width(c *call) int {
	if t.Slots > 0 {
		return min(c.cost, t.now)
	}
	return c.cost
}

func (t *tier) fits(c *call) bool { return t.Slots == 0 || t.taken+t.width(c) <= t.now }

// limits reports whether the instances of t have limiters; with one, whoever sends here
// knows that the time of its sub-requests is not its own.
func (t *tier) limits() bool {
	b := t.Policy.Baseline
	return b == nil || b.Limit != Unbounded
}

// advanceLine begins the work of those that wait at the resource and now fit.
func (w *world) advanceLine(t *tier) {
	for c := t.oldest; c != nil && t.fits(c); c = t.oldest {
		t.remove(c)
		w.begin(c)
	}
}

// stretch returns how many times as long work takes that starts at now, one more
// being in service with it.
func (t *tier) stretch(in *instance, now time.Duration) float64 {
	f := t.Contention.at(t.busy, t.waiting+t.behind)
	if in.cold.Cold > 1 && now < in.cold.At+in.cold.Warm {
		left := 1 - float64(now-in.cold.At)/float64(in.cold.Warm)
		f *= 1 + (in.cold.Cold-1)*left
	}
	return f
}

// at returns how many times as long work takes with n in service and so many waiting.
func (c *Contention) at(n, waiting int) float64 {
	f := 1.0
	if c.Alpha > 0 || c.Beta > 0 {
		m := float64(n - 1)
		f += c.Alpha*m + c.Beta*m*float64(n)
	}
	if c.Slope > 0 && waiting > c.Knee {
		f += c.Slope * float64(waiting-c.Knee)
	}
	return f
}

// enter notes that c is in the instance in, which may be too much for it.
func (w *world) enter(c *call, in *instance) {
	c.in = in
	t := in.tier
	in.bytes += c.bytes
	t.result.PeakBytes = max(t.result.PeakBytes, in.bytes)
	if !t.mortal {
		return
	}
	c.right, c.left = in.alive, nil
	if in.alive != nil {
		in.alive.left = c
	}
	in.alive = c
	if t.Memory > 0 && in.bytes > t.Memory {
		w.kill(in, t.Killed)
	}
}

// exit notes that c is no longer in its instance.
func (w *world) exit(c *call) {
	in := c.in
	in.bytes -= c.bytes
	if !in.tier.mortal {
		return
	}
	if c.left != nil {
		c.left.right = c.right
	} else {
		in.alive = c.right
	}
	if c.right != nil {
		c.right.left = c.left
	}
	c.right, c.left = nil, nil
}

// current returns the bin that now is in; what happens after the last goes nowhere.
func (w *world) current() *Bin {
	if w.now >= w.Length {
		return &w.afterwards
	}
	return &w.result.Series[len(w.result.Series)-1]
}

// sample closes a bin: what is so at its end. Bins of their length, rounded up to a
// nanosecond, reach the end of arrivals: there are never more than was asked for.
func (w *world) sample() {
	b := &w.result.Series[len(w.result.Series)-1]
	t := w.tiers[0]
	b.Waiting, b.InUse, b.Behind = t.waiting, t.inUse, t.behind
	for _, in := range t.instances {
		if in.core == nil {
			if b.Limit += in.queue.Limit; in.queue.Limit == Unbounded {
				b.Limit = Unbounded // so are the others
			}
			b.Age = max(b.Age, in.queue.age(w.now))
			continue
		}
		s := in.stats(w.now)
		b.Limit += s.Limit
		b.Depth += s.Depth
		b.Derived += s.Derivation.Depth
		b.Age = max(b.Age, s.Age)
	}
	if w.now >= w.Length {
		w.sampled = true
		for i, t := range w.tiers {
			if in := t.instances[0]; in.core != nil {
				s := in.stats(w.now)
				w.result.Tiers[i].Stats = &s
			}
		}
		return
	}
	w.result.Series = append(w.result.Series, Bin{End: min(w.now+w.bin, w.Length)})
	w.events.push(event{at: min(w.now+w.bin, w.Length), what: samples})
}
