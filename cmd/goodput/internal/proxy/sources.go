package proxy

import (
	"net/http/httputil"
	"sync/atomic"

	"github.com/goodput/goodput/goodputhttp"
)

// deadlineSources are what may set the deadline of a request: the headers that
// goodputhttp reads, the configuration, and nothing. A request with several
// headers has the deadline of the shortest, and which one that was cannot be
// seen from its answer: an operator whose requests expire early asks for it.
// The context of a request that arrived here has no deadline of its own.
var deadlineSources = [...]string{
	"Grpc-Timeout", "Connect-Timeout-Ms", "X-Envoy-Expected-Rq-Timeout-Ms", "Expect-Within",
	"configured", // one of the headers that a class reads beside those
	"default", "cap", "none",
}

// configured is where headers are counted that an operator has named.
const configured = 4

// sources counts requests by what set their deadline.
type sources [len(deadlineSources)]atomic.Uint64

// count takes a Source of goodputhttp.Budget.
func (s *sources) count(source string) {
	if source == "" {
		source = "none"
	}
	for i, known := range deadlineSources {
		if known == source {
			s[i].Add(1)
			return
		}
	}
	s[configured].Add(1)
}

// Deadlines returns how many requests were forwarded, by what set their
// deadline; every source is there.
func (p *Proxy) Deadlines() map[string]uint64 {
	counts := make(map[string]uint64, len(deadlineSources))
	for i, source := range deadlineSources {
		counts[source] = p.sources[i].Load()
	}
	return counts
}

// forwardBudget tells the upstream how much time is left after the queue, so
// that it does not work longer than the client waits.
func (p *Proxy) forwardBudget(r *httputil.ProxyRequest) {
	ctx := r.In.Context()
	p.sources.count(goodputhttp.BudgetFrom(ctx).Source)
	goodputhttp.ForwardDeadline(ctx, r.Out.Header)
}
