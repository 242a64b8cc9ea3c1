package config

import (
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/cmd/goodput/internal/policy"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/limit"
	"golang.org/x/net/http/httpguts"
)

// Ranges of a class.
const (
	maxMargin   = time.Minute
	maxFinish   = longest
	maxUpgraded = 1 << 20
	maxProbes   = 16
	maxHeaders  = 12 // of deadlines, beside those that are always read: see goodputhttp.Server
)

var (
	modes   = []string{Request.String(), Stream.String(), Connection.String()}
	markers = []string{"envoy", "finagle"}

	// formats are how a header says a time: see DeadlineHeader.
	formats = []string{"ms", "s", "go", "grpc", "epoch_ms", "finagle"}
)

// A classAt is a class and where it stands.
type classAt struct {
	*Class
	m      *strictyaml.Map // its keys, over the defaults
	policy policy.Policy
	sound  bool // it could be read: only then is there something to contradict
}

// node returns the value of a key, or, where nothing says it, the class.
func (k *classAt) node(key string) strictyaml.Node {
	if n := k.m.Get(key); n.Present() {
		return n
	}
	return k.m.Node()
}

// class reads a class from its mapping, which is the file where there is one class.
func (r *reader) class(m *strictyaml.Map, name string) {
	c := Class{Name: name, Upstream: DefaultName}
	if m != r.root {
		if n := m.Get("match"); m.Has("match") {
			c.Match = match(n)
		}
	}
	k := &classAt{Class: &c, m: m, policy: r.part(m, &c)}
	if c.Upstream == "" && len(r.cfg.Upstreams) == 1 {
		c.Upstream = r.cfg.Upstreams[0].Name
	}
	for _, u := range r.cfg.Upstreams {
		if u.Name == c.Upstream {
			c.Limiter.MaxAbsence = u.MaxAbsence
		}
	}
	c.Limiter.Name = c.Name
	if c.Mode != Request {
		k.ownDeadlines()
	}
	k.sound = m.Sound()
	r.classes = append(r.classes, k)
}

// ownDeadlines takes from what is no request the deadlines that are said for all classes: 20 s
// for an answer would end each stream after 20 s. What bounds those is idle and total, and a
// deadline that the class itself says.
func (k *classAt) ownDeadlines() {
	if !k.m.Has("deadline") {
		k.Deadline = 0
	}
	if !k.m.Has("deadline_cap") {
		k.DeadlineCap = 0
	}
	if k.DeadlineCap == 0 && !k.m.Has("trust_deadline") {
		k.TrustDeadline = nil
	}
	k.policy.Deadline, k.policy.DeadlineCap = k.Deadline, k.DeadlineCap
}

// part reads the keys that a class has and the defaults have, too.
func (r *reader) part(m *strictyaml.Map, c *Class) policy.Policy {
	if m != r.root { // there it is the service itself
		c.Upstream = upstreamName(m.Get("upstream"))
	}
	set(&c.Mode, m.Get("mode"), func(n strictyaml.Node) Mode { return Mode(n.Word(modes...)) })
	p := policy.Policy{Limiter: admission.Config{Objective: DefaultObjective}}
	p.Read(m)
	p.ReadDeadlines(m)
	if p.Limiter.Limit == nil && !m.Get("limit").Present() {
		p.Limiter.Limit = limit.Auto{}
	}
	c.Limiter = limiter(p.Limiter)
	c.Limiter.Observe = m.Get("observe").Bool()
	c.Deadline, c.DeadlineCap = p.Deadline, p.DeadlineCap
	c.DeadlineHeaders = deadlineHeaders(m.Get("deadline_headers"))
	c.TrustDeadline = networks(m.Get("trust_deadline"))
	c.HopMargin = m.Get("hop_margin").Span(1, maxMargin)

	work(m, c)
	for _, n := range m.Get("probes").List(maxProbes) {
		c.Exempt = append(c.Exempt, probe(n))
	}
	set(&c.OverloadStatus, m.Get("overload_status"), overloadStatus)
	c.Markers = words(m.Get("markers"), markers...)
	c.ServerTiming = m.Get("server_timing").Bool()
	c.MaxBody = m.Get("max_body").Size()
	set(&c.MaxUpgraded, m.Get("max_upgraded"), whole(1, maxUpgraded))
	set(&c.SlowClient, m.Get("slow_client"), slowClient)
	c.Finish = m.Get("finish").Span(0, maxFinish)
	c.Idle, c.Total = spanOrNone(m.Get("idle")), spanOrNone(m.Get("total"))
	if c.Mode == Stream {
		c.Limiter.Depth = goodput.NoQueue // nobody knows when a stream ends
	}
	return p
}

func upstreamName(n strictyaml.Node) string {
	text := n.Text(maxText)
	if text != "" && !isLabel(text) {
		n.Fail("upstream %q is not a name: a class has the name of one of the upstreams, and where that is stands there", text)
		return ""
	}
	return text
}

// deadlineHeaders reads headers in which callers say how long they wait.
func deadlineHeaders(n strictyaml.Node) (all []DeadlineHeader) {
	first := map[string]strictyaml.Node{}
	if name := n.Raw(); httpguts.ValidHeaderFieldName(name) {
		n.Fail("deadline_headers %q has no format: write [{name: %s, format: ms}], or another of %s", name, name, strictyaml.Either(formats))
		return nil
	}
	for _, n := range n.List(maxHeaders) {
		if name := n.Raw(); httpguts.ValidHeaderFieldName(name) {
			n.Fail("deadline_headers %q has no format: write {name: %s, format: ms}, or another of %s", name, name, strictyaml.Either(formats))
			continue
		}
		m := n.Map()
		at := m.Need("name", "X-Server-Timeout")
		h := DeadlineHeader{Name: headerName(at), Format: formats[m.Need("format", "ms").Word(formats...)]}
		m.Done()
		if err := (goodputhttp.DeadlineHeader{Name: h.Name, Format: goodputhttp.DeadlineFormat(h.Format)}).Validate(); err != nil && m.Sound() {
			at.Fail("%v", err)
		}
		if before, twice := first[h.Name]; twice && h.Name != "" {
			at.Clash(before, "header %s is there twice: it has one format", h.Name)
		}
		first[h.Name] = at
		all = append(all, h)
	}
	return all
}

// overloadStatus reads 503, which is the default, or 429.
func overloadStatus(n strictyaml.Node) int {
	const overload, unavailable = 429, 503
	switch v := n.Whole(overload, unavailable); v {
	case 0, overload, unavailable:
		return int(v)
	default:
		n.Fail("overload_status %d is neither 503 nor 429", v)
		return 0
	}
}

// slowClient reads how long; none waits for clients for ever.
func slowClient(n strictyaml.Node) time.Duration {
	if n.Raw() == "none" {
		return goodputhttp.PatientClient
	}
	return n.SpanOr(shortest, longest, "none")
}

// spanOrNone reads a duration; none takes back what the defaults say.
func spanOrNone(n strictyaml.Node) time.Duration {
	if n.Raw() == "none" {
		return 0
	}
	return n.SpanOr(shortest, longest, "none")
}
