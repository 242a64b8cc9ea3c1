package goodputhttp

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// A Transport is an http.RoundTripper that sends no more than a dependency can answer in
// time: it is the client half of Server.
//
//	client := &http.Client{Transport: &goodputhttp.Transport{
//		Dependency: func(*http.Request) *goodputhttp.Dependency { return search },
//	}}
//
// Each attempt takes a slot of the limiter of its dependency, tells the server how much
// time is left, and holds the slot to the end of the body of the response. What the
// server refused, or what failed, is sent again if that does no harm, can still win and
// is within the retry budget. The package comment has the rules.
//
// It is safe for concurrent use. Do not change or copy a Transport in use.
type Transport struct {
	_ noCopy

	// Base makes the attempts. Default http.DefaultTransport, which keeps only two idle
	// connections per host: set MaxIdleConnsPerHost of your own to the limit. An
	// http.Transport sends a request on another connection if the one that it kept turns
	// out to be closed, which is nothing that anybody counts.
	Base http.RoundTripper

	// Dependency says what a request needs: one Dependency per service, or per part of
	// one that has a limit of its own, and the same one each time. A request for which
	// it returns nil goes to Base as it came. ByHost makes one for each host. Required.
	Dependency func(*http.Request) *Dependency
}

// A noCopy makes go vet complain when what it is in is copied.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// A Dependency is a service that requests are sent to. Make it once and return the same
// one for each request: one made per request has a limiter that never fills, and a retry
// budget, a throttle and a hedge that never learn. The zero value of each field means its
// default, and the zero Dependency forwards deadlines and counts. Do not change or copy a
// Dependency in use; Transports may share one.
type Dependency struct {
	// Name is for errors, Stats and Explain. Default: the name of Limiter, else
	// "dependency".
	Name string

	// Limiter bounds what runs there at once for us. What it refuses is not sent: the
	// error is its *goodput.Rejection. nil: no limit.
	Limiter *goodput.Limiter

	// Retry says when a request is sent again. nil: never.
	Retry *retry.Policy

	// Throttle keeps requests at home that would be refused anyway: the error is an
	// *Unsent. If it keeps a later attempt, the answer of the one before is returned, and
	// DependencyStats.Throttled and Explain count it. nil: none are.
	Throttle *retry.Throttle

	// Hedge sends slow requests a second time. nil: never.
	Hedge *Hedge

	// Deadline is the header in which the service is told how much time is left.
	Deadline Dialect

	// HopMargin is taken off that time for the way there and back: 1 ns to 1 min.
	// Default: the constant HopMargin.
	HopMargin time.Duration

	// Work describes a request to Limiter. Attempt is filled in if it is 0. Default:
	// goodput.Work{}.
	Work func(*http.Request) goodput.Work

	// Idempotent says whether executing a request twice does no more than once. Default:
	// by its method, as in RFC 9110 9.2.2 (GET, HEAD, OPTIONS, TRACE, PUT, DELETE), or it
	// has an Idempotency-Key, or its context is one of retry.Idempotent. Work that a server
	// says it did not start is sent again whatever this says.
	Idempotent func(*http.Request) bool

	once    sync.Once
	invalid error         // why start did not
	policy  *retry.Policy // nil: one attempt
	bounds  bool          // policy bounds attempts itself, so each has a context of its own
	counts  clientCounts
	open    bodies
	gone    atomic.Bool // it has lost its place in Hosts: RoundTrip asks for another one
}

// Validate returns one sentence about the first field that is out of range, or nil.
func (d *Dependency) Validate() error {
	if d.HopMargin < 0 || d.HopMargin > time.Minute {
		return fmt.Errorf("hop margin %v is out of range: 1ns to 1m, or 0 for %v", d.HopMargin, HopMargin)
	}
	if d.Deadline >= numChoices {
		return fmt.Errorf("deadline dialect %d does not exist: 0 to %d", d.Deadline, numChoices-1)
	}
	if d.Retry != nil {
		if err := d.Retry.Validate(); err != nil {
			return err
		}
	}
	if d.Throttle != nil {
		if err := d.Throttle.Validate(); err != nil {
			return err
		}
	}
	if d.Hedge != nil {
		return d.Hedge.validate()
	}
	return nil
}

// ready comes before each request. It panics if d is not valid, each time: a handler that
// recovers would else go on with what is half made.
func (d *Dependency) ready() {
	d.once.Do(d.start)
	if d.invalid != nil {
		panic("goodputhttp: dependency " + d.name() + ": " + d.invalid.Error())
	}
}

func (d *Dependency) start() {
	if d.invalid = d.Validate(); d.invalid != nil {
		return
	}
	d.policy = d.Retry
	if d.policy == nil && d.Hedge != nil {
		// A hedge needs a budget, and a budget needs to know of the calls.
		d.policy = &retry.Policy{Attempts: 2, Classify: func(retry.Fault) retry.Verdict { return retry.VerdictFinal }}
	}
	d.bounds = d.policy != nil && (d.policy.PerAttempt != 0 || d.policy.Total != 0)
	d.open.sweep = d.sweep
}

// idle reports whether no request is under way and no response is being read.
func (d *Dependency) idle() bool { return d.counts.running.Load() == 0 && d.open.count() == 0 }

func (d *Dependency) name() string {
	switch {
	case d.Name != "":
		return d.Name
	case d.Limiter != nil:
		return d.Limiter.Name()
	}
	return "dependency"
}

// RoundTrip sends r, perhaps more than once, and returns the last response, whatever its
// status. It changes nothing of r but that it closes its body.
//
// The error is a *goodput.Rejection or an *Unsent if nothing was sent, both of which
// errors.Is finds as goodput.ErrRejected; the cause of the context if the caller has left;
// else what Base returned last. If a later attempt is not sent, for want of a slot or of
// time, the call ends as the attempt before it did, or with the reason if the response of
// that one was too long or too slow to be kept (64 KiB, 100 ms).
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.Dependency == nil {
		panic("goodputhttp: Transport.Dependency is nil: say what a request needs, or use ByHost")
	}
	dep := t.begin(r)
	if dep == nil {
		return t.base().RoundTrip(r)
	}
	defer dep.counts.running.Add(-1)
	dep.ready()
	dep.counts.calls.Add(1)
	span := goodput.Downstream(r.Context()) // waits between attempts are for the dependency as well
	defer span.End()
	c := call{dep: dep, base: t.base(), req: r, grpc: isGRPC(r.Header)}
	c.readDeadline(time.Now())
	return c.run()
}

// begin returns the Dependency of r, which stays in Hosts from then on. One that has just lost
// its place is not the one of its host any more, unless Dependency says so all the same.
func (t *Transport) begin(r *http.Request) *Dependency {
	dep := t.Dependency(r)
	for dep != nil {
		dep.counts.running.Add(1)
		if !dep.gone.Load() {
			break
		}
		before := dep
		if dep = t.instead(before, r); dep == before {
			break
		}
	}
	return dep
}

// instead asks once more for the Dependency of r. before is not begun then, unless it is the
// same: it counts until that is known.
func (t *Transport) instead(before *Dependency, r *http.Request) (dep *Dependency) {
	defer func() {
		if dep != before { // or it panicked
			before.counts.running.Add(-1)
		}
	}()
	return t.Dependency(r)
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

// CloseIdleConnections closes those of Base: http.Client calls it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
