package proxy

import (
	"cmp"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/cmd/goodput/internal/upstream"
	"github.com/goodput/goodput/goodputhttp"
)

// A class is one kind of requests under one configuration: its limiter, the door in front of
// it and the way to its servers. A reload makes another one of the same limiter, and what is
// in flight ends under this one.
type class struct {
	cfg     *config.Class
	matches matcher
	lim     *goodput.Limiter // nil: connections are not limited one by one
	kept    *goodput.Limiter // of a class of connections: the one from before it was
	door    *goodputhttp.Server
	carrier *carrier // behind the door
	pool    *upstream.Pool

	follower
}

// class returns cfg as a class that has no limiter yet. was is the class of the same name
// until now, if there is one.
func (p *Proxy) class(cfg *config.Class, t *table, was *class) *class {
	c := &class{cfg: cfg, matches: match(cfg.Match), pool: t.pools[cfg.Upstream]}
	up := t.upstream(cfg.Upstream)
	c.absence = max(min(up.MaxAbsence, longestWait(cfg)), time.Millisecond) // the least that there is
	var back http.RoundTripper = c.pool
	if cfg.Finish > 0 {
		back = &finisher{back, cfg.Finish}
	}
	c.carrier = &carrier{
		next: &httputil.ReverseProxy{
			Rewrite:        func(r *httputil.ProxyRequest) { p.rewrite(t, r) },
			Transport:      back,
			BufferPool:     &buffers,
			ModifyResponse: p.lastAnswer,
			ErrorHandler:   p.fail,
			ErrorLog:       p.quiet,
			FlushInterval:  flushInterval(cfg.Mode),
		},
		cfg: cfg, tunnels: &p.tunnels, traffic: trafficOf(was), most: int64(c.maxUpgraded()),
	}
	c.door = t.door(c)
	c.door.Ended = p.told(t, c)
	if was != nil {
		c.door.Succeed(was.door)
	}
	return c
}

// flushInterval is how long what is written may stay in a buffer. A stream is there for what
// has come of it: -1 is not at all, the header included. For requests it stays 0: ReverseProxy
// flushes each write of an event stream and of every body without a length by itself, and for
// the others a flush per write is a system call and a timer for nothing.
func flushInterval(m config.Mode) time.Duration {
	if m == config.Request {
		return 0
	}
	return -1
}

// longestWait is how long a request without a deadline waits at the most: where servers are
// away for longer it is refused because they are, not for its wait.
func longestWait(c *config.Class) time.Duration {
	return cmp.Or(c.Limiter.MaxWait, c.Limiter.Objective, config.DefaultObjective)
}

// door returns what admits the requests of a class.
func (t *table) door(c *class) *goodputhttp.Server {
	cfg, up := c.cfg, t.upstream(c.cfg.Upstream)
	s := &goodputhttp.Server{
		Limiter:        func(*http.Request) *goodput.Limiter { return c.lim },
		Next:           c.carrier,
		Stream:         cfg.Mode == config.Stream,
		Deadline:       cfg.Deadline,
		DeadlineCap:    cfg.DeadlineCap,
		HopMargin:      cfg.HopMargin,
		Forward:        dialect(up.Forward),
		ForwardOnly:    up.ForwardOnly,
		ForwardStart:   true,
		MaxBuffered:    cfg.Limiter.MaxBytes,
		MaxBody:        cfg.MaxBody,
		MaxUpgraded:    cfg.MaxUpgraded,
		SlowClient:     cfg.SlowClient,
		OverloadStatus: cfg.OverloadStatus,
		Markers:        markers(cfg.Markers),
		ServerTiming:   cfg.ServerTiming,
		Work:           t.work(cfg),
		Exempt:         exempt(cfg.Exempt, goodputhttp.Probe),
	}
	for _, h := range cfg.DeadlineHeaders {
		s.DeadlineHeaders = append(s.DeadlineHeaders, goodputhttp.DeadlineHeader{Name: h.Name, Format: goodputhttp.DeadlineFormat(h.Format)})
	}
	if len(t.cfg.TrustedProxies) > 0 {
		s.Trusted = func(r *http.Request) bool { return among(t.cfg.TrustedProxies, r.RemoteAddr) }
	}
	if len(cfg.TrustDeadline) > 0 {
		s.Extends = func(r *http.Request) bool { return among(cfg.TrustDeadline, r.RemoteAddr) }
	}
	return s
}

// dialect is how a server is told of the time that is left, by the name of a header.
func dialect(header string) goodputhttp.Dialect {
	switch http.CanonicalHeaderKey(header) {
	case "Grpc-Timeout":
		return goodputhttp.DialectGRPC
	case "Connect-Timeout-Ms":
		return goodputhttp.DialectConnect
	case "X-Envoy-Expected-Rq-Timeout-Ms":
		return goodputhttp.DialectEnvoy
	case "Expect-Within":
		return goodputhttp.DialectSeconds
	case "None":
		return goodputhttp.DialectNone
	}
	return goodputhttp.DialectOfCaller
}

// markers are those of a file in the terms of goodputhttp.
func markers(names []string) (set goodputhttp.Markers) {
	for _, name := range names {
		switch name {
		case "envoy":
			set |= goodputhttp.EnvoyMarkers
		case "finagle":
			set |= goodputhttp.FinagleMarkers
		}
	}
	return set
}

// last returns the limiter of a class, also the one that a class of connections had before.
func (c *class) last() *goodput.Limiter {
	if c.lim != nil {
		return c.lim
	}
	return c.kept
}

// maxUpgraded is how many connections of the class may be upgraded at once.
func (c *class) maxUpgraded() int {
	if n := c.cfg.MaxUpgraded; n != 0 {
		return n
	}
	return goodputhttp.DefaultMaxUpgraded
}
