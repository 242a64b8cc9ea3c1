package servers

import (
	"net/http"
	"time"
)

// A Broken server fails a criterion, and maybe others.
type Broken struct {
	Name  string
	Fails []string // criteria, by their names: it fails all of these
	Only  bool     // and no other
	On    func(p *Pool, deadline time.Duration) http.Handler
}

// New returns one of the Small pool.
func (b Broken) New() http.Handler { return b.On(Small(), Deadline) }

// A Good server passes.
type Good struct {
	Name      string
	Objective time.Duration
	On        func(p *Pool, objective time.Duration) http.Handler
}

// New returns one of the Small pool.
func (g Good) New() http.Handler { return g.On(Small(), g.Objective) }

// AllGood are the good ones, 400/s as the broken ones. The semaphore is no queue, and so has
// more slots: see Semaphore.
func AllGood() []Good {
	return []Good{
		{"a semaphore", 250 * time.Millisecond, func(*Pool, time.Duration) http.Handler { // 160 ms, and 80 more or less
			p := NewPool(64, 160*time.Millisecond)
			p.Spread = 0.5
			return Semaphore(p)
		}},
		{"a bounded queue", Objective, func(p *Pool, _ time.Duration) http.Handler { return Bounded(p, wait(p)) }},
		{"the library", Objective, Library},
	}
}

// What all of them have: 4 slots that take 10 ms are 400/s, and callers leave after 300 ms.
const (
	Slots     = 4
	Each      = 10 * time.Millisecond
	Deadline  = 300 * time.Millisecond
	Objective = 100 * time.Millisecond
)

// Small returns the work of the broken ones.
func Small() *Pool { return NewPool(Slots, Each) }

// Calm returns work for a machine that has other things to do: 15 slots that take 95 ms are
// 158/s. A slot makes up for 47 ms, and if its capacity is said to be CalmCapacity it may lose a
// tenth of what it can do before that is too little, and gain a twentieth before it is no capacity.
func Calm() *Pool { return NewPool(15, 95*time.Millisecond) }

// CalmCapacity is what to say of it.
const CalmCapacity = 150

// AllBroken are the broken ones.
func AllBroken() []Broken {
	saying := func(status int, body, retryAfter string) func(*Pool, time.Duration) http.Handler {
		return func(p *Pool, _ time.Duration) http.Handler { return Saying(p, status, body, retryAfter) }
	}
	return []Broken{
		{"a queue without a bound", []string{"goodput", "p99-flat", "refusals-rise", "no-hanging", "no-late-answers"}, false, func(p *Pool, _ time.Duration) http.Handler { return Plain(p) }},
		{"refuses with 200 and a short body", []string{"no-foreign-status"}, false, saying(200, "no", "")},
		{"refuses with 200 and a body as long as the real one", []string{"no-foreign-status"}, false, saying(200, "no\n", "")},
		{"refuses with 200 and nothing", []string{"no-foreign-status"}, false, saying(200, "", "")},
		{"500 instead of 503", []string{"no-foreign-status"}, false, saying(500, "oh", "")},
		{"Retry-After: 0", []string{"retry-after"}, true, saying(503, "busy", "0")},
		{"Retry-After: -1", []string{"retry-after"}, true, saying(503, "busy", "-1")},
		{"Retry-After: soon", []string{"retry-after"}, true, saying(503, "busy", "soon")},
		{"Retry-After in the past", []string{"retry-after"}, true, saying(503, "busy", "Thu, 01 Jan 1998 00:00:00 GMT")},
		{"Retry-After in a day", []string{"retry-after"}, true, saying(503, "busy", "86400")},
		{"hangs instead of refusing", []string{"no-hanging", "p99-flat", "refusals-rise"}, false, func(p *Pool, _ time.Duration) http.Handler { return Silent(p) }},
		{"refuses everybody", []string{"below-capacity", "goodput"}, false, func(*Pool, time.Duration) http.Handler { return Never() }},
		{"refuses everybody once it was overloaded", []string{"goodput"}, false, func(p *Pool, _ time.Duration) http.Handler { return &Breaker{Pool: p} }},
		{"serves late", []string{"no-late-answers", "p99-flat"}, false, func(p *Pool, d time.Duration) http.Handler { return Late(p, 3*d/2) }},
		{"closes the connection", []string{"connections"}, false, func(p *Pool, _ time.Duration) http.Handler { return Closing(p) }},
		{"refuses long after the overload", []string{"recovery"}, true, func(p *Pool, _ time.Duration) http.Handler { return Scared(p, 10*time.Second) }},
		{"refuses slowly", []string{"refusals-quick"}, true, func(p *Pool, _ time.Duration) http.Handler { return Slow(p, 2*Objective) }},
		{"waits the longer the more come", []string{"p99-flat"}, true, func(p *Pool, _ time.Duration) http.Handler { return Growing(p) }},
	}
}
