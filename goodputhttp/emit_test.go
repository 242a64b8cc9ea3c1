package goodputhttp

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// What is answered on a refusal, over all three protocols, by a limiter that really refuses.
// The answers differ only in what their protocol says otherwise: how the connection ends.

// An emitted answer is what a client decides by.
type emitted struct {
	status               int
	reason, grpc, again  string // again: whether Retry-After or the pushback is there
	overloaded, limited  bool   // markers of Envoy
	nack, nonretry       bool   // of Finagle
	type_, cache, timing string
}

func emit(res *http.Response) emitted {
	h := res.Header
	again := h.Get("Retry-After") + h.Get("Grpc-Retry-Pushback-Ms")
	if n, err := strconv.Atoi(again); err == nil && n > 0 {
		again = "later"
	}
	timing := h.Get("Server-Timing")
	if ms := 0.0; timing != "" {
		if n, err := fmt.Sscanf(timing, "queue;dur=%f", &ms); n == 1 && err == nil && ms >= 0 {
			timing = "queue"
		}
	}
	return emitted{
		res.StatusCode, h.Get("Goodput-Rejected"), h.Get("Grpc-Status"), again,
		h.Get("X-Envoy-Overloaded") == "true", h.Get("X-Envoy-Ratelimited") == "true",
		h.Get("Finagle-Http-Nack") == "true", h.Get("Finagle-Http-Nonretryable-Nack") == "true",
		h.Get("Content-Type"), h.Get("Cache-Control"), timing,
	}
}

// A noSayer is a limiter that refuses for one reason.
type noSayer struct {
	name  string
	cfg   goodput.Config
	work  goodput.Work
	drain bool
	wait  time.Duration // of the request, in a header; 0: says nothing
	set   bool          // zero is said
	want  emitted       // over HTTP with status 503
	code  string        // of gRPC; with 429 it is "8" for an overload
	over  bool          // an overload
}

func noSayers() []noSayer {
	const never, later = "", "later"
	quota := goodput.Config{Tenants: &goodput.Tenants{Rows: []goodput.Tenant{{ID: "a", Quota: goodput.Quota{Rate: 1e-3, Burst: 1}}}}}
	return []noSayer{
		{
			name: "queue full", cfg: goodput.Config{Depth: goodput.NoQueue}, over: true,
			want: emitted{status: 503, reason: "queue_full", again: later, overloaded: true, nack: true}, code: "14",
		},
		{
			name: "wait bound", cfg: goodput.Config{MaxWait: time.Millisecond}, over: true,
			want: emitted{status: 503, reason: "wait_bound", again: later, overloaded: true, nack: true}, code: "14",
		},
		{
			name: "deadline", set: true,
			want: emitted{status: 504, reason: "deadline", again: never, limited: true}, code: "4",
		},
		{
			name: "no budget", wait: 5 * time.Millisecond, // of the prior of the service time, nothing is left
			want: emitted{status: 503, reason: "no_budget", again: never, overloaded: true, limited: true, nonretry: true}, code: "14",
		},
		{
			name: "quota", cfg: quota, work: goodput.Work{Tenant: "a"},
			want: emitted{status: 429, reason: "quota", again: later, limited: true}, code: "8",
		},
		{
			name: "too costly", work: goodput.Work{Cost: 9},
			want: emitted{status: 503, reason: "too_costly", again: never, limited: true, nonretry: true}, code: "8",
		},
		{
			name: "draining", drain: true,
			want: emitted{status: 503, reason: "draining", again: never, nack: true}, code: "14",
		},
	}
}

func TestEmits(t *testing.T) {
	for _, c := range noSayers() {
		for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests} {
			for _, options := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %d %v", c.name, status, options), func(t *testing.T) { c.test(t, status, options) })
			}
		}
	}
}

func (c noSayer) test(t *testing.T, status int, options bool) {
	lim := limiter(1, c.cfg)
	s := &Server{Limiter: one(lim), Next: http.NotFoundHandler(), OverloadStatus: status, Work: func(*http.Request) goodput.Work { return c.work }}
	if options {
		s.Markers, s.ServerTiming = EnvoyMarkers|FinagleMarkers, true
	}
	if c.drain {
		if err := lim.Drain(background); err != nil {
			t.Fatal(err)
		}
	} else if c.work.Tenant != "" {
		slot, err := lim.AcquireWork(background, c.work) // the burst
		if err != nil {
			t.Fatal(err)
		}
		defer slot.Release()
	} else {
		hold(t, lim, 1)
	}
	for _, p := range overAll(t, s) {
		for _, grpc := range []bool{false, true} {
			r, _ := http.NewRequest(http.MethodPost, p.url, nil)
			if grpc {
				r.Header.Set("Content-Type", "application/grpc")
			}
			if c.wait > 0 || c.set {
				r.Header.Set("Connect-Timeout-Ms", fmt.Sprint(c.wait.Milliseconds()))
			}
			res, err := p.client.Do(r)
			if err != nil {
				t.Fatal(p.name, err)
			}
			p.isTheirs(t, res)
			text(t, res)
			if got, want := emit(res), c.answer(status, grpc, options); got != want {
				t.Errorf("%s, gRPC %v:\n%+v, want\n%+v", p.name, grpc, got, want)
			}
			if res.Header.Get("Retry-After") == "0" {
				t.Errorf("%s: Retry-After 0 is a nack of Finagle", p.name)
			}
			if c.drain && p.name == "HTTP/1.1" && !res.Close {
				t.Errorf("%s: the connection stays open", p.name)
			}
		}
	}
}

// answer is what c is answered.
func (c noSayer) answer(status int, grpc, options bool) emitted {
	want := c.want
	want.type_, want.cache = "text/plain; charset=utf-8", "no-store"
	if c.over {
		want.status = status
	}
	if grpc {
		want.status, want.grpc, want.type_ = 200, c.code, "application/grpc"
		if c.over && status == http.StatusTooManyRequests {
			want.grpc = "8"
		}
		if want.again == "" && !c.drain {
			want.again = "-1"
		}
	}
	if want.status != http.StatusServiceUnavailable {
		want.nack, want.nonretry = false, false // who reads them reads 503
	}
	if options {
		want.timing = "queue"
	} else {
		want.overloaded, want.limited, want.nack, want.nonretry = false, false, false, false
	}
	return want
}

// Every refusal of the table has the markers that are true of it: with a body there is no
// nack of Finagle, whose client may have no copy of it.
func TestMarkers(t *testing.T) {
	lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	hold(t, lim, 1)
	s := &Server{Limiter: one(lim), Next: http.NotFoundHandler(), Markers: FinagleMarkers}
	for _, p := range overAll(t, s) {
		for length, want := range map[int64]string{0: "true", 3: "", -1: ""} {
			r, _ := http.NewRequest(http.MethodPost, p.url, io.LimitReader(zeros{}, max(length, 3)))
			r.ContentLength = length
			if length == 0 {
				r.Body = nil
			}
			res, err := p.client.Do(r)
			if err != nil {
				t.Fatal(p.name, err)
			}
			text(t, res)
			if got := res.Header.Get("Finagle-Http-Nack"); got != want || res.Header.Get("X-Envoy-Overloaded") != "" {
				t.Errorf("%s, %d bytes: %v", p.name, length, res.Header)
			}
		}
	}
	for reason, f := range refusals {
		h := http.Header{}
		v := &visit{server: &Server{Markers: EnvoyMarkers | FinagleMarkers}, r: request()}
		v.mark(h, f, f.status)
		retries := f.again != retryNever
		if got := h.Get("X-Envoy-Ratelimited") == "true"; got != (!retries || reason == goodput.OverQuota) {
			t.Errorf("%v: %v", reason, h)
		}
		if len(h["X-Envoy-Overloaded"]) > 0 && !(isShed(h) && aboutLoad(http.Header{rejectedHeader: {f.reason}})) {
			t.Errorf("%v: says that it is overloaded, and is not: %v", reason, h)
		}
		if h.Get("Finagle-Http-Nack") != "" && (h.Get("Finagle-Http-Nonretryable-Nack") != "" || !retries || f.status != 503) {
			t.Errorf("%v: %v", reason, h)
		}
	}
	for _, f := range []*refusal{slowBody, badBody, largeBody, cutBody} {
		h := http.Header{}
		(&visit{server: &Server{Markers: EnvoyMarkers}, r: request()}).mark(h, f, f.status)
		if len(h["X-Envoy-Overloaded"]) > 0 {
			t.Errorf("%s is no overload", f.reason)
		}
	}
}

// An answer of a handler says how long its request waited, beside what the handler says.
func TestServerTiming(t *testing.T) {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(1), Objective: time.Minute})
	s := &Server{Limiter: one(lim), ServerTiming: true, Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Server-Timing", "db;dur=1")
		w.WriteHeader(http.StatusNoContent)
	})}
	for _, p := range overAll(t, s) {
		res, err := p.client.Get(p.url)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := res.Header["Server-Timing"]; len(got) != 2 || got[0] != "db;dur=1" || got[1] != "queue;dur=0.0" {
			t.Errorf("%s: %q", p.name, got)
		}
	}
}
