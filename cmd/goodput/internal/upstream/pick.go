package upstream

import (
	"math/rand/v2"
	"slices"
)

// Which server takes the next request. There is no lock: each server counts what it has in
// flight, a pick compares the counts, and takes its place by a compare-and-swap, so
// that two at the same time do not both take the last slot of one server.

// A member is a server with its weight beside the others: its limit, and where nobody has said
// one, the mean of those that were said, else 1.
type member struct {
	*server
	weight float64
}

// weigh sets the weights.
func weigh(members []member) {
	said, sum := 0.0, 0.0
	for _, m := range members {
		if n := m.limit.Load(); n > 0 {
			said, sum = said+1, sum+float64(n)
		}
	}
	for i := range members {
		switch n := members[i].limit.Load(); {
		case n > 0:
			members[i].weight = float64(n)
		case said > 0:
			members[i].weight = sum / said
		default:
			members[i].weight = 1
		}
	}
}

// pick returns the server that takes the next request and counts it there: of those that are
// well and not among tried the one of which the smallest part would be in use, by its weight
// and its share while it starts slowly. Without limits that is the one with the least in
// flight. Of several that are alike each is as likely. nil: there is none.
func (p *Pool) pick(tried []*server) *server {
	members := *p.all.Load()
	for races := 0; ; races++ {
		best, n := least(members, tried)
		if best == nil {
			return nil
		}
		if best.inFlight.CompareAndSwap(n, n+1) {
			return best
		}
		if races == maxRaces {
			best.inFlight.Add(1)
			return best
		}
	}
}

// maxRaces is how often a pick looks again because another one was faster: each time somebody
// got on, and after so many it takes a server that was the best a moment ago.
const maxRaces = 8

// least returns the server and what it has in flight.
func least(members []member, tried []*server) (best *server, inFlight int64) {
	var used float64
	alike := uint64(1)
	luck := uint64(0) // drawn when two are alike
	for i := range members {
		m := &members[i]
		share := m.share.Load()
		if share == 0 || slices.Contains(tried, m.server) {
			continue
		}
		n := m.inFlight.Load()
		part := float64(n+1) / (m.weight * float64(share))
		switch {
		case best == nil || part < used:
			alike = 1
		case part > used:
			continue
		default:
			// The k-th that is alike takes the place of the one before with the chance 1/k.
			if alike++; luck == 0 {
				luck = rand.Uint64() | 1
			}
			if luck *= 0x9E3779B97F4A7C15; luck>>32%alike != 0 {
				continue
			}
		}
		best, inFlight, used = m.server, n, part
	}
	return best, inFlight
}
