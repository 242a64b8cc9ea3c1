package goodputhttp

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// A ledger adds up what Server.Ended tells.
type ledger struct {
	mu       sync.Mutex
	all      []Ended
	outcomes map[goodput.Outcome]uint64 // of those that were offered and are not exempt
	reasons  map[string]uint64
	away     map[string]uint64 // turned away before the limiter
	exempt   uint64
}

func newLedger() *ledger {
	return &ledger{outcomes: map[goodput.Outcome]uint64{}, reasons: map[string]uint64{}, away: map[string]uint64{}}
}

func (l *ledger) ended(_ *http.Request, e *Ended) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, *e)
	switch {
	case !e.Offered:
		l.away[e.Reason]++
	case e.Exempt:
		l.exempt++
	default:
		l.outcomes[e.Outcome]++
		if e.Reason != "" {
			l.reasons[e.Reason]++
		}
	}
}

func (l *ledger) n() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// last waits for the n-th and returns it.
func (l *ledger) last(t *testing.T, n int) Ended {
	t.Helper()
	until(t, "the hook is called", func() bool { return l.n() >= n })
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) != n {
		t.Fatalf("%d calls, want %d", len(l.all), n)
	}
	return l.all[n-1]
}

// agree compares what was told with what the limiters have counted, to the last one.
func (l *ledger) agree(t *testing.T, lims ...*goodput.Limiter) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var exempt uint64
	outcomes, reasons := map[goodput.Outcome]uint64{}, map[string]uint64{}
	for _, lim := range lims {
		s := lim.Stats()
		exempt += s.ExemptAdmitted
		for o, n := range s.Outcomes {
			outcomes[goodput.Outcome(o)] += n
		}
		for r, n := range s.Refusals {
			reasons[goodput.Reason(r).String()] += n
		}
	}
	for o, n := range outcomes {
		if l.outcomes[o] != n {
			t.Errorf("%v: told %d, counted %d", o, l.outcomes[o], n)
		}
	}
	for r, n := range reasons {
		if l.reasons[r] != n {
			t.Errorf("%s: told %d, counted %d", r, l.reasons[r], n)
		}
	}
	if l.exempt != exempt {
		t.Errorf("exempt: told %d, counted %d", l.exempt, exempt)
	}
}

// mixed is a handler that ends as its request says.
func mixed(held *sync.WaitGroup) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Be") {
		case "broken":
			w.WriteHeader(http.StatusBadGateway)
		case "panic":
			panic("as it was told")
		case "cut":
			_, _ = io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		case "late":
			<-r.Context().Done()
		case "shed":
			w.Header().Set(rejectedHeader, "queue_full")
			w.WriteHeader(http.StatusServiceUnavailable)
		case "held":
			if release, ok := Hold(r.Context()); ok {
				held.Go(release)
			}
		case "hijack":
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
				held.Go(func() { conn.Close() })
			}
		case "big":
			_, _ = io.Copy(io.Discard, r.Body)
		}
	}
}

// asked makes one request of a kind; what comes of it is no matter.
func asked(client *http.Client, url, kind string, seed int) {
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	var body io.Reader
	switch kind {
	case "big":
		body = io.MultiReader(strings.NewReader(strings.Repeat("x", 3000))) // of unknown length
	case "large":
		body = strings.NewReader(strings.Repeat("x", 3000))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Be", kind)
	switch kind {
	case "late", "expires":
		r.Header.Set("Connect-Timeout-Ms", fmt.Sprint(1+seed%20))
	case "leaves":
		go func() {
			for range seed % 2000 {
				_ = ctx.Err() // some time, at most some microseconds
			}
			cancel()
		}()
	case "hijack":
		r.Header.Set("Upgrade", "x")
		r.Header.Set("Connection", "Upgrade")
	case "probe":
		r.Method, r.Header = http.MethodGet, http.Header{"User-Agent": {"kube-probe/1.30"}}
	}
	if res, err := client.Do(r); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}

// What the hook is told, added up, is what the limiters have counted, whatever became of
// the requests: to the last one.
func TestEndedIsWhatIsCounted(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	kinds := []string{
		"fine", "fine", "broken", "panic", "cut", "late", "expires", "leaves", "leaves", "shed", "held", "hijack", "big", "large", "probe",
	}
	var held sync.WaitGroup
	told := newLedger()
	few := limiter(3, goodput.Config{Name: "few", Depth: 4})
	streams := limiter(8, goodput.Config{Name: "streams", Depth: goodput.NoQueue})
	observed := limiter(2, goodput.Config{Name: "observed", Depth: goodput.NoQueue, Observe: true})
	h := mixed(&held)
	pick := func(own *goodput.Limiter) func(r *http.Request) *goodput.Limiter {
		return func(r *http.Request) *goodput.Limiter {
			if r.URL.Path == "/free" {
				return nil
			}
			return own
		}
	}
	door := &Server{Limiter: pick(few), Next: h, MaxBody: 2048, MaxUpgraded: 2, Ended: told.ended}
	seen := &Server{Limiter: pick(observed), Next: h, Ended: told.ended}
	long := &Server{Limiter: pick(streams), Next: h, Stream: true, Ended: told.ended}
	mux := http.NewServeMux()
	mux.Handle("/", door)
	mux.Handle("/stream", long)
	mux.Handle("/observed", seen)
	srv := start(t, mux)
	all := clients(t)
	var work sync.WaitGroup
	var sent atomic.Int64
	for range 16 {
		var plan []string
		for range 60 {
			plan = append(plan, kinds[random.IntN(len(kinds))])
		}
		over := []string{"HTTP/1.1", "h2c"}[random.IntN(2)]
		lane := random.IntN(1 << 20)
		work.Go(func() {
			for i, kind := range plan {
				if over == "h2c" && (kind == "hijack") {
					continue
				}
				path := []string{"/", "/", "/", "/stream", "/free", "/observed"}[(lane+i)%6]
				if path != "/" && (kind == "late" || kind == "expires") {
					path = "/" // nothing ends it where no deadline is read
				}
				asked(all[over], srv.URL+path, kind, lane+i)
				sent.Add(1)
			}
		})
	}
	work.Wait()
	srv.Close() // waits for handlers whose clients have left
	held.Wait()
	settled(t, few)
	settled(t, streams)
	settled(t, observed)
	told.agree(t, few, streams, observed)
	for _, o := range []goodput.Outcome{goodput.Completed, goodput.Failed, goodput.Rejected} {
		if told.outcomes[o] == 0 {
			t.Errorf("nothing was %v: the run is not mixed", o)
		}
	}
	if told.away["too_large"] == 0 {
		t.Error("no body was too large")
	}
	if n := int64(told.n()); n > sent.Load() {
		t.Errorf("%d calls for %d requests", n, sent.Load())
	}
}

// Each kind of end, and what is told of it.
func TestEndedSays(t *testing.T) {
	var held sync.WaitGroup
	told := newLedger()
	lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	s := &Server{
		Limiter: one(lim), Next: mixed(&held), Ended: told.ended, MaxBody: 2048,
		Tenant: func(r *http.Request) string { return r.Header.Get("Tenant") },
	}
	n := 0
	ask := func(kind string, header ...string) Ended {
		t.Helper()
		r := request(append(header, "Be: "+kind, "Tenant: acme")...)
		func() {
			defer func() { _ = recover() }()
			s.ServeHTTP(httptest.NewRecorder(), r)
		}()
		n++
		return told.last(t, n)
	}
	check := func(e Ended, o goodput.Outcome, reason string, status int) {
		t.Helper()
		if e.Limiter != lim || e.Outcome != o || e.Reason != reason || e.Status != status {
			t.Errorf("%v %q %d, want %v %q %d", e.Outcome, e.Reason, e.Status, o, reason, status)
		}
		if e.Total <= 0 || e.Service > e.Held || e.Arrival.IsZero() {
			t.Errorf("%v in %v, of them %v held, the header after %v", e.Total, e.Arrival, e.Held, e.Service)
		}
	}
	check(ask("fine"), goodput.Completed, "", 200)
	check(ask("broken"), goodput.Failed, "", 502)
	check(ask("panic"), goodput.Failed, "", 0)
	check(ask("cut"), goodput.Failed, "", 200)
	if e := told.last(t, n); e.Bytes != 4 || e.Work.Tenant != "acme" || !e.Offered {
		t.Errorf("%+v", e)
	}
	late := ask("late", "Connect-Timeout-Ms: 5")
	check(late, goodput.Late, "", 200)
	if late.Held > late.Total {
		t.Errorf("a slot for %v of %v", late.Held, late.Total)
	}
	if late.DeadlineSource != "Connect-Timeout-Ms" || late.Deadline.Sub(late.Arrival) != 5*time.Millisecond || late.Held < 4*time.Millisecond {
		t.Errorf("%+v", late)
	}
	check(ask("fine", "Connect-Timeout-Ms: 0"), goodput.Expired, "deadline", 504)
	release := hold(t, lim, 1)
	refused := ask("fine")
	check(refused, goodput.Rejected, "queue_full", 503)
	if refused.Held != 0 || refused.Bytes == 0 {
		t.Errorf("%+v", refused)
	}
	release()
	check(ask("held"), goodput.Completed, "", 200)
	held.Wait()

	s.Limiter = func(*http.Request) *goodput.Limiter { return nil }
	if e := ask("fine"); e.Limiter != nil || e.Offered || e.Outcome != goodput.Pending || e.Total <= 0 {
		t.Errorf("%+v", e)
	}
}

// What runs because its limiter observes says so, and whether it would have been refused.
func TestEndedOfAnObserver(t *testing.T) {
	told := newLedger()
	lim := limiter(1, goodput.Config{Depth: goodput.NoQueue, Observe: true})
	s := &Server{Limiter: one(lim), Next: empty, Ended: told.ended}
	s.ServeHTTP(httptest.NewRecorder(), request())
	if e := told.last(t, 1); !e.Observed || e.WouldRefuse {
		t.Errorf("%+v", e)
	}
	slot, _ := lim.Acquire(background)
	s.ServeHTTP(httptest.NewRecorder(), request())
	slot.Release()
	if e := told.last(t, 2); !e.Observed || !e.WouldRefuse || e.Outcome != goodput.Completed {
		t.Errorf("%+v", e)
	}
}

// The service is what follows the wait, with a deadline and without.
func TestEndedServiceIsAfterTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, deadline := range []time.Duration{0, time.Minute} {
			told := newLedger()
			lim := goodput.New(goodput.Config{Limit: limit.Fixed(1), Depth: 2})
			s := &Server{Limiter: one(lim), Ended: told.ended, Deadline: deadline, Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(3 * time.Millisecond)
				w.WriteHeader(http.StatusOK)
				time.Sleep(4 * time.Millisecond)
			})}
			slot, err := lim.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(20*time.Millisecond, slot.Release)
			s.ServeHTTP(httptest.NewRecorder(), request())
			const ms = time.Millisecond
			if e := told.all[0]; e.Waited != 20*ms || e.Service != 3*ms || e.Held != 7*ms || e.Total != 27*ms {
				t.Errorf("deadline %v: waited %v, service %v, held %v, total %v; want 20ms, 3ms, 7ms, 27ms", deadline, e.Waited, e.Service, e.Held, e.Total)
			}
			for range 300 {
				s.ServeHTTP(httptest.NewRecorder(), request())
				if e := told.all[len(told.all)-1]; e.Waited != 0 || e.Service != 3*ms || e.Held != 7*ms || e.Total != 7*ms {
					t.Fatalf("deadline %v: waited %v, service %v, held %v, total %v; want 0, 3ms, 7ms, 7ms", deadline, e.Waited, e.Service, e.Held, e.Total)
				}
			}
		}
	})
}

// A lateBody comes some time after its header.
type lateBody struct {
	io.Reader
	after time.Duration
}

func (b *lateBody) Read(p []byte) (int, error) {
	time.Sleep(b.after)
	b.after = 0
	return b.Reader.Read(p)
}

// A body that is read before the slot is neither wait nor service: it is of the total alone.
func TestEndedOfABodyThatWasReadBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		told := newLedger()
		lim := goodput.New(goodput.Config{Limit: limit.Fixed(1), Depth: 2})
		s := &Server{Limiter: one(lim), Ended: told.ended, Deadline: time.Minute, Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(3 * ms)
			w.WriteHeader(http.StatusOK)
			time.Sleep(4 * ms)
		})}
		for i, wait := range []time.Duration{20 * ms, 0} {
			slot, err := lim.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if wait == 0 {
				slot.Release()
			} else {
				time.AfterFunc(10*ms+wait, slot.Release)
			}
			r := httptest.NewRequest(http.MethodPost, "/", &lateBody{strings.NewReader("x"), 10 * ms})
			s.ServeHTTP(interruptible{httptest.NewRecorder()}, r)
			if e := told.all[i]; e.Waited != wait || e.Service != 3*ms || e.Held != 7*ms || e.Total != 17*ms+wait {
				t.Errorf("waited %v, service %v, held %v, total %v; want %v, 3ms, 7ms, %v", e.Waited, e.Service, e.Held, e.Total, wait, 17*ms+wait)
			}
		}
		const us = time.Microsecond
		s.Deadline, s.Next = 0, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(7 * us) })
		for i := range 6000 { // so many in 0.1 s that most are not timed
			r, before := request(), time.Duration(0)
			if i%2 == 0 {
				before = 10 * us
				r = httptest.NewRequest(http.MethodPost, "/", &lateBody{strings.NewReader("x"), before})
			}
			s.ServeHTTP(interruptible{httptest.NewRecorder()}, r)
			if e := told.all[len(told.all)-1]; e.Waited != 0 || e.Service != 7*us || e.Held != 7*us || e.Total != 7*us+before {
				t.Fatalf("without a deadline, a body for %v: waited %v, service %v, held %v, total %v; want 0, 7µs, 7µs, %v", before, e.Waited, e.Service, e.Held, e.Total, 7*us+before)
			}
		}
	})
}

// The status of a call is told, from trailers, from a header alone, and of a refusal of ours.
func TestEndedOfACall(t *testing.T) {
	told := newLedger()
	lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	n := 0
	ask := func(name string) string {
		s := &Server{Limiter: one(lim), Ended: told.ended, Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			w.Header().Set(name, "7")
		})}
		r := request("Content-Type: application/grpc")
		r.ProtoMajor = 2
		s.ServeHTTP(httptest.NewRecorder(), r)
		n++
		return told.last(t, n).GRPC
	}
	if a, b := ask("Grpc-Status"), ask(http.TrailerPrefix+"Grpc-Status"); a != "7" || b != "7" {
		t.Errorf("%q and %q", a, b)
	}
	slot, _ := lim.Acquire(background)
	if got := ask("Grpc-Status"); got != "14" {
		t.Errorf("refused with %q", got)
	}
	slot.Release()
}

// A corrected cost and size are told; the hook of a held slot is called when it ends, and
// not before.
func TestEndedWaitsForTheSlot(t *testing.T) {
	told := newLedger()
	lim := limiter(1, goodput.Config{})
	var release func()
	s := &Server{Limiter: one(lim), Ended: told.ended, Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		release, _ = Hold(r.Context())
		SetCost(r.Context(), 7)
		SetSize(r.Context(), 900)
	})}
	s.ServeHTTP(httptest.NewRecorder(), request())
	if told.n() != 0 {
		t.Error("told before the slot has ended")
	}
	release()
	release()
	if e := told.last(t, 1); e.Work.Cost != 7 || e.Work.Size != 900 || e.Outcome != goodput.Completed || e.Held <= 0 {
		t.Errorf("%+v", e)
	}
}

// The hook costs no allocation.
func TestEndedAllocatesNothing(t *testing.T) {
	if underRace {
		t.Skip("a pool drops things at random under the race detector")
	}
	lim := limiter(1, goodput.Config{})
	w, r := &nowhere{header: http.Header{}}, request()
	of := func(s *Server) float64 {
		return testing.AllocsPerRun(2000, func() { clear(w.header); s.ServeHTTP(w, r) })
	}
	without := of(&Server{Limiter: one(lim), Next: empty})
	with := of(&Server{Limiter: one(lim), Next: empty, Ended: func(*http.Request, *Ended) {}})
	if with > without {
		t.Errorf("%v allocations with it and %v without", with, without)
	}
}

func BenchmarkAdmittedTold(b *testing.B) {
	serve(b, &Server{Limiter: one(limiter(1, goodput.Config{})), Next: empty, Ended: func(*http.Request, *Ended) {}}, request())
}
