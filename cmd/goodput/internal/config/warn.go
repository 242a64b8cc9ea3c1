package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/policy"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/limit"
)

// A Warning is something that may be wanted and mostly is not, with the arithmetic that says
// so.
type Warning struct {
	Class    string // "" for what is of no class
	Sentence string
}

// Warnings returns what may be wrong with c, which is valid: first what is of the whole,
// then by class, in their order.
func (c *Config) Warnings() (all []Warning) {
	say := func(format string, args ...any) { all = append(all, Warning{Sentence: fmt.Sprintf(format, args...)}) }
	for _, p := range c.TrustedProxies {
		if p.Bits() == 0 {
			say("trusted_proxies has %s, which is everybody: what any client writes into a header is believed", p)
		}
	}
	used, at := map[string]bool{}, map[string]string{}
	for i := range c.Classes {
		used[c.Classes[i].Upstream] = true
	}
	for _, u := range c.Upstreams {
		if !used[u.Name] {
			say("upstream %s has no class: nothing is ever sent there", u.Name)
		}
		for _, s := range u.Servers {
			other, twice := at[s.URL.String()]
			if twice && s.Limit != 0 {
				say("server %s is of the upstreams %s and %s, and its limit of %d counts in each of them alone", s.URL.Redacted(), other, u.Name, s.Limit)
			}
			at[s.URL.String()] = u.Name
		}
	}
	for i := range c.Classes {
		k := &c.Classes[i]
		for _, sentence := range slices.Concat(c.capacity(k), k.latency(), k.trust(c), k.shares()) {
			all = append(all, Warning{k.Name, sentence})
		}
	}
	return all
}

// capacity: limits, and what they add up to.
func (c *Config) capacity(k *Class) (all []string) {
	if k.Mode == Connection {
		return nil
	}
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	room, servers := 0, 0
	for i := range c.Upstreams {
		if u := &c.Upstreams[i]; u.Name == k.Upstream {
			room, servers = u.room(), len(u.Servers)
		}
	}
	number := policy.Number(k.Limiter.Limit)
	law, auto := k.Limiter.Limit.(limit.Auto)
	if c.Processes > 1 && number != 0 && room == 0 {
		say("the same file in %d processes admits %d x %d = %d: say the limit of each server, and what is above them is an error", c.Processes, c.Processes, number, c.Processes*number)
	}
	if c.Processes > 1 && auto && !law.Shared {
		say("limit auto in %d processes: each sees its own effect and not that of the others, and together they go far beyond what the service can do; say limit: {law: auto, shared: true}", c.Processes)
	}
	if number != 0 && number < servers {
		say("limit %d for %d servers: at any time %d of them have nothing to do", number, servers, servers-number)
	}
	if n := c.connections(); n != 0 && number > n {
		say("limit %d for %d connections of HTTP/1.1, each of which has one request at a time: so many are never in flight", number, n)
	}
	if room != 0 && number == 0 && k.most() == 0 {
		say("the limit is found, and nothing keeps it below %d, what the servers of upstream %s run at once: beyond that a request waits where no deadline is watched; say limit: {law: auto, max: %d}",
			room/c.Processes, k.Upstream, room/c.Processes)
	}
	if k.Limiter.Observe && number == 0 {
		say("observe with a limit that is found: where everything runs at once nothing shows what a limit would do, and it stays where it begins; give a number")
	}
	return all
}

// connections is how many there may be, if each has one request at a time; 0 where one has
// more.
func (c *Config) connections() (n int) {
	for _, l := range c.Listeners {
		if l.HTTP2 {
			return 0
		}
		n += l.MaxConnections
	}
	return n
}

// latency: objectives, deadlines and depths.
func (k *Class) latency() (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	short := strictyaml.Short
	if k.Match.grpc() && k.DeadlineCap == 0 && k.Mode == Request {
		say("gRPC without deadline_cap: a call may bring grpc-timeout: 99999999H, which is 11,415 years, and holds its slot for as long as it likes")
	}
	// A deadline ends the reading of a body. A write it does not end: that is of slow_client
	// alone, and of idle where the mode has that.
	switch ends := k.DeadlineCap != 0 || k.Deadline != 0; {
	case k.SlowClient == goodputhttp.PatientClient && !ends:
		say("slow_client none without a deadline: nothing bounds how long a client that takes its answer byte by byte holds a slot")
	case k.SlowClient == goodputhttp.PatientClient && k.Mode == Request:
		say("slow_client none: the deadline ends what a client sends, but nothing bounds how long one that takes nothing of its answer holds a slot")
	case k.DeadlineCap != 0 && k.SlowClient > k.DeadlineCap && len(k.TrustDeadline) == 0: // they may have longer
		say("slow_client %s is longer than deadline_cap %s: a body that does not come ends with the deadline, and only who does not take an answer is waited for so long",
			short(k.SlowClient), short(k.DeadlineCap))
	}
	if k.Mode != Request {
		return append(all, k.ends()...)
	}
	d := k.Derivation()
	if k.Deadline != 0 && k.Limiter.Objective > k.Deadline {
		say("objective %s is longer than deadline %s, which requests have that bring none: the queue is made for a wait that they do not survive; an objective of at most %s",
			short(k.Limiter.Objective), short(k.Deadline), short(k.Deadline))
	}
	if k.Limiter.Service == 0 || k.Limiter.Limit == nil {
		return all
	}
	if !d.Reachable {
		say("objective %s is out of reach: with a mean of %s the slowest %.3g %% of the requests take %v or more alone, without waiting; if service times vary less than exponentially, it shows once they are measured",
			short(k.Limiter.Objective), short(k.Limiter.Service), 100*(1-d.Percentile), d.Service.Round(time.Millisecond))
	}
	if depth := k.Limiter.Depth; depth > 0 {
		free := *k
		free.Limiter.Depth = 0
		if derived := free.Derivation(); derived.Depth < depth {
			say("depth %d is more than objective %s allows: %v", depth, short(k.Limiter.Objective), derived)
		}
	}
	return all
}

// ends: a deadline is meant for an answer, and a stream has it for all of its life.
func (k *Class) ends() (all []string) {
	short := strictyaml.Short
	sooner := func(d time.Duration) bool { return d != 0 && (k.Total == 0 || d < k.Total) }
	if sooner(k.Deadline) {
		all = append(all, fmt.Sprintf("deadline %s ends every stream of class %s after %s that brings no deadline of its own", short(k.Deadline), k.Name, short(k.Deadline)))
	}
	if sooner(k.DeadlineCap) {
		all = append(all, fmt.Sprintf("deadline_cap %s ends every stream of class %s after %s", short(k.DeadlineCap), k.Name, short(k.DeadlineCap)))
	}
	return all
}

// Derivation is how deep the queue of the class is when it begins, and why.
func (k *Class) Derivation() goodput.Derivation { return goodput.New(k.Limiter).Stats().Derivation }

// trust: who is believed, and is never seen.
func (k *Class) trust(c *Config) (all []string) {
	if k.Tenant.From != Cert && k.User.From != Cert {
		return nil
	}
	for _, l := range c.Listeners {
		if l.TLS == nil || l.TLS.ClientCA == "" {
			all = append(all, fmt.Sprintf("tenants are told apart by certificates, and who comes by %s shows none: all of them are one", l.Address))
		}
	}
	return all
}

// shares: what the rows of tenants come to.
func (k *Class) shares() (all []string) {
	t, most := k.Limiter.Tenants, k.most()
	if t == nil || most == 0 {
		return nil
	}
	sum := orOne(t.Others.Weight)
	for _, row := range t.Rows {
		sum += orOne(row.Weight)
	}
	for _, row := range t.Rows {
		if row.MaxInUse >= most {
			all = append(all, fmt.Sprintf("max_in_use %d of tenant %s is not below limit %d: it bounds nothing", row.MaxInUse, row.ID, most))
		}
		if slots := float64(most) * orOne(row.Weight) / sum; slots < 1 {
			all = append(all, fmt.Sprintf("tenant %s has weight %.4g of %.4g: in an overload %.3g of %d slots, less than one", row.ID, orOne(row.Weight), sum, slots, most))
		}
	}
	return all
}

func orOne(v float64) float64 {
	if v == 0 {
		return 1
	}
	return v
}
