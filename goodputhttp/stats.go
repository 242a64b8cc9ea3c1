package goodputhttp

import (
	"sync"
	"sync/atomic"
)

// Stats is a snapshot of what a Server counts itself. Who was admitted and who
// was refused is in the statistics of the limiters, to which every request is
// offered once, but those in SlowBodies, BadBodies, UpgradedRefused and LargeBodies; of the
// latter those have been that were cut while they ran.
type Stats struct {
	// DeadlineErrors counts, by canonical header name, the requests with a
	// value that could not be read or with several of them; with Server.Trusted also
	// X-Request-Start and X-Queue-Start, of which there may be several.
	DeadlineErrors map[string]uint64

	Left         uint64 // clients that left while their request waited: nothing was sent
	SlowBodies   uint64 // answered 408: the body did not arrive in time to queue
	SlowClients  uint64 // cut off: they kept a slot waiting for longer than Server.SlowClient
	BadBodies    uint64 // answered 400: the body is malformed
	LargeBodies  uint64 // bodies above Server.MaxBody: answered 413, or cut
	UpstreamShed uint64 // answers of Next that were themselves refusals of an overloaded service
	Held         int64  // requests that have ended and whose work goes on in their slot: see Hold
	Buffered     int64  // bytes of bodies in memory because they were read in advance

	Upgraded        int64  // upgraded connections open now
	UpgradedTotal   uint64 // upgraded connections ever
	UpgradedRefused uint64 // refused for Server.MaxUpgraded
}

type counts struct {
	deadlineErrors                            [numDialects]atomic.Uint64
	further                                   names // of Server.DeadlineHeaders
	startErrors                               [len(starts)]atomic.Uint64
	left, slowBodies, badBodies, upstreamShed atomic.Uint64
	slowClients, largeBodies                  atomic.Uint64
	buffered, lingering, held                 atomic.Int64
}

// names are counters by the names of the headers that a Server, or one that it took the
// place of, was told to read. It grows by what an operator configures and never by what
// a client sends.
type names struct {
	mu sync.Mutex
	n  map[string]*atomic.Uint64
}

func (c *names) of(name string) *atomic.Uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]*atomic.Uint64{}
	}
	if c.n[name] == nil {
		c.n[name] = new(atomic.Uint64)
	}
	return c.n[name]
}

func (c *names) addTo(counts map[string]uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, n := range c.n {
		counts[name] = n.Load()
	}
}

// books are what a Server counts, and what bounds it with the numbers in flight.
type books struct {
	counts
	upgrades upgrades
}

func (s *Server) books() *books {
	if s.shared != nil {
		return s.shared
	}
	return &s.own
}

// Succeed makes s count on where old is, whose place it takes with other settings: what
// old still has in flight counts in both, so that no bound is exceeded and no counter
// falls meanwhile. It is called once, before s serves.
func (s *Server) Succeed(old *Server) { s.shared = old.books() }

// Stats returns the numbers of now.
func (s *Server) Stats() Stats {
	b := s.books()
	st := Stats{
		DeadlineErrors:  make(map[string]uint64, numDialects),
		Left:            b.left.Load(),
		SlowBodies:      b.slowBodies.Load(),
		SlowClients:     b.slowClients.Load(),
		BadBodies:       b.badBodies.Load(),
		LargeBodies:     b.largeBodies.Load(),
		UpstreamShed:    b.upstreamShed.Load(),
		Held:            b.held.Load(),
		Buffered:        b.buffered.Load(),
		Upgraded:        b.upgrades.open.Load(),
		UpgradedTotal:   b.upgrades.total.Load(),
		UpgradedRefused: b.upgrades.refused.Load(),
	}
	for i := range dialects {
		st.DeadlineErrors[dialects[i].header] = b.deadlineErrors[i].Load()
	}
	b.further.addTo(st.DeadlineErrors)
	for i, name := range starts {
		if n := b.startErrors[i].Load(); n > 0 || s.Trusted != nil {
			st.DeadlineErrors[name] = n
		}
	}
	return st
}

// Add adds o to s, for a program with several Servers.
func (s *Stats) Add(o Stats) {
	if s.DeadlineErrors == nil {
		s.DeadlineErrors = map[string]uint64{}
	}
	for header, n := range o.DeadlineErrors {
		s.DeadlineErrors[header] += n
	}
	s.Left += o.Left
	s.SlowBodies += o.SlowBodies
	s.SlowClients += o.SlowClients
	s.BadBodies += o.BadBodies
	s.LargeBodies += o.LargeBodies
	s.UpstreamShed += o.UpstreamShed
	s.Held += o.Held
	s.Buffered += o.Buffered
	s.Upgraded += o.Upgraded
	s.UpgradedTotal += o.UpgradedTotal
	s.UpgradedRefused += o.UpgradedRefused
}
