package proxy

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/goodputhttp"
	"golang.org/x/net/http/httpguts"
)

// A carrier is between admission and ReverseProxy, and looks after what lasts: upgraded
// connections in every class, and every request in those of streams and of connections.
// A request of a class of requests costs it a comparison.
//
// In a class of connections nothing is limited one by one, so nothing waits, and a deadline
// that a caller sends is as true behind us as it is before us: it passes as it came, and it
// is not enforced. What bounds such requests is the connections that may be open, Idle and
// Total, and MaxUpgraded, which is counted here because no limiter is asked, and of all modes
// that the class has had.
type carrier struct {
	next    http.Handler
	cfg     *config.Class
	tunnels *tunnels
	traffic *traffic
	most    int64 // upgraded connections
}

// traffic is what a class counts here; it goes on over reloads, of its mode too.
type traffic struct {
	requests        atomic.Int64 // of streams and connections, upgraded ones included
	tunnels         atomic.Int64
	tunnelsEver     atomic.Uint64
	upgrading       atomic.Int64  // places taken, in whatever mode
	upgradesRefused atomic.Uint64 // here, beside those that the door refused
	cut             [endings]atomic.Uint64

	streamed, tunnelled lasted // of those that have ended
}

// trafficOf returns that of the class of the same name until now, or one of its own.
func trafficOf(was *class) *traffic {
	if was != nil {
		return was.carrier.traffic
	}
	return new(traffic)
}

// Traffic is what lasts in one class: a snapshot.
type Traffic struct {
	Class    string
	Mode     config.Mode
	Requests int64 // in flight, of classes of streams and connections
	Tunnels  int64 // upgraded connections that are open, of any class

	TunnelsTotal    uint64 // upgraded ever
	UpgradesRefused uint64 // for MaxUpgraded
	CutIdle         uint64 // streams and upgraded connections in which nothing had moved for Idle
	CutTotal        uint64 // that lasted for Total

	// How long those lasted that have ended: requests of a class of streams or of connections
	// that were no upgrades, and upgraded connections.
	Streamed, Tunnelled goodput.Histogram
}

// Traffic returns the numbers of now, of each class in force.
func (p *Proxy) Traffic() []Traffic {
	var all []Traffic
	for _, c := range p.now.Load().classes {
		t := c.carrier.traffic
		all = append(all, Traffic{
			Class: c.cfg.Name, Mode: c.cfg.Mode, Requests: t.requests.Load(), Tunnels: t.tunnels.Load(),
			TunnelsTotal: t.tunnelsEver.Load(), UpgradesRefused: t.upgradesRefused.Load() + c.door.Stats().UpgradedRefused,
			CutIdle: t.cut[idled].Load(), CutTotal: t.cut[expired].Load(),
			Streamed: t.streamed.counts(), Tunnelled: t.tunnelled.counts(),
		})
	}
	return all
}

// ServeHTTP carries what was admitted.
func (c *carrier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer sayAll(w, r)
	upgrade := wantsUpgrade(r)
	if c.cfg.Mode != config.Request {
		c.traffic.requests.Add(1)
		defer c.traffic.requests.Add(-1)
	}
	switch {
	case upgrade:
		defer c.traffic.upgrading.Add(-1) // ReverseProxy returns when the tunnel has ended
		if c.traffic.upgrading.Add(1) > c.most {
			c.traffic.upgradesRefused.Add(1)
			goodputhttp.ProxyError(w, r, noPlace)
			return
		}
		u := &upgradable{ResponseWriter: w, carrier: c, r: r}
		if c.cfg.Mode == config.Request { // a stream has its deadline to its end
			u.life = lifeOf(r.Context())
			defer u.life.end()
			r = r.WithContext(u.life)
		}
		c.next.ServeHTTP(u, r)
	case c.cfg.Mode != config.Request:
		defer c.traffic.streamed.since(time.Now())
		c.carry(w, r)
	default:
		c.next.ServeHTTP(w, r)
	}
}

// sayAll sends what is still in buffers of a response that was cut: by its deadline, or by the
// service. Of a status and a part of a body a client can tell that the rest is missing; of a
// connection that ends without a word it cannot tell that anybody has begun to work on what it
// asked for.
func sayAll(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	// Nobody reads it where the client has left, and only there may the status be missing: in
	// all other cases fail answers.
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) && !errors.Is(r.Context().Err(), context.Canceled) {
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(restLinger)) // the connection ends, and so does one that takes nothing
		_ = control.Flush()
	}
	panic(p)
}

// wantsUpgrade reports whether ReverseProxy would let r change its protocol.
func wantsUpgrade(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.Header["Upgrade"] != nil &&
		httpguts.HeaderValuesContainsToken(r.Header["Connection"], "Upgrade")
}

// noPlace is the refusal of an upgrade where as many connections are upgraded as may be. They
// last, so a second is the least that makes sense. The door of a class with a limiter refuses
// before it asks that, and knows nothing of those that were upgraded while the class was one of
// connections.
var noPlace = &goodput.Rejection{Outcome: goodput.Rejected, Reason: goodput.Unavailable, RetryAfter: time.Second}
