package limit

import (
	"math"
	"time"
)

// A brake looks at delay. What a limiter does to a resource of which it has a small part is
// too little to be seen: with a part f of the load a limit that moves by d changes the time by
// f x d, and to see that takes 2 (CV z / (f d))^2 samples; at f = 1/50, d = 12 %, CV = 1 and z = 3
// that is 3 million. To such a limiter "all of us are too many" and "the resource has become slower"
// look the same, and the right answers are opposite.
//
// What tells them apart without comparing limits is the shape of the service times. A queue
// in the resource adds a wait to all of them, the shortest included; a resource that is slower
// by a factor leaves the shortest short, unless all take the same. So the brake keeps the mean of
// the lowest quarter, and what that was without a queue.
//
// Where own moves are seen to change the time the resource is the limiter's own, and no brake
// is needed: see proof.
type brake struct {
	shared bool // said so: it works from the start and is never off

	since, n, sum float64                           // the window that is being filled: seconds, samples, seconds of service
	cells         []share                           // the samples, rising to within the width of one
	each          func(time.Duration, float64) bool // put, made once: a loop would allocate it for each window

	low, lowVar float64 // mean of the lowest quarter, smoothed, and its variance
	free        float64 // what low is without a queue in the resource
	turns       int     // windows so far

	cap   float64 // of the limit; +Inf: none
	from  float64 // the limit at the beginning of an episode; 0: none
	first float64 // low near the beginning of it
	took  float64 // the mean time then
	held  float64 // seconds that a limit of a resource not known to be shared has been held

	proof proof
}

// A share is a service time in seconds, and how many samples had about that.
type share struct{ at, n float64 }

const (
	brakeSamples = 32   // a window has at least, and more where service times vary much
	brakeMost    = 256  // at the most
	lowest       = 0.25 // the part of the service times that is taken for the shortest

	// queued is the wait in a shared resource that says that too many are in use, beyond two
	// standard errors: 1 % of the objective. It is an absolute time, the same for all
	// that have the same objective: as a part of one's own service time, those whose work takes long
	// would never yield.
	queued = 0.01

	// A resource that is not known to be shared is held at a wait of 6 % of the mean time.
	heldAt = 0.06

	// A limit that is too high falls by a third in a second (e^-0.4), and rises by 0.15 units a
	// second: what falls in proportion and rises in equal steps comes to equal shares (Chiu and Jain,
	// "Analysis of the increase and decrease algorithms for congestion avoidance in computer
	// networks", 1989).
	brakeFall = 0.4
	brakeRise = 0.15

	// relief is by how much of itself the wait has to have become shorter when the limit is
	// half of what it was. If it has not, it is not the limit that makes it: the service itself
	// takes so long now.
	relief = 0.15

	// The wait that this is compared with is that at 85 % of the limit: what is known of
	// it is smoothed, and at the beginning of a queue half of that is not yet in it.
	settled = 0.85

	// hold is for how long a limiter that may have its resource for itself does not rise
	// once the wait in it is too long.
	hold = 30.0
)

// add counts the service times of a window, and judges when there are enough. limit is the one
// in force, cv the coefficient of variation and mean the mean service time.
func (k *brake) add(w *Window, limit, cv, mean float64) {
	k.since += w.Length.Seconds()
	if w.Times != nil {
		if k.each == nil {
			k.each = func(at time.Duration, n float64) bool { k.put(at, n); return true }
		}
		w.Times(k.each)
	}
	if k.n >= min(brakeMost, brakeSamples*max(1, cv*cv)) && k.since >= mean {
		k.turn(w, limit)
		k.n, k.sum, k.since, k.cells = 0, 0, 0, k.cells[:0]
	}
}

// put keeps samples with others that took within 4 % of the same: some 30 shares for each factor
// of ten.
func (k *brake) put(at time.Duration, n float64) {
	s := at.Seconds()
	if !(s > 0 && n > 0 && n < 1e9) {
		return
	}
	k.n += n
	k.sum += n * s
	i := 0
	for i < len(k.cells) && k.cells[i].at*1.04 < s {
		i++
	}
	if i < len(k.cells) && s*1.04 >= k.cells[i].at {
		c := &k.cells[i]
		c.at += (s - c.at) * n / (c.n + n)
		c.n += n
		return
	}
	k.cells = append(k.cells, share{})
	copy(k.cells[i+1:], k.cells[i:])
	k.cells[i] = share{s, n}
}

// quarter returns the mean of the lowest quarter, and its variance: twice that of a mean of so
// many, because where the quarter ends is an estimate too.
func (k *brake) quarter() (low, variance float64) {
	want, got, sum, square := lowest*k.n, 0.0, 0.0, 0.0
	for _, c := range k.cells {
		n := min(c.n, want-got)
		got += n
		sum += n * c.at
		square += n * c.at * c.at
		if got >= want {
			break
		}
	}
	low = sum / got
	within := max(square/got-low*low, 0) + sq(0.02*low) // 0.02: the width of a share
	return low, 2 * within / got
}

func sq(x float64) float64 { return x * x }

// turn judges the window that is full.
func (k *brake) turn(w *Window, limit float64) {
	mean, dt := k.sum/k.n, k.since
	low, variance := k.quarter()
	k.turns++
	if k.turns == 1 {
		k.low, k.lowVar, k.free, k.cap = low, variance, low, math.Inf(1)
	}
	k.low += 0.5 * (low - k.low)
	k.lowVar = (k.lowVar + variance) / 4
	full := w.Delayed > saturated*w.Arrived
	switch gap := k.low - k.free; {
	case k.turns < 4:
		k.free += gap / float64(k.turns)
	case gap < -2*math.Sqrt(k.lowVar):
		k.free += gap / 2
	case gap < 0: // the lowest of what varies is no news
		k.free += gap / 16
	case !full && float64(w.Peak) < limit/2:
		k.free += 0.3 * gap
	default:
		k.free *= math.Exp(0.0005 * dt)
	}
	wait := k.low - k.free
	sure := wait - 2*math.Sqrt(k.lowVar)
	most := queued * w.Objective.Seconds()
	switch {
	case k.proof.sole && !k.shared:
		k.cap, k.from, k.held = math.Inf(1), 0, 0
		k.free = max(k.free, low-0.1*mean)
	case k.shared:
		k.steer(min(limit, max(float64(w.Peak), 1)), mean, wait/most, sure > most, full, dt)
	case !full:
	case sure > heldAt*mean && mean > w.Objective.Seconds()/2:
		k.keep(limit, dt)
	default:
		k.cap, k.from, k.held = math.Inf(1), 0, 0
	}
}

// steer moves the cap of a resource that is shared. wait is that in the resource, over the most
// that is tolerated; inUse is what is in use at the most, so that
// who has no use for a limit does not keep it.
func (k *brake) steer(inUse, mean, wait float64, tooMany, full bool, dt float64) {
	if !tooMany {
		if !full {
			return
		}
		if wait < 0.5 {
			k.from = 0
		}
		k.cap = min(k.cap, 2*inUse) + brakeRise*dt*max(0, 1-max(wait, 0))
		return
	}
	if k.from == 0 {
		k.from, k.first, k.took = inUse, k.low, mean
	}
	k.cap = min(k.cap, 1.05*inUse) * math.Exp(-brakeFall*dt)
	if k.cap > settled*k.from {
		k.first, k.took = k.low, mean
	}
	if k.cap > k.from/2 {
		return
	}
	if k.low-k.free > (1-relief)*(k.first-k.free) && mean > 0.9*k.took {
		k.free, k.cap, k.from = k.low, k.from, 0
		return
	}
	k.from, k.first, k.took = k.cap, k.low, mean
}

// keep holds the limit for a while.
func (k *brake) keep(limit, dt float64) {
	if k.from == 0 {
		k.from = limit
	}
	k.cap = k.from
	if k.held += dt; k.held > hold {
		k.free, k.cap, k.from, k.held = k.low, math.Inf(1), 0, 0
	}
}

// A proof compares blocks that were run at different limits: the regression of the logarithm
// of the time on that of what was in flight, without a constant, over the differences between the
// two blocks of a pair. Of a resource that is the limiter's own it is up to 1.
type proof struct {
	sole   bool
	at     float64 // the limit at which it was found
	xy, xx float64 // weighted sums, of the last minute

	x, y, variance float64 // of the block before
	arm            bool    // that was one of a pair
}

// pair takes a block. arm says that its limit was chosen to be compared with that of the one before.
func (p *proof) pair(x, y, se, dt float64, arm bool, limit float64) {
	keep := math.Exp(-dt / 60)
	p.xy *= keep
	p.xx *= keep
	if arm && p.arm {
		weight := 1 / (se*se + p.variance)
		p.xy += weight * (x - p.x) * (y - p.y)
		p.xx += weight * sq(x-p.x)
	}
	p.x, p.y, p.variance, p.arm = x, y, se*se, arm
	if p.xx == 0 {
		return
	}
	// 3.5 standard errors happen by chance once in 4,000 looks, of which a minute's memory has a few;
	// below 1.5 nothing is left of it, and it is given up only where the limit has grown by 40 %
	// since, because near the capacity little is to be seen of it.
	switch z := p.xy / math.Sqrt(p.xx); { // standard errors from 0
	case z > 3.5:
		p.sole, p.at = true, limit
	case p.sole && z < 1.5 && limit > 1.4*p.at:
		p.sole = false
	}
}
