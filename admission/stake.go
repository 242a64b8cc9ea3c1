package admission

import (
	"math"
	"time"
)

// Terms are what a member of a Budget may do until it is told otherwise.
type Terms struct {
	Limit   int // units that it may use; what it runs above that goes on
	Nominal int // its share when all want more
	Floor   int // units that it need not lend
	Enough  int // to want more than Limit is news for the budget only beyond this
}

// A Claim is what a member of a Budget says of itself.
type Claim struct {
	InUse    int           // units of cost that run
	Wanted   int           // with those that wait, and those that were just refused for want of a slot
	Until    time.Duration // when the refused no longer count; 0 if none do
	Draining bool          // nobody new comes: it gives up even what is never lent
}

// A Stake is a core's side of a Budget: a value beside the core, guarded by the same lock,
// by which both agree. The zero Stake has nothing; the first round brings its terms.
//
// The limit of the core is the larger of what it may use and its nominal share, and
// what others have of that counts as in use. So a core whose share is lent queues
// whoever comes, as deep as its share serves, and predicts that units must first depart,
// as they must. A request that costs more than the share is refused as too costly,
// unless that much is borrowed.
type Stake struct {
	terms     Terms
	held      int           // max(limit, in use) as the budget knows it
	elsewhere int           // units of the core's limit that others have
	seen      uint64        // refusals that were looked at
	missed    int           // units that were refused lately while nobody waited
	until     time.Duration // when they no longer count
	waited    time.Duration // when somebody last waited
}

// Take brings the terms into force and returns what the member is then. Next of the core
// may have something new.
func (s *Stake) Take(now time.Duration, c *Core, t Terms) Claim {
	limit := max(t.Limit, t.Nominal)
	if elsewhere := limit - t.Limit; t.Limit != s.terms.Limit || t.Nominal != s.terms.Nominal {
		c.Resize(now, limit, elsewhere-s.elsewhere)
		s.elsewhere = elsewhere
	}
	s.terms = t
	claim := s.Look(now, c)
	s.held = max(t.Limit, claim.InUse)
	return claim
}

// Look returns what the member is now. It costs a few nanoseconds.
func (s *Stake) Look(now time.Duration, c *Core) Claim {
	claim := Claim{InUse: c.inUse - s.elsewhere, Draining: c.draining}
	claim.Wanted = claim.InUse + c.wanting()
	if !c.draining {
		s.hearMissed(now, c, &claim)
		s.standing(now, c, &claim)
	}
	return claim
}

// hearMissed adds what was refused while nobody waited: whoever has no queue, or no
// time for it, asks by being refused, and nothing else shows it. It counts for one
// objective, from when its share is there: who asked once is served when it comes again.
func (s *Stake) hearMissed(now time.Duration, c *Core, claim *Claim) {
	if s.missed > 0 && s.terms.Limit < s.terms.Nominal && claim.Wanted+s.missed > s.terms.Limit {
		s.until = now + c.cfg.Objective
	}
	if now >= s.until {
		s.missed, s.until = 0, 0
	}
	missed := c.missed()
	if missed != s.seen && c.waiting == 0 && !c.binds() && !c.absence.is { // more units would not help against an allowance
		cost := float64(missed-s.seen) * max(c.load.perCost, 1)
		s.missed = int(min(float64(s.missed)+math.Ceil(cost), limitless))
		s.until = now + c.cfg.Objective
	}
	s.seen = missed
	claim.Wanted += s.missed
	claim.Until = s.until
}

// standing has a member in a standing overload want what is offered. Its queue is then
// as short as keeps its slots busy, and empty again and again: what it lent in such a
// moment would come back one release of the others later: at four times its capacity
// it lost 1 % of its share. A bin of the load meter without anybody waiting is no such
// moment.
func (s *Stake) standing(now time.Duration, c *Core, claim *Claim) {
	if c.waiting > 0 {
		s.waited = now
	}
	if until := s.waited + c.load.bin; c.overload && now < until {
		claim.Wanted = max(claim.Wanted, c.offered())
		if c.waiting == 0 && (claim.Until == 0 || until < claim.Until) {
			claim.Until = until
		}
	}
}

// limitless is more units than any limit has.
const limitless = 1 << 21

// Elsewhere returns how many units of what Core.Stats calls the limit, and in use, others
// have.
func (s *Stake) Elsewhere() int { return s.elsewhere }

// Terms returns what is in force.
func (s *Stake) Terms() Terms { return s.terms }

// Asks reports whether the claim concerns others, so that the driver must play a round
// once it has unlocked: units that belong to others have come back, more is wanted
// than anybody knew, or more is there than is wanted while somebody is hungry, as
// Budget.Hungry said.
func (s *Stake) Asks(now time.Duration, c Claim, hungry time.Duration) bool {
	return s.held > max(s.terms.Limit, c.InUse) || s.terms.asks(now, c, hungry)
}

func (t *Terms) asks(now time.Duration, c Claim, hungry time.Duration) bool {
	if c.Wanted > t.Limit {
		return c.Wanted > t.Enough || hungry != 0 && now >= hungry
	}
	floor := t.Floor
	if c.Draining {
		floor = 0
	}
	return hungry != 0 && t.Limit > max(c.Wanted, floor)
}
