package admission

import (
	"fmt"
	"slices"
	"time"

	"github.com/goodput/goodput/limit"
)

// A duel plays the same operations on a core and on the model, and compares
// after each: the verdict, the reason, who else was decided and in which order,
// the alarms and the counters.
type duel struct {
	core  *Core
	model *model
	now   time.Duration
	cfg   Config
	pick  func(n int) int // the next choice: 0 to n-1

	due     time.Duration // when the allowance is there
	first   *place        // for whom
	names   int
	waiting []*duelist
	running []*duelist
	batch   Batch
	last    string // operation
	sizes   int    // how much the sizes of samples say

	flood bool     // more comes than can be served
	was   *Tenants // those of before, to come back soon; nil: they need not
}

// A duelist is one request on both sides.
type duelist struct {
	name   int
	cost   int
	exempt bool
	given  Share // at the door
	w      *Waiter
	p      *place // nil if it runs on a lent slot
}

// share is on whose account it runs.
func (a *duelist) share() Share {
	if a.w != nil {
		return a.w.Share()
	}
	return a.given
}

func newDuel(pick func(int) int) (*duel, error) {
	d := &duel{pick: pick}
	d.cfg = d.config()
	d.sizes = d.pick(6)
	var err error
	if d.core, err = New(d.cfg); err != nil {
		if d.cfg.Overflow != Block { // the only pair that contradicts itself
			return nil, err
		}
		d.cfg.Depth = 3
		if d.core, err = New(d.cfg); err != nil {
			return nil, err
		}
	}
	d.model = newModel(d.cfg, d.core)
	return d, nil
}

func (d *duel) config() Config {
	choose := func(v ...int) int { return v[d.pick(len(v))] }
	cfg := Config{
		Limit:      limit.Fixed(choose(1, 1, 2, 3, 4, 6, 0)),
		Objective:  time.Duration(choose(400, 60, 150)) * ms,
		Service:    time.Duration(choose(0, 4, 12, 40)) * ms,
		Depth:      choose(0, 0, 3, 8, 1, NoQueue),
		MaxItems:   choose(60, 60, 12, 4),
		MaxBytes:   int64(choose(0, 100)),
		MaxWait:    time.Duration(choose(0, 0, 30, 2000)) * ms,
		MaxAbsence: time.Duration(choose(0, 20, 100)) * ms,
		Overflow:   Overflow(choose(0, 0, 0, 1, 2, 3, 4)),
		Order:      Order(choose(0, 0, 0, 0, 1, 2, 3)),
		Exempt:     choose(1, 3),
		Allowance:  []Quota{{}, {}, {}, {Rate: 31.4159}, {Rate: 7.3137, Burst: 3.1}, {Rate: 301.77, Burst: 1}}[d.pick(6)],
	}
	cfg.Durable = (cfg.Overflow == Block || cfg.Overflow == RefuseNewest) && d.pick(2) == 0
	if d.pick(3) == 0 {
		cfg.Limit = wanders{choose(1, 2, 3, 5)}
	}
	d.shares(&cfg)
	return cfg
}

// step plays one operation and returns what differs.
func (d *duel) step() error {
	if d.pick(250) == 1 {
		d.flood = !d.flood
	}
	if d.pick(4) == 0 {
		d.now += time.Duration([]int{1, 3, 10, 40, 200}[d.pick(5)]) * ms
	}
	if d.pick(400) == 0 {
		d.now = max(0, d.now-5*ms) // a driver whose clock goes back
	}
	calls := d.awaitAllowance()
	d.core.tick(d.now) // or what a bin has changed would be in neither numbers
	before := numbersOf(d.core)
	play := d.play
	if calls {
		play = d.refilled
	}
	if err := play(before); err != nil {
		return fmt.Errorf("%s: %w", d.last, err)
	}
	if err := d.compare(); err != nil {
		return fmt.Errorf("%s: %w", d.last, err)
	}
	return nil
}

func (d *duel) play(before numbersInForce) error {
	tick := func() { d.model.tick(d.now, before, numbersOf(d.core)) }
	enter := func() { tick(); d.model.reorder(); d.model.lapse(); d.model.accrued() }
	change := func(play func(enter func()) error) error {
		if err := d.accrue(&before); err != nil {
			return err
		}
		return play(func() { tick(); d.model.reorder(); d.model.lapse() })
	}
	switch k := d.pick(100); {
	case k < 46, d.flood && k < 78 && d.pick(2) == 0:
		return d.offer(enter)
	case d.was != nil && d.pick(10) == 0:
		cfg := d.cfg
		cfg.Tenants, d.was = d.was, nil
		return change(func(enter func()) error { return d.reconfigure(cfg, enter) })
	case k < 78 && len(d.running) > 0:
		r := take(&d.running, d.pick(len(d.running)))
		e := End{Cost: r.cost, Exempt: r.exempt, Share: r.share(), Outcome: []Outcome{Completed, Late, Failed, Abandoned}[d.pick(4)]}
		if d.pick(8) == 0 {
			e.Charge = 1 + d.pick(10)
		}
		d.last = fmt.Sprintf("at %v release %d %+v", d.now, r.name, e)
		d.core.Release(d.now, e)
		enter()
		d.model.release(e, r.p)
	case k < 90 && len(d.waiting) > 0:
		return d.cancel(tick)
	case k < 94:
		return change(d.measure)
	case k < 96:
		return d.lendAndSettle(enter)
	case k == 96 && d.pick(2) == 0:
		return change(d.setPresent)
	case k == 96:
		return change(d.hold)
	case k == 97 && d.pick(2) == 0:
		return change(d.setWeight)
	case k == 97:
		return change(d.setLimit)
	case k == 98 && d.pick(2) == 0:
		return change(func(enter func()) error { return d.reconfigure(d.reload(), enter) })
	case k == 99 && d.pick(200) == 0:
		queue := d.pick(2) == 0
		d.last = fmt.Sprintf("drain %v", queue)
		d.core.Drain(d.now, queue)
		enter()
		d.model.drain = true
		d.model.dropAll(Draining, func(*place) bool { return queue })
	default:
		d.last = "stats"
		d.core.Stats(d.now)
		tick()
	}
	return nil
}

// accrue has everybody granted what has accrued, before a call that changes the numbers:
// what is granted between would be by neither of them.
func (d *duel) accrue(before *numbersInForce) error {
	if d.cfg.Allowance.Rate == 0 {
		return nil
	}
	d.due = Never
	if err := d.refilled(*before); err != nil {
		return err
	}
	err := d.compare()
	*before = numbersOf(d.core)
	return err
}

// measure hands in some service times.
func (d *duel) measure(enter func()) error {
	d.last = "observe"
	for range d.pick(30) {
		size := 1 + d.pick(20)
		switch d.sizes {
		case 0, 1: // all are alike
			d.batch.Add(time.Duration(1+d.pick(60))*ms, 0, 1+d.pick(2), 1)
		case 2: // sizes say nothing
			d.batch.Add(time.Duration(1+d.pick(60))*ms, 0, 1+d.pick(2), size)
		default: // sizes say much, or all
			d.batch.Add(time.Duration(2*size+d.pick(1+20*(d.sizes-3)))*ms, time.Duration(d.pick(90))*ms, 1+d.pick(2), size)
		}
	}
	d.core.Observe(d.now, &d.batch)
	d.batch.Reset()
	enter()
	if d.model.away.is || d.model.held {
		return nil // nobody asks the law
	}
	d.model.asked = d.model.now
	if w, ok := d.core.law.(*wanderer); ok {
		d.model.obey(w.said)
	}
	return nil
}

func (d *duel) setLimit(enter func()) error {
	n := d.pick(7)
	d.last = fmt.Sprintf("setlimit %d", n)
	d.cfg.Limit = limit.Fixed(n)
	if err := d.core.SetLimit(d.now, n); err != nil {
		return err
	}
	enter()
	d.model.search = false
	d.model.cfg.Limit = limit.Fixed(n)
	d.model.callLimit(n)
	return nil
}

func take[T any](s *[]T, i int) T {
	v := (*s)[i]
	*s = slices.Delete(*s, i, i+1)
	return v
}

func (d *duel) request() Request {
	choose := func(v ...int) int { return v[d.pick(len(v))] }
	r := Request{
		Cost: choose(0, 1, 1, 1, 1, 2, 3, 7), Bytes: int64(choose(0, 0, 10, 40, 101)), Deadline: Never,
		Priority: Priority(choose(0, 1, 2, 2, 3, 4)), Attempt: choose(0, 1, 1, 2), Arrival: d.now,
		Exempt: d.pick(40) == 0, NoWait: d.pick(30) == 0,
	}
	if d.pick(3) > 0 {
		r.Deadline = d.now + time.Duration(choose(0, 5, 60, 150, 400, 410, 2000))*ms
	}
	if d.pick(4) == 0 {
		r.Arrival = d.now - time.Duration(choose(0, 1, 5, 20, -50))*ms
	}
	if d.pick(10) == 0 || d.sizes > 2 && d.pick(4) > 0 {
		r.Size = 1 + d.pick(20)
	}
	r.Tenant = ids[d.pick(len(ids))]
	if d.flood || d.pick(3) == 0 {
		r.Cohort = choose(1, 20, 64, 100, Cohorts, 0, -1, Cohorts+1)
	}
	if d.flood && d.pick(4) > 0 { // of one tenant, and all alike but for their users
		r.Cost, r.Size, r.Bytes, r.Deadline, r.Priority, r.Attempt, r.Tenant = 1, 0, 0, Never, Default, 1, "a"
	}
	if d.cfg.Overflow == LatestOnly && d.pick(3) > 0 {
		r.Key = []string{"", "k", "l", "m"}[d.pick(4)]
	}
	return r
}

func (d *duel) offer(enter func()) error {
	r := d.request()
	d.names++
	a := &duelist{name: d.names, cost: max(r.Cost, 1)}
	d.last = fmt.Sprintf("at %v offer %d %+v", d.now, a.name, r)
	got := d.core.Offer(d.now, r)
	enter()
	p := d.model.offer(r)
	if got.Verdict != p.verdict || got.Reason != p.reason {
		return fmt.Errorf("core says %d %v, model %d %v", got.Verdict, got.Reason, p.verdict, p.reason)
	}
	if off := got.RetryAfter - p.wait; off < -1 || off > 1 { // the last bit of a float64
		return fmt.Errorf("the quota lacks for %v, model %v", got.RetryAfter, p.wait)
	}
	a.exempt, a.given, a.p = got.Exempt, got.Share, p
	switch p.verdict {
	case Admitted:
		d.running = append(d.running, a)
	case Queued:
		a.w = got.Waiter
		got.Waiter.Ref = a
		d.waiting = append(d.waiting, a)
	}
	return nil
}

// cancel: a caller leaves, an alarm that is due rings, or one rings too early.
func (d *duel) cancel(tick func()) error {
	a := d.waiting[d.pick(len(d.waiting))]
	why := []Reason{Client, Parent, None, None, None, None}[d.pick(6)]
	if why == None && d.pick(4) > 0 {
		for _, b := range d.waiting {
			if b.w.Alarm() < a.w.Alarm() {
				a = b
			}
		}
	}
	d.last = fmt.Sprintf("at %v cancel %d %v", d.now, a.name, why)
	got := d.core.Cancel(d.now, a.w, why)
	tick()
	if want := d.model.cancel(a.p, why); got != want {
		return fmt.Errorf("core decides %v, model %v", got, want)
	}
	if got {
		if again := d.core.Cancel(d.now, a.w, Client); !again {
			return fmt.Errorf("a decided waiter is undecided")
		}
		d.waiting = slices.DeleteFunc(d.waiting, func(b *duelist) bool { return a == b })
	}
	return sameFate(a)
}

func sameFate(a *duelist) error {
	if a.w.Verdict() != a.p.verdict || a.w.Reason() != a.p.reason {
		return fmt.Errorf("%d: core %d %v, model %d %v", a.name, a.w.Verdict(), a.w.Reason(), a.p.verdict, a.p.reason)
	}
	if a.w.Alarm() != a.p.alarm {
		return fmt.Errorf("%d: alarm at %v, model %v", a.name, a.w.Alarm(), a.p.alarm)
	}
	return nil
}

func (d *duel) lendAndSettle(enter func()) error {
	n := d.core.Lend()
	if want := d.model.lend(); n != want {
		return fmt.Errorf("lend: core %d, model %d", n, want)
	}
	s := Settlement{Free: n}
	for range d.pick(2 * (n + 1)) { // requests of cost 1 come and go
		if s.Free > 0 && d.pick(3) > 0 {
			d.names++
			d.running = append(d.running, &duelist{name: d.names, cost: 1})
			s.Free--
			s.Admitted++
			continue
		}
		i := slices.IndexFunc(d.running, func(a *duelist) bool { return a.cost == 1 && !a.exempt && a.share() == 0 })
		if i < 0 {
			continue
		}
		take(&d.running, i)
		s.Free++
		s.Ended[Completed]++
	}
	d.last = fmt.Sprintf("at %v lend %d, settle %+v", d.now, n, s)
	d.core.Settle(d.now, s)
	enter()
	d.model.settle(s)
	return nil
}

// reload returns the next configuration.
func (d *duel) reload() Config {
	cfg := d.config()
	switch d.pick(4) {
	case 0:
		cfg.Limit = d.cfg.Limit
	case 1, 2: // only who shares
		d.was = d.cfg.Tenants
		cfg = d.cfg
		cfg.Reserve, cfg.Tenants = Reserve{}, nil
		d.shares(&cfg)
	}
	return cfg
}

func (d *duel) reconfigure(cfg Config, enter func()) error {
	d.last = fmt.Sprintf("reconfigure %+v", cfg)
	if err := d.core.Reconfigure(d.now, cfg); err != nil {
		return nil // and nothing has changed: compare will see
	}
	enter()
	n := d.model.limit
	if cfg.Limit != d.cfg.Limit {
		n, _ = cfg.Limit.Start()
		_, d.model.search = cfg.Limit.(wanders)
		d.model.search = d.model.search && !d.model.held
	}
	d.cfg = cfg
	var dropped []*place
	for _, w := range d.core.decided[d.core.taken:] {
		if why := w.Reason(); why == QueueFull || why == BytesFull {
			dropped = append(dropped, w.Ref.(*duelist).p)
		}
	}
	return d.model.reconfigure(cfg, d.core, n, dropped)
}

// compare takes who was decided from both, and then the numbers. Who is refused at the
// same instant is told in any order: it concerns different tenants.
func (d *duel) compare() error {
	told := d.model.told
	for w := d.core.Next(); w != nil; w = d.core.Next() {
		a := w.Ref.(*duelist)
		i := slices.Index(told, a.p)
		if i < 0 {
			return fmt.Errorf("core decided %d (%d %v, %+v), the model did not, but %d others; order %v and %v", a.name, w.Verdict(), w.Reason(), a.p, len(told), d.core.order, d.model.order)
		}
		if admitted := slices.IndexFunc(told, func(p *place) bool { return p.verdict == Admitted }); w.Verdict() == Admitted && i != admitted {
			return fmt.Errorf("core granted to %d first, the model to another one", a.name)
		}
		told = slices.Delete(told, i, i+1)
		if err := sameFate(a); err != nil {
			return err
		}
		d.waiting = slices.DeleteFunc(d.waiting, func(b *duelist) bool { return a == b })
		if w.Verdict() == Admitted {
			d.running = append(d.running, a)
		}
	}
	if len(told) > 0 {
		return fmt.Errorf("the model decided %d more, first %d %v", len(told), told[0].verdict, told[0].reason)
	}
	d.model.told = d.model.told[:0]
	if err := d.core.Check(); err != nil {
		return err
	}
	if err := d.compareAllowance(); err != nil {
		return err
	}
	got := d.core.Stats(d.now)
	d.model.accrue(d.now)
	want := d.model.stats()
	// What was measured is not the model's.
	want.Depth, want.Overload, want.Offered, want.Load, want.RetryAfter = got.Depth, got.Overload, got.Offered, got.Load, got.RetryAfter
	want.MaxItems, want.MaxBytes, want.Derivation = d.model.cfg.MaxItems, d.model.cfg.MaxBytes, got.Derivation
	want.Stood = got.Stood
	want.LimitFloored, want.Baseline, want.Slowed, want.SlowedBy = got.LimitFloored, got.Baseline, got.Slowed, got.SlowedBy
	want.OfferedBefore, want.CompletedBefore, want.CompletedNow = got.OfferedBefore, got.CompletedBefore, got.CompletedNow
	want.ShedPriority, want.ShedCohort = got.ShedPriority, got.ShedCohort
	want.ShedOffered, want.ShedServed = got.ShedOffered, got.ShedServed
	want.Tenants.Active, want.Tenants.Over, want.Tenants.Level = got.Tenants.Active, got.Tenants.Over, got.Tenants.Level
	if off := got.AllowanceLeft - want.AllowanceLeft; off > -1e-6 && off < 1e-6 {
		want.AllowanceLeft = got.AllowanceLeft
	}
	if got != want {
		return fmt.Errorf("core  %+v\nmodel %+v", got, want)
	}
	return d.compareAccounts()
}

// finish ends everybody and requires that nothing is left.
func (d *duel) finish() error {
	for len(d.waiting)+len(d.running) > 0 {
		before := numbersOf(d.core)
		tick := func() { d.model.tick(d.now, before, numbersOf(d.core)) }
		d.last = "finish"
		if len(d.waiting) > 0 {
			a := d.waiting[0]
			d.core.Cancel(d.now, a.w, Client)
			tick()
			d.model.cancel(a.p, Client)
			d.waiting = d.waiting[1:]
		} else {
			r := take(&d.running, 0)
			e := End{Cost: r.cost, Exempt: r.exempt, Share: r.share(), Outcome: Completed}
			d.core.Release(d.now, e)
			tick()
			d.model.reorder()
			d.model.lapse()
			d.model.accrued()
			d.model.release(e, r.p)
		}
		if err := d.compare(); err != nil {
			return err
		}
	}
	if c := d.core; c.inUse != 0 || c.running != 0 || c.waiting != 0 || c.cost != 0 || c.bytes != 0 || c.exempt != 0 {
		return fmt.Errorf("left at the end: %+v", c.Stats(d.now))
	}
	return nil
}
