package goodput

import (
	"fmt"
	"slices"
	"time"
	"unicode"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// DefaultName is the name of a limiter that was given none.
const DefaultName = "default"

// maxName keeps a name fit for a log line and a metric label.
const maxName = 128

// A Config describes one limiter. The zero value of each field means its
// documented default; nothing means unlimited. Most callers set Objective, and Limit
// where the size of the resource is known, and nothing else.
type Config struct {
	// Name names the limiter in refusals, logs and metrics: at most 128 bytes
	// and no control characters. Default "default".
	Name string

	// Limit is the law of the limit, in units of cost: limit.Fixed(60) for a
	// resource whose size is known and stays. Default limit.Auto{}, which finds it.
	Limit limit.Law

	// Pressure is an extra brake for a service whose bottleneck is the processor: a law
	// that adapts does not raise the limit from a level of 0.8 on and lowers it beyond 1.
	// See package pressure, which says as well when not to use it. Where it has nothing to
	// say the limiter goes on without, and Stats and Explain say that. A fixed limit, and one
	// that a group grants, stays and shows the level. nil, the default, for none.
	Pressure Signal

	// Allowance is a rate of cost, with a burst, that all requests together may have
	// beside the limit: for somebody else's API that takes so many calls per second. It
	// is full at first. Who is over it waits in the queue, which is as deep as the lower
	// of the two rates serves within the objective; a request that costs more than the
	// burst is refused as too costly. Rate: 1e-6 to 1e9 units per second, Burst: 1 to 1e9,
	// default one second of the rate. Default none. With it every request meets the core.
	// Exempt requests are outside it, as they are outside the limit.
	//
	// Set it a little below what the other side grants: it counts when a call begins, and
	// there when it arrives. A burst of 1 spaces calls evenly, and then what a timer is late
	// by is lost, up to a millisecond: 2 % at 100 per second, 9 % at 1,000, nearly all at
	// 100,000. From a burst of 2 + Rate/200 on all of it is used: see
	// BenchmarkAllowanceHandOff. An objective shorter than 1/Rate lets nobody wait. It is not
	// for the plans of your own callers: that is what ExampleConfig_allowance says.
	Allowance Quota

	// Objective is the latency, from arrival to end, that the Percentile of the
	// requests that got a slot must meet. It sizes the queue; it is not a
	// deadline. 1 ms to 24 h, default 1 s.
	Objective time.Duration

	// Percentile belongs to Objective: 0.5 to 0.999, default 0.99.
	Percentile float64

	// Service is the mean service time that somebody measured or declared. It
	// is the prior until there are samples, and measured times more than 25 %
	// away from it are flagged. 0 declares nothing.
	Service time.Duration

	// Depth fixes the queue, in units of cost: NoQueue, or 1 to 2^24. 0, the
	// default, derives it from the objective and the measured service times. Do
	// not set it without a reason: a fixed depth is right for one service time.
	Depth int

	// MaxItems caps how many requests wait: 1 to 2^24, default 65,536.
	MaxItems int

	// MaxBytes caps the bytes of request bodies held in memory by those that
	// wait, the sum of their Work.Bytes: 1 to 2^50, default 64 MiB.
	MaxBytes int64

	// MaxWait bounds the wait of a request without a deadline: 1 ms to 24 h,
	// default Objective.
	MaxWait time.Duration

	// MaxAbsence bounds how long a request waits while there is nothing to run it on, as
	// Limiter.SetPresent has said; its deadline and MaxWait bound that wait as well. 1 ms to
	// 24 h, default 1 s. Without SetPresent it has no effect.
	MaxAbsence time.Duration

	// Overflow says what happens when the queue is full. Default Displace. Under
	// LatestOnly as well a queue that is full of the keys of others refuses the newest, if
	// nobody there ranks below it.
	Overflow Overflow

	// Order fixes the order of the queue. Default Auto.
	Order Order

	// Durable says that work which was accepted must not be lost to make room:
	// Overflow is then Block or RefuseNewest, and anything else an error. It is about
	// newcomers: Reconfigure with a lower MaxItems or MaxBytes still drops the last of
	// those that wait, and SetLimit, or a MaxInUse, below what one of them costs drops
	// that one, which could never run. Deadlines, MaxWait and callers that leave end what
	// waits, as always.
	Durable bool

	// Tenants shares the limit between those who send requests, by Work.Tenant or
	// WithTenant. nil, the default, treats all as one. With it every request meets
	// the core, which costs about 0.3 µs more than a free slot without it. Its fields:
	// go doc github.com/goodput/goodput/admission Tenants, and Tenant.
	Tenants *Tenants

	// Reserve is the part of what is granted that is left to each priority while those
	// above it want all: 0 to 1 each. Default none. With it every request meets the core.
	// Its fields: go doc github.com/goodput/goodput/admission Reserve.
	Reserve Reserve

	// Exempt caps the exempt requests in flight: 1 to 1024, default 8.
	Exempt int

	// Observe decides and counts but refuses nothing: every request runs at
	// once, and Stats.Shadow says what would have become of it. This is how to
	// try a configuration on real traffic, and Limiter.SetObserve, which switches it
	// while everything goes on, is how to take a limiter out of the way in an incident.
	// A member of a group does not observe.
	//
	// A limit cannot be found by watching alone: service times that do not follow from a
	// limit say nothing about one. So a law that adapts is held: it is not asked, and the
	// limit stays where it is, which is its start if the limiter has never done anything
	// else. What is counted is what that limit would do. Try one that is known.
	Observe bool
}

// Validate returns one sentence about the first field that is out of range or
// contradicts another, or nil.
func (c Config) Validate() error {
	if len(c.Name) > maxName {
		return fmt.Errorf("name of %d bytes is too long: at most %d", len(c.Name), maxName)
	}
	for _, r := range c.Name {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return fmt.Errorf("name %q has a character that cannot be printed", c.Name)
		}
	}
	if err := validSignal(c.Pressure); err != nil {
		return err
	}
	return c.core().Validate()
}

// core returns the part that the core decides with.
func (c Config) core() admission.Config {
	if c.Limit == nil {
		c.Limit = limit.Auto{}
	}
	return admission.Config{
		Limit:      c.Limit,
		Allowance:  c.Allowance,
		Objective:  c.Objective,
		Percentile: c.Percentile,
		Service:    c.Service,
		Depth:      c.Depth,
		MaxItems:   c.MaxItems,
		MaxBytes:   c.MaxBytes,
		MaxWait:    c.MaxWait,
		MaxAbsence: c.MaxAbsence,
		Overflow:   c.Overflow,
		Order:      c.Order,
		Exempt:     c.Exempt,
		Durable:    c.Durable,
		Tenants:    c.Tenants,
		Reserve:    c.Reserve,
	}
}

// seeded is core with the seed of a limiter.
func (c Config) seeded(seed uint64) admission.Config {
	core := c.core()
	core.Seed = seed
	return core
}

// own returns c with tenants that nobody else can change.
func (c Config) own() Config {
	if c.Tenants != nil {
		t := *c.Tenants
		t.Rows = slices.Clone(t.Rows)
		c.Tenants = &t
	}
	return c
}

// settings is a valid Config and what follows from it. It is immutable: a
// change swaps the pointer to it, so the fast path reads it without a lock.
type settings struct {
	cfg       Config
	rows      map[string]int // tenants with a row: the index in cfg.Tenants.Rows
	objective time.Duration  // with its default
	maxBytes  int64          // with its default
	window    time.Duration  // between two calls of Observe
	pressure  *gauge         // of cfg.Pressure, nil without it
}

func newSettings(cfg Config) *settings {
	if cfg.Name == "" {
		cfg.Name = DefaultName
	}
	cfg = cfg.own()
	d := cfg.core().WithDefaults()
	cfg.Limit = d.Limit
	var rows map[string]int
	if t := cfg.Tenants; t != nil {
		rows = make(map[string]int, len(t.Rows))
		for i := range t.Rows {
			rows[t.Rows[i].ID] = i
		}
	}
	return &settings{
		cfg:       cfg,
		rows:      rows,
		objective: d.Objective,
		maxBytes:  d.MaxBytes,
		pressure:  newGauge(cfg.Pressure),
		window:    d.Window(),
	}
}
