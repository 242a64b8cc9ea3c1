package limit

import "math"

// A ceiling keeps the limit down for a reason that is no service time: what the resource
// refuses, being over a limit of its own, and a process that is short of processors. Either lowers it,
// at most once in a while, and it rises again by itself.
type ceiling struct {
	at    float64 // +Inf: none
	half  float64 // of where it was when it first came down: up to there it doubles
	since float64 // seconds since it was last lowered
}

const (
	// dropsTolerated is the part of what ends that the resource may refuse: a few are refused
	// in any restart.
	dropsTolerated = 0.02

	// The limit is cut by the part that was refused, at most every two seconds: a
	// resource of which one of ten parts is dead refuses a tenth whatever the limit is, and
	// what it loses then it has back before the next cut.
	dropsEvery = 2.0
	dropsRise  = 0.05 // a block

	// A process that is short of processors is given up to 10 % less a block, beyond the
	// threshold of the signal, and nothing more from 80 % of it on.
	pressureCut  = 0.1
	pressureHold = 0.8
)

// refused takes a block in which the part dropped of what ended was refused by the resource.
func (c *ceiling) refused(dropped, limit, dt float64) {
	c.since += dt
	switch {
	case dropped <= dropsTolerated || c.since < dropsEvery:
		c.rise(dropped <= dropsTolerated)
	default:
		c.lower(limit, min(dropped, 1))
	}
}

// lower cuts the part by of what is in force.
func (c *ceiling) lower(limit, by float64) {
	if math.IsInf(c.at, 1) {
		c.half = limit / 2
	}
	c.at = max(min(c.at, limit)*(1-by), 1)
	c.since = 0
}

// rise lets it come up, to nothing when it is far above where it came down.
func (c *ceiling) rise(free bool) {
	switch {
	case math.IsInf(c.at, 1) || !free:
	case c.at < c.half:
		c.at = max(2*c.at, c.at+1)
	default:
		c.at *= 1 + dropsRise
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
		c.rise(true)
	}
}
