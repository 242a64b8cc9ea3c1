package admission

import (
	"math"
	"time"
)

// A meter measures the rate at which cost is offered, refusals included: an
// exponentially weighted mean over bins. The time constant is one objective, so
// at 1200/s and 400 ms the standard error of the load is about 1/sqrt(2*480) =
// 3 %: short enough to see an overload before the hold of two objectives is
// over, long enough not to take a burst for one.
type meter struct {
	bin     time.Duration // an eighth of the time constant
	end     time.Duration // of the bin that is being filled
	cost    float64       // offered in it
	count   float64       // requests offered in it
	square  float64       // sum of the squares of their costs
	rate    float64       // cost per second, up to the last full bin
	perCost float64       // cost per request, likewise
	squared float64       // its mean square
}

// even reports whether requests cost about the same: the standard deviation is within the
// mean.
func (m *meter) even() bool { return m.squared <= 2*m.perCost*m.perCost }

// binsPerConstant bins make a time constant; each then weighs 1 - exp(-1/8).
const binsPerConstant = 8

var binWeight = 1 - math.Exp(-1.0/binsPerConstant)

func (m *meter) configure(now, constant time.Duration) {
	bin := max(constant/binsPerConstant, time.Millisecond)
	if bin == m.bin {
		return // else a configuration that is reloaded often would never end a bin
	}
	m.bin, m.end = bin, now+bin
	m.perCost, m.squared = max(m.perCost, 1), max(m.squared, 1)
}

// add counts one request of the given cost, offered in the current bin.
func (m *meter) add(cost int) {
	m.cost += float64(cost)
	m.square += float64(cost) * float64(cost)
	m.count++
}

// roll closes the bins that ended by now and reports whether any did.
func (m *meter) roll(now time.Duration) bool {
	if now < m.end {
		return false
	}
	m.close(m.cost, m.count, m.square, 1)
	m.cost, m.count, m.square = 0, 0, 0
	if empty := int64((now - m.end) / m.bin); empty > 0 {
		m.end += time.Duration(empty) * m.bin
		m.close(0, 0, 0, float64(empty))
	}
	m.end += m.bin
	return true
}

// spread counts n requests of cost 1 that were offered evenly since from, an
// instant in the current bin: what was admitted on lent slots is learnt later
// than it happened. It closes the bins that ended by now, as roll does.
func (m *meter) spread(from, now time.Duration, n float64) bool {
	if n == 0 || now < m.end {
		m.cost += n
		m.count += n
		m.square += n
		return false
	}
	per := n / float64(now-from)
	head := per * float64(m.end-from)
	m.close(m.cost+head, m.count+head, m.square+head, 1)
	full := (now - m.end) / m.bin
	if full > 0 {
		m.close(per*float64(m.bin), per*float64(m.bin), per*float64(m.bin), float64(full))
	}
	m.end += full * m.bin
	m.cost = per * float64(now-m.end)
	m.count, m.square = m.cost, m.cost
	m.end += m.bin
	return true
}

// close folds n bins with the given content into the means.
func (m *meter) close(cost, count, square, n float64) {
	w := 1 - math.Pow(1-binWeight, n)
	m.rate += w * (cost/m.bin.Seconds() - m.rate)
	if count > 0 {
		m.perCost += w * (cost/count - m.perCost)
		m.squared += w * (square/count - m.squared)
	}
}

// A hint is the Retry-After in force. It is the duration of the overload so
// far: one second more for each second in which refusals for want of capacity
// outnumbered completions, which is the best guess at how long it will last; half for each
// second without a refusal. The drain time of the queue alone never exceeds a
// second or two, and a constant second would bring everybody back at once.
type hint struct {
	seconds        int
	end            time.Duration // of the window
	refused, ended uint64        // counts at its start
}

const (
	hintWindow    = time.Second
	minRetryAfter = 1  // seconds
	maxRetryAfter = 20 // seconds; jitter adds half: 30 s, and an outage is over or has been noticed
)

// roll closes the windows that ended by now, given the counts so far.
func (h *hint) roll(now time.Duration, refused, ended uint64) {
	if now < h.end {
		return
	}
	h.seconds = max(h.seconds, minRetryAfter)
	switch r, e := refused-h.refused, ended-h.ended; {
	case r == 0:
		h.seconds = max(minRetryAfter, h.seconds/2)
	case r > e:
		h.seconds = min(maxRetryAfter, h.seconds+1)
	}
	h.refused, h.ended = refused, ended
	// Further windows passed in silence: each halves, and five leave one second or less to go.
	for idle := (now - h.end) / hintWindow; idle > 0 && h.seconds > minRetryAfter; idle-- {
		h.seconds = max(minRetryAfter, h.seconds/2)
	}
	h.end = now - (now-h.end)%hintWindow + hintWindow
}
