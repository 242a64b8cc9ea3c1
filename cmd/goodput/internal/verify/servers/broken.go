package servers

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// wait is the queue of those that are broken in what they say and not in whom they serve: 12
// of 4 slots that take 10 ms. Of that p99s are 40 ms, and at half of the capacity nobody is
// refused.
func wait(p *Pool) time.Duration { return 3 * p.Each }

// Saying refuses with a status, a body and a Retry-After, "" for none of it.
func Saying(p *Pool, status int, body, retryAfter string) http.Handler {
	return &Door{Pool: p, Wait: wait(p), Refuse: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}}
}

// Silent leaves whom it cannot serve without an answer.
func Silent(p *Pool) http.Handler {
	return &Door{Pool: p, Wait: wait(p), Refuse: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}
}

// Slow refuses after some time, as a queue does that lets go of those that have waited for it.
func Slow(p *Pool, after time.Duration) http.Handler {
	return &Door{Pool: p, Wait: wait(p), Refuse: func(w http.ResponseWriter, r *http.Request) {
		if sleep(r, after) {
			busy(w, r)
		}
	}}
}

// Closing breaks the connection in the place of a refusal.
func Closing(p *Pool) http.Handler {
	return &Door{Pool: p, Wait: wait(p), Refuse: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }}
}

// Never refuses everybody, always.
func Never() http.Handler { return http.HandlerFunc(busy) }

// Late serves everybody that it lets in, and lets in who waits up to this long, which should
// be longer than callers do.
func Late(p *Pool, longest time.Duration) http.Handler {
	return &Door{Pool: p, Wait: longest, Refuse: busy}
}

// Growing has a wait that grows with the load: 2 service times for each multiple of the
// capacity. It is never more than the deadline of 20 of them and more.
func Growing(p *Pool) http.Handler {
	m := new(Meter)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		times := m.add() / p.Capacity()
		d := Door{Pool: p, Wait: time.Duration(2 * max(times, 1) * float64(p.Each)), Refuse: busy}
		d.ServeHTTP(w, r)
	})
}

// A Breaker refuses everybody from the first whom it cannot serve on until nobody has come for
// a tenth of a second: under load it never closes.
type Breaker struct {
	*Pool
	mu   sync.Mutex
	open bool
	last time.Time // that anybody came
}

func (b *Breaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	if time.Since(b.last) >= tick {
		b.open = false
	}
	b.last = time.Now()
	if b.open {
		b.mu.Unlock()
		busy(w, r)
		return
	}
	done, ok := b.book(wait(b.Pool))
	b.open = !ok
	b.mu.Unlock()
	if !ok {
		busy(w, r)
		return
	}
	finish(w, r, done)
}

// Scared is good while the overload lasts. For some time after it refuses every other request,
// whatever room there is.
func Scared(p *Pool, after time.Duration) http.Handler {
	m := new(Meter)
	var mu sync.Mutex
	var overloaded time.Time // last
	odd := false
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calm := m.add() < 0.9*p.Capacity()
		mu.Lock()
		odd = !odd
		refuse := odd && calm && time.Since(overloaded) < after
		mu.Unlock()
		d := Door{Pool: p, Wait: wait(p), Refuse: func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			overloaded = time.Now()
			mu.Unlock()
			busy(w, r)
		}}
		if refuse {
			busy(w, r)
			return
		}
		d.ServeHTTP(w, r)
	})
}
