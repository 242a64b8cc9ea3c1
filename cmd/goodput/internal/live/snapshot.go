package live

import (
	"time"

	"github.com/goodput/goodput"
)

// topTenants is how many of those who ask for most are shown: what fits a screen.
const topTenants = 10

// A Snapshot is one limiter at one instant.
type Snapshot struct {
	Stats   goodput.Stats
	Tenants []goodput.TenantState // those who ask for most, at most ten

	limiter *goodput.Limiter
	refused []goodput.Refusal // of a tick alone
	at      time.Time
}

// Take takes a snapshot of a limiter.
//
// A rate needs the instant of its counts. Where all processors are busy the goroutine may be
// preempted between the clock and the counts, for 10 ms (a time slice of the Go scheduler) and
// for each goroutine before it in the line. So the clock is read on both sides, and if they
// are further apart than a slice the snapshot is taken again; after the third time the middle
// has to do.
func Take(l *goodput.Limiter) Snapshot {
	const slice, tries = 10 * time.Millisecond, 3
	s := Snapshot{limiter: l}
	for range tries {
		before := time.Now()
		s.Stats = l.Stats()
		took := time.Since(before)
		s.at = before.Add(took / 2)
		if took <= slice {
			break
		}
	}
	s.Tenants = l.Tenants(topTenants)
	return s
}

// A track is what is remembered of a limiter from one tick to the next.
type track struct {
	last      *Snapshot // nil: this is the first
	window    window
	observing time.Time // the first tick of those up to the last in which it observed; zero: it did not
}

// follow returns what a tick says of the limiter in the snapshot s, but for the explanation.
// Without a last snapshot the rates are 0: what happened is known, and not in which time.
func (t *track) follow(s *Snapshot) View {
	was := t.last
	if was == nil {
		was = s
	}
	elapsed := s.at.Sub(was.at)
	v := View{Name: s.Stats.Name, Rates: ratesOf(&was.Stats, &s.Stats, elapsed), Tenants: []Tenant{}}
	switch {
	case !s.Stats.Observe:
		t.observing = time.Time{}
	case t.observing.IsZero():
		t.observing = s.at
	}
	if s.Stats.Observe {
		v.ObservingSeconds = new(s.at.Sub(t.observing).Seconds())
	}
	length, q := t.window.look(s.at, &s.Stats)
	v.WindowSeconds = length.Seconds()
	v.Latency, v.Wait, v.Service = q[ofLatency], q[ofWait], q[ofService]
	for _, now := range s.Tenants {
		v.Tenants = append(v.Tenants, tenantOf(was.Tenants, now, elapsed))
	}
	t.last = s
	return v
}

// tenantOf returns what a tick says of a tenant. What it was served is known if it was among
// the first ten at the tick before as well.
func tenantOf(before []goodput.TenantState, now goodput.TenantState, elapsed time.Duration) Tenant {
	t := Tenant{ID: now.ID}
	for _, was := range before {
		if was.ID == now.ID && elapsed > 0 {
			t.Served = since(was.Granted, now.Granted) / elapsed.Seconds()
		}
	}
	return t
}
