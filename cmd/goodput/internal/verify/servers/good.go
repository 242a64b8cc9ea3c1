package servers

import (
	"net/http"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/limit"
)

// Semaphore is the simplest that is good: a slot at once, or 503. It needs many slots: of 64
// at 1.5x a / (1 - a) = 2 are idle (a = 1 / 1.5), which are 97 % of the capacity, and at half of
// the capacity nobody is refused (B(64, 32) = 10^-7). Of 4 slots half would be idle at times.
// Its requests should not all take the same time: 64 that began together end together, and
// then the answers of a second depend on where it begins.
func Semaphore(p *Pool) http.Handler { return &Door{Pool: p, Refuse: busy} }

// Bounded is a semaphore with a queue that takes no longer than wait.
func Bounded(p *Pool, wait time.Duration) http.Handler {
	return &Door{Pool: p, Wait: wait, Refuse: busy}
}

// Library is the work behind this project's limiter. A handler that was let in finds a slot.
func Library(p *Pool, objective time.Duration) http.Handler {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(len(p.free)), Objective: objective})
	return goodputhttp.Handler(lim, Plain(p))
}

// Plain is the work without anything before it: a queue without a bound, which does the work
// of callers that have left, as most services do. It is what goodput serve protects, and what
// is broken by itself.
func Plain(p *Pool) http.Handler { return &Door{Pool: p, Wait: 1 << 62} }
