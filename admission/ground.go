package admission

// A Ground is by what a request that was Displaced ranks below the one that took its place.
type Ground uint8

const (
	NoGround   Ground = iota // it was not displaced
	ByPriority               // a more important one, or one of a priority that has less than its Reserve
	ByShare                  // one of another tenant, or of another bucket of those without a row, whose turn is earlier
	ByRetry                  // it was a retry, and the other one is a first attempt
	ByCohort                 // its user's cohort is shed before the other's
	BySize                   // it takes longer, and the other one, or those that wait, would have been late
	ByAge                    // it had come before the other one: newest first, or EvictOldest
)

// Ground says by what it was displaced. Where several would do it is the first of them.
func (w *Waiter) Ground() Ground { return w.ground }

// groundOf is the ground on which w gives way to a newcomer of a flow, which c.planned is about.
func (c *Core) groundOf(w *Waiter, r *Request, f *flow) Ground {
	retry := r.Attempt > 1
	switch {
	case w.priority != f.priority:
		return ByPriority
	case w.flow != f && c.cfg.Overflow != EvictOldest:
		return ByShare
	case c.cfg.Overflow != EvictOldest && w.retry && !retry:
		return ByRetry
	case c.cfg.Overflow != EvictOldest && rank(w.retry, w.cohort) > rank(retry, uint8(r.Cohort)):
		return ByCohort
	case c.planned:
		return BySize
	}
	return ByAge
}
