package virtual

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/internal/hist"
	"github.com/goodput/goodput/internal/sim"
	"github.com/goodput/goodput/internal/theory"
)

// inBubble is Run in a bubble of its own, on one processor: on several, of two goroutines that
// are woken at one instant either may be first.
func inBubble(t *testing.T, s Scene, c Contestant, seed uint64) (r *Result) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(*testing.T) { r = Run(s, c, seed) })
	return r
}

// contestant returns the one of that name.
func contestant(t *testing.T, name string) Contestant {
	t.Helper()
	for _, c := range Contestants {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no contestant is called %s", name)
	return Contestant{}
}

// scene returns the one of that name.
func scene(t *testing.T, name string) Scene {
	t.Helper()
	for _, s := range Scenes() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no scene is called %s", name)
	return Scene{}
}

// small is three times what 20 slots of 20 ms serve, for a second: 3,000 requests.
func small() Scene {
	return Scene{
		Name: "small", Load: 3, Phases: []Stage{{second, 20}}, Attempts: 1,
		Work: Work{Shape: "exponential", Mean: Span(20 * time.Millisecond)}, Deadline: long,
	}
}

// dice says who throws dice that nobody can fix from outside: math/rand/v2 seeds itself.
var dice = []string{"goodput/auto", "failsafe/adaptive-queue"}

// Every contestant gives each request one end, and the same ends to the same requests;
// those that are said to do the same do.
func TestEachContestantPlays(t *testing.T) {
	of := map[string][]byte{}
	for _, c := range Contestants {
		r := inBubble(t, small(), c, 1)
		if r.Offered != r.InTime+r.TooLate+r.Rejected || r.InTime == 0 {
			t.Errorf("%s: %d in time, %d late and %d refused of %d", c.Name, r.InTime, r.TooLate, r.Rejected, r.Offered)
		}
		if moves := r.Limit > 0; moves != (c.New(20).Limit != nil) {
			t.Errorf("%s: limit %v", c.Name, r.Limit)
		}
		if !slices.Contains(dice, c.Name) {
			playsTheSame(t, small(), c, r)
		}
		r.Contestant = ""
		of[c.Name] = encode(t, r)
		if c.Same != "" && !bytes.Equal(of[c.Name], of[c.Same]) {
			t.Errorf("%s does not do what %s does:\n%s\n%s", c.Name, c.Same, of[c.Name], of[c.Same])
		}
	}
	if bytes.Equal(of["chan/try"], of["base/none"]) {
		t.Error("all do the same: this tests nothing")
	}
}

// playsTheSame plays what gave r once more: byte by byte it is the same. Where the machine
// takes the processor away just when two goroutines are awake, they may change places: so
// one of three has to be.
func playsTheSame(t *testing.T, s Scene, c Contestant, r *Result) {
	t.Helper()
	var again []byte
	for range 3 {
		if again = encode(t, inBubble(t, s, c, r.Seed)); bytes.Equal(again, encode(t, r)) {
			return
		}
	}
	t.Errorf("%s plays one seed in two ways:\n%s\n%s", c.Name, encode(t, r), again)
}

func encode(t *testing.T, r *Result) []byte {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Even is what was answered in time in the window, of what the slots could have answered in it,
// as if the work had been its mean: so the two differ by that of those served, n of them, whose
// deviation is 1/sqrt(n), and by the 20 that are under way at its end. That of who serves what
// waited when the window ended is no smaller for it, and no greater.
func TestEvenIsTheRatioOfTheWindow(t *testing.T) {
	for _, c := range Contestants {
		s := small()
		s.Phases[0].Length = 4 * second
		var y *tally
		synctest.Test(t, func(*testing.T) { y = play(s, c, 1) })
		ratio := y.ratio(0, len(y.bins), func(b *bin) int { return b.good })
		n := y.halves[0].served + y.halves[1].served
		r := y.result()
		t.Logf("%s: even %.4f, in the window %.4f, with what was served after it %.4f", c.Name, r.Even, ratio, r.Ratio)
		if bound := 3/math.Sqrt(float64(n)) + 20/float64(n); n == 0 || math.Abs(r.Even-ratio) > bound*ratio || r.Even > r.Ratio*(1+bound) {
			t.Errorf("%s: even %.4f, want %.4f within %.1f %%, and no more than %.4f", c.Name, r.Even, ratio, 100*bound, r.Ratio)
		}
	}
}

// What is said of how they are set up is so, as far as a run shows it: how long who got no
// slot waited for that, and how many waited.
func TestContestantsAreSetUp(t *testing.T) {
	s := small()
	s.Deadline, s.Phases = second*3/5, []Stage{{2 * second, 20}} // 1,000/s are served: 480 wait 480 ms
	for _, c := range []struct {
		name        string
		no99        float64 // ms
		least, most float64 // waiting, in the queue of the limiter alone
		p99         float64 // ms, at least
	}{
		{"chan/try", 0, 0, 0, 0},
		{"bounded-fifo/480", 0, 480, 480, 480},
		{"bounded-fifo/480-ctx", 0, 480, 480, 480},
		{"bounded-fifo/10000", 0, 3600, 4400, 3600}, // all: 2,000/s for 2 s, three deviations of what comes and of what is served
		{"xsync/acquire-ctx", 600, 1500, 1900, 600}, // 3,000/s for 600 ms, less those in slots
		{"failsafe/bulkhead-wait", 400, 1000, 1300, 400},
		{"failsafe/adaptive-60", 0, 0, 10, 0},      // its limit may rise above the slots
		{"failsafe/adaptive-queue", 0, 40, 80, 80}, // 2 to 3 times a limit of about 20
	} {
		r := inBubble(t, s, contestant(t, c.name), 1)
		if r.No99 != c.no99 || r.Waiting > c.most || r.Waiting < c.least || r.P99 < c.p99 {
			t.Errorf("%s: told no after %v ms, %v wait, p99 %v: want %v, %v to %v, at least %v", c.name, r.No99, r.Waiting, r.P99, c.no99, c.least, c.most, c.p99)
		}
	}
	// Who waits leaves with its context, where that is said.
	s.Deadline = brief
	stays, leaves := inBubble(t, s, contestant(t, "bounded-fifo/480"), 1), inBubble(t, s, contestant(t, "bounded-fifo/480-ctx"), 1)
	if stays.No99 != 0 || leaves.No99 != 400 {
		t.Errorf("told no after %v and %v ms, want 0 and 400", stays.No99, leaves.No99)
	}
}

// Who refuses at once loses at capacity what Erlang's formula says, 9.6 %. Of three seeds
// the 72,000 arrivals vary by 0.37 %, their work as much, and a share that is refused by
// both, 0.53 %: three of them. That of 480 places, and endless patience, next to nothing.
func TestErlangAtCapacity(t *testing.T) {
	share := func(name string) float64 {
		refused := 0.0
		for seed := range uint64(3) {
			refused += inBubble(t, scene(t, flagship(1)), contestant(t, name), seed+1).Refused / 3
		}
		return refused
	}
	got, want := share("chan/try"), theory.ErlangB(slots, slots)
	t.Logf("refused %.4f, by Erlang's formula %.4f", got, want)
	if math.Abs(got-want) > 3*0.0053 || math.Abs(want-0.096) > 0.001 {
		t.Errorf("refused %.4f, by Erlang's formula %.4f", got, want)
	}
	if got := share("bounded-fifo/480"); got > 0.001 {
		t.Errorf("a queue of 480 refuses %.4f", got)
	}
}

// The runtime and the simulator of its core meet the same requests with the same work, and
// answer as many in time. They measure service times at other instants, so they refuse
// others: each serves a sample of n requests, whose work varies by 1/sqrt(n), and the two
// share part of it. Three standard deviations of a difference without anything shared. The
// p99 of a sample of n is uncertain by sqrt(n/100) places; where the tail is exponential, as
// here, that is the mean, 50 ms, over sqrt(n/100). A bucket of the simulator is 9.1 % wide.
func TestSimulatorAgrees(t *testing.T) {
	for _, name := range []string{flagship(1), flagship(1.5), flagship(3), short(3), "fixed 3x"} {
		s := scene(t, name)
		s.Phases = []Stage{{10 * second, slots}}
		r := inBubble(t, s, contestant(t, "goodput/fixed"), 7)
		m, err := sim.Run(s.scenario(7), 7)
		if err != nil {
			t.Fatal(err)
		}
		ratio := float64(m.Total.InTime) / (s.capacity(slots) * min(s.Load, 1) * s.length().Seconds())
		n := float64(m.Total.Served)
		t.Logf("%s: in time %.4f, in the simulator %.4f; p50 %.0f and %.0f ms, p99 %.0f and %.0f ms", name,
			r.Ratio, ratio, r.P50, milliseconds(&m.Total.Latency, 0.5), r.P99, milliseconds(&m.Total.Latency, 0.99))
		if int(m.Total.Requests) != r.Offered {
			t.Fatalf("%s: %d requests, in the simulator %d", name, r.Offered, m.Total.Requests)
		}
		if d := math.Abs(float64(r.InTime)-float64(m.Total.InTime)) / n; d > 3*math.Sqrt(2/n) {
			t.Errorf("%s: %d in time, in the simulator %d", name, r.InTime, m.Total.InTime)
		}
		if d := math.Abs(r.P99 - milliseconds(&m.Total.Latency, 0.99)); d > 50*3*math.Sqrt(2/(n/100))+0.091*r.P99 {
			t.Errorf("%s: p99 %.0f ms, in the simulator %.0f", name, r.P99, milliseconds(&m.Total.Latency, 0.99))
		}
	}
}

func milliseconds(h *hist.Histogram, q float64) float64 {
	d, _ := h.Quantile(q)
	return d.Seconds() * 1e3
}

// What is broken is seen, in the number that it breaks.
func TestBrokenContestants(t *testing.T) {
	s := small()
	s.Deadline = brief
	good := inBubble(t, s, contestant(t, "chan/try"), 3)
	for _, c := range []struct {
		name  string
		wrong func(d Door) Door
		seen  func(r *Result) bool
	}{
		{"one slot in a hundred is lost", func(d Door) Door {
			var n atomic.Int64
			return Door{Acquire: func(ctx context.Context) (func(), error) {
				release, err := d.Acquire(ctx)
				if err == nil && n.Add(1)%100 == 0 {
					release = func() {}
				}
				return release, err
			}}
		}, func(r *Result) bool { return r.Even < 0.9*good.Even && r.EvenSteady < r.Even }},
		{"lets every other past the limit", func(d Door) Door {
			var n atomic.Int64
			return Door{Acquire: func(ctx context.Context) (func(), error) {
				if n.Add(1)%2 == 0 {
					return func() {}, nil
				}
				return d.Acquire(ctx)
			}}
		}, func(r *Result) bool { return r.Waiting > 100 && r.P50 > 2*good.P50 && r.Late > 0 }},
		{"refuses late", func(d Door) Door {
			return Door{Acquire: func(ctx context.Context) (func(), error) {
				release, err := d.Acquire(ctx)
				if err != nil {
					<-ctx.Done()
				}
				return release, err
			}}
		}, func(r *Result) bool { return r.No50 == 400 && r.Rejected == good.Rejected }},
		{"refuses everything", func(Door) Door {
			return Door{Acquire: func(context.Context) (func(), error) { return nil, errFull }}
		}, func(r *Result) bool { return r.Ratio == 0 && r.Even == 0 && r.Refused == 1 }},
		{"serves nothing in time", func(d Door) Door {
			return Door{Acquire: func(ctx context.Context) (func(), error) {
				release, err := d.Acquire(ctx)
				if err == nil {
					<-ctx.Done()
				}
				return release, err
			}}
		}, func(r *Result) bool { return r.Ratio == 0 && r.InTime == 0 && r.TooLate > 0 && r.P50 > 400 }},
	} {
		broken := contestant(t, "chan/try")
		of := broken.New
		broken.New = func(slots int) Door { return c.wrong(of(slots)) }
		r := inBubble(t, s, broken, 3)
		if r.Offered != good.Offered || r.Offered != r.InTime+r.TooLate+r.Rejected {
			t.Errorf("%s: the counters do not add up: %s", c.name, encode(t, r))
		}
		if !c.seen(r) {
			t.Errorf("%s: it is not seen\n%s\ngood is\n%s", c.name, encode(t, r), encode(t, good))
		}
	}
}

// A stall: callers ask three times, and leave at their deadlines. The queue that nobody
// leaves is never empty again; a limiter that refuses is back at once.
func TestStallWithRetries(t *testing.T) {
	s := scene(t, stallScene)
	s.Phases, s.Stall = []Stage{{10 * second, slots}}, &Stall{2 * second, 4 * second}
	none, ours := inBubble(t, s, contestant(t, "base/none"), 1), inBubble(t, s, contestant(t, "goodput/fixed"), 1)
	if none.Recovered != nil || none.TooLate < none.Offered/4 {
		t.Errorf("nothing at all is back: %s", encode(t, none))
	}
	if ours.Recovered == nil || *ours.Recovered > 1 {
		t.Errorf("goodput is not back: %s", encode(t, ours))
	}
	playsTheSame(t, s, contestant(t, "goodput/fixed"), ours)
	s.Attempts = 1
	// 10 s of 1,080/s, less 4 s of 1,200/s that are served: 3,800 if they ask once, about
	// 9,000 if who was served late asks again then, and 14,000 if he does at his deadline.
	if once := inBubble(t, s, contestant(t, "base/none"), 1); none.Waiting < 3*once.Waiting {
		t.Errorf("%v wait if callers ask three times, %v if they ask once", none.Waiting, once.Waiting)
	}
}

// Slots that go away take their capacity with them, and bring it back.
func TestStepsAreFelt(t *testing.T) {
	s := scene(t, stepScene)
	s.Phases = []Stage{{3 * second, slots}, {3 * second, 20}, {3 * second, slots}}
	r := inBubble(t, s, contestant(t, "chan/try"), 1)
	for i, p := range r.Phases {
		// 1,200 answers at the least: 2.9 %, three times, and Erlang's loss of 3 %.
		if p.Slots != s.Phases[i].Slots || math.Abs(p.Ratio-1) > 3*0.029+0.03 {
			t.Errorf("phase %d: %+v", i, p)
		}
	}
	if len(r.Phases) != 3 || r.Waiting < 20 {
		t.Errorf("a limit of 60 before 20 slots leaves 40 to wait behind it: %s", encode(t, r))
	}
}
