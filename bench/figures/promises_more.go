package figures

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goodput/goodput/bench/live"
	"github.com/goodput/goodput/bench/proxies"
)

func changes() []Promise {
	return []Promise{
		{
			Line: lineChange, Text: "goodput in the first 10 s after capacity halves, of the new one", Part: PartCore, Least: true, Bound: 0.97,
			measure: func(r *Run) (Figure, bool) {
				w := worst{least: true}
				if r.Core != nil {
					for _, s := range r.Core.Data.Steps {
						w.add(s.First.Median, "the "+s.What+" halve, the median of eight seeds")
					}
				}
				return w.figure()
			},
		},
		{
			Line: lineChange, Text: "the first 2 s with 95 % in time begin, after it is restored, within", Part: PartCore, Bound: 4, Unit: " s",
			measure: func(r *Run) (Figure, bool) {
				w := worst{}
				if r.Core != nil {
					for _, s := range r.Core.Data.Steps {
						w.add(s.Restored.Largest, "the "+s.What+" were halved, the worst of eight seeds")
					}
				}
				return w.figure()
			},
		},
		{
			Line: lineChange, Text: "a stall of 5 s at 0.9x, with clients that try three times, is over within, simulated", Part: PartCore, Bound: 1, Unit: " s",
			measure: func(r *Run) (Figure, bool) {
				w := worst{}
				if r.Core != nil {
					for _, s := range r.Core.Data.Stalls {
						if s.Policy == "goodput" {
							w.add(s.Back.Largest, fmt.Sprintf("deadlines of %g ms", s.Deadline))
						}
					}
				}
				return w.figure()
			},
		},
		{
			Line: lineChange, Text: "the same over real HTTP", Part: PartLive, Bound: 2, Unit: " s",
			measure: func(r *Run) (Figure, bool) {
				w := worst{}
				if r.voidOfOurs(isStall) {
					return Figure{}, false // the other of ours alone is not both
				}
				for _, res := range r.live(isStall) {
					switch ours := strings.HasPrefix(res.Contestant, "goodput-"); {
					case ours && res.Recovered == nil:
						w.add(never, res.Contestant)
					case ours:
						w.add(*res.Recovered, res.Contestant)
					}
				}
				return w.figure()
			},
		},
	}
}

// live returns the loads over real HTTP that are so and are not void.
func (r *Run) live(so func(*live.Result) bool) (all []*live.Result) {
	if r.Live == nil {
		return nil
	}
	for _, res := range r.Live.Data {
		if res.Void == "" && so(res) {
			all = append(all, res)
		}
	}
	return all
}

// voidOfOurs reports whether one of our two has no run that is so and counts.
func (r *Run) voidOfOurs(so func(*live.Result) bool) bool {
	return r.Live != nil && slices.ContainsFunc(r.Live.Data, func(res *live.Result) bool {
		return res.Void != "" && so(res) && strings.HasPrefix(res.Contestant, "goodput-")
	})
}

func isStall(r *live.Result) bool { return len(r.Phases) == 3 && r.Phases[1].Slots == 0 }
func isStep(r *live.Result) bool  { return len(r.Phases) == 3 && r.Phases[1].Slots > 0 }
func isCold(r *live.Result) bool  { return len(r.Phases) == 1 }

// Reasons of what has been missed by the proxy.
const (
	floorReason = "The cheapest refusal that net/http knows costs nearly as much (see what a refusal costs, below): reading the request and writing an answer is the most of it, and a pass has become cheaper since the bound was set."
	idleReason  = "From the end of an answer until the next request is at the service its slot is idle, and client, proxy and service share the processors; one such run varies by 1 %."
	rivalReason = "Between the end of an answer and the next request at the service a slot is idle, the longer the busier the two processors that client, proxy and service share. nginx takes less of them, and has no queue; who keeps a longer queue hides it, and pays with the latency of all."
)

func proxy() []Promise {
	p := func(text, key, reason string) Promise {
		least, bound := proxies.BoundOf(key)
		return Promise{Line: lineProxy, Text: text, Part: PartProxies, Least: least, Bound: bound, Reason: reason, measure: func(r *Run) (Figure, bool) {
			if r.Proxies != nil {
				for _, n := range r.Proxies.Data.Numbers {
					if n.Key == key {
						return Figure{n.Median, n.Smallest, n.Largest, n.Note}, !n.Void
					}
				}
			}
			return Figure{}, false
		}}
	}
	var all []Promise
	for _, protocol := range []string{proxies.HTTP1, proxies.H2C} {
		all = append(all,
			p("requests per processor second over "+protocol+", of those of a bare, tuned httputil.ReverseProxy", proxies.KeyOfBare+protocol, ""),
			p("the same, of those of Caddy", proxies.KeyOfCaddy+protocol, ""),
			p("processor time of a refusal in a closed loop over "+protocol+", of that of a pass", proxies.KeyRefusal+protocol, floorReason),
		)
	}
	for _, c := range []struct{ name, says string }{{proxies.Goodput, "told the slots"}, {proxies.Auto, "that finds them"}} {
		all = append(all, p("processor time of a refusal in an overload, of that of a pass, of goodput "+c.says, proxies.KeyMarginal+c.name, floorReason))
		for _, load := range []float64{3, 10} {
			all = append(all,
				p(fmt.Sprintf("goodput at %gx, %s, of that of the best rival", load, c.says), proxies.KeyOfBest+proxies.At(c.name, load), rivalReason),
				p(fmt.Sprintf("goodput at %gx, %s, of what the slots can do", load, c.says), proxies.KeyOfSlots+proxies.At(c.name, load), idleReason),
			)
		}
	}
	return all
}

func simulator() []Promise {
	return []Promise{
		{
			Line: lineSim, Text: "requests per second of one processor, 60 slots at 0.9x and 3x", Part: PartCore, Least: true, Bound: 2e6,
			Reason: "It is what one processor of this machine does while its load is as the table of parts says: another, or a quieter one, does more or less.",
			measure: func(r *Run) (Figure, bool) {
				w := worst{least: true}
				if r.Core != nil {
					for _, s := range r.Core.Data.Speeds {
						if s.Policy == "goodput" {
							w.add(s.Rate.Median, fmt.Sprintf("at %gx", s.Load))
						}
					}
				}
				return w.figure()
			},
		},
		{
			Line: lineSim, Text: "memory that a further request takes for good", Part: PartCore, Bound: 1, Unit: " B",
			measure: func(r *Run) (Figure, bool) {
				if r.Core == nil {
					return Figure{}, false
				}
				note := "allocated, before a limit that is told the slots; less than a byte is nothing that is kept"
				if g := r.Core.Data.Garbage; g > 0 {
					note += fmt.Sprintf("; one that finds them allocates %s B, a sentence a window that says why, of which the last is kept", number(g))
				}
				return Figure{Value: max(r.Core.Data.PerRequest, 0), Note: note}, true
			},
		},
		{
			Line: lineSim, Text: "bytes by which two runs of one seed differ", Part: PartCore, Bound: 0,
			measure: func(r *Run) (Figure, bool) {
				if r.Core == nil {
					return Figure{}, false
				}
				f := Figure{}
				if !r.Core.Data.Same {
					f.Value, f.Note = 1, "or more"
				}
				return f, true
			},
		},
		{
			Line: lineLoad, Text: "p99 of its lateness at 10,000 requests/s from one processor", Part: PartGenerator, Bound: 5, Unit: " ms",
			Reason: "It says so and certifies nothing: client and server share the processors.",
			measure: func(r *Run) (Figure, bool) {
				w := worst{}
				if r.Generator != nil {
					for _, row := range r.Generator.Data {
						if late := row.Others[lateUnit]; strings.HasPrefix(row.Contestant, "http2=") && strings.HasSuffix(row.Contestant, "rate=10000") && len(late) > 0 {
							w.add(proxies.SpreadOf(late).Median, row.Contestant)
						}
					}
				}
				return w.figure()
			},
		},
	}
}

// lateUnit is that of the benchmark of the generator.
const lateUnit = "late-p99-ms"
