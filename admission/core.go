package admission

import (
	"iter"
	"math"
	"time"

	"github.com/goodput/goodput/limit"
)

// A Core decides. It is not safe for concurrent use: its driver brings the lock.
type Core struct {
	cfg Config
	law limit.State
	now time.Duration // of the latest call. Invariant: never falls (I6)

	limit     int
	inUse     int           // units of cost that run. Invariant: a grant leaves inUse + lent <= limit (I1)
	running   int           // requests that run; inUse without their costs
	allowance account       // cost per second, for all together
	allowed   float64       // its rate; +Inf without
	looked    time.Duration // when dispatch last waited for it
	spacedFor time.Duration // scratch of predict: how long the newcomer at hand waits for it at the least

	lent      int // slots that the driver fills without asking. Invariant: 0 while anyone waits (I7)
	lentAt    time.Duration
	lawAt     time.Duration                     // when the law was last asked
	tide      tide                              // what it is told
	shown     limit.Window                      // what the law was told last; here, so that it is not allocated
	batch     *Batch                            // the one at hand
	times     iter.Seq2[time.Duration, float64] // each, made once
	held      bool                              // it is not asked: see Hold. Invariant: nothing is searched then
	search    bool                              // it is looking for the capacity: see limit.Move
	searched  time.Duration                     // when it last found it
	growth    float64                           // what that promises: see foreseen
	usual     float64                           // mean limit of a law that moves it: see usually; 0: limit
	movedFrom int                               // what the limit was before its latest change
	movedAt   time.Duration                     // when that was
	noticed   noticed                           // what is shown and decides nothing

	lanes   [priorities]lane // by priority, critical first
	waiting int              // Invariant: the sum of lanes[i].n, at most MaxItems (I3)
	cost    int              // units of cost that wait
	bytes   int64            // Invariant: at most MaxBytes (I3)
	seq     uint64

	rows       []*row          // everybody, then the tenants known by name and the others; nil where one was
	rest       int             // index of the row of the others; 0 without tenants
	table      map[string]*row // tenants known by name
	active     []*row          // those whose meters may not be 0, or of which something waits or runs
	gen        Share           // of the table; shares of another one are nobody's
	hand       int             // Tenants.Hand in force
	light      float64         // the least weight
	heavy      float64         // the largest
	parked     int             // requests that wait for the ceiling of their tenant
	parkedCost int
	latest     map[keyed]*Waiter // LatestOnly: who waits, by what it is about
	picks      uint64            // calls of makeRoom; a pick of an earlier one is over

	exempt   int // exempt requests in flight. Invariant: at most cfg.Exempt when one is admitted
	draining bool
	absence  absence

	service    estimate
	derivation Derivation
	cv2        float64
	needed     float64 // the percentile of the service that must fit a budget
	quantile   float64 // of the service, seconds per unit of size; per second predicted where sizes are trusted
	derivedAt  time.Duration
	ruledAt    time.Duration // of Derivation.RuleLatency
	load       meter
	metered    time.Duration // up to when the meters of the tenants have been read
	users      float64       // requests of the current bin that have a cohort
	sorted     float64       // the part of requests that have one
	scale      float64       // of those meters: the load has its own, which knows more about lent slots
	hint       hint

	order    Order         // in force
	stood    time.Duration // since when somebody has waited; Never while nobody does
	overload bool          // the queue has stood, and more is offered than the slots can serve
	idleness idleness      // whether the depth of an overload keeps the slots busy
	depth    int           // in force. Invariant: at most derivation.Depth (I11)
	others   time.Duration // when somebody last had to wait whose deadline does not keep the objective
	reach    int           // the depth for those whose deadline is within the objective. Invariant: depth, or more as Tight and Chances of a Derivation say (I3)
	shortest time.Duration // of the budgets queued since the queue was empty
	longest  time.Duration

	decided []*Waiter
	taken   int
	victims []*Waiter // scratch of makeRoom
	planning
	told   []*Waiter // scratch of evict
	spare  *Waiter   // recycled, a list by next
	counts counts
}

// counts never fall. Invariant: arrivals = the sum of outcomes + waiting + running (I4).
type counts struct {
	arrivals, immediate, dequeued, exempt, limitChanges, clamped uint64
	outcomes                                                     [Outcomes]uint64
	refusals                                                     [Reasons]uint64
	dropped, raised, called, calledUp                            uint64 // see Stats
	refused, ended                                               uint64 // refused for want of capacity; what Retry-After goes by
}

// New returns a core, or the sentence of Config.Validate.
func New(cfg Config) (*Core, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Core{order: FIFO, stood: Never, others: -tightHolds * MaxObjective, noticed: noticed{floor: Never}, idleness: idleness{factor: 1}}
	cfg = cfg.WithDefaults()
	c.limit, _ = cfg.Limit.Start() // Validate has seen it succeed
	c.tide.open[1].taken.tag--     // there was none before the first
	c.times = c.each
	c.law, c.search = cfg.Limit.Begin(cfg.Seed), Moves(cfg.Limit)
	c.configure(cfg)
	return c, nil
}

func (c *Core) configure(cfg Config) {
	old := c.cfg.Tenants
	c.cfg = cfg.WithDefaults()
	c.allowance.become(c.now, c.cfg.Allowance)
	c.allowed = math.Inf(1)
	if r := c.cfg.Allowance.Rate; r > 0 {
		c.allowed = r
	}
	c.configureRows(old)
	if c.cfg.Order != Auto {
		c.setOrder(c.cfg.Order)
	}
	c.load.configure(c.now, c.cfg.Objective)
	c.metered = c.load.end
	c.service.setPrior(priorMean(c.cfg.Service, c.cfg.Objective),
		max(halfLives*c.cfg.Objective, minHalfLife), c.cfg.Objective)
	c.derive()
}

// Offer decides about a request that arrives at now.
func (c *Core) Offer(now time.Duration, r Request) Decision {
	c.enter(now)
	if r.Exempt && c.exempt < c.cfg.Exempt {
		c.exempt++
		c.counts.exempt++
		return Decision{Verdict: Admitted, Exempt: true}
	}
	c.counts.arrivals++
	c.normalize(&r)
	f := c.flowFor(&r)
	f.row.arrivals++
	c.tide.offer(c.now, r.Cost)
	if why := c.unfit(&r, f.row); why != None {
		return c.refuse(f, why)
	}
	if f.row.quota.Rate > 0 {
		if wait := f.row.quota.lacks(c.now, r.Cost); wait > 0 {
			f.row.overQuota++
			return c.refuseWith(f, Decision{RetryAfter: wait}, OverQuota)
		}
	}
	c.load.add(r.Cost)
	c.tide.arrive(float64(r.Cost))
	c.meter(f, &r)
	if r.Cost <= c.free() && c.waiting == c.parked && f.row.n == 0 && f.row.fits(r.Cost) && c.allows(r.Cost) {
		c.counts.immediate++
		if c.cfg.Tenants == nil {
			c.grant(r.Cost)
			return Decision{Verdict: Admitted}
		}
		f.row.quota.spend(r.Cost)
		return Decision{Verdict: Admitted, Share: c.take(f, r.Cost)}
	}
	if r.Cost > c.free() { // else it is for its tenant's ceiling that it waits, or for the allowance
		c.tide.delay(float64(r.Cost))
	}
	if r.NoWait {
		d := c.refuse(f, c.lacking(QueueFull))
		c.counts.refused-- // who would not wait says nothing about how long the others should
		return d
	}
	return c.enqueue(&r, f)
}

func (c *Core) normalize(r *Request) {
	r.Cost = max(r.Cost, 1)
	if r.Size <= 0 {
		r.Size = r.Cost
	}
	r.Size = min(r.Size, math.MaxInt32)
	r.Bytes = max(r.Bytes, 0)
	if r.Priority == unset || r.Priority > Background {
		r.Priority = Default
	}
	r.Arrival = min(r.Arrival, c.now)
	if r.Cohort < 0 || r.Cohort > Cohorts {
		r.Cohort = 0
	}
}

// unfit returns why a request can have no place whatever the load is.
func (c *Core) unfit(r *Request, t *row) Reason {
	switch {
	case c.draining:
		return Draining
	case r.Deadline <= c.now:
		return Deadline
	case r.Cost > c.limit && c.limit > 0, r.Cost > min(t.takeable(), c.cfg.Allowance.most()): // a limit of 0 is a pause, not a size
		return TooCostly
	case r.Bytes > c.cfg.MaxBytes:
		return TooLarge
	}
	return None
}

// enqueue finds a place for a request that cannot run at once, or refuses it.
func (c *Core) enqueue(r *Request, f *flow) Decision {
	if !c.keepsObjective(r) {
		c.others = c.now
	}
	c.planned = c.foresees(f)
	d := Decision{PredictedWait: c.predict(r, f), Service: c.needs(f, r.Size, r.whole(c.now))}
	// Doomed at the door: predicted wait + service does not fit the budget. Of a
	// pause or an absence nobody knows how long it lasts, and the alarm will tell;
	// whoever could not wait at all, but run at once, lacks what it would run on.
	switch {
	case c.limit == 0 && c.depth == 0:
		return c.refuse(f, Unavailable)
	case c.limit == 0 || c.absence.is:
		d.PredictedWait = 0
	}
	if r.Deadline != Never && c.spent(r, &d) {
		return c.refuseWith(f, d, c.lacking(NoBudget))
	}
	if c.beyond(r, f) {
		return c.refuseWith(f, d, Shed)
	}
	if why := c.makeRoom(r, f, &d); why != None {
		return c.refuseWith(f, d, c.lacking(why))
	}
	f.row.quota.spend(r.Cost)
	w := c.push(r, f)
	c.evictVictims(r, f) // after the push: the queue was never empty
	c.dispatch()         // it may be first, and fit slots that a costlier one could not use
	if d.Verdict = w.verdict; w.verdict == Admitted {
		c.undecide(w)
		c.counts.dequeued-- // it did not wait
		c.counts.immediate++
		d.Share = w.share
		return d
	}
	d.Waiter = w
	return d
}

// Release ends a request that was admitted.
func (c *Core) Release(now time.Duration, e End) {
	c.enter(now)
	if e.Exempt {
		c.exempt--
		if c.exempt < 0 {
			panic("admission: more exempt requests released than admitted")
		}
		return
	}
	c.tide.end(c.now, max(e.Cost, 1))
	c.inUse -= max(e.Cost, 1)
	c.running--
	if c.inUse < 0 || c.running < 0 {
		panic("admission: more cost released than is in use")
	}
	c.end(e.Outcome, 1)
	if more := e.correction(); more != 0 && c.allowance.Rate > 0 {
		c.draw(more)
	}
	if f := c.flowOf(e.Share); f != nil {
		c.settle(f, e)
	}
	c.dispatch()
}

// settle closes the account of a request that ran.
func (c *Core) settle(f *flow, e End) {
	cost := max(e.Cost, 1)
	f.row.inUse -= cost
	if f.row.inUse < 0 {
		panic("admission: more cost released than its tenant has in use")
	}
	c.unpark(f.row)
	more := e.correction()
	if more == 0 {
		return
	}
	if f.group != nil {
		f.group.fair.correct(f, more)
	}
	c.lanes[f.priority-1].correct(f.whole(), more)
	f.row.quota.refill(c.now)
	f.row.quota.spend(more)
	f.row.granted += float64(more)
}

func (c *Core) end(o Outcome, n int64) {
	if o != Completed && o != Late && o != Failed && o != Abandoned {
		panic("admission: a request that ran ends as completed, late, failed or abandoned, not " + o.String())
	}
	c.counts.outcomes[o] += uint64(n)
	c.counts.ended += uint64(n)
}

// Cancel decides about a waiter whose caller left (Client, Parent), or whose
// alarm rang (None): then it is refused if its time is over, and otherwise
// stays, with a new Alarm. It reports whether the waiter is decided; that it
// already was counts nothing.
func (c *Core) Cancel(now time.Duration, w *Waiter, why Reason) bool {
	c.tick(now)
	if w.verdict != Queued {
		return true
	}
	if why == None {
		if why = c.over(w); why == None {
			c.arm(w)
			return false
		}
	}
	c.drop(w, why)
	c.reorder()  // only now: nobody else may decide w
	c.dispatch() // it may have kept others out of slots that were too few for it
	return true
}

// Next returns a waiter that was decided, until there is none. Waiter.Verdict
// and Waiter.Reason say what became of it. The waiter that a Cancel decided is
// not among them.
func (c *Core) Next() *Waiter {
	if c.taken == len(c.decided) {
		clear(c.decided)
		c.decided, c.taken = c.decided[:0], 0
		return nil
	}
	w := c.decided[c.taken]
	c.taken++
	return w
}

// Recycle hands back a decided waiter, after Next or Cancel has told of it, to be
// used again: a simulation of a million waits a second then allocates nothing. It
// is not to be touched afterwards, so a driver whose callers may still look at
// theirs does not call it.
func (c *Core) Recycle(w *Waiter) {
	if w.verdict == Queued {
		panic("admission: a waiter was recycled that waits, or twice")
	}
	*w = Waiter{verdict: Queued, next: c.spare}
	c.spare = w
}

// Lend hands the free slots to the driver, to admit requests of cost 1 without
// a call, and returns how many: 0 while anyone waits, and always where it matters
// who is admitted or when, with Tenants, a Reserve or an Allowance. Lent slots count as used
// until Settle; the driver settles before any other call but Next.
func (c *Core) Lend() int {
	if c.waiting > 0 || c.draining || c.lent > 0 || c.free() <= 0 ||
		c.cfg.Tenants != nil || c.cfg.Reserve != (Reserve{}) || c.allowance.Rate > 0 {
		return 0
	}
	c.lent, c.lentAt = c.free(), c.now
	return c.lent
}

// Settle takes back what was lent. Without slots lent it takes the ends alone.
func (c *Core) Settle(now time.Duration, s Settlement) {
	var ended int64
	for o, n := range s.Ended {
		if n != 0 {
			c.end(Outcome(o), n)
		}
		ended += n
	}
	was := c.inUse
	c.idleness.count(max(c.now, now), float64(c.lent+s.Free)/2) // from the one to the other in between
	c.inUse += c.lent - s.Free
	c.running += int(s.Admitted - ended)
	if c.inUse < 0 || c.running < 0 {
		panic("admission: more slots settled than were lent and in use")
	}
	c.lent = 0
	c.counts.arrivals += uint64(s.Admitted)
	c.counts.immediate += uint64(s.Admitted)
	c.tide.settle(max(c.now, now), was, c.inUse, s.Admitted, ended)
	c.meterLent(float64(s.Admitted))
	if c.load.spread(c.lentAt, max(c.now, now), float64(s.Admitted)) {
		c.roll()
	}
	c.enter(now)
	c.dispatch()
}

// SetLimit replaces the law by limit.Fixed(n).
func (c *Core) SetLimit(now time.Duration, n int) error {
	law := limit.Fixed(n)
	if _, err := law.Start(); err != nil {
		return err
	}
	c.enter(now)
	c.begin(law)
	c.cfg.Limit = law
	c.callLimit(n)
	return nil
}

func (c *Core) setLimit(n int) {
	if n != c.limit {
		c.counts.limitChanges++
		if n > c.limit {
			c.counts.raised++
		}
		c.movedFrom, c.movedAt = c.limit, c.now
		c.limit = n
	}
	c.derive()
	c.evict(TooCostly, func(w *Waiter) bool {
		t := w.flow.row
		return n > 0 && int(w.cost) > n || int(w.cost) > c.cfg.Allowance.most() || t.ceiling > 0 && int(w.cost) > t.ceiling
	})
	c.dispatch()
}

// Reconfigure replaces the configuration. Who waits and who runs is kept, as
// are the counters and the samples; who no longer fits a lower cap is refused,
// the last in the order first. The limit starts again only if the law changed.
func (c *Core) Reconfigure(now time.Duration, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	cfg = cfg.WithDefaults()
	c.enter(now)
	n := c.limit
	if cfg.Limit != c.cfg.Limit {
		n, _ = cfg.Limit.Start()
		c.cfg.Seed = cfg.Seed
		c.begin(cfg.Limit)
	}
	if c.cfg.Order != Auto && cfg.Order == Auto {
		c.setOrder(FIFO)
	}
	c.configure(cfg)
	for c.waiting > c.cfg.MaxItems {
		c.tell(c.givesWay(func(*Waiter) bool { return true }), QueueFull)
	}
	for c.bytes > c.cfg.MaxBytes {
		c.tell(c.givesWay(func(w *Waiter) bool { return w.bytes > 0 }), BytesFull)
	}
	c.callLimit(n)
	return nil
}

// Drain refuses whoever is offered from now on, and with queue also whoever waits.
func (c *Core) Drain(now time.Duration, queue bool) {
	c.enter(now)
	c.draining = true
	if queue {
		c.evict(Draining, func(*Waiter) bool { return true })
	}
}
