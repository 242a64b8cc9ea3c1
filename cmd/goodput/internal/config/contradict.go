package config

import (
	"slices"
	"strings"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/policy"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/limit"
)

// What in one class contradicts itself, or what it takes from the file around it. Each is
// one sentence with both values, at both lines.

// contradictions adds those of a class. Of one that could not be read nothing is said: a
// value that is not there contradicts nothing.
func (r *reader) contradictions(k *classAt) {
	if !k.sound {
		return
	}
	k.policy.Check(k.m)
	k.times()
	k.costs()
	r.who(k)
	switch k.Mode {
	case Stream:
		k.stream()
	case Connection:
		r.connection(k)
	}
	k.probes()
}

// clash adds a sentence about keys of the class, which stands at the first that the file
// has.
func (k *classAt) clash(keys []string, format string, args ...any) {
	var there []strictyaml.Node
	for _, key := range keys {
		if n := k.m.Get(key); n.Present() {
			there = append(there, n)
		}
	}
	if len(there) == 0 {
		there = []strictyaml.Node{k.m.Node()}
	}
	there[0].Fail(format, args...)
	for _, other := range there[1:] {
		there[0].Clash(other, format, args...)
	}
}

// said is a duration, and whether it is one that nobody has written.
func (k *classAt) said(key string, d time.Duration) string {
	if !k.m.Get(key).Present() {
		return strictyaml.Short(d) + ", the default,"
	}
	return strictyaml.Short(d)
}

// What is wrong with an objective that nobody waits for, and with a service that is ourselves.
const (
	whyNotBeyondCap = "whoever would be late for the objective is gone by then"
	whyNotOurselves = "each request would come in again, until none can"
)

func (k *classAt) times() {
	objective, longest := k.Limiter.Objective, k.DeadlineCap
	if longest != 0 && objective > longest && k.Mode == Request {
		k.clash([]string{"objective", "deadline_cap"}, "objective %s is longer than deadline_cap %s: "+whyNotBeyondCap,
			k.said("objective", objective), strictyaml.Short(longest))
	}
	for _, t := range []struct {
		key string
		d   time.Duration
	}{{"deadline", k.Deadline}, {"deadline_cap", k.DeadlineCap}} {
		if k.HopMargin != 0 && t.d != 0 && k.HopMargin >= t.d {
			k.clash([]string{"hop_margin", t.key}, "hop_margin %s is not shorter than %s %s: the service would be told that no time is left",
				strictyaml.Short(k.HopMargin), t.key, strictyaml.Short(t.d))
			break
		}
	}
	if k.Total != 0 && k.Idle > k.Total {
		k.clash([]string{"idle", "total"}, "idle %s is longer than total %s: a stream is over before it could be idle for so long",
			strictyaml.Short(k.Idle), strictyaml.Short(k.Total))
	}
	if len(k.TrustDeadline) > 0 && longest == 0 {
		k.clash([]string{"trust_deadline"}, "trust_deadline says who may bring more than deadline_cap, and there is none: anybody may bring anything")
	}
}

// readAnyway are the headers that say a deadline in a format of their own.
var readAnyway = []string{"Grpc-Timeout", "Connect-Timeout-Ms", "X-Envoy-Expected-Rq-Timeout-Ms", "Expect-Within"}

// most is how high the limit of a class may be: its number, or the max of its law; 0 where
// nothing bounds it.
func (c *Class) most() int {
	switch law := c.Limiter.Limit.(type) {
	case limit.Auto:
		return law.Max
	case limit.AIMD:
		return law.Max
	case limit.Vegas:
		return law.Max
	case limit.Gradient2:
		return law.Max
	}
	return policy.Number(c.Limiter.Limit)
}

// costs: what costs more than there is is never served.
func (k *classAt) costs() {
	type bound struct {
		key, name string
		v         float64
	}
	bounds := []bound{{"limit", "limit", float64(k.most())}, {"allowance", "the burst of allowance", k.Limiter.Allowance.Burst}}
	if t := k.Limiter.Tenants; t != nil {
		for _, row := range append([]goodput.Tenant{{ID: "others", MaxInUse: t.Others.MaxInUse}}, t.Rows...) {
			bounds = append(bounds, bound{"tenants", "max_in_use of tenant " + row.ID, float64(row.MaxInUse)})
		}
	}
	for _, b := range bounds {
		switch {
		case b.v == 0:
		case float64(k.Cost.Fixed) > b.v:
			k.clash([]string{"cost", b.key}, "cost %d is above %s, %.6g: each such request would be refused as too costly", k.Cost.Fixed, b.name, b.v)
		case float64(k.Cost.Most) > b.v:
			k.clash([]string{"cost", b.key}, "the max of cost, %d, is above %s, %.6g: a request that costs so much would be refused as too costly", k.Cost.Most, b.name, b.v)
		}
	}
}

// who: what a header or a certificate says counts where somebody may be believed.
func (r *reader) who(k *classAt) {
	unix := !slices.ContainsFunc(r.cfg.Listeners, func(l Listener) bool { return l.Network != "unix" })
	for _, h := range []struct{ key, header string }{
		{"tenant", k.Tenant.Header},
		{"user", k.User.Header},
		{"priority", k.Priority.Header},
		{"cost", k.Cost.Header},
		{"size", k.Size.Header},
	} {
		switch {
		case h.header == "":
		case len(r.cfg.TrustedProxies) == 0:
			k.node(h.key).Fail("%s is what header %s says, which counts from trusted_proxies only, and there are none: add them, for example trusted_proxies: [10.0.0.0/8]", h.key, h.header)
		case unix:
			k.node(h.key).Clash(r.root.Get("listen"), "%s is what header %s says, which counts from trusted_proxies only, and who comes by a unix socket has no address", h.key, h.header)
		}
	}
	for _, from := range []struct {
		key string
		Key
	}{{"tenant", k.Tenant}, {"user", k.User}} {
		switch {
		case from.From == Cert && !slices.ContainsFunc(r.cfg.Listeners, func(l Listener) bool { return l.TLS != nil && l.TLS.ClientCA != "" }):
			k.node(from.key).Clash(r.root.Get("listen"), "%s is the name in the certificate of a client, and no listener asks for one: add client_ca to its tls", from.key)
		case from.From == Address && unix:
			k.node(from.key).Clash(r.root.Get("listen"), "%s is the address of a client, and who comes by a unix socket has none", from.key)
		}
	}
	if k.Limiter.Tenants != nil && k.Tenant.From == Nobody {
		k.node("tenants").Fail("tenants share by who sends a request, and nothing says who: add tenant, for example tenant: address")
	}
	if k.Limiter.Overflow == goodput.LatestOnly {
		k.node("overflow").Fail("overflow latest_only replaces what is about the same key, and a request that comes by a proxy has none: displace or evict_oldest")
	}
}

// notStream are keys that say something about a queue, or about how long a service takes.
var notStream = []string{
	"objective", "percentile", "service", "depth", "max_waiting", "max_queue_bytes", "max_wait", "overflow", "order", "durable", "size",
}

func (k *classAt) stream() {
	for _, key := range notStream {
		if k.m.Has(key) {
			k.clash([]string{key, "mode"}, "%s and mode stream contradict each other: a stream has no service time, and without one there is no queue", key)
		}
	}
	if policy.Number(k.Limiter.Limit) == 0 {
		k.clash([]string{"mode", "limit"}, "mode stream needs a limit that is a number, such as limit: 1000: how many streams a service can hold cannot be found by how long they last")
	}
}

// notConnection are keys of what admits requests one by one.
var notConnection = append([]string{
	"limit", "allowance", "tenants", "reserve", "exempt", "observe", "deadline", "deadline_cap", "deadline_headers", "trust_deadline", "hop_margin", "server_timing",
	"tenant", "user", "priority", "cost", "probes", "overload_status", "markers", "max_body", "slow_client", "finish",
}, notStream...)

func (r *reader) connection(k *classAt) {
	for _, key := range notConnection {
		if k.m.Has(key) {
			k.clash([]string{key, "mode"}, "%s and mode connection contradict each other: requests are not admitted one by one, the connections of the listeners are", key)
		}
	}
	for _, m := range r.listening {
		if !m.Has("max_connections") {
			at := m.Node()
			if !at.Present() {
				at = r.root.Get("listen")
			}
			k.node("mode").Clash(at, "mode connection needs max_connections at each listener, for example listen: {address: \":8080\", max_connections: 1000}: it is the only limit there is")
			return
		}
	}
}

// probes: a path that the class does not take is no probe of it.
func (k *classAt) probes() {
	if !k.m.Has("probes") {
		return
	}
	for _, p := range k.Exempt {
		if len(k.Match.Paths) > 0 && !slices.ContainsFunc(k.Match.Paths, func(prefix string) bool { return pathCovers(prefix, p) }) {
			k.clash([]string{"probes", "match"}, "probe %s is never of class %s, which takes %s", p, k.Name, strings.Join(k.Match.Paths, ", "))
		}
	}
}
