package admission

import (
	"fmt"
	"strings"
	"time"
)

// A crowd is many requests without names, served for a fixed time each: what a
// story needs to have an overload.
type crowd struct {
	running []*actor // in the order of their ends, since all are served alike
	waiting []*actor
	serve   time.Duration
	counts  [4]int // offered, admitted, ended, refused
	why     [Reasons]int
}

// run plays for=1s every=4ms serve=50ms [and the keys of request]: an offer every
// so often, and prints the sums. Without every, it only lets those end who run.
func (s *stage) run(opts [][2]string) error {
	var length, every time.Duration
	var rest [][2]string
	for _, o := range opts {
		d, _ := time.ParseDuration(o[1])
		switch o[0] {
		case "for":
			length = d
		case "every":
			every = d
		case "serve":
			s.crowd.serve = d
		default:
			rest = append(rest, o)
		}
	}
	c := &s.crowd
	c.counts, c.why = [4]int{}, [Reasons]int{}
	end, next := s.now+length, Never
	if every > 0 {
		next = s.now
	}
	for {
		at, what := next, 0
		if len(c.running) > 0 && c.running[0].ends <= at {
			at, what = c.running[0].ends, 1
		}
		var ringing *actor
		for _, a := range c.waiting {
			if a.waiter.Alarm() < at {
				at, what, ringing = a.waiter.Alarm(), 2, a
			}
		}
		if at > end {
			break
		}
		s.now = max(s.now, at)
		switch what {
		case 0:
			next += every
			if err := s.join(rest); err != nil {
				return err
			}
		case 1:
			a := c.running[0]
			c.running = c.running[1:]
			c.counts[2]++
			s.core.Release(s.now, End{Cost: a.cost, Outcome: Completed})
		case 2:
			if s.core.Cancel(s.now, ringing.waiter, None) {
				s.leaves(ringing, ringing.waiter.Reason())
			}
		}
		s.collect()
		if err := s.core.Check(); err != nil {
			return err
		}
	}
	s.now = end
	words := []string{fmt.Sprintf("%d offered, %d admitted, %d ended", c.counts[0], c.counts[1], c.counts[2])}
	for r, n := range c.why {
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %v", n, Reason(r)))
		}
	}
	s.say("%s", strings.Join(words, ", "))
	return nil
}

func (s *stage) join(opts [][2]string) error {
	r, err := s.request(opts)
	if err != nil {
		return err
	}
	a := &actor{cost: max(r.Cost, 1)}
	s.crowd.counts[0]++
	switch d := s.core.Offer(s.now, r); d.Verdict {
	case Admitted:
		s.enters(a)
	case Queued:
		a.waiter, d.Waiter.Ref = d.Waiter, a
		s.crowd.waiting = append(s.crowd.waiting, a)
	default:
		s.crowd.why[d.Reason]++
	}
	return nil
}

func (s *stage) enters(a *actor) {
	a.ends = s.now + s.crowd.serve
	s.crowd.running = append(s.crowd.running, a)
	s.crowd.counts[1]++
}

// leaves takes a out of the crowd that waits; None if it was admitted.
func (s *stage) leaves(a *actor, why Reason) {
	c := &s.crowd
	for i := range c.waiting {
		if c.waiting[i] == a {
			c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
			break
		}
	}
	if a.waiter = nil; why == None {
		s.enters(a)
		return
	}
	c.why[why]++
}
