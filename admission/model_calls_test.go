package admission

import "slices"

// The calls of the model other than offer.

func (m *model) release(e End) {
	if e.Exempt {
		m.probe--
		return
	}
	m.inUse, m.runs = m.inUse-max(e.Cost, 1), m.runs-1
	m.counts.outcomes[e.Outcome]++
	m.dispatch()
}

func (m *model) cancel(p *place, why Reason) bool {
	if p.verdict != Queued {
		return true
	}
	if why == None {
		if why = m.over(p); why == None {
			m.arm(p)
			return false
		}
	}
	m.leave(p, Refused, why)
	m.reorder()
	m.dispatch()
	return true
}

func (m *model) setLimit(n int) {
	if n != m.limit {
		m.counts.limitChanges++
	}
	m.limit = n
	m.dropAll(TooCostly, func(p *place) bool { return n > 0 && p.Cost > n })
	m.dispatch()
}

func (m *model) dropAll(why Reason, pick func(*place) bool) {
	for pr := Critical; pr <= Background; pr++ {
		for _, p := range m.line(pr) {
			if pick(p) {
				m.tell(p, why)
			}
		}
	}
}

func (m *model) reconfigure(cfg Config, limit int) {
	if m.cfg.Order != Auto && cfg.Order == Auto {
		m.order = FIFO
	}
	m.configure(cfg)
	for len(m.queue) > m.cfg.MaxItems {
		m.tell(m.hindmost(0), QueueFull)
	}
	for _, b := m.sums(); b > m.cfg.MaxBytes; _, b = m.sums() {
		m.tell(m.hindmost(1), BytesFull)
	}
	m.setLimit(limit)
}

// hindmost is who gives way first of those that hold at least so many bytes.
func (m *model) hindmost(bytes int64) *place {
	for pr := Background; ; pr-- {
		l := m.line(pr)
		if m.order != NewestFirst {
			slices.Reverse(l)
		}
		for _, retries := range []bool{true, false} {
			from := l
			if retries {
				from = m.queue // retries in the order of offer
			}
			for _, p := range from {
				if p.Priority == pr && p.Bytes >= bytes && (!retries || p.retry()) {
					return p
				}
			}
		}
	}
}

func (m *model) lend() int {
	if len(m.queue) > 0 || m.drain || m.lent > 0 {
		return 0
	}
	m.lent = max(0, m.free())
	return m.lent
}

func (m *model) settle(s Settlement) {
	for o, n := range s.Ended {
		m.counts.outcomes[o] += uint64(n)
		m.runs -= int(n)
	}
	m.inUse, m.lent = m.inUse+m.lent-s.Free, 0
	m.runs += int(s.Admitted)
	m.counts.arrivals += uint64(s.Admitted)
	m.counts.immediate += uint64(s.Admitted)
	m.dispatch()
}

// stats are those that the model knows.
func (m *model) stats() Stats {
	cost, bytes := m.sums()
	s := Stats{
		Limit: m.limit, InUse: m.inUse, Running: m.runs, Waiting: len(m.queue), WaitingCost: cost,
		WaitingBytes: bytes, Exempt: m.probe, Age: m.age(), Order: m.order, Draining: m.drain,
		Arrivals: m.counts.arrivals, Immediate: m.counts.immediate, Dequeued: m.counts.dequeued,
		Outcomes: m.counts.outcomes, Refusals: m.counts.refusals,
		ExemptAdmitted: m.counts.exempt, LimitChanges: m.counts.limitChanges,
	}
	for _, p := range m.queue {
		s.WaitingBy[p.Priority-1] += p.Cost
	}
	return s
}
