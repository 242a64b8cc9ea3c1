package admission

import (
	"fmt"
	"time"

	"github.com/goodput/goodput/limit"
)

// Defaults, for the fields of Config that are zero.
const (
	DefaultObjective  = time.Second
	DefaultPercentile = 0.99
	DefaultMaxItems   = 1 << 16  // 65,536 waiters of about 0.5 KiB and a goroutine: 200 MB at the most
	DefaultMaxBytes   = 64 << 20 // 64 MiB of request bodies
	DefaultExempt     = 8        // probes in flight: a kubelet, a balancer and a person or two

	// NoQueue as Config.Depth says that nobody may wait.
	NoQueue = -1

	// MaxObjective bounds every duration of a Config: arithmetic on a day of
	// nanoseconds is far from overflow, and no caller waits longer.
	MaxObjective = 24 * time.Hour
	minObjective = time.Millisecond
	maxItems     = 1 << 24
	maxBytes     = 1 << 50
)

// A Config describes one limiter. The zero value of each field means its
// default; nothing means unlimited.
type Config struct {
	// Limit is the law of the limit. Default limit.Auto{}, which finds it.
	Limit limit.Law

	// Seed is what is random in the law follows from: the instances of a service should
	// have different ones. It is looked at when a law begins.
	Seed uint64

	// Allowance is a rate of cost that all requests together may have, beside the
	// limit: for somebody else's API that takes so many calls per second. Who is over it
	// waits in the queue, with all that the queue has. A request that costs more than
	// the burst is refused as too costly. Default none.
	Allowance Quota

	// Objective is the latency, from arrival to end, that the Percentile of
	// the requests that got a slot must meet. It sizes the queue; it is not a
	// deadline. 1 ms to 24 h, default 1 s.
	Objective time.Duration

	// Percentile belongs to Objective: 0.5 to 0.999, default 0.99.
	Percentile float64

	// Service is the mean service time that somebody measured or declared. It
	// is the prior until there are samples, and measured times more than 25 %
	// away from it are flagged. 0 declares nothing; the prior is then
	// Objective/10.
	Service time.Duration

	// Depth fixes the queue, in cost units: NoQueue, or 1 to 2^24. 0, the
	// default, derives it from the objective and the measured service times.
	Depth int

	// MaxItems caps how many requests wait, whatever they cost: 1 to 2^24,
	// default 65,536.
	MaxItems int

	// MaxBytes caps the bytes of request bodies held in memory by those that
	// wait: 1 to 2^50, default 64 MiB.
	MaxBytes int64

	// MaxWait bounds the wait of a request without a deadline: 1 ms to 24 h,
	// default Objective.
	MaxWait time.Duration

	// MaxAbsence bounds how long a request waits while there is nothing to run it on: see
	// SetPresent. What bounds every wait holds as well: its deadline, or MaxWait. 1 ms to
	// 24 h, default 1 s.
	MaxAbsence time.Duration

	// Overflow says what happens when the queue is full. Default Displace.
	Overflow Overflow

	// Order fixes the order. Default Auto.
	Order Order

	// Durable says that work which was accepted must not be lost to make room: the
	// overflow is then Block or RefuseNewest.
	Durable bool

	// Tenants shares the limit between those who send requests; nil treats all as
	// one.
	Tenants *Tenants

	// Reserve is the part of what is granted that is left to each priority while those
	// above it want all. Default none.
	Reserve Reserve

	// Exempt caps the exempt requests in flight: 1 to 1024, default 8.
	Exempt int
}

// Validate returns one sentence about the first field that is out of range or
// contradicts another, or nil.
func (c Config) Validate() error {
	if c.Limit == nil {
		c.Limit = limit.Auto{}
	}
	if !isComparable(c.Limit) {
		return fmt.Errorf("limit %T cannot be compared with ==: a law must not hold slices, maps or functions", c.Limit)
	}
	if err := startable(c.Limit); err != nil {
		return err
	}
	for _, d := range []struct {
		name string
		v    time.Duration
	}{{"objective", c.Objective}, {"service", c.Service}, {"max wait", c.MaxWait}, {"max absence", c.MaxAbsence}} {
		if d.v != 0 && (d.v < 0 || d.v > MaxObjective) {
			return fmt.Errorf("%s %v is out of range: 1ms to 24h, or 0 for the default", d.name, d.v)
		}
		if d.v != 0 && d.v < minObjective && d.name != "service" {
			return fmt.Errorf("%s %v is out of range: 1ms to 24h, or 0 for the default", d.name, d.v)
		}
	}
	if c.Percentile != 0 && !(c.Percentile >= 0.5 && c.Percentile <= 0.999) {
		return fmt.Errorf("percentile %v is out of range: 0.5 to 0.999, or 0 for 0.99", c.Percentile)
	}
	if c.Depth != 0 && c.Depth != NoQueue && (c.Depth < 0 || c.Depth > maxItems) {
		return fmt.Errorf("depth %d is out of range: 1 to %d, NoQueue, or 0 to derive it", c.Depth, maxItems)
	}
	if c.MaxItems < 0 || c.MaxItems > maxItems {
		return fmt.Errorf("max items %d is out of range: 1 to %d, or 0 for %d", c.MaxItems, maxItems, DefaultMaxItems)
	}
	if c.MaxBytes < 0 || c.MaxBytes > maxBytes {
		return fmt.Errorf("max bytes %d is out of range: 1 to %d, or 0 for %d", c.MaxBytes, int64(maxBytes), DefaultMaxBytes)
	}
	if c.Exempt < 0 || c.Exempt > 1024 {
		return fmt.Errorf("exempt %d is out of range: 1 to 1024, or 0 for %d", c.Exempt, DefaultExempt)
	}
	if c.Overflow > LatestOnly {
		return fmt.Errorf("overflow %d is unknown: Displace, RefuseNewest, EvictOldest, Block or LatestOnly", c.Overflow)
	}
	if c.Order > EDF {
		return fmt.Errorf("order %d is unknown: Auto, FIFO, NewestFirst or EDF", c.Order)
	}
	if c.Overflow == Block && c.Depth == NoQueue {
		return fmt.Errorf("overflow block and no queue contradict each other: who blocks waits in the queue")
	}
	if c.Durable && c.Overflow != Block && c.Overflow != RefuseNewest {
		return fmt.Errorf("overflow %s and durable contradict each other: what was accepted would be lost; block and refuse_newest lose nothing", c.Overflow)
	}
	if err := c.Allowance.validate("allowance", ""); err != nil {
		return err
	}
	if err := c.Reserve.validate(); err != nil {
		return err
	}
	if err := c.Tenants.validate(); err != nil {
		return err
	}
	c = c.WithDefaults()
	if c.Service > c.Objective {
		return fmt.Errorf("service %v is longer than objective %v: nothing could meet it", c.Service, c.Objective)
	}
	return nil
}

// WithDefaults returns c with every zero field set to its default.
func (c Config) WithDefaults() Config {
	if c.Limit == nil {
		c.Limit = limit.Auto{}
	}
	def(&c.Objective, DefaultObjective)
	def(&c.Percentile, DefaultPercentile)
	def(&c.MaxItems, DefaultMaxItems)
	def(&c.MaxBytes, DefaultMaxBytes)
	def(&c.MaxWait, c.Objective)
	def(&c.MaxAbsence, DefaultMaxAbsence)
	def(&c.Exempt, DefaultExempt)
	return c
}

// Window returns how often a driver calls Observe: eight times in an objective, so that a change
// of the service time is seen well before somebody who is admitted under the old one is late. But
// no more often than each 5 ms, which keeps the cost of a window (a few µs) below 0.1 % of a
// core, and no less often than each 100 ms, beyond which a dashboard would look frozen.
func (c Config) Window() time.Duration {
	return min(max(c.WithDefaults().Objective/8, 5*time.Millisecond), 100*time.Millisecond)
}

// isComparable reports whether laws of this kind can be compared: Reconfigure
// does, to see whether it has changed.
func isComparable(law limit.Law) (ok bool) {
	defer func() { ok = recover() == nil }()
	same := law
	return law == same
}

// startable returns what a law says about its own constants. One that panics instead, as a
// nil pointer to a law does, is a sentence, too.
func startable(law limit.Law) (err error) {
	defer func() {
		switch r := recover(); {
		case r == nil:
		case fmt.Sprintf("%p", law) == "0x0": // %p is for pointers alone, and calls no method
			err = fmt.Errorf("limit %T is nil: leave it out for limit.Auto{}, or say the law itself", law)
		default:
			err = fmt.Errorf("limit %T panics when it is asked where it starts: %v", law, r)
		}
	}()
	_, err = law.Start()
	return err
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
