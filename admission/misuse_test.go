package admission

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// A driver that releases what it does not hold, or forgets that it has borrowed,
// has a bug that would otherwise show as a limit that drifts.
func TestMisusePanics(t *testing.T) {
	for name, misuse := range map[string]func(c *Core){
		"released twice": func(c *Core) {
			c.Offer(0, Request{Deadline: Never})
			c.Release(0, End{Outcome: Completed})
			c.Release(0, End{Outcome: Completed})
		},
		"released more cost than was admitted": func(c *Core) {
			c.Offer(0, Request{Deadline: Never})
			c.Release(0, End{Cost: 2, Outcome: Completed})
		},
		"released a probe twice": func(c *Core) {
			c.Offer(0, Request{Deadline: Never, Exempt: true})
			c.Release(0, End{Exempt: true})
			c.Release(0, End{Exempt: true})
		},
		"ended as rejected": func(c *Core) {
			c.Offer(0, Request{Deadline: Never})
			c.Release(0, End{Outcome: Rejected})
		},
		"offered while lent":  func(c *Core) { c.Lend(); c.Offer(0, Request{Deadline: Never}) },
		"observed while lent": func(c *Core) { c.Lend(); c.Observe(0, &Batch{}) },
		"counted while lent":  func(c *Core) { c.Lend(); c.Stats(0) },
		"settled out of thin air": func(c *Core) {
			n := c.Lend()
			c.Settle(0, Settlement{Free: n + 1})
		},
		"settled an end that did not run": func(c *Core) {
			n := c.Lend()
			s := Settlement{Free: n}
			s.Ended[Completed] = 1
			c.Settle(0, s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := benchCore(t, Config{Limit: limit.Fixed(4)})
			defer func() {
				if r := recover(); r == nil || !strings.HasPrefix(fmt.Sprint(r), "admission: ") {
					t.Errorf("recovered %v, want a panic of ours", r)
				}
			}()
			misuse(c)
		})
	}
}

// One sentence for each field that is out of range.
func TestValidate(t *testing.T) {
	ok := Config{Limit: limit.Fixed(4)}
	if err := ok.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, break1 := range map[string]func(*Config){
		"limit -1 is out of range":  func(c *Config) { c.Limit = limit.Fixed(-1) },
		"objective -1s is out":      func(c *Config) { c.Objective = -time.Second },
		"objective 1µs is out":      func(c *Config) { c.Objective = time.Microsecond },
		"objective 25h0m0s is out":  func(c *Config) { c.Objective = 25 * time.Hour },
		"service -1ns is out":       func(c *Config) { c.Service = -1 },
		"service 2s is longer than": func(c *Config) { c.Service = 2 * time.Second },
		"max wait 48h0m0s is out":   func(c *Config) { c.MaxWait = 48 * time.Hour },
		"percentile 0.1 is out":     func(c *Config) { c.Percentile = 0.1 },
		"percentile 99 is out":      func(c *Config) { c.Percentile = 99 },
		"depth -2 is out":           func(c *Config) { c.Depth = -2 },
		"max items -1 is out":       func(c *Config) { c.MaxItems = -1 },
		"max bytes -1 is out":       func(c *Config) { c.MaxBytes = -1 },
		"exempt 1025 is out":        func(c *Config) { c.Exempt = 1025 },
		"overflow 9 is unknown":     func(c *Config) { c.Overflow = 9 },
		"order 9 is unknown":        func(c *Config) { c.Order = 9 },
		"overflow block and no":     func(c *Config) { c.Overflow, c.Depth = Block, NoQueue },
	} {
		c := ok
		break1(&c)
		if _, err := New(c); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q...", err, want)
		}
	}
	c := benchCore(t, ok)
	if err := c.SetLimit(0, -1); err == nil || c.limit != 4 {
		t.Errorf("limit %d after SetLimit(-1): %v", c.limit, err)
	}
}

// brittle is a law whose Start panics, by pointer as well as by value.
type brittle struct{ n int }

func (brittle) Start() (int, error)        { panic("index 3 of 2") }
func (b brittle) Begin(uint64) limit.State { return limit.Fixed(b.n) }

// robust can do without the value that it points to.
type robust struct{}

func (*robust) Start() (int, error)      { return 7, nil }
func (*robust) Begin(uint64) limit.State { return limit.Fixed(7) }

// A law that cannot be asked where it starts is a sentence, not a panic: a nil pointer is
// no law, although it is no nil either.
func TestLawPanics(t *testing.T) {
	const nothing = " is nil: leave it out for limit.Auto{}, or say the law itself"
	for _, c := range []struct {
		law  limit.Law
		want string
	}{
		{(*limit.Auto)(nil), "limit *limit.Auto" + nothing},
		{(*limit.Fixed)(nil), "limit *limit.Fixed" + nothing},
		{(*limit.Vegas)(nil), "limit *limit.Vegas" + nothing},
		{(*brittle)(nil), "limit *admission.brittle" + nothing},
		{&brittle{}, "limit *admission.brittle panics when it is asked where it starts: index 3 of 2"},
		{brittle{}, "limit admission.brittle panics when it is asked where it starts: index 3 of 2"},
		{nil, ""},
		{&limit.Auto{}, ""},
		{(*robust)(nil), ""},
	} {
		got := ""
		if err := (Config{Limit: c.law}).Validate(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%T: %q, want %q", c.law, got, c.want)
		}
		if _, err := New(Config{Limit: c.law}); (err == nil) != (c.want == "") {
			t.Errorf("%T: New says %v", c.law, err)
		}
		if err := benchCore(t, Config{Limit: limit.Fixed(4)}).Reconfigure(0, Config{Limit: c.law}); (err == nil) != (c.want == "") {
			t.Errorf("%T: Reconfigure says %v", c.law, err)
		}
	}
}

// Every word prints, and values out of range say so.
func TestWords(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"default": Priority(0), "critical": Critical, "background": Background, "priority(9)": Priority(9),
		"pending": Pending, "abandoned": Abandoned, "outcome(9)": Outcome(9),
		"": None, "queue_full": QueueFull, "parent": Parent, "reason(99)": Reason(99),
		"displace": Displace, "block": Block, "overflow(9)": Overflow(9),
		"auto": Auto, "edf": EDF, "order(9)": Order(9),
	} {
		if got.String() != want {
			t.Errorf("%#v prints %q, want %q", got, got.String(), want)
		}
	}
	for r := range Reason(Reasons) {
		if (r.String() == "") != (r == None) || (r.Outcome() == Pending) != (r == None) {
			t.Errorf("reason %d: %q, %v", r, r, r.Outcome())
		}
		if r.RetryCanWin() && r.Outcome() != Rejected {
			t.Errorf("a retry can win after %v", r)
		}
	}
}

// I9: the same calls give the same decisions and the same Stats, to the last bit
// of the load, in one process one after the other.
func TestSameCallsSameStats(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	play := func() (all []Stats) {
		rng := rand.New(rand.NewPCG(seed, 0))
		for range 10 {
			d, err := newDuel(rng.IntN)
			if err != nil {
				t.Fatal(err)
			}
			for range 500 {
				if err := d.step(); err != nil {
					t.Fatal(err)
				}
				all = append(all, d.core.Stats(d.now))
			}
		}
		return all
	}
	a, b := play(), play()
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("after %d calls:\n%+v\n%+v", i+1, a[i], b[i])
		}
	}
}

// Requests that were admitted on lent slots are learnt late; the load counts them
// as if they had been seen. 1 % is for the bin that is not full yet.
func TestLentArrivalsCountInTheLoad(t *testing.T) {
	for _, every := range []time.Duration{10 * ms, 50 * ms, 70 * ms, 130 * ms, 500 * ms} {
		c := benchCore(t, Config{Limit: limit.Fixed(60), Service: 50 * ms})
		now := time.Duration(0)
		for now < 10*time.Second {
			n := c.Lend()
			now += every
			s := Settlement{Free: n, Admitted: int64(every / ms)} // 1000 a second, of 1200
			s.Ended[Completed] = s.Admitted
			c.Settle(now, s)
		}
		if load := c.Stats(now).Load; load < 0.99*1000/1200 || load > 1.01*1000/1200 {
			t.Errorf("settled every %v: load %.3f, want %.3f", every, load, 1000.0/1200)
		}
	}
}

// A queue of one place in which each newcomer displaces the last has never been
// empty: it stays what it is, a queue that stands.
func TestDisplacingKeepsTheOrder(t *testing.T) {
	c := benchCore(t, Config{Limit: limit.Fixed(1), Service: 50 * ms, Depth: 1, MaxWait: time.Hour})
	c.Offer(0, Request{Deadline: Never})
	for now := time.Duration(0); now <= time.Second; now += 10 * ms {
		c.Offer(now, Request{Deadline: Never})
	}
	if c.order != NewestFirst || c.stood != 0 || c.waiting != 1 {
		t.Errorf("%v, standing since %v, %d waiting", c.order, c.stood, c.waiting)
	}
	if n := c.counts.refusals[Displaced]; n == 0 {
		t.Error("nobody was displaced")
	}
}
