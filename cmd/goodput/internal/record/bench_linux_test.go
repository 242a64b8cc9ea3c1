package record

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputhttp"
)

// nowhere is a writer that keeps nothing.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n *nowhere) WriteHeader(int)             {}

// computed is the time that this thread has had a processor: what others take of the machine
// is not in it.
func computed(b *testing.B) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// BenchmarkRequest is a request through a Server, without a record and with one, in turns of
// some hundred requests: the difference (ns/recorded, the median of the turns) is all that
// recording costs it, the clock included.
func BenchmarkRequest(b *testing.B) {
	const turn = 500
	for name, deadline := range map[string]time.Duration{"deadline": 400 * time.Millisecond, "none": 0} {
		b.Run(name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			log, _ := silent()
			tr := newTrace(filepath.Join(b.TempDir(), "trace"), 64<<20, log, create)
			plain := server(deadline, nil)
			recorded := server(deadline, func(_ *http.Request, e *goodputhttp.Ended) { tr.Add(e) })
			w, r := &nowhere{http.Header{}}, httptest.NewRequest(http.MethodGet, "/", nil)
			run := func(s *goodputhttp.Server) time.Duration {
				begun := computed(b)
				for range turn {
					clear(w.header)
					s.ServeHTTP(w, r)
				}
				return (computed(b) - begun) / turn
			}
			var before, costs []time.Duration
			for i := 0; i < b.N; i += turn {
				without := run(plain)
				costs = append(costs, run(recorded)-without)
				before = append(before, without)
				tr.flush(false)
			}
			slices.Sort(before)
			slices.Sort(costs)
			b.ReportMetric(float64(before[len(before)/2]), "ns/plain")
			b.ReportMetric(float64(costs[len(costs)/2]), "ns/recorded")
			if n := tr.Numbers(); n.Dropped > 0 || n.Lines == 0 {
				b.Fatalf("%+v", n)
			}
		})
	}
}

// TestRecordAllocatesNothing: a request with a record has the allocations of one without.
func TestRecordAllocatesNothing(t *testing.T) {
	log, _ := silent()
	tr := newTrace("trace", 1<<30, log, nil)
	w, r := &nowhere{http.Header{}}, httptest.NewRequest(http.MethodGet, "/", nil)
	of := func(s *goodputhttp.Server) float64 {
		return testing.AllocsPerRun(1000, func() { clear(w.header); s.ServeHTTP(w, r) })
	}
	plain := of(server(time.Second, nil))
	if got := of(server(time.Second, func(_ *http.Request, e *goodputhttp.Ended) { tr.Add(e) })); got != plain {
		t.Errorf("%v allocations, %v without a record", got, plain)
	}
}

func server(deadline time.Duration, ended func(*http.Request, *goodputhttp.Ended)) *goodputhttp.Server {
	return &goodputhttp.Server{
		Limiter: func(*http.Request) *goodput.Limiter { return lim }, Deadline: deadline, Ended: ended,
		Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }),
	}
}
