package goodputhttp

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput"
)

// A Hedge sends a request a second time if its answer takes longer than those of most
// others, takes the first good answer and cancels the other request (Dean and Barroso,
// "The Tail at Scale", CACM 56(2), 2013, "Hedged requests"). It helps where single
// requests are slow by bad luck, and costs 1 - Quantile more requests. Where all are slow
// it would make things worse, so a hedge
//
//   - is for requests that are idempotent and whose body, if any, can be sent again;
//   - starts before the deadline, and is the only one of its call;
//   - costs what its request costs, and never queues: it takes slots of the limiter that are
//     free, or there is none;
//   - is one of the attempts of the Policy and spent from its retry budget (without Retry,
//     of a budget of its own with the defaults).
//
// A Hedge belongs to one Dependency. The zero value of each field means its default.
type Hedge struct {
	// Quantile of the time from slot to response header after which the second request
	// is sent: 0.5 to 0.999, default 0.95. It is that of the last 1,000 to 2,000 answers,
	// rounded up by the width of a bucket, 9.1 %; before there are 100 nothing is hedged.
	Quantile float64

	// Min is the least delay: 1 µs to 1 min, default 1 ms. Faster answers are not worth a second
	// request.
	Min time.Duration

	mu        sync.Mutex
	now, past goodput.Histogram
	delay     atomic.Int64 // ns; 0: too little is known
}

// Defaults of Hedge.
const (
	DefaultHedgeQuantile = 0.95
	DefaultHedgeMin      = time.Millisecond
)

// How the delay is learned.
const (
	// hedgeWindow answers are half of what the quantile is of. Of 1,000 the 0.95 quantile
	// lies between the true ones of 0.936 and 0.964 (two standard errors of a share,
	// sqrt(0.95 x 0.05 / 1000) = 0.7 %), so 3.6 to 6.4 % are hedged.
	hedgeWindow = 1000
	// hedgeFirst answers are the fewest to go by: 95 % of them leave five above.
	hedgeFirst = 100
	// hedgeEvery answers the delay is computed anew, which takes some 2 µs.
	hedgeEvery = 50
	// hedgeRound is a bucket of the histogram: never hedge more than 1 - Quantile because
	// of where in a bucket all answers are.
	hedgeRound = 1.0905 // 2^(1/8)
)

func (h *Hedge) validate() error {
	if h.Quantile != 0 && !(h.Quantile >= 0.5 && h.Quantile <= 0.999) {
		return fmt.Errorf("hedge quantile %v is out of range: 0.5 to 0.999, or 0 for %v", h.Quantile, DefaultHedgeQuantile)
	}
	if h.Min != 0 && (h.Min < time.Microsecond || h.Min > time.Minute) {
		return fmt.Errorf("hedge min %v is out of range: 1µs to 1m, or 0 for %v", h.Min, DefaultHedgeMin)
	}
	return nil
}

// note takes the time that an answer took, or has taken so far when it was cancelled for
// the other one: that is above the delay, so the quantile is right all the same.
func (h *Hedge) note(took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.Add(took)
	n := h.now.Count + h.past.Count
	if n < hedgeFirst || n%hedgeEvery != 0 {
		return
	}
	all := h.past
	all.Merge(&h.now)
	q, _ := all.Quantile(or(h.Quantile, DefaultHedgeQuantile))
	h.delay.Store(int64(max(time.Duration(float64(q)*hedgeRound), or(h.Min, DefaultHedgeMin))))
	if h.now.Count >= hedgeWindow {
		h.past, h.now = h.now, goodput.Histogram{}
	}
}

// Delay returns how long an answer may take now before the request is sent a second
// time; 0 if too few are known.
func (h *Hedge) Delay() time.Duration { return time.Duration(h.delay.Load()) }
