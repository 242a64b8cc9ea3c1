package goodputhttp

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput"
)

// An Ended is what became of one request: see Server.Ended. Durations are 0 where there was
// nothing to measure.
type Ended struct {
	// Limiter is the one that was picked. Nil: none, and of the rest only Arrival and Total
	// are known, because writer and request were passed on as they came.
	Limiter *goodput.Limiter

	// Observed says that it runs because its limiter observed, and WouldRefuse that the
	// limiter would have refused it at the door.
	Observed, WouldRefuse bool

	// Offered says that the limiter was asked. Then Outcome and Reason are those in its
	// Stats, in which a request that is Exempt does not count. A request that was turned
	// away before that is Rejected in none of them: too_large, slow_body, bad_body, or
	// unavailable for Server.MaxUpgraded.
	Offered, Exempt bool

	Outcome goodput.Outcome
	Reason  string // why it did not start: as goodput.Reason says it, or of the four above; "" if it did

	// Work is what the limiter was offered, with what SetCost and SetSize have said since.
	// Of a request that was turned away nobody has asked what it is.
	Work goodput.Work

	Arrival        time.Time // its header was complete
	Deadline       time.Time // zero: none
	DeadlineSource string    // as Budget.Source

	Waited  time.Duration // for the slot
	Service time.Duration // from the slot to the header of the response; to the end of the slot without one
	Held    time.Duration // from the slot to its end
	Total   time.Duration // from Arrival to the return of the handler, of an upgraded connection as well

	Status   int    // 0: nothing was sent
	GRPC     string // the grpc-status of the answer to a call, of whoever gave it; "" if none was given
	Bytes    int64  // of the body of the response, as they were written; not those of an upgraded connection
	Upgraded bool   // the connection is the handler's: a WebSocket
}

// A tally gathers an Ended while its request is on its way. There is none without
// Server.Ended. It is used again for another request, so who has told lets go of it.
type tally struct {
	Ended
	server  *Server
	r       *http.Request
	granted time.Duration // since Arrival
	read    bool          // a body was read before the slot, so granted is when its goroutine woke up

	// Of a slot that is held on, the request and the slot have to end before it is told: open
	// counts them, and who ends the last tells. Of others the request is the last.
	shared bool
	open   atomic.Int32
}

var tallies = sync.Pool{New: func() any { return new(tally) }}

// told is admit for a Server that tells what became of its requests.
func (v *visit) told(lim *goodput.Limiter) {
	t := tallies.Get().(*tally)
	t.server, t.r = v.server, v.r
	t.Limiter, t.Arrival = lim, v.arrived
	t.Deadline, t.DeadlineSource = v.budget.Deadline, v.budget.Source
	v.response.holds.tally = t
	returned := false
	defer func() { v.over(t, returned) }() // a panic goes on
	v.admit(lim)
	returned = true
}

// over notes how the request ended; its slot may be held on.
func (v *visit) over(t *tally, returned bool) {
	if w := v.run; w != nil {
		t.Upgraded = w.detached || w.upgraded
		switch {
		case w.status != 0:
			t.Status, t.Bytes = w.status, w.written
		case t.Status != 0: // cutBody
		case t.Upgraded:
			t.Status = http.StatusSwitchingProtocols // who hijacks writes it
		case returned:
			t.Status = http.StatusOK // as net/http says for a handler that says nothing
		}
		t.Service = w.began
	}
	if v.grpc {
		t.GRPC = grpcStatus(v.w.Header())
	}
	if v.response.holds.now && !t.read {
		t.Total = t.granted + t.Held // the slot ended a moment ago
	} else {
		t.Total = time.Since(t.Arrival)
	}
	t.done()
}

// offered notes what the limiter is asked.
func (h *holds) offered(work *goodput.Work) {
	if t := h.tally; t != nil {
		t.Offered, t.Work = true, *work
	}
}

// got notes that there is a slot. Without a body that was read before, nothing but the wait was
// before it but about a microsecond of ours, so the clock, which is dearer than all else here,
// need not be read.
func (h *holds) got(slot *goodput.Slot, read bool) {
	if t := h.tally; t != nil {
		t.Waited, t.Exempt = slot.Waited(), slot.Exempt()
		t.Observed, t.WouldRefuse = slot.Observed()
		t.read = read
		if t.granted = t.Waited; read {
			t.granted = time.Since(t.Arrival)
		}
	}
}

// keep notes that the slot is held on. It comes before who ends the last hold may.
func (h *holds) keep() {
	if t := h.tally; t != nil {
		t.shared = true
		t.open.Store(2)
	}
}

// gone notes that the slot has ended. Nobody comes after it.
func (h *holds) gone(slot *goodput.Slot) {
	t := h.tally
	if t == nil {
		return
	}
	t.Outcome = slot.Outcome()
	if t.Held = slot.Held(); t.Held == 0 { // what the limiter has timed needs no clock of ours
		t.Held = time.Since(t.Arrival) - t.granted
	}
	if t.shared {
		t.done()
	}
}

// began returns how long after the slot the header of a response goes out; 0: nobody asks.
func (h *holds) began(slot *goodput.Slot) time.Duration {
	if h.tally == nil {
		return 0
	}
	if d := slot.Service(); d != 0 {
		return d
	}
	return time.Since(h.tally.Arrival) - h.tally.granted
}

// refused notes what a limiter said, or what would have been one's.
func (h *holds) refused(rej *goodput.Rejection) {
	if t := h.tally; t != nil {
		t.Outcome, t.Reason, t.Waited = rej.Outcome, rej.Reason.String(), rej.Waited
		if rej.Declined() {
			t.Outcome, t.Reason = goodput.Abandoned, "" // as it is counted
		}
	}
}

// turnedAway notes a refusal by the table, unless it is the answer to one that was noted.
func (h *holds) turnedAway(f *refusal) {
	if t := h.tally; t != nil && t.Outcome == goodput.Pending {
		t.Outcome, t.Reason = goodput.Rejected, f.reason
	}
}

// answered notes an answer that no handler gave.
func (h *holds) answered(status, bytes int) {
	if t := h.tally; t != nil {
		t.Status, t.Bytes = status, int64(bytes)
	}
}

// done tells, after the last part.
func (t *tally) done() {
	if t.shared && t.open.Add(-1) > 0 {
		return
	}
	if t.Service == 0 {
		t.Service = t.Held
	}
	t.server.Ended(t.r, &t.Ended)
	*t = tally{}
	tallies.Put(t)
}

// pass serves a request that has no limiter.
func (s *Server) pass(w http.ResponseWriter, r *http.Request) {
	if s.Ended == nil {
		s.Next.ServeHTTP(w, r)
		return
	}
	arrival := time.Now()
	defer func() { s.Ended(r, &Ended{Arrival: arrival, Total: time.Since(arrival)}) }()
	s.Next.ServeHTTP(w, r)
}
