package figures

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goodput/goodput/bench/live"
	"github.com/goodput/goodput/bench/proxies"
)

// proxyRivals are the other proxies, in the words of their files in package proxies.
var proxyRivals = []rival{
	{"goodput", "", "goodput serve --limit N --objective 400ms, the admin address open", "as in production"},
	{"goodput-auto", "", "the same with --limit auto", "the default"},
	{"bare", "", "httputil.ReverseProxy with kept connections and pooled buffers", "the least that a proxy in Go can do"},
	{"bare-roomy", "", "the same, which collects its garbage as seldom as goodput does", "what of our cost is memory management"},
	{"net/http", "", "a handler that refuses at once with goodput's headers", "the least that a refusal in Go can cost"},
	{"caddy", "caddy", "reverse_proxy, kept connections; in the overload unhealthy_request_count", "its documentation; it has no queue"},
	{"haproxy", "haproxy", "http-reuse always, a thread per processor", "its documentation"},
	{"haproxy-long", "haproxy", "maxconn N, a queue of 8 N, timeout queue 400ms", "the rule of thumb: what 400 ms of the service are"},
	{"haproxy-short", "haproxy", "the same, a queue of 2.5 N", "leaves room for the service itself: with hindsight, in its favour"},
	{"nginx", "nginx", "kept connections; in the overload limit_conn N", "its documentation; it has no queue for HTTP/1.1 services in the open version"},
}

// proxied is goodput serve beside other proxies.
func proxied(p *page, r *Run) {
	if r.Proxies == nil {
		return
	}
	d := r.Proxies.Data
	p.say("## The proxy beside others")
	p.say("Each a process of its own on loopback, between a client and a service that are processes of their own on the same processors; access logs off, limits that would close connections lifted. N is the number of slots of the service. Versions are those of Debian: %s.", versionsOf(d.Versions))
	p.head(4, "contestant", "set up as", "because", "version")
	for _, c := range proxyRivals {
		v := "-"
		if c.module != "" && d.Versions[c.module] != "" {
			v = d.Versions[c.module]
		}
		p.row(c.name, c.setup, c.why, v)
	}
	p.end()
	proxyCosts(p, d)
	proxyOverloads(p, d)
	if len(d.Memories) == 0 {
		return
	}
	p.say("### What a request takes while it waits")
	p.head(2, "contestant", "protocol", "body, bytes", "bytes beside it", "waiting")
	for _, m := range d.Memories {
		p.row(m.Contestant, m.Protocol, number(float64(m.Body)), number(m.Each), number(float64(m.Waiting)))
	}
	p.end()
}

// proxyCosts is the processor time of passes and refusals.
func proxyCosts(p *page, d *proxies.Report) {
	if len(d.Costs) == 0 {
		return
	}
	p.say("### What a pass and a refusal cost")
	p.say("A closed loop of 64 requests (wrk, h2load), so that every processor is busy; microseconds of the proxy's own processor time per request, user and system. Medians of %d passes; of bare: requests per processor second, within a pass, and its range.", len(d.Costs[0].PerCPU))
	p.head(3, "protocol", "contestant", "what", "µs", "of bare", "range")
	var lost []string
	for _, c := range d.Costs {
		per := proxies.SpreadOf(c.PerCPU)
		of := d.OfBare(c)
		ratio, width := "-", "-"
		if of.Median > 0 {
			ratio, width = share(of.Median), fmt.Sprintf("%.3f to %.3f", of.Smallest, of.Largest)
		}
		p.row(c.Protocol, c.Contestant, c.What, fmt.Sprintf("%.1f", 1e6/per.Median), ratio, width)
		ours := perCPU(d, proxies.Goodput, c.Protocol, c.What)
		if c.Contestant != proxies.Goodput && ours > 0 && ours < 0.97*per.Median {
			what := "passes a request"
			if c.What == proxies.Refusal {
				what = "refuses one"
			}
			lost = append(lost, fmt.Sprintf("over %s %s %s for %.2f of what goodput uses", c.Protocol, c.Contestant, what, ours/per.Median))
		}
	}
	p.end()
	losses(p, lost, "haproxy and nginx are C; the bare proxy and the handler of net/http do nothing else.")
}

func perCPU(d *proxies.Report, contestant, protocol, what string) float64 {
	for _, c := range d.Costs {
		if c.Contestant == contestant && c.Protocol == protocol && c.What == what {
			return proxies.SpreadOf(c.PerCPU).Median
		}
	}
	return 0
}

// proxyOverloads is what is left of the service.
func proxyOverloads(p *page, d *proxies.Report) {
	if len(d.Overloads) == 0 {
		return
	}
	first := d.Overloads[0]
	p.say("### An overload")
	p.say("Open loop over h2c, callers that leave after 2 s, a service of %.0f requests/s (work of 50 ms, exponential, that sleeps), after a warm-up at 0.8x that is not counted. With 60 slots, who refuses at once cannot have more than 0.992 at 3x and 0.998 at 10x (Erlang), and nobody more than 1. Goodput within 400 ms, medians and range of the rounds, each with another seed (from %d).", first.Capacity, first.Seed)
	p.head(2, "load", "contestant", "goodput, 400 ms", "range", "goodput, 2 s", "p50 ms", "p99 ms", "refused %", "told no after ms (p50)", "proxy's µs a request")
	var lost []string
	for _, load := range d.Loads() {
		best, most, ours := "", 0.0, 0.0
		for _, name := range d.Contestants() {
			runs := d.Runs(name, load)
			if len(runs) == 0 {
				p.row(fmt.Sprintf("%gx", load), name, "void", "", "", "", "", "", "", "")
				continue
			}
			median := func(figure func(*proxies.Overload) float64) proxies.Spread {
				var v []float64
				for _, o := range runs {
					v = append(v, figure(o))
				}
				return proxies.SpreadOf(v)
			}
			quick := median(func(o *proxies.Overload) float64 { return o.Quick })
			p.row(fmt.Sprintf("%gx", load), name, share(quick.Median), fmt.Sprintf("%.3f to %.3f", quick.Smallest, quick.Largest),
				share(median(func(o *proxies.Overload) float64 { return o.Ratio }).Median),
				fmt.Sprintf("%.0f", median(func(o *proxies.Overload) float64 { return o.P50 }).Median), fmt.Sprintf("%.0f", median(func(o *proxies.Overload) float64 { return o.P99 }).Median),
				fmt.Sprintf("%.1f", 100*median(func(o *proxies.Overload) float64 { return o.Refused }).Median), fmt.Sprintf("%.1f", median(func(o *proxies.Overload) float64 { return o.No }).Median),
				fmt.Sprintf("%.0f", median(func(o *proxies.Overload) float64 { return 1e6 * o.CPU / float64(max(o.Offered, 1)) }).Median))
			switch {
			case slices.Contains([]string{proxies.Goodput, proxies.Auto}, name):
				ours = max(ours, quick.Median)
			case quick.Median > most:
				best, most = name, quick.Median
			}
		}
		if best != "" && most > ours {
			lost = append(lost, fmt.Sprintf("at %gx %s answers %s within 400 ms, the better of ours %s", load, best, share(most), share(ours)))
		}
	}
	p.end()
	losses(p, lost, "One such run varies by 1 %.")
	var results []*live.Result
	for _, o := range d.Overloads {
		results = append(results, o.Result)
	}
	voids(p, results)
}

// elsewhere is what cannot be had here.
func elsewhere(p *page, peers *Peers) {
	p.say("## Measured elsewhere")
	p.say("**These were measured once from public source, elsewhere than this run, and cannot be reproduced here**: no module proxy serves them. They are in no ratio above. The conditions: %s", peers.Conditions)
	p.head(1, "what a request costs, ns", "acquire + release", "B/op", "allocs/op", "parallel, 2 processors", "refusal")
	for _, c := range peers.Cost {
		refusal := "-"
		if c.Refusal > 0 {
			refusal = number(c.Refusal)
		}
		p.row(c.Name, number(c.Acquire), number(c.Bytes), number(c.Allocs), number(c.Parallel), refusal)
	}
	p.end()
	columns := []string{"what is left of the goodput", "time"}
	for _, l := range peerLoads {
		columns = append(columns, fmt.Sprintf("%gx", l))
	}
	p.head(2, append(columns, "at 3x: p50 ms", "p99 ms", "told no after ms (p99)", "after 90 s of 180: 1.5x, 3x")...)
	for _, o := range peers.Overload {
		cells := []string{o.Name, o.Clock}
		for _, v := range o.Ratios {
			cells = append(cells, fmt.Sprintf("%.2f", v))
		}
		later := "-"
		if len(o.Later) > 0 {
			var words []string
			for _, v := range o.Later {
				words = append(words, fmt.Sprintf("%.2f", v))
			}
			later = strings.Join(words, ", ")
		}
		p.row(append(cells, number(o.P50), number(o.P99), number(o.Told), later)...)
	}
	p.end()
}
