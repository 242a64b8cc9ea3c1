package goodputhttp

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// nowhere is a writer that keeps nothing, so that only ours is measured.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n *nowhere) WriteHeader(int)             {}

func serve(b *testing.B, h http.Handler, r *http.Request) {
	b.ReportAllocs()
	w := &nowhere{header: http.Header{}}
	for b.Loop() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

var empty = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })

// BenchmarkBare is the handler without us.
func BenchmarkBare(b *testing.B) { serve(b, empty, request()) }

func BenchmarkAdmitted(b *testing.B) {
	serve(b, Handler(limiter(1, goodput.Config{}), empty), request())
}

func BenchmarkAdmittedWithDeadline(b *testing.B) {
	s := &Server{Limiter: one(limiter(1, goodput.Config{})), Deadline: time.Hour, Next: empty}
	serve(b, s, request("Connect-Timeout-Ms: 5000"))
}

func BenchmarkRefused(b *testing.B) {
	lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	hold(b, lim, 1)
	serve(b, Handler(lim, empty), request())
}

func BenchmarkRefusedGRPC(b *testing.B) {
	lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	hold(b, lim, 1)
	serve(b, Handler(lim, empty), request(grpcKind))
}

func BenchmarkProbe(b *testing.B) {
	r := request()
	r.Method = http.MethodGet
	for b.Loop() {
		Probe(r)
	}
}

func BenchmarkForward(b *testing.B) {
	r := request(grpcKind, "Grpc-Timeout: 1S")
	budget := new(Server).budget(r, time.Now(), true)
	now := time.Now()
	for b.Loop() {
		budget.Forward(r.Header, now, HopMargin)
	}
}

// A refusal is cheap: fewer than 16 allocations, all of them small. net/http
// makes about as many to read the request.
func TestRefusalIsCheap(t *testing.T) {
	lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	hold(t, lim, 1)
	h := Handler(lim, empty)
	w, r := &nowhere{header: http.Header{}}, request()
	if n := testing.AllocsPerRun(1000, func() { clear(w.header); h.ServeHTTP(w, r) }); n >= 16 {
		t.Errorf("%v allocations", n)
	}
}

// What cannot be read costs little, however much of it there is.
func TestHostileHeaders(t *testing.T) {
	s := new(Server)
	r := request(grpcKind)
	for range 10_000 {
		for i := range dialects {
			r.Header.Add(dialects[i].header, strings.Repeat("9", 1000))
		}
	}
	if b := s.budget(r, time.Now(), true); !b.Deadline.IsZero() {
		t.Errorf("%+v", b)
	}
	for i := range dialects {
		if n := s.own.deadlineErrors[i].Load(); n != 1 {
			t.Errorf("%s: %d errors for one request", dialects[i].header, n)
		}
	}
}
