package sim

import (
	"fmt"
	"time"

	"github.com/goodput/goodput/admission"
)

const (
	maxParts     = 100_000 // entries of a list in a scenario
	maxTiers     = 64
	maxClasses   = 1000
	maxInstances = 10_000
	maxFan       = 10_000
	maxAttempts  = 100
)

// Validate returns one sentence about the first field that is out of range or
// contradicts another, or nil.
func (s Scenario) Validate() error {
	switch {
	case s.Length <= 0 || s.Length > maxTime:
		return fmt.Errorf("length %v is out of range: above 0, to %v", s.Length, maxTime)
	case s.Warmup < 0 || s.Warmup >= s.Length:
		return fmt.Errorf("warmup %v is out of range: 0 to less than the length, %v", s.Warmup, s.Length)
	case s.Bins < 0 || s.Bins > maxBins:
		return fmt.Errorf("bins %d is out of range: 1 to %d, or 0 for %d", s.Bins, maxBins, defaultBins)
	case len(s.Tiers) == 0 || len(s.Tiers) > maxTiers:
		return fmt.Errorf("tiers are %d: 1 to %d", len(s.Tiers), maxTiers)
	case len(s.Classes) == 0 || len(s.Classes) > maxClasses:
		return fmt.Errorf("classes are %d: 1 to %d", len(s.Classes), maxClasses)
	}
	reached := make([]bool, len(s.Tiers))
	for i := range s.Classes {
		if err := s.validateClass(&s.Classes[i]); err != nil {
			return fmt.Errorf("class %s: %w", name(s.Classes[i].Name, i), err)
		}
		if t := s.Classes[i].Tier; s.Classes[i].Service.zero() {
			reached[t] = true
		}
	}
	for i := range s.Tiers {
		if f := s.Tiers[i].Next; f != nil && f.Service.zero() && f.Tier > i && f.Tier < len(s.Tiers) {
			reached[f.Tier] = true
		}
	}
	for i := range s.Tiers {
		t := &s.Tiers[i]
		if err := s.validateTier(i, t); err != nil {
			return fmt.Errorf("tier %s: %w", name(t.Name, i), err)
		}
		if reached[i] || !t.Service.zero() {
			if err := t.Service.validate(); err != nil && (s.Trace == nil || !t.Service.zero()) {
				return fmt.Errorf("tier %s: service: %w", name(t.Name, i), err)
			}
		}
	}
	if err := s.validateGroups(); err != nil {
		return err
	}
	return s.validateSize()
}

// name is how a part of a scenario is called in a sentence.
func name(name string, i int) string {
	if name == "" {
		return fmt.Sprint(i + 1)
	}
	return fmt.Sprintf("%q", name)
}

func (s *Scenario) validateTier(i int, t *Tier) error {
	if t.Instances < 0 || t.Instances > maxInstances {
		return fmt.Errorf("instances %d is out of range: 1 to %d, or 0 for 1", t.Instances, maxInstances)
	}
	if t.Slots < 0 || t.Slots > maxParts {
		return fmt.Errorf("slots %d is out of range: 1 to %d, or 0 for as many as the limiters let in", t.Slots, maxParts)
	}
	if err := t.validateSteps(); err != nil {
		return err
	}
	if t.Objective < 0 || t.Objective > maxTime {
		return fmt.Errorf("objective %v is out of range: above 0, to %v", t.Objective, maxTime)
	}
	if err := t.Policy.validate(); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	if err := t.Speed.validate(); err != nil {
		return fmt.Errorf("speed: %w", err)
	}
	if c := t.Contention; !(c.Alpha >= 0 && c.Alpha <= 100 && c.Beta >= 0 && c.Beta <= 100 && c.Slope >= 0 && c.Slope <= 100) || c.Knee < 0 {
		return fmt.Errorf("contention: alpha %v, beta %v, slope %v, knee %d: each is 0 to 100, the knee from 0", c.Alpha, c.Beta, c.Slope, c.Knee)
	}
	if err := t.validateFaults(); err != nil {
		return err
	}
	if err := t.validateAbsences(); err != nil {
		return err
	}
	if f := t.Next; f != nil {
		switch {
		case f.Tier <= i || f.Tier >= len(s.Tiers):
			return fmt.Errorf("next: tier %d does not come after tier %d, of %d", f.Tier+1, i+1, len(s.Tiers))
		case f.N < 0 || f.N > maxFan:
			return fmt.Errorf("next: n %d is out of range: 1 to %d, or 0 for 1", f.N, maxFan)
		case f.Need < 0 || f.Need > max(f.N, 1):
			return fmt.Errorf("next: need %d is out of range: 1 to n, %d, or 0 for all", f.Need, max(f.N, 1))
		case f.Wait < 0 || f.Wait > maxTime:
			return fmt.Errorf("next: wait %v is out of range: 0 to %v", f.Wait, maxTime)
		}
		if !f.Service.zero() {
			if err := f.Service.validate(); err != nil {
				return fmt.Errorf("next: service: %w", err)
			}
		}
		if err := f.Retry.validate(); err != nil {
			return fmt.Errorf("next: retry: %w", err)
		}
	}
	if len(t.Restarts) > maxParts {
		return fmt.Errorf("restarts are %d: at most %d", len(t.Restarts), maxParts)
	}
	var last time.Duration
	for n, r := range t.Restarts {
		if err := follows(r.At, last, "the one before it"); err != nil {
			return fmt.Errorf("restart %d: %w", n+1, err)
		}
		if err := r.validate(); err != nil {
			return fmt.Errorf("restart %d: %w", n+1, err)
		}
		last = r.At
	}
	if t.Memory < 0 {
		return fmt.Errorf("memory %d is out of range: above 0, or 0 for no bound", t.Memory)
	}
	if err := t.Killed.validate(); err != nil {
		return fmt.Errorf("killed: %w", err)
	}
	return nil
}

// follows returns what is wrong with the instant at, which comes after last.
func follows(at, last time.Duration, what string) error {
	switch {
	case at < 0 || at > maxTime:
		return fmt.Errorf("at %v is out of range: 0 to %v", at, maxTime)
	case at < last:
		return fmt.Errorf("at %v comes before %s, %v", at, what, last)
	}
	return nil
}

func (r *Restart) validate() error {
	if r.Down < 0 || r.Down > maxTime || r.Warm < 0 || r.Warm > maxTime {
		return fmt.Errorf("down %v, warm %v are out of range: 0 to %v", r.Down, r.Warm, maxTime)
	}
	if !(r.Cold >= 0 && r.Cold <= 1000) {
		return fmt.Errorf("cold %v is out of range: 1 to 1000 times, or 0 for 1", r.Cold)
	}
	return nil
}

func (p *Policy) validate() error {
	if (p.Core == nil) == (p.Baseline == nil) {
		return fmt.Errorf("%q is neither our core nor a baseline, or both: exactly one", p.Name)
	}
	if p.Core != nil {
		return p.Core.Validate()
	}
	b := p.Baseline
	if law := b.Law; law != nil {
		if err := b.core(0).Validate(); err != nil { // the objective is the tier's
			return err
		}
		if *b != (Baseline{Law: law}) {
			return fmt.Errorf("a baseline with the law %v has a limit, a depth, an order or more beside it: the law is all there is", law)
		}
		return nil
	}
	switch {
	case b.Limit != Unbounded && (b.Limit < 1 || b.Limit > maxParts):
		return fmt.Errorf("limit %d is out of range: 1 to %d, or Unbounded", b.Limit, maxParts)
	case b.Depth < Unbounded || b.Depth > 1<<24:
		return fmt.Errorf("depth %d is out of range: 0 to %d, or Unbounded", b.Depth, 1<<24)
	case b.Order > Adaptive:
		return fmt.Errorf("order %d is unknown: FIFO, LIFO, EDF or Adaptive", b.Order)
	case b.Margin < 0 || b.Margin > maxTime:
		return fmt.Errorf("margin %v is out of range: 0 to %v", b.Margin, maxTime)
	case b.CoDel.Target < 0 || b.CoDel.Target > maxTime || b.CoDel.Interval < 0 || b.CoDel.Interval > maxTime:
		return fmt.Errorf("codel: target %v, interval %v are out of range: 0 to %v", b.CoDel.Target, b.CoDel.Interval, maxTime)
	case b.CoDel.Target > b.CoDel.Interval:
		return fmt.Errorf("codel: target %v is longer than interval %v", b.CoDel.Target, b.CoDel.Interval)
	case b.AIMD != (AIMD{}) && !(b.AIMD.Floor >= 1 && b.AIMD.Floor <= b.Limit && b.AIMD.Low >= 1 && b.AIMD.High >= b.AIMD.Low &&
		b.AIMD.Decrease > 0 && b.AIMD.Decrease <= 1 && b.AIMD.Drop > 0 && b.AIMD.Drop <= 1):
		return fmt.Errorf("aimd: floor %d, low %v, high %v, decrease %v, drop %v: the floor is 1 to the limit, 1 <= low <= high, and the factors are above 0, to 1",
			b.AIMD.Floor, b.AIMD.Low, b.AIMD.High, b.AIMD.Decrease, b.AIMD.Drop)
	case b.Order == Adaptive && b.CoDel.Interval == 0:
		return fmt.Errorf("order adaptive needs a codel interval: after so long without an empty queue it is LIFO")
	}
	return nil
}

func (s *Scenario) validateClass(c *Class) error {
	if c.Tier < 0 || c.Tier >= len(s.Tiers) {
		return fmt.Errorf("tier %d is out of range: 1 to %d", c.Tier+1, len(s.Tiers))
	}
	if err := c.Arrivals.validate(); err != nil {
		return fmt.Errorf("arrivals: %w", err)
	}
	if !c.Service.zero() {
		if err := c.Service.validate(); err != nil {
			return fmt.Errorf("service: %w", err)
		}
	}
	if c.Priority > admission.Background {
		return fmt.Errorf("priority %d is unknown: Critical, Default, Sheddable or Background", c.Priority)
	}
	if c.Cost < 0 || c.Cost > 1<<20 || c.Bytes < 0 || c.Bytes > 1<<50 {
		return fmt.Errorf("cost %d, bytes %d are out of range: cost 0 to %d, bytes 0 to %d", c.Cost, c.Bytes, 1<<20, 1<<50)
	}
	if len(c.Sizes) > 0 {
		if err := validateShares("sizes", len(c.Sizes), func(i int) float64 { return c.Sizes[i].Share }); err != nil {
			return err
		}
	}
	for _, z := range c.Sizes {
		if z.Units < 1 || z.Units > 1<<30 {
			return fmt.Errorf("sizes: %d units is out of range: 1 to %d", z.Units, 1<<30)
		}
	}
	if len(c.Deadlines) > 0 {
		if err := validateShares("deadlines", len(c.Deadlines), func(i int) float64 { return c.Deadlines[i].Share }); err != nil {
			return err
		}
	}
	for _, d := range c.Deadlines {
		if d.After <= 0 || d.After > maxTime {
			return fmt.Errorf("deadlines: %v is out of range: above 0, to %v", d.After, maxTime)
		}
	}
	if err := c.validateCrowd(); err != nil {
		return err
	}
	if c.Patience > Stays {
		return fmt.Errorf("patience %d is unknown: Leaves, Vanishes or Stays", c.Patience)
	}
	if err := c.Retry.validate(); err != nil {
		return fmt.Errorf("retry: %w", err)
	}
	return nil
}
