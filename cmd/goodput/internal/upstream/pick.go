package upstream

import (
	"math/rand/v2"
	"slices"
)

// Which server takes the next request. Picks take turns: while one compares what the servers
// have in flight these counts can only fall. So as long as fewer are in flight than the
// limits sum up to, it finds a server with room, and none has more than its limit. Two
// that compare at the same time could both see the last slot of a server, or, worse, one
// that is full before its slot comes free and another one that has filled up meanwhile.

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
	p.picks.Lock()
	defer p.picks.Unlock()
	best := least(*p.all.Load(), tried)
	if best != nil {
		best.inFlight.Add(1)
	}
	return best
}

// least returns the server.
func least(members []member, tried []*server) (best *server) {
	var used float64
	alike := uint64(1)
	luck := uint64(0) // drawn when two are alike
	for i := range members {
		m := &members[i]
		share := m.share.Load()
		if share == 0 || slices.Contains(tried, m.server) {
			continue
		}
		part := float64(m.inFlight.Load()+1) / (m.weight * float64(share))
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
		best, used = m.server, part
	}
	return best
}
