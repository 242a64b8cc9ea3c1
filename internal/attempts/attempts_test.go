package attempts

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// onosproject/onos-lib-go#127: doubling overflows after some attempts and becomes a
// wait of nothing, a hot loop in a long outage.
func TestC067BackoffNeverFalls(t *testing.T) {
	for _, base := range []time.Duration{1, 100 * time.Millisecond, time.Hour} {
		for _, most := range []time.Duration{1, base, 3 * base, 24 * time.Hour, math.MaxInt64} {
			before := time.Duration(0)
			check := func(n int) {
				got := Bound(base, most, n)
				if got <= 0 || got < before || got > most {
					t.Fatalf("base %v, most %v, attempt %d: %v after %v", base, most, n, got, before)
				}
				for _, draw := range []float64{0, 0.5, math.Nextafter(1, 0)} {
					if w := Wait(base, most, n, draw); w <= 0 || w > got {
						t.Fatalf("base %v, most %v, attempt %d, draw %v: waits %v of %v", base, most, n, draw, w, got)
					}
				}
				before = got
			}
			for n := 1; n <= 200; n++ {
				check(n)
			}
			check(1_000_000)
			check(math.MaxInt)
			if before != most {
				t.Errorf("base %v: ends at %v, want the cap %v", base, before, most)
			}
		}
	}
	for i, want := range []time.Duration{50, 100, 200, 400, 500, 500} {
		if got := Bound(50, 500, i+1); got != want {
			t.Errorf("attempt %d: %v, want %v", i+1, got, want)
		}
	}
	if got := Bound(-5, -7, -3); got != 1 {
		t.Errorf("out of range: %v, want 1", got)
	}
}

// An event is one call of a step, kept by the model.
type event struct {
	bucket int64
	kind   int
}

// A memory is the dumb model of a window: it keeps each event and asks all of them.
type memory struct {
	length time.Duration
	latest int64
	events []event
}

func (m *memory) add(now time.Duration, kind int) {
	m.events = append(m.events, event{m.advance(now), kind})
}

// drop forgets the latest of kind, if it is still in the window.
func (m *memory) drop(now time.Duration, kind int) {
	latest := m.advance(now)
	for i, e := range slices.Backward(m.events) {
		if e.kind == kind {
			if e.bucket > latest-10 {
				m.events[i].kind = -1 // it stays, for advance
			}
			return
		}
	}
}

func (m *memory) advance(now time.Duration) int64 {
	n := int64(math.Floor(float64(now) / float64(m.length/10)))
	if len(m.events) == 0 || n > m.latest {
		m.latest = n
	}
	return m.latest
}

func (m *memory) count(now time.Duration, kind int) (n int) { return m.since(now, kind, 10) }

// since counts what the latest buckets have, so many of them.
func (m *memory) since(now time.Duration, kind int, buckets int64) (n int) {
	latest := m.advance(now)
	for _, e := range m.events {
		if e.kind == kind && e.bucket > latest-buckets {
			n++
		}
	}
	return n
}

// steps plays data on a budget and a throttle and on their models: a byte is how far
// time goes, also backwards and far ahead, the next one what happens. k is of the throttle.
func steps(t *testing.T, k float64, data []byte) {
	const length = 1000
	b := Budget{Ratio: 0.25, Reserve: 2, Window: length}
	th := Throttle{K: k, Window: length}
	budget, throttle := memory{length: length}, memory{length: length}
	now, high := time.Duration(0), time.Duration(math.MinInt64)
	for ; len(data) >= 2; data = data[2:] {
		switch d := time.Duration(data[0]); {
		case d < 200:
			now += d
		case d < 240:
			now -= d // backwards
		default:
			now += 100 * d // the whole window and more
		}
		high = max(high, now)
		at := fmt.Sprintf("at %d", now)
		requests, retries := budget.count(high, requested), budget.count(high, retried)
		left := max(0, max(0.25*float64(requests), 2)-float64(retries))
		if got := b.Left(now); got != left {
			t.Fatalf("%s: %v left, want %v", at, got, left)
		}
		switch {
		case data[1]%8 == 6:
			again := data[1]%16 == 6
			b.Unsent(now, again)
			budget.drop(high, map[bool]int{false: requested, true: retried}[again])
		case data[1]%2 == 0:
			b.Request(now)
			budget.add(high, requested)
		default:
			if got := b.Spend(now); got != (left >= 1) {
				t.Fatalf("%s: spends %v with %v left", at, got, left)
			}
			if left >= 1 {
				budget.add(high, retried)
			}
		}
		r, a := float64(throttle.count(high, requested)), float64(throttle.count(high, accepted))
		p := min(0.9, max(0, (r-k*a)/(r+1)))
		if r < 10 {
			p = 0
		}
		if r, a := float64(throttle.since(high, requested, 2)), float64(throttle.since(high, accepted, 2)); r >= 100 {
			q := max(0, (r-k*a)/(r+1))
			if q > 0 {
				q += k / math.Sqrt(r)
			}
			p = min(p, q)
		}
		if got := th.Chance(now); got != p {
			t.Fatalf("%s: chance %v, want %v", at, got, p)
		}
		draw := float64(data[1]) / 256
		switch {
		case th.Refuses(now, draw) != (draw < p):
			t.Fatalf("%s: draw %v of %v is not decided by it", at, draw, p)
		case draw < p:
			throttle.add(high, requested)
		case data[1]%3 == 0:
			th.Accepted(now)
			throttle.add(high, requested)
			throttle.add(high, accepted)
		case data[1]%3 == 1:
			th.Refused(now)
			throttle.add(high, requested)
		}
	}
}

func FuzzAgainstTheModel(f *testing.F) {
	f.Add([]byte{0, 0, 50, 1, 99, 1, 1, 1, 201, 2, 250, 1, 99, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= 4000 {
			steps(t, 2, data)
			steps(t, 1.5, data)
		}
	})
}

func TestAgainstTheModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, c := range []struct {
		runs, bytes, jump int
		apart             byte
	}{
		{300, 400, 20, 60},  // mostly a few per bucket
		{100, 1600, 400, 2}, // some 200 per bucket: the latest two are judged by themselves
	} {
		for i := range c.runs {
			data := make([]byte, c.bytes)
			for i := range data {
				data[i] = byte(rng.Uint32())
				if i%2 == 0 && rng.IntN(c.jump) > 0 {
					data[i] %= c.apart
				}
			}
			steps(t, []float64{2, 1.5, 4}[i%3], data)
		}
	}
}

// Whatever the order of requests and retries, all of a long time are within the bound
// of the comment at Budget.
func TestBudgetOverALongTime(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 200 {
		b := Budget{Ratio: 0.1, Reserve: 5, Window: time.Second}
		var now time.Duration
		var requests, retries, busy int
		for range 3000 {
			if rng.IntN(200) == 0 {
				busy = rng.IntN(3) // nothing, requests, or tries to retry at once
			}
			now += time.Duration(rng.Int64N(int64(20 * time.Millisecond)))
			if busy == 1 {
				b.Request(now)
				requests++
			}
			for range 3 {
				if busy > 0 && b.Spend(now) {
					retries++
				}
			}
		}
		most := 0.1*float64(requests) + 5*(now.Seconds()+1)
		if float64(retries) > most {
			t.Fatalf("%d retries of %d requests in %v, at most %v", retries, requests, now, most)
		}
	}
}

// Must hold: with the budget, attempts <= 1.1 x requests, for a client that sends more
// than Reserve/Ratio per window. Every call fails and asks for two retries.
func TestBudgetAmplification(t *testing.T) {
	for _, rate := range []int{10, 11, 12, 100, 1000} {
		b := Budget{Ratio: 0.1, Reserve: 10, Window: 10 * time.Second}
		requests, retries := 0, 0
		for i := range 120 * rate {
			now := time.Duration(i) * time.Second / time.Duration(rate)
			b.Request(now)
			requests++
			for range 2 {
				if b.Spend(now) {
					retries++
				}
			}
		}
		// The window reaches back 9 to 10 s and the last grant is anywhere in it, so a
		// rate of 10/s has 90 requests in it at times, and the reserve counts: 10 of 90.
		most := 1.1
		if rate <= 11 {
			most = 1 + 10.0/90
		}
		if got := 1 + float64(retries)/float64(requests); got > most || got < 1.08 {
			t.Errorf("%d/s: amplification %.4f, want at most %.4f and the budget used", rate, got, most)
		}
	}
}

// A jump of the clock takes nothing but what is old, and one back takes nothing.
func TestTimeJumps(t *testing.T) {
	b := Budget{Ratio: 0.5, Reserve: 1, Window: time.Second}
	for range 10 {
		b.Request(0)
	}
	if got := b.Left(-time.Hour); got != 5 {
		t.Errorf("an hour back: %v left, want the 5 of 10 requests", got)
	}
	if got := b.Left(math.MaxInt64); got != 1 {
		t.Errorf("292 years on: %v left, want the reserve", got)
	}
	if !b.Spend(0) || b.Spend(0) {
		t.Error("back again: want one of the reserve, and no second")
	}
	var all []float64
	b = Budget{Ratio: 0.5, Reserve: 10, Window: time.Second}
	for i := range 10 {
		b.Spend(time.Duration(i) * 100 * time.Millisecond)
	}
	for i := range 11 {
		all = append(all, b.Left(time.Duration(i)*100*time.Millisecond+900*time.Millisecond))
	}
	if want := []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; !slices.Equal(all, want) {
		t.Errorf("a budget comes back as %v, want %v", all, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("a window of nothing is taken")
		}
	}()
	(&Budget{}).Request(0)
}

// How long a client keeps calls at home after an outage of more than a window: 1.65
// windows and up to 0.2 for the steps of the buckets, where the latest two have fewer than
// 100 calls; then those alone have to be accepted half of the time, 1.65 times 0.2 windows,
// and what is kept until the window is over is the margin for chance, 2/sqrt(200) = 14 % of
// 1,000 calls per window, 4 % of 12,000. With the formula alone it would be 5 to 6 windows
// at 12,000 calls in each: 100/s for the two minutes of the book.
func TestThrottleRecovery(t *testing.T) {
	const window = 10 * time.Second
	for _, row := range []struct {
		perWindow int
		most      float64 // chance
		want      float64 // windows
		within    float64
	}{
		{100, MostKept, 1.75, 0.1},
		{1000, MostKept, 1.1, 0.1},
		{12_000, MostKept, 0.3, 0.1},
		// ln(12,000)/2 = 4.7, and up to one until the first probe and its bucket.
		{12_000, 1, 5.2, 0.6},
	} {
		th := Throttle{K: 2, Window: window}
		step, draw, now := window/time.Duration(row.perWindow), 0.0, time.Duration(0)
		call := func(up bool) (kept bool) {
			now += step
			draw = math.Mod(draw+math.Phi-1, 1) // even in [0, 1), as good as by chance
			requests, accepts := th.Counts(now)
			alone := (float64(requests) - 2*float64(accepts)) / float64(requests+1)
			if row.most == 1 {
				kept = draw < alone
			} else if kept = th.Refuses(now, draw); kept {
				return true
			}
			if up && !kept {
				th.Accepted(now)
			} else {
				th.Refused(now) // or kept: both are requests
			}
			return kept
		}
		sent := 0
		for i := range 3 * row.perWindow {
			if kept := call(false); !kept && i >= row.perWindow {
				sent++
			}
		}
		if got := float64(sent) / float64(2*row.perWindow); math.Abs(got-(1-row.most)) > 0.01 {
			t.Errorf("%d calls per window, all refused: %.3f are sent, want %.3f", row.perWindow, got, 1-row.most)
		}
		up, last := now, now
		for range 8 * row.perWindow {
			if call(true) {
				last = now
			}
		}
		got := float64(last-up) / float64(window)
		t.Logf("%d calls per window, kept with at most %v: %.2f windows", row.perWindow, row.most, got)
		if math.Abs(got-row.want) > row.within {
			t.Errorf("%d calls per window: the last one is kept %.2f windows after the end of the outage, want %v within %v", row.perWindow, got, row.want, row.within)
		}
	}
}

// The first calls after an idle window, and those of a fresh client, one after the other and
// all refused: ten are sent, and then one in ten. One refusal says nothing: a client that kept
// half of its calls at home after it would keep the retries that would have been answered.
func TestThrottleOfFewCalls(t *testing.T) {
	th := Throttle{K: 2, Window: time.Second}
	for range 100 {
		th.Refused(0)
	}
	fresh := Throttle{K: 2, Window: time.Second}
	for n := range 12 {
		want := 0.0
		if n >= Fewest {
			want = MostKept // 10/11 is more
		}
		for name, th := range map[string]*Throttle{"after an idle window": &th, "fresh": &fresh} {
			if p := th.Chance(time.Second); p != want {
				t.Errorf("%s, call %d: kept with %v, want %v", name, n, p, want)
			}
			th.Refused(time.Second)
		}
	}
}
