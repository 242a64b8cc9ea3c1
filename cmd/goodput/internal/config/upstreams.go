package config

import (
	"net/url"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/limit"
)

// Ranges of an upstream.
const (
	maxFailures  = 1000
	maxSlowStart = time.Hour
	minInterval  = 100 * time.Millisecond // faster, and the checks of 16 of us are load
	maxInterval  = time.Hour
	maxInARow    = 100
)

// upstreams reads the services: one, or several by their names.
func (r *reader) upstreams() {
	one, several := r.root.Get("upstream"), r.root.Get("upstreams")
	switch {
	case several.Present() && one.Present():
		one.Clash(several, "upstream and upstreams are both given: one service, or several with names")
	case !several.Present():
		r.upstream(r.root.Need("upstream", "http://127.0.0.1:9000"), DefaultName)
	default:
		m := several.Map()
		names := m.Keys()
		switch {
		case several.IsMap() && len(names) == 0:
			several.Fail("upstreams is empty: a name and where it is, such as app: http://127.0.0.1:9000")
		case len(names) > maxUpstreams:
			several.Fail("upstreams has %d names, at most %d", len(names), maxUpstreams)
			names = nil
		}
		for _, name := range names {
			if !isLabel(name) {
				m.At(name).Fail("upstream %q has other characters than letters, digits, _, - and ., or more than %d", name, maxName)
			}
			r.upstream(m.Get(name), name)
		}
		m.Done()
	}
}

// upstream reads one service: a URL, several, or servers with what there is beside them.
func (r *reader) upstream(n strictyaml.Node, name string) {
	u := DefaultUpstream()
	u.Name = name
	if n.IsMap() {
		m := n.Map()
		r.servers(m.Need("servers", `["http://127.0.0.1:9000"]`), &u)
		upstreamKeys(m, &u)
		m.Done()
	} else {
		r.servers(n, &u)
	}
	r.cfg.Upstreams = append(r.cfg.Upstreams, u)
	r.behind = append(r.behind, n)
}

func (r *reader) servers(n strictyaml.Node, u *Upstream) {
	all := []strictyaml.Node{n}
	if n.IsList() {
		all = n.List(maxServers)
	}
	first := map[string]strictyaml.Node{}
	for _, n := range all {
		s, at := Server{}, n
		if n.IsMap() {
			m := n.Map()
			at = m.Need("url", "http://127.0.0.1:9000")
			s.Limit = int(m.Get("limit").Whole(1, limit.Max))
			m.Done()
		}
		if s.URL = server(at); s.URL == nil {
			continue
		}
		if before, twice := first[s.URL.String()]; twice {
			at.Clash(before, "server %s is there twice: one that may run more has a higher limit", s.URL.Redacted())
			continue
		}
		first[s.URL.String()] = at
		u.Servers = append(u.Servers, s)
	}
}

func server(n strictyaml.Node) *url.URL {
	text := n.Text(maxText)
	if text == "" {
		return nil
	}
	u, err := ParseServer(text)
	if err != nil {
		n.Fail("%v", err)
		return nil
	}
	return u
}

func upstreamKeys(m *strictyaml.Map, u *Upstream) {
	if n := m.Get("health"); n.Present() {
		u.Health = health(n)
	}
	set(&u.Failures, m.Get("failures"), whole(1, maxFailures))
	set(&u.SlowStart, m.Get("slow_start"), span(0, maxSlowStart))
	set(&u.MaxAbsence, m.Get("max_absence"), span(shortest, longest))
	set(&u.Forward, m.Get("forward"), forward)
	u.ForwardOnly = m.Get("forward_only").Bool()
	if u.ForwardOnly && u.Forward == "" && m.Sound() {
		m.Get("forward_only").Fail("forward_only needs forward: the header that takes the place of the one that the caller used")
	}
}

// forwards are the headers that tell a service how much time is left.
var forwards = append([]string{"none"}, readAnyway...)

// forward reads the name of one, in any case, as names of headers are.
func forward(n strictyaml.Node) string {
	text := n.Raw()
	for _, name := range forwards {
		if strings.EqualFold(name, text) {
			return name
		}
	}
	return forwards[n.Word(forwards...)] // which is none of them, and says so
}

// health reads how a server is asked: a path, or a path with how often.
func health(n strictyaml.Node) *Health {
	h := &Health{Interval: DefaultInterval, Timeout: DefaultTimeout, Fall: DefaultFall, Rise: DefaultRise}
	if n.IsText() {
		h.Path = urlPath(n)
		return h
	}
	m := n.Map()
	defer m.Done()
	h.Path = urlPath(m.Need("path", "/healthz"))
	interval, timeout := m.Get("interval"), m.Get("timeout")
	set(&h.Interval, interval, span(minInterval, maxInterval))
	set(&h.Timeout, timeout, span(shortest, maxInterval))
	set(&h.Fall, m.Get("fall"), whole(1, maxInARow))
	set(&h.Rise, m.Get("rise"), whole(1, maxInARow))
	if m.Sound() && h.Timeout > h.Interval {
		const why = "timeout %s is longer than interval %s: the next question would come before the answer"
		if timeout.Present() {
			timeout.Clash(interval, why, strictyaml.Short(h.Timeout), strictyaml.Short(h.Interval))
		} else {
			interval.Fail(why, strictyaml.Short(h.Timeout)+", the default,", strictyaml.Short(h.Interval))
		}
	}
	return h
}
