package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goodput/goodput/internal/theory"
)

// Layers is the plan of a topology.
type Layers struct {
	Deadline  float64       `json:"deadline_seconds"`
	Layers    []LayerAnswer `json:"layers"`
	Waits     float64       `json:"waits_seconds"`    // the most that a request waits, all layers together
	Services  float64       `json:"services_seconds"` // mean, of all layers one after the other, nobody waiting
	Calls     float64       `json:"retry_amplification"`
	Resources []Use         `json:"resources"`
	Tails     []FanTail     `json:"fan_outs"`
	Narrowest string        `json:"narrowest,omitempty"`       // the layer that does the least, slots / time held
	Rate      float64       `json:"completion_rate,omitempty"` // of the whole, in requests at the door; 0: not known
	Findings  []Finding     `json:"findings"`

	in Topology
}

// LayerAnswer is one layer of a topology.
type LayerAnswer struct {
	Name       string   `json:"name"`
	Wait       float64  `json:"wait_seconds"`
	WaitReason string   `json:"wait_reason"`
	Calls      float64  `json:"retry_factor"`              // calls further in for one that arrives, if all fail
	Rate       float64  `json:"completion_rate,omitempty"` // slots / time held of all replicas, in requests at the door; 0: not known
	Hold       *Hold    `json:"hold,omitempty"`            // nil: nothing is known of its work or of that further in
	Limiter    *Limiter `json:"limiter,omitempty"`

	needs float64 // calls that arrive here for one request at the door, without retries
}

// Use is what layers may ask of a resource together.
type Use struct {
	Name   string `json:"name"`
	Limit  int    `json:"limit"`
	Range  string `json:"limit_range"`
	Demand int    `json:"demand"`
	Sum    string `json:"sum"` // the arithmetic of Demand
}

// FanTail is what a fan-out makes of a slow call.
type FanTail struct {
	Layer    string  `json:"layer"`
	Calls    int     `json:"calls"`
	Slow     float64 `json:"slow_share"`    // of requests, when each call is slow with 1 %
	Quantile float64 `json:"call_quantile"` // of one call that decides the p99 of all
}

// Check plans a topology that has no Faults.
func Check(t Topology) (*Layers, error) {
	a := &Layers{Deadline: t.Deadline.Seconds(), Calls: 1, Findings: []Finding{}, Resources: []Use{}, Tails: []FanTail{}, in: t}
	if err := a.plan(); err != nil {
		return nil, err
	}
	needs := 1.0
	for i, l := range t.Layers {
		one := &a.Layers[i]
		one.needs = needs
		if h := one.Hold; h != nil {
			one.Rate = h.Door / needs
			if a.Services == 0 {
				a.Services, a.Rate = h.Held, h.Rate/needs
			}
			if one.Rate > 0 && (a.Narrowest == "" || one.Rate < a.layer(a.Narrowest).Rate) {
				a.Narrowest = l.Name
			}
		}
		a.Waits += one.Wait
		a.Calls *= one.Calls
		needs *= float64(l.fanOut())
		if l.fanOut() > 1 {
			a.Tails = append(a.Tails, FanTail{l.Name, l.fanOut(), theory.FanOutSlow(l.fanOut(), 0.01), theory.FanOutQuantile(l.fanOut(), 0.99)})
		}
	}
	a.Waits, a.Services = seconds(a.Waits).Seconds(), seconds(a.Services).Seconds() // 2.4, not 2.4000000000000004
	a.checkWaits()
	a.checkObjectives()
	a.checkAttempts()
	a.checkDoors()
	for _, r := range t.Resources {
		a.checkResource(r)
	}
	a.checkRetries()
	for i, l := range t.Layers {
		a.checkLayer(l, a.Layers[i])
	}
	return a, nil
}

// layer returns the layer of a name.
func (a *Layers) layer(name string) *LayerAnswer {
	for i := range a.Layers {
		if a.Layers[i].Name == name {
			return &a.Layers[i]
		}
	}
	return nil
}

// plan plans each layer by itself, from the bottom up: a slot is held for what is
// further in, its waits included, and nobody waits longer there than its queue
// takes.
func (a *Layers) plan() error {
	a.Layers = make([]LayerAnswer, len(a.in.Layers))
	holds := a.in.holds()
	further := 0.0
	for i := len(a.Layers) - 1; i >= 0; i-- {
		l, h, one := a.in.Layers[i], &holds[i], &a.Layers[i]
		*one = LayerAnswer{Name: l.Name, Calls: l.amplifies()}
		if h.work != nil {
			if h.Waits = min(h.Waits, further); !h.waitsMatter() {
				h.Waits = 0
			}
			one.Hold = h
		}
		if l.planned() {
			in := l.input(a.in.Deadline)
			in.within = h.inside()
			p, err := New(in)
			if err != nil {
				return fmt.Errorf("layer %s: %w", l.Name, err)
			}
			one.Limiter = p
		}
		one.Wait, one.WaitReason = l.waits(one)
		further += one.Wait
	}
	return nil
}

// waits returns the most that a request waits in a layer, in seconds, and why. Not
// more can wait than the slots outside send, less those that have a slot.
func (l Layer) waits(one *LayerAnswer) (float64, string) {
	p, h := one.Limiter, one.Hold
	if p == nil {
		if l.Wait > 0 {
			return l.Wait.Seconds(), "its bound"
		}
		return 0, "nothing is said of it"
	}
	wait, why := p.LastWait, fmt.Sprintf("derived depth %d / %s", p.Depth, perSecond(p.CompletionRate))
	switch {
	case l.Wait > 0:
		wait, why = l.Wait.Seconds(), "its bound"
	case l.Depth > 0:
		wait, why = float64(l.Depth)/p.CompletionRate, fmt.Sprintf("depth %d / %s", l.Depth, perSecond(p.CompletionRate))
	}
	if h.Outside == 0 {
		return wait, why
	}
	left := max(0, h.Outside-h.Slots)
	if most := float64(left) / h.Rate; most < wait {
		if left == 0 {
			return 0, fmt.Sprintf("at most %d come at once for %s", h.Outside, plural(h.Slots, "slot"))
		}
		return most, fmt.Sprintf("at most %d come at once for %s: %d / %s", h.Outside, plural(h.Slots, "slot"), left, perSecond(h.Rate))
	}
	return wait, why
}

// amplifies returns how many calls a layer makes for one that it gets, if they
// all fail: its attempts, or 1 + its retry budget if that is less.
func (l Layer) amplifies() float64 {
	n := float64(l.attempts())
	if l.RetryBudget > 0 {
		n = min(n, 1+l.RetryBudget)
	}
	return n
}

func (a *Layers) add(level Level, code, where, text, fix string) {
	a.Findings = append(a.Findings, Finding{level, code, where, text, fix})
}

// checkWaits: all waits and all work must fit the deadline of the caller.
func (a *Layers) checkWaits() {
	var terms []string
	longest := 0
	for i, l := range a.Layers {
		if l.Wait > 0 {
			terms = append(terms, brief(l.Wait))
		}
		if l.Wait > a.Layers[longest].Wait {
			longest = i
		}
	}
	sum := strings.Join(terms, " + ")
	work := ""
	if a.Services > 0 {
		work = fmt.Sprintf(" and %s of mean service", brief(a.Services))
	}
	over := a.Waits + a.Services - a.Deadline
	if over <= 1e-9 {
		return
	}
	l := a.Layers[longest]
	fix := fmt.Sprintf("the deadline from %s to %s", brief(a.Deadline), brief(ceilMillis(a.Deadline+over)))
	if l.Wait > over {
		fix = fmt.Sprintf("the wait in %s from %s to %s, or %s", l.Name, brief(l.Wait), brief(math.Floor((l.Wait-over)*1000+1e-6)/1000), fix)
	} else if a.Deadline > a.Services {
		fix = fmt.Sprintf("every wait to %s of what it is, or %s", percent(math.Floor(1000*(a.Deadline-a.Services)/a.Waits)/1000), fix)
	}
	a.add(Error, "waits_exceed_deadline", "",
		fmt.Sprintf("the waits of the layers add up to %s = %s%s; the deadline is %s: a request may wait its full time everywhere, break no bound, and be %s late.",
			sum, brief(a.Waits), work, brief(a.Deadline), brief(over)),
		"change "+fix+".")
}

// checkObjectives: what a layer promises includes the waits further in.
func (a *Layers) checkObjectives() {
	further := 0.0
	for i := len(a.Layers) - 1; i >= 0; i-- {
		l, objective := a.Layers[i], a.in.Layers[i].Objective.Seconds()
		if l.Hold == nil {
			further += l.Wait
			continue
		}
		// A percent is for the rounding of a derived depth.
		if all := l.Wait + further + l.Hold.Held; objective > 0 && further > 0 && all > 1.01*objective {
			a.add(Warning, "waits_exceed_objective", l.Name,
				fmt.Sprintf("its objective is %s, and a request that it admits may wait %s here and %s further in, and work %s: %s.",
					brief(objective), brief(l.Wait), brief(further), brief(l.Hold.Held), brief(all)),
				fmt.Sprintf("an objective of %s, or shorter queues further in.", brief(ceilMillis(all))))
		}
		further += l.Wait
	}
}

// checkAttempts: each attempt waits again further in. From the bottom up, the
// longest time in a layer is its wait, its work, and its attempts times that of the
// next layer.
func (a *Layers) checkAttempts() {
	if a.Waits+a.Services > a.Deadline {
		return // said already: not even one attempt fits
	}
	inner := 0.0
	for i := len(a.Layers) - 1; i >= 0; i-- {
		l, tries := a.Layers[i], float64(a.in.Layers[i].attempts())
		own := l.Wait
		if l.Hold != nil {
			own += l.Hold.Own
		}
		if all := tries * inner; tries > 1 && all > a.Deadline {
			a.add(Warning, "attempts_exceed_deadline", l.Name,
				fmt.Sprintf("its %.0f attempts may take %.0f x %s = %s further in; the deadline is %s: the last attempts are for nobody.", tries, tries, brief(inner), brief(all), brief(a.Deadline)),
				fmt.Sprintf("at most %.0f attempts, or stop them at the deadline of the caller instead of giving each its own.", max(1, math.Floor(a.Deadline/inner))))
			return
		}
		inner = own + tries*inner
	}
}

// checkResource: limit x workers x replicas of all layers that use it.
func (a *Layers) checkResource(r Resource) {
	u := Use{Name: r.Name, Limit: r.limit(), Range: r.Limit.String()}
	var terms []string
	var biggest Layer
	most, surge := 0, 0
	for _, l := range a.in.Layers {
		if l.Resource != r.Name {
			continue
		}
		_, replicas := l.replicas()
		n := l.Limit * l.holds() * l.limits() * replicas
		text := fmt.Sprintf("%d x %d", replicas, l.Limit)
		if l.Surge > 0 {
			text = fmt.Sprintf("(%d + %d) x %d", replicas-l.Surge, l.Surge, l.Limit)
		}
		if l.limits() > 1 {
			text += fmt.Sprintf(" x %d workers", l.limits())
		}
		if l.holds() > 1 {
			text += fmt.Sprintf(" x %d held", l.holds())
		}
		terms = append(terms, text)
		u.Demand += n
		surge += l.Limit * l.holds() * l.limits() * l.Surge
		if n > most {
			most, biggest = n, l
		}
	}
	u.Sum = strings.Join(terms, " + ")
	a.Resources = append(a.Resources, u)
	if u.Demand <= u.Limit {
		return
	}
	which := ""
	if r.Limit.Min != r.Limit.Max {
		which = fmt.Sprintf(" (the smallest of %s, to which it may be scaled in)", r.Limit)
		if r.Largest {
			which = fmt.Sprintf(" (the largest of %s, as the file says)", r.Limit)
		}
	}
	when := ""
	if u.Demand-surge <= u.Limit {
		when = fmt.Sprintf(" while a release rolls out; %d at other times", u.Demand-surge)
	}
	a.add(Error, "resource_overcommitted", r.Name,
		fmt.Sprintf("%s = %d may be asked of it%s, and it has %d%s: each limit may be right alone, together they are %.3g times too many.",
			u.Sum, u.Demand, when, u.Limit, which, float64(u.Demand)/float64(u.Limit)),
		"change "+biggest.fit(r.Name, u.Limit, u.Demand, most)+"; or lease the budget to the replicas by demand.")
}

// fit names the smallest changes after which no more than limit is asked of a resource:
// of the demand on it now, mine is that of l, which asks most.
func (l Layer) fit(resource string, limit, demand, mine int) string {
	_, replicas := l.replicas()
	one := l.Limit * l.holds() * l.limits()  // slots for each replica
	per := l.holds() * l.limits() * replicas // slots for each unit of the limit
	left, others := limit-(demand-mine), demand-mine
	changes := []string{fmt.Sprintf("%s to at least %d", resource, demand)}
	if left >= per {
		changes = append(changes, fmt.Sprintf("the limit of %s from %d to %d (%d in all)", l.Name, l.Limit, left/per, others+left/per*per))
	} else if left >= one {
		changes = append(changes, fmt.Sprintf("the replicas of %s from %d to %d", l.Name, replicas, left/one))
	}
	// A smaller surge costs a slower release, and nothing else.
	if surge := left/one - (replicas - l.Surge); l.Surge > 0 && left > 0 && surge >= 1 {
		changes = append(changes, fmt.Sprintf("the surge of %s from %d to %d (%d in all)", l.Name, l.Surge, surge, others+left/one*one))
	}
	slices.Reverse(changes)
	return strings.Join(changes, ", or ")
}

// checkRetries: attempts of layers multiply.
func (a *Layers) checkRetries() {
	var factors []string
	var worst LayerAnswer
	budgeted := 1.0
	for _, l := range a.Layers {
		if l.Calls > 1 {
			factors = append(factors, figures(l.Calls))
			budgeted *= min(l.Calls, 1.1)
		}
		if l.Calls > worst.Calls {
			worst = l
		}
	}
	if len(factors) < 2 || a.Calls <= 2 {
		return
	}
	rates := ""
	if a.Rate > 0 {
		rates = fmt.Sprintf(" At the %s that the whole does these are %s.", perSecond(a.Rate), perSecond(a.Calls*a.Rate))
	}
	a.add(Warning, "retries_multiply", "",
		fmt.Sprintf("%d layers retry: one request at the door becomes %s = %s calls at the bottom while that fails, the load that keeps it down.%s",
			len(factors), strings.Join(factors, " x "), figures(a.Calls), rates),
		fmt.Sprintf("retry in one layer only (%s calls in %s), or give each a retry budget of 10 %% (%s calls).", figures(worst.Calls), worst.Name, figures(round3(budgeted))))
}

// checkLayer: what is wrong with one layer.
func (a *Layers) checkLayer(l Layer, one LayerAnswer) {
	if one.Limiter != nil {
		for _, f := range one.Limiter.Findings {
			f.Where = l.Name
			a.Findings = append(a.Findings, f)
		}
	} else if l.RetryInterval > 0 && l.Loop >= l.RetryInterval {
		a.Findings = append(a.Findings, slowLoop(l.Name, l.Loop.Seconds(), l.RetryInterval.Seconds()))
	}
	if n := l.limits(); n > 1 && l.Limit > 0 {
		a.add(Warning, "limits_multiply", l.Name,
			fmt.Sprintf("%d processes of one host have a limit of %d each: the host runs %d x %d = %d at once.", n, l.Limit, n, l.Limit, n*l.Limit),
			fmt.Sprintf("a limit of %d each, or one limiter for the host (shared: true), if %d is what the host can do.", max(1, l.Limit/n), l.Limit))
	}
	if n := l.holds(); n > 1 && l.Resource != "" {
		a.checkHolds(l, n)
	}
	if n := l.fanOut(); n > 1 {
		slow := theory.FanOutSlow(n, 0.01)
		if slow > 0.1 {
			a.add(Warning, "fan_out_tail", l.Name,
				fmt.Sprintf("a request waits for the slowest of %d calls: with 1 %% of the calls slow, 1 - 0.99^%d = %s of the requests are; its p99 is the %s of one call.",
					n, n, percent(slow), fineQuantile(theory.FanOutQuantile(n, 0.99))),
				fmt.Sprintf("set the objective of the calls at %s instead of p99, or answer with what has come in time.", fineQuantile(theory.FanOutQuantile(n, 0.99))))
		}
	}
}

// checkHolds: requests that hold one slot while they wait for another one can all
// hold one and wait for ever. parallel x (n - 1) + 1 slots let one of them end.
func (a *Layers) checkHolds(l Layer, n int) {
	for _, r := range a.in.Resources {
		if r.Name != l.Resource {
			continue
		}
		_, replicas := l.replicas()
		parallel := l.Limit * l.limits() * replicas
		least := parallel*(n-1) + 1
		if r.limit() >= least {
			continue
		}
		a.add(Error, "held_slots_deadlock", l.Name,
			fmt.Sprintf("each request holds %d slots of %s at once: %d in parallel may hold %d each and wait for the last, for ever. The smallest pool that cannot is %d x (%d - 1) + 1 = %d; it has %d.",
				n, r.Name, parallel, n-1, parallel, n, least, r.limit()),
			fmt.Sprintf("change the requests in parallel from %d to %d, or %s to %d; better, hold one slot at a time.", parallel, (r.limit()-1)/(n-1), r.Name, least))
	}
}

// fineQuantile returns "p99.99" for 0.9999.
func fineQuantile(q float64) string {
	digits := min(max(0, int(math.Ceil(-math.Log10(1-q)))-1), 6)
	text := fmt.Sprintf("p%.*f", digits, 100*q)
	if digits > 0 {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}
