package config

import (
	"fmt"
	"io"
	"strings"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/policy"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/limit"
)

// A Description is what a configuration comes to, for a person or, by its tags, for a
// program. What is in it stays; keys may be added.
type Description struct {
	Listeners []string           `json:"listeners"`
	Upstreams []UpstreamSummary  `json:"upstreams"`
	Processes int                `json:"processes"`
	Classes   []ClassDescription `json:"classes"`
}

// An UpstreamSummary is one service.
type UpstreamSummary struct {
	Name    string   `json:"name"`
	Servers []string `json:"servers"`
	Limit   int      `json:"limit,omitempty"` // of all servers, where each says one
}

// A ClassDescription is one class, with what its queue is derived from.
type ClassDescription struct {
	Name       string  `json:"name"`
	Match      string  `json:"match"` // in words
	Upstream   string  `json:"upstream"`
	Mode       string  `json:"mode"`
	Observe    bool    `json:"observe,omitempty"`
	Limit      string  `json:"limit,omitempty"`
	Begins     int     `json:"begins,omitempty"` // with what number the limit begins
	Depth      *int    `json:"depth,omitempty"`  // how many may wait then
	Derivation string  `json:"derivation,omitempty"`
	Objective  float64 `json:"objective_seconds,omitempty"`
	Percentile float64 `json:"percentile,omitempty"`
	Reachable  *bool   `json:"reachable,omitempty"`
	Deadline   float64 `json:"deadline_seconds,omitempty"`
	Cap        float64 `json:"deadline_cap_seconds,omitempty"`
	Work       string  `json:"work,omitempty"` // who sends a request, and how much it is, in words

	deadlines string
	depth     []string // the derivation in lines
}

// Describe says what c comes to.
func (c *Config) Describe() *Description {
	d := &Description{Processes: c.Processes}
	for i := range c.Listeners {
		d.Listeners = append(d.Listeners, c.Listeners[i].String())
	}
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		s := UpstreamSummary{Name: u.Name, Limit: u.room()}
		for _, server := range u.Servers {
			s.Servers = append(s.Servers, server.URL.Redacted())
		}
		d.Upstreams = append(d.Upstreams, s)
	}
	for i := range c.Classes {
		d.Classes = append(d.Classes, c.Classes[i].describe())
	}
	return d
}

func (c *Class) describe() ClassDescription {
	d := ClassDescription{
		Name: c.Name, Match: c.Match.String(), Upstream: c.Upstream, Mode: c.Mode.String(),
		Deadline: c.Deadline.Seconds(), Cap: c.DeadlineCap.Seconds(), Work: c.work(), deadlines: c.deadlines(),
	}
	if c.Mode == Connection {
		return d
	}
	from := c.Derivation()
	d.Observe, d.Limit, d.Begins = c.Limiter.Observe, fmt.Sprint(c.Limiter.Limit), from.Limit
	if n := policy.Number(c.Limiter.Limit); n != 0 {
		d.Limit = fmt.Sprint(n)
	}
	if c.Mode == Request {
		d.Depth, d.Derivation, d.Reachable = &from.Depth, from.String(), &from.Reachable
		d.Objective, d.Percentile = from.Objective.Seconds(), from.Percentile
		d.depth = c.depth(from)
	}
	return d
}

// depth is how many may wait, and why. While the limit is searched that is for what it may
// become meanwhile, which says little to a reader: so beside it is what is right once the
// number that it begins with turns out to be the one.
func (c *Class) depth(from goodput.Derivation) []string {
	found := *c
	found.Limiter.Limit = limit.Fixed(from.Limit)
	if from.Growth <= 1 || found.Limiter.Validate() != nil {
		return []string{from.String()}
	}
	then := found.Derivation()
	return []string{
		fmt.Sprintf("%d at first, while the limit is searched: by the time they are served it may have grown, on average to %.3g times %d", from.Depth, from.Growth, from.Limit),
		fmt.Sprintf("%d at %d, if that is what is found: %v", then.Depth, from.Limit, then),
	}
}

// Text writes d in lines.
func (d *Description) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "  listen    %s\n", strings.Join(d.Listeners, "\n            "))
	for _, u := range d.Upstreams {
		limit := ""
		if u.Limit != 0 {
			limit = fmt.Sprintf(", %d at once", u.Limit)
		}
		fmt.Fprintf(&b, "  upstream  %s: %s%s\n", u.Name, strings.Join(u.Servers, ", "), limit)
	}
	if d.Processes > 1 {
		fmt.Fprintf(&b, "  processes %d\n", d.Processes)
	}
	for _, c := range d.Classes {
		c.text(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *ClassDescription) text(b *strings.Builder) {
	fmt.Fprintf(b, "  class %s: %s, to %s\n", c.Name, c.Match, c.Upstream)
	switch {
	case c.Mode == Connection.String():
		b.WriteString("    limit     none of its own: the connections of the listeners\n")
	case c.Mode == Stream.String():
		fmt.Fprintf(b, "    limit     %s streams at once, no queue\n", c.Limit)
	case c.Limit != fmt.Sprint(c.Begins):
		fmt.Fprintf(b, "    limit     %s, begins with %d\n", c.Limit, c.Begins)
	default:
		fmt.Fprintf(b, "    limit     %s\n", c.Limit)
	}
	if c.Observe {
		b.WriteString("    observe   nothing is refused\n")
	}
	if len(c.depth) > 0 {
		fmt.Fprintf(b, "    depth     %s\n", strings.Join(c.depth, "\n              "))
	}
	if c.deadlines != "" {
		fmt.Fprintf(b, "    deadline  %s\n", c.deadlines)
	}
	if c.Work != "" {
		fmt.Fprintf(b, "    work      %s\n", c.Work)
	}
}

// String is where a listener listens, and what it speaks.
func (l *Listener) String() string {
	var speaks []string
	if l.HTTP1 {
		speaks = append(speaks, "HTTP/1.1")
	}
	switch {
	case l.HTTP2 && l.TLS != nil:
		speaks = append(speaks, "h2")
	case l.HTTP2:
		speaks = append(speaks, "h2c")
	}
	at := l.Address
	if l.Network == "unix" {
		at = "unix:" + at
	}
	if l.TLS != nil {
		speaks = append(speaks, "TLS")
	}
	return fmt.Sprintf("%s (%s), %d connections at most", at, strings.Join(speaks, ", "), l.MaxConnections)
}

// String says in words which requests are meant.
func (m *Match) String() string {
	if m.Empty() {
		return "every request"
	}
	var all []string
	add := func(what string, values []string) {
		if len(values) > 0 {
			all = append(all, what+" "+strictyaml.Either(values))
		}
	}
	add("host", m.Hosts)
	add("path", m.Paths)
	add("method", m.Methods)
	for _, h := range m.Headers {
		add("header", []string{strings.TrimSuffix(h.Name+": "+h.Value, ": ")})
	}
	add("content type", m.ContentTypes)
	return strings.Join(all, " and ")
}

func (c *Class) deadlines() string {
	var all []string
	if c.Deadline != 0 {
		all = append(all, strictyaml.Short(c.Deadline)+" where a request brings none")
	}
	switch {
	case c.DeadlineCap == 0:
	case c.Deadline != 0:
		all = append(all, "at most "+strictyaml.Short(c.DeadlineCap))
	default:
		all = append(all, "at most "+strictyaml.Short(c.DeadlineCap)+", also where a request brings none")
	}
	for _, h := range c.DeadlineHeaders {
		all = append(all, fmt.Sprintf("read from %s (%s) too", h.Name, h.Format))
	}
	if c.HopMargin != 0 {
		all = append(all, "forwarded less "+strictyaml.Short(c.HopMargin))
	}
	return strings.Join(all, ", ")
}

// work says who sends a request, and how much it is, as far as the class says it.
func (c *Class) work() string {
	var all []string
	for _, k := range []struct {
		name string
		Key
	}{{"tenant", c.Tenant}, {"user", c.User}} {
		if k.From != Nobody {
			all = append(all, k.name+" by "+[...]string{Named: "header " + k.Header, Address: "address", Cert: "certificate"}[k.From])
		}
	}
	switch {
	case c.Priority.Header != "":
		all = append(all, "priority by header "+c.Priority.Header)
	case c.Priority.Fixed != goodput.Default && c.Priority.Fixed != 0:
		all = append(all, "priority "+c.Priority.Fixed.String())
	}
	for _, a := range []struct {
		name string
		Amount
	}{{"cost", c.Cost}, {"size", c.Size}} {
		switch {
		case a.Header != "":
			all = append(all, a.name+" by header "+a.Header)
		case a.Per != 0:
			all = append(all, fmt.Sprintf("%s 1 for each %s of the body", a.name, bytes(a.Per)))
		case a.Fixed > 1:
			all = append(all, fmt.Sprintf("%s %d", a.name, a.Fixed))
		}
	}
	return strings.Join(all, ", ")
}
