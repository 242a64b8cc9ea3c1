package proxy

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/goodput/goodput/goodputhttp"
)

// An Ended is what became of one request, with what the proxy knows beside its door. It is used
// again after the call. Requests that are of no class were answered without a look at one: of
// those Arrival, Status, Bytes and Reason are known, which is connect, bad_host, bad_upgrade or
// ambiguous_path.
type Ended struct {
	*goodputhttp.Ended

	Class string // its name; "": none

	r       *http.Request
	proxies []netip.Prefix
}

// Client is the address of the client, as far as those in between are trusted; invalid on a
// unix socket.
func (e *Ended) Client() netip.Addr { return clientOf(e.r, e.proxies) }

// Server is the host and the port of the server that answered; "" if none did, or if
// Options.Servers was not set.
func (e *Ended) Server() string {
	if s, ok := e.r.Context().Value(servedKey{}).(*served); ok {
		return s.by
	}
	return ""
}

// told returns what the door of a class tells; nil if nobody is told.
func (p *Proxy) told(t *table, c *class) func(*http.Request, *goodputhttp.Ended) {
	if p.ended == nil {
		return nil
	}
	return func(r *http.Request, e *goodputhttp.Ended) {
		p.ended(r, Ended{Ended: e, Class: c.cfg.Name, r: r, proxies: t.cfg.TrustedProxies})
	}
}

// refuse answers a request that is of no class.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, reason, text string, status int) {
	arrival := time.Now()
	http.Error(w, text, status)
	if p.ended != nil {
		e := goodputhttp.Ended{Arrival: arrival, Total: time.Since(arrival), Status: status, Bytes: int64(len(text) + 1), Reason: reason}
		p.ended(r, Ended{Ended: &e, r: r, proxies: p.now.Load().cfg.TrustedProxies})
	}
}

// served is in the context of a request for the server that answers it.
type served struct{ by string }

type servedKey struct{}

// asks gives r a place for its server.
func (p *Proxy) asks(r *http.Request) *http.Request {
	if !p.servers {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), servedKey{}, new(served)))
}

// answers notes the server of an answer.
func (p *Proxy) answers(res *http.Response) {
	if !p.servers {
		return
	}
	if s, ok := res.Request.Context().Value(servedKey{}).(*served); ok {
		s.by = res.Request.URL.Host
	}
}
