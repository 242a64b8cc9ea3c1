package limit

import "math"

// A ceiling keeps the limit down for a reason that is no service time: what the resource
// refuses, being over a limit of its own, callers that leave, and a process that is short of
// processors. The first two lower it every two seconds at the most, the last with each block, and it
// rises again by itself.
type ceiling struct {
	at    float64 // +Inf: none
	half  float64 // of where it was when it came down after a rise: up to there it doubles
	step  float64 // the part by which it rises beyond
	least float64 // what it was lowered to last
	since float64 // seconds since then

	// base is the part that is refused whatever the limit is: what was refused after a cut,
	// smoothed. cut: nothing of what was admitted since the last one has been judged.
	base float64
	cut  bool
	good float64 // the limit of the latest block of which little was refused; 0: that is no longer true
}

const (
	// dropsTolerated is the part of what ends that the resource may refuse: a few are refused
	// in any restart.
	dropsTolerated = 0.02

	// The limit is cut by the part that is too much, but not below one at which just now little was
	// refused, and at most every two seconds. A
	// resource of which one of ten parts is dead refuses a tenth whatever the limit is, and
	// cut after cut would lead to nothing: so the part that is still refused after a cut is
	// tolerated, and half as much again for chance, as long as it is so. But at most half of
	// everything is believed to be of that kind: who refuses three quarters is down.
	dropsEvery  = 2.0
	dropsMargin = 1.5
	dropsBase   = 0.5 // at the most, and the part of base that is from the latest cut

	// Where a cut has helped the limit is about right. It stays for those two seconds, since one unit
	// too many has much refused: who is refused has it for a moment. Then it rises by 5 % of itself a block,
	// and by 30 % more of that with each that is free of refusals, to a doubling. Where it
	// has not, there was an outage, and when that is over it doubles.
	dropsRise   = 0.05
	dropsFaster = 1.3

	// A process that is short of processors is given up to 10 % less a block, beyond the
	// threshold of the signal, and nothing more from 80 % of it on.
	pressureCut  = 0.1
	pressureHold = 0.8
)

// refused takes a block of that limit, in which the part dropped of what ended was refused by
// the resource, and the part over of the limit was too much.
func (c *ceiling) refused(dropped, over, limit, dt float64) {
	c.since += dt
	if c.cut && limit <= c.at {
		c.base += dropsBase * (min(dropped, dropsBase) - c.base)
		if c.cut = false; dropped <= dropsTolerated {
			c.half = min(c.half, c.at)
		}
	}
	few := dropped <= dropsTolerated+dropsMargin*c.base
	switch {
	case few:
		c.good = limit
	case limit <= c.good:
		c.good = 0
	}
	switch {
	case few && (c.since >= dropsEvery || c.at < c.half):
		c.rise(true)
	case few: // what helped stays for a while
	case c.since < dropsEvery:
		c.rise(false)
	default:
		good := min(c.good, c.at, limit)
		c.lower(limit, min(dropped-c.base, over, 1))
		c.cut = c.at >= good // what a smaller cut leaves says nothing
		c.at = max(c.at, good)
		c.least = c.at
	}
}

// lower cuts the part by of what is in force.
func (c *ceiling) lower(limit, by float64) {
	at := min(c.at, limit)
	if c.at > c.least { // not what one outage does again and again
		c.half = at / 2
	}
	c.at = max(at*(1-by), 1)
	c.least, c.since, c.step = c.at, 0, dropsRise
}

// rise lets it come up, to nothing when it is far above where it came down.
func (c *ceiling) rise(free bool) {
	switch {
	case math.IsInf(c.at, 1):
	case !free:
		c.step = dropsRise
	case c.at < c.half:
		c.at = max(2*c.at, c.at+1)
	default:
		c.at *= 1 + c.step
		c.step = min(c.step*dropsFaster, 1)
	}
	if c.at > 8*c.half {
		c.at = math.Inf(1)
	}
}

// pressed takes a level of pressure, seen over a block.
func (c *ceiling) pressed(level, limit float64) {
	switch {
	case level > 1:
		c.lower(limit, pressureCut*min(level-1, 1))
	case level >= pressureHold:
		if math.IsInf(c.at, 1) {
			c.half = limit / 2
		}
		c.at = min(c.at, limit)
	default:
		c.step = dropsRise // pressure follows the limit too slowly for more
		c.rise(true)
	}
}
