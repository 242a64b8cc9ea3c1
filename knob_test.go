package goodput

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// A crowd is a limiter whose slots are all held, and those that wait before it.
type crowd struct {
	t   *testing.T
	l   *Limiter
	ctx context.Context // of those that wait
}

// wait has one more wait, or be refused.
func (c *crowd) wait(n int, w Work) {
	for range n {
		go func() {
			if slot, err := c.l.AcquireWork(c.ctx, w); err == nil {
				slot.Release()
			}
		}()
		synctest.Wait()
	}
}

// ask asks for a second at the most, and returns what it was told.
func (c *crowd) ask(ctx context.Context, w Work) error {
	done := make(chan error, 1)
	go func() {
		slot, err := c.l.AcquireWork(ctx, w)
		if err == nil {
			slot.Release()
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Second):
		return nil // it waits
	}
}

// busy offers so many a second for 10 s, of 50 ms each, and returns what the last was told at the door.
func (c *crowd) busy(perSecond int) (err error) {
	for range 10 * perSecond {
		told := c.l.Go(c.ctx, Work{}, func(slot *Slot, err error) {
			if err == nil {
				time.Sleep(50 * time.Millisecond)
				slot.Release()
			}
		})
		if told != nil {
			err = told
		}
		time.Sleep(time.Second / time.Duration(perSecond))
	}
	return err
}

// knobCases provoke each reason. Turned, the knob is another one, and so is the decision.
var knobCases = []struct {
	name   string
	cfg    Config
	turned func(cfg *Config) // nil: no setting decides, and the story knows
	story  func(c *crowd, turned bool) error
	reason Reason
	knob   string // a regular expression
}{
	{
		"objective",
		Config{Service: 50 * time.Millisecond, Objective: time.Second},
		func(cfg *Config) { cfg.Objective = time.Minute },
		func(c *crowd, _ bool) error { c.wait(60, Work{}); return c.ask(c.ctx, Work{}) },
		QueueFull, `Objective 1s at a limit of 2 \(\d\d may wait\)`,
	},
	{
		"standing overload",
		Config{Limit: limit.Fixed(4), Service: 50 * time.Millisecond, Objective: time.Second},
		func(cfg *Config) { cfg.Limit = limit.Fixed(40) },
		func(c *crowd, _ bool) error { return c.busy(240) },
		QueueFull, `Objective 1s at a limit of 4, in a standing overload \(\d of \d\d may wait\)`,
	},
	{
		"depth",
		Config{Depth: 3},
		func(cfg *Config) { cfg.Depth = 30 },
		func(c *crowd, _ bool) error { c.wait(4, Work{}); return c.ask(c.ctx, Work{}) },
		QueueFull, `Depth 3`,
	},
	{
		"no queue",
		Config{Depth: NoQueue},
		func(cfg *Config) { cfg.Depth = 1 },
		func(c *crowd, _ bool) error { return c.ask(c.ctx, Work{}) },
		QueueFull, `Depth none`,
	},
	{
		"max items",
		Config{Depth: 30, MaxItems: 3},
		func(cfg *Config) { cfg.MaxItems = 30 },
		func(c *crowd, _ bool) error { c.wait(4, Work{}); return c.ask(c.ctx, Work{}) },
		QueueFull, `MaxItems 3`,
	},
	{
		"a tenant's part",
		Config{Depth: 30, Tenants: &Tenants{Rows: []Tenant{{ID: "a", MaxQueue: 0.1}}}},
		func(cfg *Config) { cfg.Tenants = &Tenants{Rows: []Tenant{{ID: "a"}}} },
		func(c *crowd, _ bool) error {
			c.wait(1, Work{Tenant: "b"})
			c.wait(4, Work{Tenant: "a"})
			return c.ask(c.ctx, Work{Tenant: "a"})
		},
		QueueFull, `its tenant's part of Depth 30`,
	},
	{
		"allowance",
		Config{Allowance: Quota{Rate: 10, Burst: 2}, Limit: limit.Fixed(100), Service: time.Millisecond, Objective: time.Second},
		func(cfg *Config) { cfg.Allowance = Quota{} },
		func(c *crowd, _ bool) error { c.wait(12, Work{}); return c.ask(c.ctx, Work{}) },
		QueueFull, `Objective 1s at an Allowance of 10/s \(\d may wait\)`,
	},
	{
		"who would not wait",
		Config{Depth: 9},
		nil,
		func(c *crowd, turned bool) error {
			if turned {
				return c.ask(c.ctx, Work{})
			}
			c.l.TryAcquireWork(c.ctx, Work{})
			return c.l.Refused()[0].Rejection
		},
		QueueFull, `the caller, who would not wait`,
	},
	{
		"max bytes",
		Config{Depth: 9, MaxBytes: 3 << 19},
		func(cfg *Config) { cfg.MaxBytes = 2 << 20 },
		func(c *crowd, _ bool) error {
			c.wait(1, Work{Bytes: 1 << 20})
			return c.ask(c.ctx, Work{Bytes: 1 << 20})
		},
		BytesFull, `MaxBytes 1.5 MiB`,
	},
	{
		"too large",
		Config{Depth: 9, MaxBytes: 100},
		func(cfg *Config) { cfg.MaxBytes = 101 },
		func(c *crowd, _ bool) error { return c.ask(c.ctx, Work{Bytes: 101}) },
		TooLarge, `MaxBytes 100 B, of which it has 101 B`,
	},
	{
		"too costly",
		Config{Depth: 9},
		func(cfg *Config) { cfg.Limit = limit.Fixed(3) },
		func(c *crowd, _ bool) error { return c.ask(c.ctx, Work{Cost: 3}) },
		TooCostly, `the limit of 2 \(it costs 3\)`,
	},
	{
		"more than the burst",
		Config{Limit: limit.Fixed(9), Allowance: Quota{Rate: 10, Burst: 4}},
		func(cfg *Config) { cfg.Allowance.Burst = 15 },
		func(c *crowd, _ bool) error { return c.ask(c.ctx, Work{Cost: 5}) },
		TooCostly, `the burst of the Allowance, 4 \(it costs 5\)`,
	},
	{
		"more than its tenant may have",
		Config{Limit: limit.Fixed(9), Tenants: &Tenants{Others: Tenant{MaxInUse: 2}}},
		func(cfg *Config) { cfg.Tenants = nil },
		func(c *crowd, _ bool) error { return c.ask(c.ctx, Work{Cost: 3}) },
		TooCostly, `the MaxInUse or the quota of its tenant \(it costs 3\)`,
	},
	{
		"no budget",
		Config{Depth: 9, Service: 50 * time.Millisecond},
		nil,
		func(c *crowd, turned bool) error {
			left := 60 * time.Millisecond
			if turned {
				left = time.Minute
			}
			ctx, cancel := context.WithTimeout(c.ctx, left)
			defer cancel()
			c.wait(3, Work{})
			return c.ask(ctx, Work{})
		},
		NoBudget, `the caller's deadline \(60ms left\)`,
	},
	{
		"quota",
		Config{Depth: 9, Tenants: &Tenants{Rows: []Tenant{{ID: "a", Quota: Quota{Rate: 0.5, Burst: 1}}}}},
		func(cfg *Config) { cfg.Tenants = &Tenants{Rows: []Tenant{{ID: "a", Quota: Quota{Rate: 5, Burst: 10}}}} },
		func(c *crowd, _ bool) error { c.wait(1, Work{Tenant: "a"}); return c.ask(c.ctx, Work{Tenant: "a"}) },
		OverQuota, `tenant quota 0.5/s, burst 1`,
	},
	{
		"shed",
		Config{Depth: 1},
		nil,
		func(c *crowd, turned bool) error {
			w := Work{Priority: Background}
			if turned {
				w.Priority = Critical
			}
			c.wait(1, Work{})
			return c.ask(c.ctx, w)
		},
		Shed, `Priority, where the queue is full by Depth 1`,
	},
	{
		"displaced",
		Config{Depth: 1},
		nil,
		func(c *crowd, turned bool) error {
			time.AfterFunc(10*time.Millisecond, func() {
				if !turned {
					c.wait(1, Work{Priority: Critical})
				}
			})
			return c.ask(c.ctx, Work{})
		},
		Displaced, `Priority, where the queue is full by Depth 1`,
	},
	{
		"displaced by a tenant with less than its share",
		Config{Depth: 2, Tenants: &Tenants{Rows: []Tenant{{ID: "a"}, {ID: "b"}}}},
		nil,
		func(c *crowd, turned bool) error {
			time.AfterFunc(10*time.Millisecond, func() {
				if !turned {
					c.wait(1, Work{Tenant: "b"})
				}
			})
			c.wait(1, Work{Tenant: "a"})
			return c.ask(c.ctx, Work{Tenant: "a"})
		},
		Displaced, `the shares of tenants, where the queue is full by Depth 2`,
	},
	{
		"displaced by a younger one",
		Config{Depth: 1, Order: NewestFirst},
		func(cfg *Config) { cfg.Order = FIFO },
		func(c *crowd, _ bool) error {
			time.AfterFunc(10*time.Millisecond, func() { c.wait(1, Work{}) })
			return c.ask(c.ctx, Work{})
		},
		Displaced, `newest first, the order in force, where the queue is full by Depth 1`,
	},
	{
		"a retry that was displaced",
		Config{Depth: 1},
		nil,
		func(c *crowd, turned bool) error {
			attempt := 2
			if turned {
				attempt = 1
			}
			time.AfterFunc(10*time.Millisecond, func() { c.wait(1, Work{}) })
			return c.ask(c.ctx, Work{Attempt: attempt})
		},
		Displaced, `first attempts before retries, where the queue is full by Depth 1`,
	},
	{
		"the oldest",
		Config{Depth: 1, Overflow: EvictOldest},
		func(cfg *Config) { cfg.Overflow = RefuseNewest },
		func(c *crowd, _ bool) error {
			time.AfterFunc(10*time.Millisecond, func() { c.wait(1, Work{}) })
			return c.ask(c.ctx, Work{})
		},
		Displaced, `Overflow evict_oldest, where the queue is full by Depth 1`,
	},
	{
		"replaced",
		Config{Depth: 3, Overflow: LatestOnly},
		func(cfg *Config) { cfg.Overflow = Displace },
		func(c *crowd, _ bool) error {
			time.AfterFunc(10*time.Millisecond, func() { c.wait(1, Work{Key: "k"}) })
			return c.ask(c.ctx, Work{Key: "k"})
		},
		Replaced, `Overflow latest_only`,
	},
	{
		"max wait",
		Config{Depth: 3, MaxWait: 20 * time.Millisecond},
		func(cfg *Config) { cfg.MaxWait = time.Hour },
		func(c *crowd, _ bool) error { return c.ask(c.ctx, Work{}) },
		WaitBound, `MaxWait 20ms`,
	},
	{
		"max wait by default",
		Config{Depth: 3, Objective: 30 * time.Millisecond},
		func(cfg *Config) { cfg.MaxWait = time.Hour },
		func(c *crowd, _ bool) error { return c.ask(c.ctx, Work{}) },
		WaitBound, `MaxWait 30ms, which is the Objective`,
	},
	{
		"absent",
		Config{Depth: 3, MaxAbsence: 20 * time.Millisecond},
		func(cfg *Config) { cfg.MaxAbsence = time.Hour },
		func(c *crowd, _ bool) error { c.l.SetPresent(false); return c.ask(c.ctx, Work{}) },
		Unavailable, `MaxAbsence 20ms`,
	},
	{
		"a pause",
		Config{Limit: limit.Fixed(0), Depth: NoQueue},
		func(cfg *Config) { cfg.Limit = limit.Fixed(3) },
		func(c *crowd, _ bool) error { return c.ask(c.ctx, Work{}) },
		Unavailable, `the limit of 0, a pause`,
	},
	{
		"draining",
		Config{Depth: 3},
		nil,
		func(c *crowd, turned bool) error {
			if !turned {
				go func() { _ = c.l.Drain(c.ctx) }()
				synctest.Wait()
			}
			return c.ask(c.ctx, Work{})
		},
		Draining, `Drain`,
	},
	{
		"deadline",
		Config{Depth: 3},
		nil,
		func(c *crowd, turned bool) error {
			left := -time.Second
			if turned {
				left = time.Minute
			}
			ctx, cancel := context.WithTimeout(c.ctx, left)
			defer cancel()
			return c.ask(ctx, Work{})
		},
		Deadline, `the caller's deadline`,
	},
	{
		"doomed",
		Config{Depth: 3, Service: 10 * time.Millisecond, Objective: time.Second},
		nil,
		func(c *crowd, turned bool) error {
			left := 200 * time.Millisecond
			if turned {
				left = time.Minute
			}
			ctx, cancel := context.WithTimeout(c.ctx, left)
			defer cancel()
			return c.ask(ctx, Work{})
		},
		Doomed, `the caller's deadline, which leaves less than the service of \d+(\.\d+)?ms`,
	},
	{
		"client",
		Config{Depth: 3},
		nil,
		func(c *crowd, turned bool) error {
			ctx, cancel := context.WithCancel(c.ctx)
			defer cancel()
			if !turned {
				cancel()
			}
			return c.ask(ctx, Work{})
		},
		Client, `the caller`,
	},
	{
		"parent",
		Config{Depth: 3},
		nil,
		func(c *crowd, turned bool) error {
			ctx, cancel := context.WithCancelCause(c.ctx)
			defer cancel(nil)
			if !turned {
				time.AfterFunc(time.Millisecond, func() { cancel(errors.New("deploy")) })
			}
			return c.ask(ctx, Work{})
		},
		Parent, `the caller`,
	},
}

// F35: which knob decided. Each reason is provoked, says its knob, and with that turned the
// decision is another one.
func TestKnobThatDecided(t *testing.T) {
	seen := map[Reason]bool{None: true}
	for _, c := range knobCases {
		t.Run(c.name, func(t *testing.T) {
			seen[c.reason] = true
			for _, turned := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					cfg := c.cfg
					if cfg.Limit == nil {
						cfg.Limit = limit.Fixed(2)
					}
					if turned && c.turned != nil {
						c.turned(&cfg)
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer time.Sleep(time.Minute) // until all have ended
					defer cancel()
					l := New(cfg)
					if c.cfg.Limit == nil { // else the story makes it busy
						for {
							slot, ok := l.TryAcquire()
							if !ok {
								break
							}
							defer slot.Release()
						}
						l.refused = refused{} // of who tried
						clear(l.refusals[:])
					}
					err := c.story(&crowd{t, l, ctx}, turned)
					var r *Rejection
					is := errors.As(err, &r) && r.Reason == c.reason
					switch {
					case turned && is:
						t.Errorf("with the knob turned: %v, %s", err, r.Knob())
					case turned:
					case !is:
						t.Errorf("told %v, want %v", err, c.reason)
					default:
						want := regexp.MustCompile("^" + c.knob + "$")
						if got := r.Knob(); !want.MatchString(got) {
							t.Errorf("knob %q, want %s", got, want)
						}
						if kept := l.Refused()[0]; kept.Reason != r.Reason || !want.MatchString(kept.Knob()) || kept.Waited != r.Waited {
							t.Errorf("kept: %v, %q, waited %v; told after %v", kept.Reason, kept.Knob(), kept.Waited, r.Waited)
						}
						if bare := (&Rejection{Reason: r.Reason}).Knob(); bare == "" {
							t.Errorf("a value of no limiter has no words for %v", r.Reason)
						}
					}
				})
			}
		})
	}
	for r := range Reason(len(sentences)) {
		if !seen[r] {
			t.Errorf("nobody was refused as %v", r)
		}
	}
}
