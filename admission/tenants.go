package admission

import (
	"fmt"
	"math"

	"github.com/goodput/goodput/limit"
)

// Defaults and bounds of Tenants.
const (
	DefaultBuckets = 64
	DefaultHand    = 8

	maxRows    = 4096
	maxBuckets = 1024
	maxHand    = 16
	maxID      = 128 // bytes

	minWeight = 1e-12
	maxWeight = 1e12
	// maxRatio bounds the heaviest weight over the lightest: virtual time is a
	// float64, and the charge of the heaviest must still move it by far more than
	// its rounding.
	maxRatio = 1e6
	minRate  = 1e-6 // cost per second of a quota
	maxRate  = 1e9
)

// Tenants shares one limit between those who send requests, named by
// Request.Tenant. Within each priority they are served by start-time fair
// queueing (Goyal, Vin, Cheng, SIGCOMM 1996) in units of cost: over any time in
// which two tenants f and m both wait and neither is at a bound of its own,
//
//	|served f / weight f - served m / weight m| <= largest cost of f / weight f + largest cost of m / weight m
//
// whatever the slots do meanwhile. A share that its owner does not use is used by
// the others at once, and nobody pays later for what was idle.
//
// A full queue gives up who would be served last, so a tenant that sends fifty
// times its share loses its own work and nobody else's. And the depth in force
// shrinks in an overload only for those who ask for more than their share:
// TenantState.Over.
//
// Fairness counts the units of cost that are granted, not the time for which they
// are held: a tenant whose requests take ten times as long holds ten times the
// slots. Where that matters, give it a MaxInUse.
type Tenants struct {
	// Rows are the tenants that are known by name: at most 4096, ids unique.
	Rows []Tenant

	// Others is how all ids without a row are treated together; its ID is empty.
	// Weight, MaxInUse, MaxQueue and Quota are of all of them at once, so a flood of
	// invented ids is one tenant. Among themselves they are shared out evenly, in
	// buckets. A Charge of one of them is on the account of all.
	Others Tenant

	// Buckets is into how many queues the ids without a row are hashed: 1 to 1024,
	// default 64. Each id has a hand of them, default 8 (1 to 16, at most Buckets),
	// and each of its requests joins the one of its hand that will be served first
	// (shuffle sharding). A quiet id shares all of its hand with one that floods
	// with a probability of 1/C(64, 8) = 2.3e-10; with four that flood it is in their
	// buckets altogether with 4.9e-4, with sixteen 0.36. See Squished.
	//
	// One that shares some of its hand loses some: beside three that flood, of forty ids that ask for
	// half of their share with 64 buckets half lose more than 6 % and one 39, with 256 no more than 2.4 %
	// (internal/sim, TestQuietBesideThreeFloods). Who must not has a row.
	Buckets int
	Hand    int
}

// A Tenant is one row. The zero value of each field means its default.
type Tenant struct {
	ID string // 1 to 128 bytes; empty in Others

	// Weight is its share of the limit, relative to the weights of those that wait
	// as well: 1e-12 to 1e12, the heaviest at most a million times the lightest,
	// default 1.
	Weight float64

	// MaxInUse caps the units of cost that it runs at once, even if slots are idle:
	// 1 to 2^20, 0 means the limit. Who waits for it does not hold up others.
	MaxInUse int

	// MaxQueue caps the part of the depth in force that it fills: above 0, to 1; 0
	// means 1. One request of it may always wait.
	MaxQueue float64

	// Quota bounds what it is served over time. Beyond it is refused as quota, with
	// the time until the next units.
	Quota Quota

	// Highest is the highest priority that its requests may claim; who claims more
	// is taken for Highest. Default Critical: whoever it says.
	Highest Priority
}

// A Quota is a rate of cost with a burst: a token bucket, full at first. A request
// that costs more than the burst can never be served: TooCostly. The zero value is no
// quota.
type Quota struct {
	Rate  float64 // units of cost per second: 1e-6 to 1e9, 0 without a quota
	Burst float64 // units of cost that may come at once: 1 to 1e9, 0 means one second of Rate and at least 1
}

// burst returns Burst with its default.
func (q Quota) burst() float64 {
	if q.Burst > 0 {
		return q.Burst
	}
	return max(q.Rate, 1)
}

// A Reserve is the part of what is granted that is left to each priority while those
// above it want all: 0 to 1 each, at most 1 together, and at most 32/33 of those below
// Critical, which would else go for ever. What a priority does not use is used by the
// others. In an overload a priority has, in units of cost, what is granted times its
// reserve, and that part of the queue.
type Reserve struct{ Critical, Default, Sheddable, Background float64 }

// of returns the reserves in the order of Core.lanes.
func (r Reserve) of() [priorities]float64 {
	return [priorities]float64{r.Critical, r.Default, r.Sheddable, r.Background}
}

func (r Reserve) validate() error {
	sum := 0.0
	for i, v := range r.of() {
		if !(v >= 0 && v <= 1) {
			return fmt.Errorf("reserve of %s %v is out of range: 0 to 1, a part of what is granted", Priority(i+1), v)
		}
		sum += v
	}
	if sum > 1+1e-9 {
		return fmt.Errorf("the reserves add up to %v: at most 1, they are parts of what is granted", sum)
	}
	if below := sum - r.Critical; below > aging/(aging+1.0)+1e-9 {
		return fmt.Errorf("the reserves below critical add up to %.4g: at most 32/33, or nothing critical is ever served", below)
	}
	return nil
}

// validate returns one sentence about the first field that is out of range.
func (t *Tenants) validate() error {
	if t == nil {
		return nil
	}
	if len(t.Rows) > maxRows {
		return fmt.Errorf("%d tenants are too many: at most %d have a row, the rest share buckets", len(t.Rows), maxRows)
	}
	if t.Buckets < 0 || t.Buckets > maxBuckets {
		return fmt.Errorf("tenant buckets %d is out of range: 1 to %d, or 0 for %d", t.Buckets, maxBuckets, DefaultBuckets)
	}
	if t.Hand < 0 || t.Hand > maxHand {
		return fmt.Errorf("tenant hand %d is out of range: 1 to %d, or 0 for %d", t.Hand, maxHand, DefaultHand)
	}
	if t.Hand > 0 && t.Hand > t.buckets() {
		return fmt.Errorf("tenant hand %d is more than the %d buckets to choose from", t.Hand, t.buckets())
	}
	if t.Others.ID != "" {
		return fmt.Errorf("tenant id %.128q has no place in Others, which are all ids without a row", t.Others.ID)
	}
	light, heavy := &t.Others, &t.Others
	seen := make(map[string]bool, len(t.Rows))
	for i := range t.Rows {
		row := &t.Rows[i]
		if row.ID == "" || len(row.ID) > maxID {
			return fmt.Errorf("id of tenant %d has %d bytes: 1 to %d are allowed", i+1, len(row.ID), maxID)
		}
		if seen[row.ID] {
			return fmt.Errorf("tenant %q has two rows", row.ID)
		}
		seen[row.ID] = true
		if err := row.validate(row.name()); err != nil {
			return err
		}
		if row.weight() < light.weight() {
			light = row
		}
		if row.weight() > heavy.weight() {
			heavy = row
		}
	}
	if err := t.Others.validate("the other tenants"); err != nil {
		return err
	}
	if heavy.weight() > maxRatio*light.weight() {
		return fmt.Errorf("weight %v of %s is more than %.0e times weight %v of %s",
			heavy.weight(), heavy.name(), maxRatio, light.weight(), light.name())
	}
	return nil
}

func (t *Tenant) validate(who string) error {
	switch {
	case t.Weight != 0 && !(t.Weight >= minWeight && t.Weight <= maxWeight):
		return fmt.Errorf("weight %v of %s is out of range: %v to %v, or 0 for 1", t.Weight, who, minWeight, maxWeight)
	case t.MaxInUse < 0 || t.MaxInUse > limit.Max:
		return fmt.Errorf("max in use %d of %s is out of range: 1 to %d, or 0 for the limit", t.MaxInUse, who, limit.Max)
	case t.MaxQueue != 0 && !(t.MaxQueue > 0 && t.MaxQueue <= 1):
		return fmt.Errorf("max queue %v of %s is out of range: above 0 to 1, a part of the depth, or 0 for all of it", t.MaxQueue, who)
	case t.Highest > Background:
		return fmt.Errorf("highest priority %d of %s is unknown: Critical, Default, Sheddable or Background", t.Highest, who)
	}
	return t.Quota.validate("quota", " of "+who)
}

// name says which row it is, in a sentence.
func (t *Tenant) name() string {
	if t.ID == "" {
		return "the other tenants"
	}
	return fmt.Sprintf("tenant %q", t.ID)
}

// weight returns Weight with its default.
func (t *Tenant) weight() float64 {
	if t.Weight == 0 {
		return 1
	}
	return t.Weight
}

func (t *Tenants) buckets() int {
	if t.Buckets == 0 {
		return DefaultBuckets
	}
	return t.Buckets
}

func (t *Tenants) hand() int {
	if t.Hand == 0 {
		return min(DefaultHand, t.buckets())
	}
	return t.Hand
}

// Squished returns the probability that a quiet id without a row has all of its
// hand in the hands of the given number of ids that flood: those hands cover k of the
// buckets, and it is the mean of C(k, hand) / C(buckets, hand).
func (t *Tenants) Squished(floods int) float64 {
	n, hand := t.buckets(), t.hand()
	// covered[k] is the probability that the hands so far cover k buckets. One more
	// hand adds j new ones with the hypergeometric probability.
	covered := make([]float64, n+1)
	covered[0] = 1
	for range min(floods, 1<<12) { // beyond, everything is covered
		next := make([]float64, n+1)
		for k, p := range covered {
			for j := 0; j <= hand && k+j <= n && p > 0; j++ {
				next[k+j] += p * math.Exp(logChoose(n-k, j)+logChoose(k, hand-j)-logChoose(n, hand))
			}
		}
		covered = next
	}
	p := 0.0
	for k, q := range covered {
		p += q * math.Exp(logChoose(k, hand)-logChoose(n, hand))
	}
	return min(p, 1)
}

// logChoose returns ln C(n, k), minus infinity where there is no way.
func logChoose(n, k int) float64 {
	if k < 0 || k > n {
		return math.Inf(-1)
	}
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
