package load

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The generator against a model that is a loop over the arrivals, one after the other: each
// has a script of answers, so what becomes of it is arithmetic. In a bubble the generator is
// never late, so the two must agree in every number.
//
// Every answer takes a multiple of 10 ms and 3 ms more, and every other time is a multiple of
// 10 ms: three attempts end 3, 6 or 9 ms after one, and never within the millisecond to which
// the reaper is exact.
func FuzzResultIsThatOfAModel(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			w := newWorld(rng)
			r := offer(t, w.plan, w.send)
			if t.Failed() {
				t.Fatalf("seed %d: %+v", seed, w.plan)
			}
			w.compare(t, seed, r)
		})
	})
}

// A turn is one answer of a script.
type turn struct {
	takes  time.Duration
	answer Answer
}

// A world is a plan, and what a service would answer to each of its arrivals.
type world struct {
	plan    Plan
	scripts map[time.Duration][]turn // by the instant at which a request is due: equal ones are alike
	start   time.Time

	mu   sync.Mutex
	open map[context.Context]*visit // a request keeps its context for all of its attempts
}

type visit struct {
	due      time.Duration
	attempts int
}

var errReset = errors.New("connection reset")

// worldly are the answers that occur, good ones the most often.
var worldly = []Answer{
	{Status: 200},
	{Status: 200},
	{Status: 200, Content: Content{Size: 9}}, // not the service's
	{Status: 404},
	{Status: 500},
	{Status: 503, Reason: "queue_full", Marked: true, RetryAfter: "1"},
	{Status: 503, Reason: "queue_full", Marked: true, RetryAfter: "0"},
	{Status: 429, Reason: "status_429", RetryAfter: "soon"},
	{Status: 504, Reason: "deadline", Marked: true},
	{Status: 200, Reason: "queue_full", Marked: true, RetryAfter: "7"},
	{Err: errReset},
}

func newWorld(rng *rand.Rand) *world {
	tens := func(lowest, n int) time.Duration { return time.Duration(lowest+rng.IntN(n)) * 10 * time.Millisecond }
	p := Plan{Rate: 20 + 300*rng.Float64(), Duration: tens(1, 200), Seed: rng.Uint64(), Deadline: tens(1, 30)}
	switch rng.IntN(3) {
	case 0:
		p.Constant = true
	case 1:
		for at := time.Duration(rng.IntN(1e9)); len(p.Trace) < 50; at += time.Duration(rng.IntN(3)) * time.Millisecond {
			p.Trace = append(p.Trace, at)
		}
	}
	if rng.IntN(2) == 0 {
		p.Follow = tens(1, 30)
	}
	if rng.IntN(2) == 0 {
		p.Like = func(a Answer) bool { return a.Content.Size == 0 }
	}
	if p.Attempts = rng.IntN(4); p.Attempts > 1 {
		step := tens(0, 10)
		p.Backoff = func(n int, _ Answer) time.Duration { return time.Duration(n) * step }
	}
	w := &world{plan: p, scripts: map[time.Duration][]turn{}, open: map[context.Context]*visit{}, start: time.Now()}
	for due := range p.Arrivals() {
		w.scripts[due] = nil
		for range max(p.Attempts, 1) {
			w.scripts[due] = append(w.scripts[due], turn{3*time.Millisecond + tens(0, 50), worldly[rng.IntN(len(worldly))]})
		}
	}
	return w
}

func (w *world) send(ctx context.Context) Answer {
	w.mu.Lock()
	v := w.open[ctx]
	if v == nil {
		v = &visit{due: time.Since(w.start)} // sent when it was due
		w.open[ctx] = v
	}
	now := w.scripts[v.due][v.attempts]
	v.attempts++
	w.mu.Unlock()
	if late := answerAfter(now.takes)(ctx); late.Err != nil {
		return late
	}
	return now.answer
}

// play returns the end of one request: its last answer and when that is there, or the first
// that is not there at the deadline, when the attempt began to which it is the answer, and the
// answers to those before it.
func (w *world) play(due time.Duration) (from, at time.Duration, a Answer, earlier []Answer) {
	for n, turn := range w.scripts[due] {
		if n > 0 {
			earlier = append(earlier, a)
		}
		from, at, a = at, at+turn.takes, turn.answer
		if at > w.plan.Deadline || !a.Failed() && !a.Refused() || n+1 == len(w.scripts[due]) {
			break
		}
		wait := w.plan.Backoff(n+2, a)
		if at+wait >= w.plan.Deadline {
			break
		}
		at += wait
	}
	return from, at, a, earlier
}

// expect is the Result that the arithmetic has, but for the histograms.
func (w *world) expect() (want *Result, latencies, refusals []time.Duration) {
	want = newResult(w.plan)
	for due := range w.plan.Arrivals() {
		from, at, a, earlier := w.play(due)
		want.Offered++
		want.Sent++
		want.Attempts += 1 + int64(len(earlier))
		for _, a := range earlier {
			w.again(want, a)
		}
		bin := &want.Bins[int(due.Seconds()*10+1e-9)]
		bin.Offered++
		if at > w.plan.Deadline {
			w.leaves(want, at, a)
			bin.TimedOut++
			latencies = append(latencies, w.plan.Deadline)
			continue
		}
		w.says(want, a)
		switch {
		case a.Err != nil:
			want.Errors++
			bin.Failed++
		case a.Refused():
			want.Refused++
			bin.Refused++
			refusals = append(refusals, at-from)
		case a.Status == 500:
			want.Failed++
			bin.Failed++
		case a.Content.Size > 0 && w.plan.Like != nil:
			want.Completed++
			want.Unlike++
			bin.Failed++
		default:
			want.Completed++
			want.InTime++
			bin.InTime++
			if end := due + at; end < min(w.plan.Deadline, w.plan.Duration/2) {
				want.Early++
			} else if end >= w.plan.Duration {
				want.Drained++
			}
			latencies = append(latencies, at-from)
		}
	}
	return want, latencies, refusals
}

// again is an attempt that another one follows.
func (w *world) again(want *Result, a Answer) {
	w.says(want, a)
	switch {
	case a.Err != nil:
		want.Earlier.Lost++
	case a.Reason != "":
		want.Earlier.Refused++
	default:
		want.Earlier.Failed++
	}
}

// says is an answer on the wire, the last one or not.
func (w *world) says(want *Result, a Answer) {
	if a.Err != nil {
		return
	}
	want.Status[a.Status]++
	if a.Reason != "" {
		want.Refusals[Told{a.Status, a.Marked}]++
		want.Reasons[a.Reason]++
		w.hints(&want.RetryAfter, a.RetryAfter)
	}
}

// leaves is a caller at its deadline: the first, and each sixteenth after it, is followed.
func (w *world) leaves(want *Result, at time.Duration, a Answer) {
	want.TimedOut++
	if w.plan.Follow == 0 || want.TimedOut%16 != 1 {
		return
	}
	want.Followed.Asked++
	switch {
	case at > w.plan.Deadline+w.plan.Follow || a.Err != nil:
		want.Followed.Never++
	case a.Reason != "":
		want.Followed.Refused++
	default:
		want.Followed.Served++
	}
}

func (w *world) hints(want *RetryAfter, header string) {
	switch header {
	case "":
		want.Absent++
	case "0":
		want.Zero++
	case "soon":
		want.Malformed++
	case "1":
		want.Values[time.Second]++
	case "7":
		want.Values[7*time.Second]++
	}
}

func (w *world) compare(t *testing.T, seed uint64, got *Result) {
	t.Helper()
	want, latencies, refusals := w.expect()
	equal := func(name string, same bool, got, want any) {
		t.Helper()
		if !same {
			t.Errorf("seed %d, %s: got %+v, want %+v", seed, name, got, want)
		}
	}
	count := func(r *Result) [12]int64 {
		return [...]int64{
			r.Offered, r.Sent, r.Attempts, r.Completed, r.InTime, r.Early, r.Drained, r.Refused, r.Failed, r.TimedOut, r.Errors, r.Unlike,
		}
	}
	equal("offered, sent, attempts, completed, in time, early, drained, refused, failed, timed out, errors, unlike",
		count(got) == count(want), count(got), count(want))
	equal("earlier attempts", got.Earlier == want.Earlier, got.Earlier, want.Earlier)
	equal("status", maps.Equal(got.Status, want.Status), got.Status, want.Status)
	equal("reasons", maps.Equal(got.Reasons, want.Reasons), got.Reasons, want.Reasons)
	equal("refusals", maps.Equal(got.Refusals, want.Refusals), got.Refusals, want.Refusals)
	equal("followed", got.Followed == want.Followed, got.Followed, want.Followed)
	equal("bins", slices.Equal(got.Bins, want.Bins), got.Bins, want.Bins)
	hints := func(r RetryAfter) [3]int64 { return [...]int64{r.Absent, r.Zero, r.Malformed} }
	equal("Retry-After: absent, zero, malformed", hints(got.RetryAfter) == hints(want.RetryAfter), got.RetryAfter, want.RetryAfter)
	equal("Retry-After", maps.Equal(got.RetryAfter.Values, want.RetryAfter.Values), got.RetryAfter, want.RetryAfter)
	for _, h := range []struct {
		got  *Histogram
		want []time.Duration
	}{{got.Latency, latencies}, {got.Refusal, refusals}} {
		equal("times", h.got.Count() == int64(len(h.want)), h.got.Count(), len(h.want))
		if len(h.want) == 0 || t.Failed() {
			continue
		}
		quantileIs(t, h.got, 1, slices.Max(h.want))
		var sum time.Duration
		for _, d := range h.want {
			sum += d
		}
		want := sum / time.Duration(len(h.want))
		got, _ := h.got.Mean()
		equal("mean time", (got-want).Abs() <= want/1000, got, want) // three digits
	}
}
