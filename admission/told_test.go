package admission

import (
	"math"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// A marker is a law of three slots that keeps what it is told and begins an epoch each time.
type marker struct{ told *limit.Window }

func (marker) Start() (int, error)        { return 3, nil }
func (m marker) Begin(uint64) limit.State { return m }
func (marker) Why() string                { return "" }
func (m marker) Next(current int, w *limit.Window) limit.Move {
	*m.told = *w
	return limit.Move{Limit: current, Mark: true}
}

// All that a law is told, at instants that one can follow: three slots; in the first epoch, of 100 ms, a
// request of cost 1 at 10 ms, one of cost 2 at 20 ms, and one at 30 ms that has to wait. Before the
// second window, of 100 ms, the first ends at 110 ms, of whose 100 ms it was 40 downstream, the
// second is abandoned at 140 ms, and the third gets its slot in between.
func TestWhatALawIsTold(t *testing.T) {
	var told limit.Window
	c, err := New(Config{Limit: marker{&told}, Objective: 800 * ms, Order: FIFO})
	if err != nil {
		t.Fatal(err)
	}
	offer := func(at time.Duration, cost int, want Verdict) {
		t.Helper()
		if d := c.Offer(at, Request{Arrival: at, Deadline: Never, Cost: cost}); d.Verdict != want {
			t.Fatalf("cost %d at %v: %v, want %v", cost, at, d.Verdict, want)
		}
	}
	first := c.Epoch()
	offer(10*ms, 1, Admitted)
	offer(20*ms, 2, Admitted)
	offer(30*ms, 1, Queued)
	var b Batch
	b.Pressure = 0.5
	c.Observe(100*ms, &b)
	want := limit.Window{
		Length: 100 * ms, Objective: 800 * ms, Arrived: 4, Delayed: 1, Peak: 3, Running: 3, Waiting: 1, Costliest: 2,
		Quiet: 90 * ms, Pressure: 0.5,
		Epochs: [2]limit.Epoch{{
			Length: 100 * ms, Age: 50 * ms, Admitted: 3, InFlight: (1*1 + 2*3) / 3.0, Arrived: 4, Delayed: 1,
		}, {Age: 100 * ms}}, // there was none before it
	}
	compare(t, "the first window", &told, &want)
	if told.Times != nil {
		t.Error("service times, and nothing has ended")
	}

	second := c.Epoch()
	if second == first {
		t.Fatal("the mark began no epoch")
	}
	b.Reset()
	b.AddSample(Sample{Service: 100 * ms, Hold: 100 * ms, Elsewhere: 40 * ms, Cost: 1, Epoch: first})
	c.Release(110*ms, End{Cost: 1, Outcome: Completed})
	b.AddSample(Sample{Hold: 120 * ms, Cost: 2, Epoch: first, Abandoned: true})
	c.Release(140*ms, End{Cost: 2, Outcome: Abandoned})
	c.Observe(200*ms, &b)
	want = limit.Window{
		Length: 100 * ms, Objective: 800 * ms, Peak: 3, Running: 1, Costliest: 2, Ended: 2,
		Samples: 1, Mean: 100 * ms, Own: 60 * ms, Quiet: 100 * ms,
		Epochs: [2]limit.Epoch{
			{Length: 100 * ms, Age: 50 * ms, Admitted: 1, InFlight: 3},
			{
				Length: 100 * ms, Age: 150 * ms, Admitted: 3, InFlight: 7 / 3.0, Arrived: 4, Delayed: 1,
				Ended: 3, Samples: 1, Served: 1, Mean: 60 * ms, Abandoned: 2, Under: 120 * ms,
			},
		},
	}
	compare(t, "the second window", &told, &want)
	n := 0.0
	for at, count := range told.Times {
		if n += count; at != 100*ms {
			t.Errorf("a service time of %v, want 100ms", at)
		}
	}
	if n != 1 {
		t.Errorf("%v service times, want 1", n)
	}
}

// compare says where got is not want, but for the service times.
func compare(t *testing.T, name string, got, want *limit.Window) {
	t.Helper()
	g := *got
	g.Times = nil
	for i := range g.Epochs {
		if d := g.Epochs[i].InFlight - want.Epochs[i].InFlight; math.Abs(d) < 1e-9 {
			g.Epochs[i].InFlight = want.Epochs[i].InFlight
		}
	}
	if g.Length != want.Length || g.Objective != want.Objective || g.Arrived != want.Arrived || g.Delayed != want.Delayed ||
		g.Peak != want.Peak || g.Running != want.Running || g.Waiting != want.Waiting || g.Costliest != want.Costliest ||
		g.Ended != want.Ended || g.Dropped != want.Dropped || g.Samples != want.Samples || g.Mean != want.Mean ||
		g.Own != want.Own || g.Quiet != want.Quiet || g.Pressure != want.Pressure || g.Epochs != want.Epochs {
		t.Errorf("%s:\ntold %+v\nwant %+v", name, g, *want)
	}
}

// The slots that are lent are in flight too: what was admitted on them counts as half way between what was
// in use before and after, and the most in use is what is found.
func TestWhatALawIsToldOfLentSlots(t *testing.T) {
	var told limit.Window
	c, err := New(Config{Limit: marker{&told}, Objective: 800 * ms})
	if err != nil {
		t.Fatal(err)
	}
	if n := c.Lend(); n != 3 {
		t.Fatalf("%d slots are lent, want 3", n)
	}
	c.Settle(50*ms, Settlement{Free: 1, Admitted: 2})
	c.Observe(100*ms, new(Batch))
	if e := told.Epochs[0]; told.Peak != 2 || told.Running != 2 || e.Admitted != 2 || e.InFlight != 1 || e.Arrived != 2 || told.Quiet != 50*ms {
		t.Errorf("of two requests on lent slots: %+v", told)
	}
	// What was running then still does: a standstill since.
	c.Observe(400*ms, new(Batch))
	if told.Quiet != 350*ms {
		t.Errorf("quiet for %v, want 350ms", told.Quiet)
	}
}
