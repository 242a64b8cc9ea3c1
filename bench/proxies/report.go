package proxies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Report is what one run measured.
type Report struct {
	Processors int               `json:"processors"`
	Go         string            `json:"go"`
	Versions   map[string]string `json:"versions"` // of the contestants that tell theirs
	Costs      []*Cost           `json:"costs,omitempty"`
	Overloads  []*Overload       `json:"overloads,omitempty"`
	Memories   []*Memory         `json:"memories,omitempty"`
	Numbers    []Number          `json:"numbers"`
}

// A Spread is what several passes made of one number.
type Spread struct {
	Median   float64 `json:"median"`
	Smallest float64 `json:"smallest"`
	Largest  float64 `json:"largest"`
}

// SpreadOf returns the spread of v, zero without values.
func SpreadOf(v []float64) Spread {
	if len(v) == 0 {
		return Spread{}
	}
	v = slices.Sorted(slices.Values(v))
	middle := v[len(v)/2]
	if len(v)%2 == 0 {
		middle = (v[len(v)/2-1] + v[len(v)/2]) / 2
	}
	return Spread{middle, v[0], v[len(v)-1]}
}

// over returns a/b of each pass.
func over(a, b []float64) []float64 {
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = a[i] / b[i]
	}
	return ratios
}

// A Number is one that the project is to reach, and what the run says of it.
type Number struct {
	Key  string `json:"key"` // one of the Keys, and of what: by it others find the number
	What string `json:"what"`
	Spread
	Bound float64 `json:"bound"`
	Least bool    `json:"least"` // the bound is the least that is good; else the most
	Note  string  `json:"note,omitempty"`
	Void  bool    `json:"void,omitempty"` // what it is made of says nothing

	// Floor is the same of the least that net/http can do; 0: there is none. A bound that is
	// below it is nobody's to reach.
	Floor float64 `json:"floor,omitempty"`
}

// OutOfReach reports whether the floor itself is on the wrong side of the bound.
func (n Number) OutOfReach() bool { return !n.Least && n.Floor > n.Bound }

// Missed reports whether the median is on the wrong side of a bound that can be reached.
func (n Number) Missed() bool {
	switch {
	case n.Void:
		return true // a number that was not measured was not reached
	case n.OutOfReach():
		return false
	case n.Least:
		return n.Median < n.Bound
	}
	return n.Median > n.Bound
}

// The numbers to reach.
const (
	leastOfBare  = 0.93       // of the requests per processor second of the bare proxy
	leastOfCaddy = 1.1        // of Caddy's
	mostRefusal  = 0.3        // of the processor time of a pass
	mostOfFloor  = 0.3 / 0.18 // of that of net/http's cheapest, which was 0.18 of a pass when the 0.3 was set
	leastOfBest  = 0.99       // of the goodput of the best rival
	leastAt3     = 0.97       // of capacity, at three times as much
	leastAt10    = 0.95       // at ten times
	mostMemory   = 24 * 1024  // bytes beside the body
)

// Keys of numbers, before a protocol, a contestant, or both of At.
const (
	KeyOfBare   = "of-bare "
	KeyOfCaddy  = "of-caddy "
	KeyRefusal  = "refusal "
	KeyOfFloor  = "of-floor "
	KeyMarginal = "refusal-in-overload "
	KeyOfBest   = "of-best "
	KeyOfSlots  = "of-slots "
	KeyMemory   = "memory "
)

// At is what a key ends with that is of a contestant at a load.
func At(contestant string, load float64) string { return fmt.Sprintf("%s %gx", contestant, load) }

// BoundOf returns the bound of the number of a key, and whether it is the least that is good.
func BoundOf(key string) (least bool, bound float64) {
	kind, of, _ := strings.Cut(key, " ")
	switch kind + " " {
	case KeyOfBare:
		return true, leastOfBare
	case KeyOfCaddy:
		return true, leastOfCaddy
	case KeyRefusal, KeyMarginal:
		return false, mostRefusal
	case KeyOfFloor:
		return false, mostOfFloor
	case KeyOfBest:
		return true, leastOfBest
	case KeyOfSlots:
		if strings.HasSuffix(of, " 10x") {
			return true, leastAt10
		}
		return true, leastAt3
	}
	return false, mostMemory
}

// numberOf begins one of a key.
func numberOf(key, what string, s Spread) Number {
	least, bound := BoundOf(key)
	return Number{Key: key, What: what, Spread: s, Bound: bound, Least: least}
}

// Judge fills in the numbers of r.
func (r *Report) Judge() {
	r.Numbers = slices.Concat(r.passes(), r.refusals(), r.goodputs(), r.memories())
}

func (r *Report) cost(contestant, protocol, what string) []float64 {
	for _, c := range r.Costs {
		if c.Contestant == contestant && c.Protocol == protocol && c.What == what {
			return c.PerCPU
		}
	}
	return nil
}

// OfBare returns the requests per processor second of c beside those of the bare proxy in
// the same passes; zero if it is that, or was not there.
func (r *Report) OfBare(c *Cost) Spread {
	bare := r.cost(Bare, c.Protocol, Pass)
	if c.Contestant == Bare || c.What != Pass {
		return Spread{}
	}
	return SpreadOf(over(c.PerCPU, bare))
}

func (r *Report) passes() (all []Number) {
	for _, protocol := range []string{HTTP1, H2C} {
		ours := r.cost(Goodput, protocol, Pass)
		for _, rival := range []struct{ name, key string }{{Bare, KeyOfBare}, {Caddy, KeyOfCaddy}} {
			theirs := r.cost(rival.name, protocol, Pass)
			if ours == nil || theirs == nil {
				continue
			}
			n := numberOf(rival.key+protocol, fmt.Sprintf("requests per processor second, over %s, of those of %s", protocol, rival.name), SpreadOf(over(ours, theirs)))
			if roomy := r.cost(Roomy, protocol, Pass); rival.name == Bare && roomy != nil {
				of := SpreadOf(over(ours, roomy))
				n.Note = fmt.Sprintf("of one that collects its garbage as seldom: %.3f, %.3f to %.3f", of.Median, of.Smallest, of.Largest)
			}
			all = append(all, n)
		}
	}
	return all
}

// refusals judges what a refusal costs against a pass, beside the cheapest that there is:
// both are per request, so it is the ratio of requests per processor second upside down.
func (r *Report) refusals() (all []Number) {
	for _, protocol := range []string{HTTP1, H2C} {
		pass, refusal := r.cost(Goodput, protocol, Pass), r.cost(Goodput, protocol, Refusal)
		if pass == nil || refusal == nil {
			continue
		}
		floor := r.cost(Floor, protocol, Refusal)
		n := numberOf(KeyRefusal+protocol, fmt.Sprintf("processor time of a refusal, over %s, of that of a pass", protocol), SpreadOf(over(pass, refusal)))
		n.Floor = SpreadOf(over(pass, floor)).Median
		n.Note = fmt.Sprintf("a handler that refuses at once: %.2f", n.Floor)
		all = append(all, n, numberOf(KeyOfFloor+protocol, fmt.Sprintf("processor time of a refusal, over %s, of that of a handler that refuses at once", protocol), SpreadOf(over(floor, refusal))))
	}
	for _, name := range []string{Goodput, Auto} {
		if passes, refusals := r.Marginal(name); len(passes) > 0 {
			n := numberOf(KeyMarginal+name, fmt.Sprintf("processor time of a refusal of %s, in the overload, of that of a pass", name), SpreadOf(over(refusals, passes)))
			n.Note = fmt.Sprintf("%.0f us of %.0f us", 1e6*SpreadOf(refusals).Median, 1e6*SpreadOf(passes).Median)
			all = append(all, n)
		}
	}
	return all
}

// Marginal returns what a pass and a refusal cost a contestant in an open loop, in seconds of
// a processor, in each round: what solves
//
//	processor time = passes x pass + refusals x refusal
//
// for the smallest and the largest load with refusals. A round is not in it if there are no
// two, or if what else the machine did makes nonsense of them.
func (r *Report) Marginal(contestant string) (passes, refusals []float64) {
	rounds := map[int][]*Overload{}
	last := 0
	for _, o := range r.Overloads {
		if o.Contestant == contestant && o.Refused > 0 && o.Void == "" {
			rounds[o.Round] = append(rounds[o.Round], o)
			last = max(last, o.Round)
		}
	}
	for round := range last + 1 {
		loads := rounds[round]
		if len(loads) < 2 {
			continue
		}
		slices.SortFunc(loads, func(a, b *Overload) int { return cmp.Compare(a.Load, b.Load) })
		few, many := loads[0], loads[len(loads)-1]
		p, q := few.passed(), many.passed()
		s, t := float64(few.Offered)*few.Refused, float64(many.Offered)*many.Refused
		d := p*t - q*s
		pass, refusal := (few.CPU*t-many.CPU*s)/d, (p*many.CPU-q*few.CPU)/d
		if d > 0 && pass > 0 && refusal > 0 {
			passes, refusals = append(passes, pass), append(refusals, refusal)
		}
	}
	return passes, refusals
}

func (o *Overload) passed() float64 { return float64(o.Offered) * (1 - o.Refused) }

// Loads are those that were played, and Contestants who played one, in their order.
func (r *Report) Loads() (loads []float64) {
	for _, o := range r.Overloads {
		if !slices.Contains(loads, o.Load) {
			loads = append(loads, o.Load)
		}
	}
	slices.Sort(loads)
	return loads
}

// Contestants are those that played an overload, in the order in which they first did.
func (r *Report) Contestants() (names []string) {
	for _, o := range r.Overloads {
		if !slices.Contains(names, o.Contestant) {
			names = append(names, o.Contestant)
		}
	}
	return names
}

// Runs are what a contestant made of a load, in all rounds that are not void.
func (r *Report) Runs(contestant string, load float64) (runs []*Overload) {
	for _, o := range r.Overloads {
		if o.Contestant == contestant && o.Load == load && o.Void == "" {
			runs = append(runs, o)
		}
	}
	return runs
}

// goodputs judges each overload: what is answered within the objective, of what could be,
// by each of our two against the best of the rivals, round by round, and against capacity.
func (r *Report) goodputs() (all []Number) {
	for _, load := range r.Loads() {
		for _, ours := range []string{Goodput, Auto} {
			if slices.Contains(r.Contestants(), ours) {
				all = append(all, r.goodput(load, ours)...)
			}
		}
	}
	return all
}

func (r *Report) goodput(load float64, name string) (all []Number) {
	best := r.best(load)
	var ratios, ours []float64
	for _, o := range r.Runs(name, load) {
		ours = append(ours, o.Quick)
		for _, rival := range r.Runs(best, load) {
			if rival.Round == o.Round && rival.Quick > 0 {
				ratios = append(ratios, o.Quick/rival.Quick)
			}
		}
	}
	if r.rivals(load) {
		n := numberOf(KeyOfBest+At(name, load), fmt.Sprintf("goodput of %s at %gx, of that of the best rival", name, load), SpreadOf(ratios))
		n.Void = len(ratios) == 0
		n.Note = fmt.Sprintf("%s: %.3f of capacity", best, r.quick(best, load))
		all = append(all, n)
	}
	if load == 3 || load == 10 {
		n := numberOf(KeyOfSlots+At(name, load), fmt.Sprintf("goodput of %s at %gx, of capacity", name, load), SpreadOf(ours))
		n.Void = len(ours) == 0
		all = append(all, n)
	}
	return all
}

// best returns the rival with the best median over the rounds, "" if none has a run. The best
// of each round would be whom chance has favoured in it: 20 slots of 50 ms answer 4,800 in 12 s,
// which vary by 1.4 %, and the best of five such is 1.7 % above their mean.
func (r *Report) best(load float64) (best string) {
	for _, name := range r.Contestants() {
		if !isOurs(name) && r.quick(name, load) > r.quick(best, load) {
			best = name
		}
	}
	return best
}

// quick returns the median of what a contestant answered within the objective.
func (r *Report) quick(contestant string, load float64) float64 {
	var v []float64
	for _, o := range r.Runs(contestant, load) {
		v = append(v, o.Quick)
	}
	return SpreadOf(v).Median
}

// rivals reports whether a rival played load.
func (r *Report) rivals(load float64) bool {
	return slices.ContainsFunc(r.Overloads, func(o *Overload) bool { return o.Load == load && !isOurs(o.Contestant) })
}

func isOurs(contestant string) bool { return contestant == Goodput || contestant == Auto }

func (r *Report) memories() (all []Number) {
	for _, m := range r.Memories {
		if m.Contestant != Goodput {
			continue
		}
		n := numberOf(KeyMemory+m.Protocol, fmt.Sprintf("bytes of a request that waits, over %s, beside a body of %d", m.Protocol, m.Body), SpreadOf([]float64{m.Each}))
		for _, f := range r.Memories {
			if f.Contestant == Floor && f.Protocol == m.Protocol && f.Body == m.Body {
				n.Note = fmt.Sprintf("in a handler of net/http: %.0f", f.Each)
			}
		}
		all = append(all, n)
	}
	return all
}
