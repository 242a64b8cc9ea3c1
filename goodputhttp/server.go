package goodputhttp

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// Handler returns a handler that lets next run within lim, with the defaults of
// Server: no deadline but the one that a caller brings.
//
//	http.Handle("/search", goodputhttp.Handler(lim, search))
func Handler(lim *goodput.Limiter, next http.Handler) http.Handler {
	if lim == nil || next == nil {
		panic("goodputhttp: Handler needs a limiter and a handler")
	}
	return &Server{Limiter: func(*http.Request) *goodput.Limiter { return lim }, Next: next}
}

// A Server is an http.Handler that admits requests to Next, makes them wait or
// refuses them. Limiter and Next are required; the zero value of any other
// field means its default. Do not change or copy a Server in use.
type Server struct {
	// Limiter picks the limiter of a request: one per class of requests. A
	// request for which it returns nil is passed to Next as it came, without
	// limit and deadline.
	Limiter func(*http.Request) *goodput.Limiter

	// Next serves what is admitted.
	Next http.Handler

	// Deadline of a request that brings none. 0: it has none.
	Deadline time.Duration

	// DeadlineCap is the longest deadline there is, whatever a request brings.
	// 0: no cap.
	DeadlineCap time.Duration

	// DeadlineHeaders are headers in which callers say how long they wait, beside the
	// four of the package comment: up to 12. They are read, shorten the deadline and are
	// forwarded like those. Default: none.
	DeadlineHeaders []DeadlineHeader

	// Extends says which requests may bring a longer deadline than DeadlineCap, in a
	// header or by their context: those of services that are trusted to know. One that
	// brings none, or says that it waits for ever, has the cap all the same. Default:
	// none may.
	Extends func(*http.Request) bool

	// Trusted says which requests come from a hop of ours that stamps them:
	// X-Request-Start and X-Queue-Start of those say when the request entered the
	// system. That is goodput.Work.Arrival then, unless Work says otherwise, and every
	// time that a header allows, Deadline and DeadlineCap begin there: see the package
	// comment. Anybody may write such a header, so the others are ignored. Default:
	// nobody is trusted.
	Trusted func(*http.Request) bool

	// HopMargin is what ForwardDeadline takes off for the way to the next hop and back:
	// 1 ns to 1 min. Default: the constant HopMargin.
	HopMargin time.Duration

	// Forward is the header that ForwardDeadline adds where the caller used none.
	// Default: grpc-timeout for gRPC, else x-envoy-expected-rq-timeout-ms. A gRPC call
	// is given grpc-timeout whichever it is, since its server reads no other, but
	// for DialectNone.
	Forward Dialect

	// ForwardOnly translates: what the caller used is dropped, and Forward, which has
	// to be named, is written instead. A grpc-timeout of a gRPC call stays beside it.
	ForwardOnly bool

	// ForwardStart has ForwardDeadline say when the request arrived, X-Request-Start:
	// t=<milliseconds since 1970>, if the request has no such header yet: the one of the
	// first hop is the one that counts.
	ForwardStart bool

	// MaxPreread is the largest body that is read before the request queues, in
	// bytes. Default 1 MiB; NoPreread reads none. The package comment says what
	// it is good for.
	MaxPreread int64

	// MaxBuffered bounds the bodies that are in memory because of MaxPreread,
	// of all requests together, in bytes. Beyond it bodies are not read before
	// the request queues. Default 64 MiB.
	MaxBuffered int64

	// PrereadTimeout is how long a body of up to MaxPreread may take to arrive,
	// if the deadline is not earlier: then 408. Default 10 s, and one more for
	// each 16 KiB that the request declares.
	PrereadTimeout time.Duration

	// SlowClient is how long a request that holds a slot may wait for its
	// client in all, to send more of a body that was not read in advance or to
	// take more of the response; for each 16 KiB that go through it is a second
	// longer. Then the connection is cut. Default 10 s; PatientClient for ever,
	// for streams that a client feeds slowly. The deadline ends the reading of a body
	// before that, and such a request is late and not slow. A gRPC call over HTTP/2 may be a
	// stream that is silent for hours, so its body does not count, and bounding
	// it is the business of DeadlineCap. Nor do upgraded connections.
	SlowClient time.Duration

	// Exempt says which requests are health probes: not limited, not sampled,
	// and bounded by goodput.Config.Exempt. Default Probe.
	Exempt func(*http.Request) bool

	// Work describes a request: cost, size, priority. Bytes is filled in if it is 0,
	// and Attempt from the headers: see Retries in the package comment. Default:
	// goodput.Work{}.
	Work func(*http.Request) goodput.Work

	// Tenant says who sends a request, for a limiter with goodput.Config.Tenants: a key
	// that has been checked, or ByAddress(0, 0). Do not take it from a header that any
	// client may write: an invented id is one of the others and gains nothing, but
	// that of a tenant takes the share of its owner. Nor take a priority from one, or
	// cap it with goodput.Tenant.Highest. An id from Work wins; default: none.
	Tenant func(*http.Request) string

	// User says for whom it is, so that in an overload the same users are shed
	// everywhere: see goodput.Work.User. One from Work wins; default: none.
	User func(*http.Request) string

	// OverloadStatus is what a request is answered that found no place: 503,
	// the default, or 429 for clients that treat 503 as a broken server. gRPC
	// calls get UNAVAILABLE and RESOURCE_EXHAUSTED. Reasons that are no
	// overload keep their status.
	OverloadStatus int

	// Markers are what refusals carry beside Goodput-Rejected, for neighbours that do
	// not know that. Default: nothing.
	Markers Markers

	// ServerTiming has every answer say how long its request waited for a slot:
	// Server-Timing: queue;dur=<milliseconds>. Browsers show it, so it tells everybody
	// how busy the service is. Default: it does not.
	ServerTiming bool

	// MaxBody is the longest body of a request, in bytes. One that is declared longer is
	// answered 413 at the door. One of unknown length is cut there: before it is
	// admitted with the same answer, and after that reading it ends with a
	// *http.MaxBytesError, and the answer is 413 unless the handler has another. 0: any.
	MaxBody int64

	// Stream is for requests that last as long as their client likes: event streams,
	// streams of gRPC, long downloads, WebSockets. Each holds its slot to its true end,
	// that of an upgraded connection included, and gives no sample of any kind: the
	// limit is on how many are open. No body is read in advance and clients may be silent
	// (SlowClient then bounds only how long one may not take what is sent). Deadline and
	// DeadlineCap end one as they end any request, so leave them 0 or long. In time is
	// whose response has begun in time, whoever ends it then: its client too, by leaving, and
	// a limit of the handler's (Cut). Abandoned are those that left before it had begun;
	// failed is what any request fails by. The limiter wants a fixed limit, and
	// goodput.NoQueue or a short queue: nobody knows when a stream ends.
	Stream bool

	// MaxUpgraded bounds the upgraded connections (WebSocket, CONNECT) that are
	// open at once; the next is answered 503. They hold no slot of a limiter, but with
	// Stream. Default 65,536.
	MaxUpgraded int

	// Ended is told what became of each request, once: for an access log, or numbers that
	// Stats has not. It is called when the request and its slot have ended: as ServeHTTP
	// returns or panics, and where the slot is held on (Hold, Stream) in the goroutine that
	// ends it; r is then as it came, without its body. It is part of the request, so it
	// should not wait, and must not panic. e is used again afterwards, so what is kept is a
	// copy. Default: nobody is told, and nothing is spent.
	Ended func(r *http.Request, e *Ended)

	own    books
	shared *books // those of another Server, if it took the place of one
	once   sync.Once
	ready  ready
}

// Defaults of Server.
const (
	// DefaultMaxPreread is what nginx buffers of a request by default.
	DefaultMaxPreread = 1 << 20

	// NoPreread as Server.MaxPreread says that no body is read in advance.
	NoPreread = -1

	// DefaultMaxBuffered is the byte budget that goodput.Config.MaxBytes has by
	// default for those that wait.
	DefaultMaxBuffered = 64 << 20

	// DefaultMaxUpgraded connections of two 32 KiB copy buffers are 4 GiB at
	// the very most; a process runs out of descriptors earlier.
	DefaultMaxUpgraded = 1 << 16
)

// A visit is one request on its way through a Server.
type visit struct {
	server *Server
	w      http.ResponseWriter // as it came
	r      *http.Request       // as it came
	grpc   bool
	unread bool  // an HTTP/1 client may still have to send of its body
	prior  int32 // attempts that its client made of it before this one
	budget Budget

	arrived time.Time
	body    *body     // what was read in advance; nil: nothing
	place   place     // among the upgraded connections
	run     *response // once it is admitted: that below
	watch   watch

	response response // one allocation with the visit
}

// ServeHTTP admits r to s.Next, or answers why not. It panics with
// http.ErrAbortHandler, which net/http takes for "close the connection and say
// nothing", if the client left before its request could start.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Limiter == nil || s.Next == nil {
		panic("goodputhttp: " + s.Validate().Error())
	}
	s.mustBeReady()
	lim := s.Limiter(r)
	if lim == nil {
		s.pass(w, r)
		return
	}
	v := s.visit(w, r)
	if s.Ended != nil {
		v.told(lim)
		return
	}
	v.admit(lim)
}

// admit runs the request within lim, or answers why not.
func (v *visit) admit(lim *goodput.Limiter) {
	defer v.place.leave()
	if v.turnedAway(lim) {
		return
	}
	work := v.work()
	ctx, cancel := v.context()
	defer cancel()
	if !work.Exempt {
		defer v.forget()
		var ok bool
		if ctx, ok = v.preread(ctx, cancel); !ok {
			return
		}
	}
	v.bound()
	if work.Bytes == 0 && v.body != nil {
		work.Bytes = v.body.read.left // nobody has read any of it
	}

	run := &v.response
	run.visit, run.ResponseWriter = v, v.w
	v.watch.begin(v.r, cancel)
	defer v.watch.stop()
	run.holds.offered(&work)
	var err error
	run.slot, err = lim.AcquireWork(ctx, work)
	if err == nil {
		run.holds.got(&run.slot, v.body != nil)
	}
	switch {
	case err != nil:
		v.refuse(err)
	case v.left(ctx): // at the moment at which it got its slot
		run.slot.Abandon()
		run.holds.gone(&run.slot)
		v.abort()
	default:
		run.serve(ctx)
	}
}

// turnedAway answers a request that is not offered to its limiter. It is no part of its
// caller because that has as many returns and deferred calls as the compiler does without a
// list of them (15 of both, multiplied); one more return cost 60 to 90 ns a request.
func (v *visit) turnedAway(lim *goodput.Limiter) bool {
	s := v.server
	if s.MaxBody > 0 && v.r.ContentLength > s.MaxBody {
		s.books().largeBodies.Add(1)
		v.answer(largeBody, 0)
		return true
	}
	if wantsUpgrade(v.r) && !v.place.reserve(s.maxUpgraded()) {
		v.refuse(noPlace(lim))
		return true
	}
	return false
}

func (s *Server) visit(w http.ResponseWriter, r *http.Request) *visit {
	v := &visit{server: s, w: w, r: r, grpc: isGRPC(r.Header), arrived: time.Now()}
	v.budget = s.budget(r, v.arrived, v.grpc)
	v.unread = r.ProtoMajor == 1 && r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody
	v.place.of = &s.books().upgrades
	return v
}

// context returns the context that r waits and runs with: it ends with the
// budget, carries it for those that forward the request, and can be cancelled. What is
// called for a retry is one as well.
func (v *visit) context() (context.Context, context.CancelFunc) {
	ctx := context.WithValue(v.r.Context(), visitKey{}, v)
	if v.prior > 0 {
		ctx = retry.WithAttempt(ctx, int(v.prior)+1)
	}
	if v.budget.Deadline.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, v.budget.Deadline)
}

func (v *visit) work() goodput.Work {
	var work goodput.Work
	if v.server.Work != nil {
		work = v.server.Work(v.r)
	}
	probe := v.server.Exempt
	if probe == nil {
		probe = Probe
	}
	work.Exempt = work.Exempt || probe(v.r)
	if work.Tenant == "" && v.server.Tenant != nil {
		work.Tenant = v.server.Tenant(v.r)
	}
	if work.User == "" && v.server.User != nil {
		work.User = v.server.User(v.r)
	}
	if v.budget.stamped && work.Arrival.IsZero() {
		work.Arrival = v.budget.arrival()
	}
	if work.Attempt == 0 {
		work.Attempt = priorAttempts(v.r.Header, v.grpc) + 1
	}
	v.prior = int32(min(max(work.Attempt, 1), maxAttempt)) - 1
	return work
}

// abort ends a request whose client left before it started. There is nobody to
// answer; over HTTP/1 a plain return would make net/http send a 200. A stream of
// HTTP/2 is closed already, and resetting it once more has to wait for the
// goroutine of its connection: a client that resets its streams faster than that
// would fill the memory with those that wait (CVE-2023-44487).
func (v *visit) abort() {
	v.server.books().left.Add(1)
	if v.r.ProtoMajor == 1 {
		panic(http.ErrAbortHandler)
	}
	// Nobody reads it, unless somebody above us ended the request, and then a
	// 200 would be a lie.
	v.w.WriteHeader(http.StatusServiceUnavailable)
}

func (s *Server) maxPreread() int64   { return or(s.MaxPreread, DefaultMaxPreread) }
func (s *Server) maxBuffered() int64  { return or(s.MaxBuffered, DefaultMaxBuffered) }
func (s *Server) maxUpgraded() int64  { return int64(or(s.MaxUpgraded, DefaultMaxUpgraded)) }
func (s *Server) overloadStatus() int { return or(s.OverloadStatus, http.StatusServiceUnavailable) }

// or returns v, or def if v is zero.
func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
