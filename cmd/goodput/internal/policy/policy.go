// Package policy reads the limiter part of a policy file: what serve takes as
// flags, by the same names in snake_case, so that the words that protect a service
// are the words that simulate it.
//
//	policy:
//	  limit: 60
//	  objective: 400ms
//
// A missing key means the documented default of admission.Config, and nothing
// means unlimited.
package policy

import (
	"cmp"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
)

// A Policy is a limiter with the deadlines that it takes its requests to have.
type Policy struct {
	Limiter admission.Config

	// Deadline is that of requests that bring none; 0: they have DeadlineCap, or none.
	Deadline time.Duration
	// DeadlineCap is the longest that there is; 0: any.
	DeadlineCap time.Duration
}

// Ranges, in the words of admission.Config.
const (
	shortest = time.Millisecond
	longest  = strictyaml.Day
	maxItems = 1 << 24

	minPercentile = 0.5
	maxPercentile = 0.999
	maxExempt     = 1024
)

var (
	overflows = words(admission.Displace, admission.RefuseNewest, admission.EvictOldest, admission.Block, admission.LatestOnly)
	orders    = words(admission.Auto, admission.FIFO, admission.NewestFirst, admission.EDF)
)

// Read sets in p.Limiter what the mapping says and leaves the rest, so that it
// reads a policy and overrides of one alike. It does not call m.Done: there may be keys of
// the caller. What it cannot read is an error of the file.
func (p *Policy) Read(m *strictyaml.Map) {
	c := &p.Limiter
	if n := m.Get("limit"); n.Present() {
		if law := ReadLimit(n); law != nil {
			c.Limit = law
		}
	}
	set(&c.Allowance, m.Get("allowance"), allowance)
	set(&c.Objective, m.Get("objective"), span)
	set(&c.Percentile, m.Get("percentile"), func(n strictyaml.Node) float64 { return n.Number(minPercentile, maxPercentile) })
	set(&c.Service, m.Get("service"), func(n strictyaml.Node) time.Duration { return n.Span(1, longest) })
	set(&c.Depth, m.Get("depth"), depth)
	set(&c.MaxItems, m.Get("max_waiting"), func(n strictyaml.Node) int { return int(n.Whole(1, maxItems)) })
	set(&c.MaxBytes, m.Get("max_queue_bytes"), strictyaml.Node.Size)
	set(&c.MaxWait, m.Get("max_wait"), span)
	set(&c.Overflow, m.Get("overflow"), func(n strictyaml.Node) admission.Overflow { return admission.Overflow(n.Word(overflows...)) })
	set(&c.Order, m.Get("order"), func(n strictyaml.Node) admission.Order { return admission.Order(n.Word(orders...)) })
	set(&c.Durable, m.Get("durable"), strictyaml.Node.Bool)
	set(&c.Tenants, m.Get("tenants"), tenants)
	set(&c.Reserve, m.Get("reserve"), reserve)
	set(&c.Exempt, m.Get("exempt"), func(n strictyaml.Node) int { return int(n.Whole(1, maxExempt)) })
}

// ReadDeadlines is Read for the two keys that are about requests, not about the
// limiter. none takes back what was said before.
func (p *Policy) ReadDeadlines(m *strictyaml.Map) {
	set(&p.Deadline, m.Get("deadline"), spanOrNone)
	set(&p.DeadlineCap, m.Get("deadline_cap"), spanOrNone)
}

// Check adds the sentence of the first contradiction in p to the keys that it is
// about, among those of m.
func (p *Policy) Check(m *strictyaml.Map) {
	if p.Limiter.Limit == nil {
		return // reported where it was read, or is not there
	}
	if err := p.Limiter.Validate(); err != nil {
		m.Blame(err.Error())
	}
	if p.DeadlineCap != 0 && p.Deadline > p.DeadlineCap {
		m.Get("deadline").Clash(m.Get("deadline_cap"), "deadline %s is longer than deadline_cap %s: no request may have it",
			strictyaml.Short(p.Deadline), strictyaml.Short(p.DeadlineCap))
	}
}

// Told returns the deadline that a limiter is told for a request that brings one
// after a while, or none (0).
func (p *Policy) Told(brought time.Duration) time.Duration {
	switch {
	case brought == 0:
		return cmp.Or(p.Deadline, p.DeadlineCap)
	case p.DeadlineCap != 0:
		return min(brought, p.DeadlineCap)
	}
	return brought
}

func set[T any](field *T, n strictyaml.Node, read func(strictyaml.Node) T) {
	if n.Present() {
		*field = read(n)
	}
}

func span(n strictyaml.Node) time.Duration { return n.Span(shortest, longest) }

func spanOrNone(n strictyaml.Node) time.Duration {
	if n.Raw() == "none" {
		return 0
	}
	return n.SpanOr(shortest, longest, "none")
}

// allowance reads what all requests together may have: a rate, a rate with a burst, or
// none, which takes back what was said before.
//
//	allowance: 100/s
//	allowance: {rate: 100/s, burst: 20}
func allowance(n strictyaml.Node) admission.Quota {
	if n.Raw() == "none" {
		return admission.Quota{}
	}
	return quota(n)
}

// depth is a number, none, or derived, which takes back a number.
func depth(n strictyaml.Node) int {
	switch n.Raw() {
	case "none":
		return admission.NoQueue
	case "derived":
		return 0
	}
	return int(n.WholeOr(1, maxItems, "none or derived"))
}

func words[T interface{ String() string }](values ...T) []string {
	w := make([]string, len(values))
	for i, v := range values {
		w[i] = v.String()
	}
	return w
}
