package goodputhttp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// How a stream ends that its client leaves is decided by how it began: over all protocols, and
// of the calls of gRPC as well, whose clients reset them.
func TestStreamThatIsLeft(t *testing.T) {
	for _, c := range []struct {
		name      string
		objective time.Duration
		header    http.Header // of the answer; nil: none before its client has left
		status    int
		want      goodput.Outcome
		told      int // the status in Ended
	}{
		{name: "in time", header: http.Header{}, status: 200, want: goodput.Completed, told: 200},
		{name: "late", objective: time.Millisecond, header: http.Header{}, status: 200, want: goodput.Late, told: 200},
		{name: "not found", header: http.Header{}, status: 404, want: goodput.Completed, told: 404},
		{name: "an error", header: http.Header{}, status: 500, want: goodput.Failed, told: 500},
		{name: "refused further down", header: http.Header{rejectedHeader: {"queue_full"}}, status: 429, want: goodput.Failed, told: 429},
		{name: "before it began", want: goodput.Abandoned, told: 200},
	} {
		for _, end := range []string{"return", "abort"} {
			for _, kind := range []string{"", "application/grpc"} {
				t.Run(c.name+"/"+end+"/"+kind, func(t *testing.T) {
					told := newLedger()
					lim := limiter(2, goodput.Config{Depth: goodput.NoQueue, Objective: c.objective})
					entered := make(chan struct{}, 1)
					s := &Server{Limiter: one(lim), Stream: true, Ended: told.ended, Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if c.objective != 0 {
							time.Sleep(2 * c.objective) // wall clock: it is late
						}
						if c.header != nil {
							for name, v := range c.header {
								w.Header()[name] = v
							}
							w.WriteHeader(c.status)
							_ = http.NewResponseController(w).Flush()
						}
						entered <- struct{}{}
						<-r.Context().Done()
						if c.header == nil {
							w.WriteHeader(http.StatusOK) // of a handler that does not look
						}
						if end == "abort" {
							panic(http.ErrAbortHandler) // as ReverseProxy does
						}
					})}
					n := 0
					for _, p := range overAll(t, s) {
						ctx, leave := context.WithCancel(background)
						r, _ := http.NewRequestWithContext(ctx, http.MethodPost, p.url, http.NoBody)
						r.Header.Set("Content-Type", kind)
						go func() {
							<-entered
							if c.header == nil {
								leave()
							}
						}()
						res, err := p.client.Do(r)
						if (err == nil) != (c.header != nil) {
							t.Fatal(p.name, err)
						}
						leave()
						if err == nil {
							p.isTheirs(t, res)
							res.Body.Close()
						}
						n++
						if e := told.last(t, n); e.Outcome != c.want || e.Status != c.told {
							t.Errorf("%s: told %v, %d; want %v, %d", p.name, e.Outcome, e.Status, c.want, c.told)
						}
					}
					outcomes(t, lim, map[goodput.Outcome]uint64{c.want: uint64(n)})
				})
			}
		}
	}
}

// A stream that is cut off has failed, unless its handler says that it was a limit of its own.
// What has not begun fails, and so does what is no stream.
func TestStreamThatIsCut(t *testing.T) {
	for _, c := range []struct {
		name                 string
		stream, begins, says bool
		want                 goodput.Outcome
	}{
		{"cut by a limit", true, true, true, goodput.Completed},
		{"cut off", true, true, false, goodput.Failed},
		{"before it began", true, false, true, goodput.Failed},
		{"no stream", false, true, true, goodput.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			lim := limiter(1, goodput.Config{})
			s := &Server{Limiter: one(lim), Stream: c.stream, Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.begins {
					_, _ = io.WriteString(w, "data: begun\n\n")
				}
				if c.says && !Cut(r.Context()) {
					t.Error("there is nothing to cut")
				}
				panic(http.ErrAbortHandler)
			})}
			func() {
				defer func() { _ = recover() }()
				s.ServeHTTP(httptest.NewRecorder(), request())
			}()
			outcomes(t, lim, map[goodput.Outcome]uint64{c.want: 1})
		})
	}
	if Cut(background) {
		t.Error("there is no request")
	}
}

// A deadline ends a stream that had begun in time, which then is completed; so does the end of
// the server.
func TestStreamThatIsEnded(t *testing.T) {
	lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	begun := make(chan struct{}, 1)
	s := &Server{Limiter: one(lim), Stream: true, Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		begun <- struct{}{}
		<-r.Context().Done()
	})}
	status(s, request("Connect-Timeout-Ms: 50"))
	<-begun
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 1})
	n := uint64(1)
	for _, client := range clients(t) {
		srv := start(t, s)
		res, err := client.Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		<-begun
		_ = srv.Config.Close()
		res.Body.Close()
		n++
		outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: n})
	}
}
