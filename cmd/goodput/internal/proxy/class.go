package proxy

import (
	"net/http"
	"net/http/httputil"

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
	door    *goodputhttp.Server
	carrier *carrier // behind the door
	pool    *upstream.Pool
}

// class returns cfg as a class whose limiter is lim. was is the class of the same name
// until now, if there is one.
func (p *Proxy) class(cfg *config.Class, t *table, lim *goodput.Limiter, was *class) *class {
	c := &class{cfg: cfg, matches: match(cfg.Match), lim: lim, pool: t.pools[cfg.Upstream]}
	var back http.RoundTripper = c.pool
	if cfg.Finish > 0 {
		back = &finisher{back, cfg.Finish}
	}
	c.carrier = &carrier{
		next: &httputil.ReverseProxy{
			Rewrite:        func(r *httputil.ProxyRequest) { p.rewrite(t, c, r) },
			Transport:      back,
			BufferPool:     &buffers,
			ModifyResponse: p.lastAnswer,
			ErrorHandler:   p.fail,
			ErrorLog:       p.quiet,
			// FlushInterval stays 0: ReverseProxy flushes each write of an event
			// stream and of every body without a length by itself, and for the
			// others a flush per write is a system call and a timer for nothing.
		},
		cfg: cfg, tunnels: &p.tunnels, traffic: trafficOf(was), most: int64(c.maxUpgraded()),
	}
	c.door = &goodputhttp.Server{
		Limiter:        func(*http.Request) *goodput.Limiter { return c.lim },
		Next:           c.carrier,
		Stream:         cfg.Mode == config.Stream,
		Deadline:       cfg.Deadline,
		DeadlineCap:    cfg.DeadlineCap,
		MaxBuffered:    cfg.Limiter.MaxBytes,
		MaxUpgraded:    cfg.MaxUpgraded,
		SlowClient:     cfg.SlowClient,
		OverloadStatus: cfg.OverloadStatus,
		Work:           t.work(cfg),
		Exempt:         exempt(cfg.Exempt, goodputhttp.Probe),
	}
	if was != nil {
		c.door.Succeed(was.door)
	}
	return c
}

// maxUpgraded is how many connections of the class may be upgraded at once.
func (c *class) maxUpgraded() int {
	if n := c.cfg.MaxUpgraded; n != 0 {
		return n
	}
	return goodputhttp.DefaultMaxUpgraded
}
