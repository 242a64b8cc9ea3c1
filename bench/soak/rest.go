package soak

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// emptying is how long it may take, after the last client has ended, until nothing is left of
// any: connections that were reset are noticed at once.
const emptying = 5 * time.Second

// staying is how long nothing may come back, once everything is 0: four looks at least.
const staying = 2 * time.Second

// takeRest stops the load for restTime, or longer if emptying took long, and looks whether anything
// is left and whether everything adds up.
func (s *stage) takeRest() error {
	began := s.now()
	s.crowd.pause()
	defer func() {
		s.crowd.resume()
		s.disturb(span{began - time.Second, max(s.now(), began+restTime) + time.Second}) // what was cut came before, and afterwards slots fill
	}()
	for end := time.Now().Add(emptying); s.crowd.inFlight() > 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
	}
	out := Rest{At: began}
	quiet := s.now()
	for ; ; time.Sleep(20 * time.Millisecond) {
		busy, err := s.busy()
		if err != nil {
			return err
		}
		if out.Empty = s.now() - quiet; len(busy) == 0 {
			break
		}
		if out.Empty > emptying {
			out.Left = busy
			break
		}
	}
	empty := s.now()
	for until := max(began+restTime-3*time.Second, empty+staying); s.now() < until; { // it has to stay so
		busy, err := s.busy()
		if err != nil {
			return err
		}
		for _, b := range busy {
			if !slices.Contains(out.Left, b) {
				out.Left = append(out.Left, b)
			}
		}
		out.Stayed = s.now() - empty
		time.Sleep(500 * time.Millisecond)
	}
	if err := s.settle(&out); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Took = s.now() - began
	s.r.Rests = append(s.r.Rests, out)
	s.Say("%v: at rest, empty after %v, left %q, differs %q", s.now().Round(time.Second), out.Empty.Round(time.Millisecond), out.Left, out.Differs)
	return nil
}

// busy says what is there that must not be at rest.
func (s *stage) busy() ([]string, error) {
	st, err := s.operator.state()
	if err != nil {
		return nil, err
	}
	m, err := s.scrape()
	if err != nil {
		return nil, err
	}
	left, unseen := st.left()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing(CritRest, unseen)
	for _, w := range gauges {
		m.each(w.name, func(key string, v float64) {
			if v != 0 {
				left = append(left, fmt.Sprintf("%s is %g", key, v))
			}
		})
	}
	return left, nil
}

// settle compares all who count.
func (s *stage) settle(out *Rest) error {
	sample, m, err := s.sample()
	if err != nil {
		return err
	}
	if err := s.ledger.catchUp(); err != nil {
		return err
	}
	out.Heap, out.Gorout, out.Files = sample.Heap, sample.Goroutines, sample.Files
	out.Told, out.Lines = s.tally.sum(), s.ledger.b.Lines
	out.Differs = slices.Concat(m.unbalanced(), s.ledger.b.differs(m), s.ledger.b.disagrees(out.Told))
	if lines, there := m.values[logLines+`{log="access"}`]; there && int(lines) != s.ledger.b.Lines {
		out.Differs = append(out.Differs, fmt.Sprintf("the access log has %d lines, the metrics say %.0f", s.ledger.b.Lines, lines))
	}
	s.r.Dropped = int(m.sum(logDropped))
	s.r.Outcomes = nil
	m.each(ended, func(key string, v float64) {
		if v > 0 {
			s.r.Outcomes = append(s.r.Outcomes, Outcome{label(key, "limiter"), label(key, "outcome"), label(key, "reason"), int(v)})
		}
	})
	slices.SortFunc(s.r.Outcomes, func(a, b Outcome) int {
		return strings.Compare(a.Class+" "+a.Outcome+" "+a.Reason, b.Class+" "+b.Outcome+" "+b.Reason)
	})
	return nil
}

// sum sums up the classes over the seconds that are judged.
func (s *stage) sum() {
	t := s.tally
	t.mu.Lock() // a client may be there still
	defer t.mu.Unlock()
	slices.Sort(t.late)
	s.r.LateP99, s.r.LateMost = at(t.late, 0.99), at(t.late, 1)
	judged := s.judged()
	s.seconds(judged)
	s.r.Calm = t.inCalm(s.calm(len(judged)))
	for i, name := range []string{classPlain, classAuto} {
		c := Class{Name: name}
		var work, held time.Duration
		for sec, is := range judged {
			if !is {
				continue
			}
			x := t.classes[i].seconds[sec]
			c.Seconds++
			c.Offered += x.offered
			c.InTime += x.inTime
			work += x.work
			held += x.held
		}
		if held > 0 {
			c.Speed = work.Seconds() / held.Seconds()
		}
		for _, deadline := range []time.Duration{shortDeadline, longDeadline, deadlineCap} {
			var took []time.Duration
			for _, l := range t.classes[i].admits {
				if l.deadline == deadline && int(l.second) < len(judged) && judged[l.second] {
					took = append(took, l.took)
				}
			}
			if slices.Sort(took); len(took) > 0 {
				c.Of = append(c.Of, Quantiles{deadline, len(took), at(took, 0.5), at(took, 0.99)})
			}
		}
		s.r.Classes = append(s.r.Classes, c)
	}
}

// seconds keeps what was seen second by second.
func (s *stage) seconds(judged []bool) {
	t := s.tally
	s.r.Seconds = make([]Second, len(judged))
	for sec := range judged {
		x := Second{Judged: judged[sec], Late: t.worst[sec]}
		for i, c := range t.classes {
			x.Offered[i], x.InTime[i] = c.seconds[sec].offered, c.seconds[sec].inTime
		}
		s.r.Seconds[sec] = x
	}
	for i, c := range t.classes {
		for _, l := range c.admits {
			if l.took > objective && int(l.second) < len(judged) {
				s.r.Seconds[l.second].Above[i]++
			}
		}
	}
}

// judged says which seconds of the run are: those behind the warm-up in which no server was away
// or coming back, no rest was, and no request was sent late.
func (s *stage) judged() []bool {
	is := s.undisturbed(int(min(s.Length, s.r.Took) / time.Second))
	for sec := range is {
		is[sec] = is[sec] && time.Duration(sec)*time.Second >= s.Warm
		if is[sec] && s.tally.worst[sec] > lateMost {
			is[sec] = false
			s.r.Busy++
		}
	}
	return is
}

// undisturbed are the seconds in which no server was away or coming back, and no rest was.
func (s *stage) undisturbed(n int) []bool {
	is := make([]bool, n)
	for sec := range is {
		from := time.Duration(sec) * time.Second
		is[sec] = true
		for _, d := range s.disturbed {
			if from+time.Second > d.from && from < d.to {
				is[sec] = false
			}
		}
	}
	return is
}

// calm are those of them in which no request was sent late; the warm-up has some too.
func (s *stage) calm(n int) []bool {
	is := s.undisturbed(n)
	for sec := range is {
		is[sec] = is[sec] && s.tally.worst[sec] <= lateMost
	}
	return is
}

// inCalm counts what began and ended in calm. The caller holds the lock.
func (t *tally) inCalm(calm []bool) *Calm {
	whole := func(from, to time.Duration) bool {
		for sec := int(from / time.Second); sec <= int(to/time.Second); sec++ {
			if sec >= len(calm) || !calm[sec] {
				return false
			}
		}
		return true
	}
	c := new(Calm)
	for sec := range calm {
		if at := time.Duration(sec) * time.Second; whole(at, at+deadlineCap+patience) {
			c.Requests += t.classes[0].seconds[sec].offered + t.classes[1].seconds[sec].offered
		}
	}
	for _, m := range t.amiss {
		switch {
		case !whole(m.from, m.to):
		case m.end == hung:
			c.Hung++
		case m.end == lost:
			c.Lost++
		default:
			c.Failed++
		}
	}
	return c
}

// at returns a quantile of what is sorted, by the nearest rank: 0 of nothing.
func at(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}
