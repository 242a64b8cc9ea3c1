package admission

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

func (s *stage) offer(names []string, opts [][2]string) error {
	for _, name := range names {
		r, err := s.request(opts)
		if err != nil {
			return err
		}
		if s.cast[name] != nil {
			return fmt.Errorf("%s is still there", name)
		}
		a := &actor{name: name, cost: r.Cost}
		d := s.core.Offer(s.now, r)
		switch d.Verdict {
		case Admitted:
			a.exempt = d.Exempt
			s.cast[name] = a
			s.say("%s admitted%s", name, map[bool]string{true: ", exempt"}[d.Exempt])
		case Queued:
			a.waiter, d.Waiter.Ref = d.Waiter, a
			s.cast[name] = a
			s.say("%s waits: predicted %s, alarm at %s", name, brief(d.PredictedWait), d.Waiter.Alarm().Round(time.Microsecond))
		case Refused:
			s.say("%s %v: %v%s", name, d.Reason.Outcome(), d.Reason, numbers(d))
		}
	}
	return nil
}

func numbers(d Decision) string {
	if d.Service == 0 {
		return ""
	}
	return fmt.Sprintf(" (predicted %s + %s)", brief(d.PredictedWait), brief(d.Service))
}

func (s *stage) request(opts [][2]string) (r Request, err error) {
	r.Deadline, r.Arrival = Never, s.now
	for _, o := range opts {
		n, _ := strconv.Atoi(o[1])
		d, _ := time.ParseDuration(o[1])
		switch o[0] {
		case "cost":
			r.Cost = n
		case "size":
			r.Size = n
		case "bytes":
			r.Bytes = int64(n)
		case "attempt":
			r.Attempt = n
		case "deadline": // time left
			r.Deadline = s.now + d
		case "root": // root arrival, an instant
			r.Arrival = d
		case "exempt":
			r.Exempt = true
		case "nowait":
			r.NoWait = true
		case "priority":
			if err := word(&r.Priority, o[1], Critical, Default, Sheddable, Background); err != nil {
				return r, err
			}
		default:
			return r, fmt.Errorf("no such key: %s", o[0])
		}
	}
	return r, nil
}

func (s *stage) actor(name string, waits bool) (*actor, error) {
	a := s.cast[name]
	if a == nil || (a.waiter != nil) != waits {
		return nil, fmt.Errorf("%s does not %s", name, map[bool]string{true: "wait", false: "run"}[waits])
	}
	return a, nil
}

func (s *stage) release(names []string, opts [][2]string) error {
	e := End{Outcome: Completed}
	for _, o := range opts {
		if o[0] == "charge" {
			e.Charge, _ = strconv.Atoi(o[1])
			continue
		}
		if err := word(&e.Outcome, o[1], Completed, Late, Failed, Abandoned); err != nil {
			return err
		}
	}
	for _, name := range names {
		a, err := s.actor(name, false)
		if err != nil {
			return err
		}
		delete(s.cast, name)
		e.Cost, e.Exempt = a.cost, a.exempt
		s.core.Release(s.now, e)
		s.collect()
	}
	return nil
}

func (s *stage) cancel(verb string, args []string) error {
	a, err := s.actor(args[0], true)
	if err != nil {
		return err
	}
	why := None
	if verb == "cancel" {
		if err := word(&why, args[1], Client, Parent); err != nil {
			return err
		}
	}
	w := a.waiter
	if !s.core.Cancel(s.now, w, why) {
		s.say("%s stays: alarm at %v", a.name, w.Alarm().Round(time.Microsecond))
		return nil
	}
	delete(s.cast, a.name)
	s.say("%s %v: %v after %s", a.name, w.Reason().Outcome(), w.Reason(), brief(w.Waited()))
	return nil
}

// collect says what else was decided.
func (s *stage) collect() {
	if s.core == nil {
		return
	}
	for w := s.core.Next(); w != nil; w = s.core.Next() {
		a := w.Ref.(*actor)
		if a.name == "" {
			s.leaves(a, w.Reason())
			continue
		}
		a.waiter = nil
		if w.Verdict() == Admitted {
			s.say("%s admitted after %s", a.name, brief(w.Waited()))
			continue
		}
		delete(s.cast, a.name)
		s.say("%s %v: %v after %s", a.name, w.Reason().Outcome(), w.Reason(), brief(w.Waited()))
	}
}

func (s *stage) observe(service string, opts [][2]string) error {
	d, err := time.ParseDuration(service)
	if err != nil {
		return err
	}
	n, cost, hold := 1, 1, d
	for _, o := range opts {
		switch o[0] {
		case "n":
			n, _ = strconv.Atoi(o[1])
		case "cost":
			cost, _ = strconv.Atoi(o[1])
		case "hold":
			hold, _ = time.ParseDuration(o[1])
		}
	}
	var b Batch
	for range n {
		b.Add(d, hold, cost, 0)
	}
	s.core.Observe(s.now, &b)
	return nil
}

func (s *stage) settle(opts [][2]string) error {
	var set Settlement
	free := s.lent
	for _, o := range opts {
		n, err := strconv.Atoi(o[1])
		if err != nil {
			return err
		}
		if o[0] == "admitted" {
			set.Admitted, free = int64(n), free-n
			continue
		}
		var e Outcome
		if err := word(&e, o[0], Completed, Late, Failed, Abandoned); err != nil {
			return err
		}
		set.Ended[e], free = int64(n), free+n
	}
	set.Free, s.lent = free, 0
	s.core.Settle(s.now, set)
	return nil
}

// show prints numbers. Only what is not zero, so that a story shows what moved.
func (s *stage) show(verb string, names []string) error {
	st := s.core.Stats(s.now)
	switch verb {
	case "stats":
		s.say("limit %d, %d in use; %d wait, cost %d, %d bytes, oldest %s; %v, depth %d of %d%s",
			st.Limit, st.InUse, st.Waiting, st.WaitingCost, st.WaitingBytes, brief(st.Age),
			st.Order, st.Depth, st.Derivation.Depth, map[bool]string{true: ", overload"}[st.Overload])
		if st.Allowance.Rate > 0 {
			s.say("%s: %.3g left", st.Allowance.allowed(), st.AllowanceLeft)
		}
	case "outcomes":
		words := []string{fmt.Sprintf("%d arrivals", st.Arrivals), fmt.Sprintf("%d at once", st.Immediate), fmt.Sprintf("%d dequeued", st.Dequeued)}
		for o, n := range st.Outcomes {
			if n > 0 {
				words = append(words, fmt.Sprintf("%d %v", n, Outcome(o)))
			}
		}
		s.say("%s", strings.Join(words, ", "))
	case "refusals":
		var words []string
		for r, n := range st.Refusals {
			if n > 0 {
				words = append(words, fmt.Sprintf("%d %v", n, Reason(r)))
			}
		}
		s.say("%s", strings.Join(words, ", "))
	case "derivation":
		s.say("%v", st.Derivation)
	case "retry":
		var why Reason
		if err := word(&why, names[0], QueueFull, NoBudget, Doomed, Displaced, Shed, TooCostly, Draining, Unavailable); err != nil {
			return err
		}
		s.say("%v", s.core.RetryAfter(why))
	default:
		return fmt.Errorf("no such command: %s", verb)
	}
	return nil
}
