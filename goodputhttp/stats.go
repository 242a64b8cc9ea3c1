package goodputhttp

import "sync/atomic"

// Stats is a snapshot of what a Server counts itself. Who was admitted and who
// was refused is in the statistics of the limiters, to which every request is
// offered once, but those in SlowBodies, BadBodies and UpgradedRefused.
type Stats struct {
	// DeadlineErrors counts, by canonical header name, the requests with a
	// value that could not be read or with several of them.
	DeadlineErrors map[string]uint64

	Left         uint64 // clients that left while their request waited: nothing was sent
	SlowBodies   uint64 // answered 408: the body did not arrive in time to queue
	SlowClients  uint64 // cut off: they kept a slot waiting for longer than Server.SlowClient
	BadBodies    uint64 // answered 400: the body is malformed
	UpstreamShed uint64 // answers of Next that were themselves refusals of an overloaded service
	Held         int64  // requests that have ended and whose work goes on in their slot: see Hold
	Buffered     int64  // bytes of bodies in memory because they were read in advance

	Upgraded        int64  // upgraded connections open now
	UpgradedTotal   uint64 // upgraded connections ever
	UpgradedRefused uint64 // refused for Server.MaxUpgraded
}

type counts struct {
	deadlineErrors                            [numDialects]atomic.Uint64
	left, slowBodies, badBodies, upstreamShed atomic.Uint64
	slowClients                               atomic.Uint64
	buffered, lingering, held                 atomic.Int64
}

// Stats returns the numbers of now.
func (s *Server) Stats() Stats {
	st := Stats{
		DeadlineErrors:  make(map[string]uint64, numDialects),
		Left:            s.counts.left.Load(),
		SlowBodies:      s.counts.slowBodies.Load(),
		SlowClients:     s.counts.slowClients.Load(),
		BadBodies:       s.counts.badBodies.Load(),
		UpstreamShed:    s.counts.upstreamShed.Load(),
		Held:            s.counts.held.Load(),
		Buffered:        s.counts.buffered.Load(),
		Upgraded:        s.upgrades.open.Load(),
		UpgradedTotal:   s.upgrades.total.Load(),
		UpgradedRefused: s.upgrades.refused.Load(),
	}
	for i := range dialects {
		st.DeadlineErrors[dialects[i].header] = s.counts.deadlineErrors[i].Load()
	}
	return st
}
