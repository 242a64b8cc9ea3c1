package goodputhttp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/goodput/goodput"
)

// A body that is declared too long is answered at the door: it takes no slot, and is no
// arrival. The longest that is allowed is served. Over all protocols, and for gRPC.
func TestMaxBodyDeclared(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	s := &Server{Limiter: one(lim), MaxBody: 1000, Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})}
	refused := uint64(0)
	for _, p := range overAll(t, s) {
		for _, size := range []int{0, 1000, 1001, 5 << 20} {
			for _, grpc := range []bool{false, true} {
				r, _ := http.NewRequest(http.MethodPost, p.url, strings.NewReader(strings.Repeat("x", size)))
				if grpc {
					r.Header.Set("Content-Type", "application/grpc")
				}
				res, err := p.client.Do(r)
				if err != nil {
					t.Fatal(p.name, err)
				}
				p.isTheirs(t, res)
				got := text(t, res)
				if size <= 1000 {
					if res.StatusCode != 200 || len(got) != size {
						t.Errorf("%s, %d bytes: %d with %d", p.name, size, res.StatusCode, len(got))
					}
					continue
				}
				refused++
				h := res.Header
				want, code := http.StatusRequestEntityTooLarge, ""
				if grpc {
					want, code = http.StatusOK, "8"
				}
				if res.StatusCode != want || h.Get("Grpc-Status") != code || h.Get("Goodput-Rejected") != "too_large" || h.Get("Retry-After") != "" {
					t.Errorf("%s, %d bytes: %d %v", p.name, size, res.StatusCode, h)
				}
			}
		}
	}
	if st, n := settled(t, lim), s.Stats().LargeBodies; n != refused || st.Arrivals != 3*2*2 {
		t.Errorf("%d counted of %d, %d arrivals", n, refused, st.Arrivals)
	}
}

// With Expect: 100-continue the answer comes in place of the 100.
func TestMaxBodyBeforeContinue(t *testing.T) {
	s := &Server{Limiter: one(limiter(1, goodput.Config{})), MaxBody: 10, Next: http.NotFoundHandler()}
	c := dial(t, start(t, s), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n")
	if res := answer(t, c); res.StatusCode != http.StatusRequestEntityTooLarge || !res.Close {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
}

// A body without a length is cut where it exceeds: before its request is admitted, if it is
// read in advance, and else while the handler reads. Either way the slot is free, it counts,
// and 413 is the answer unless the handler has one; what had begun promises nothing.
func TestMaxBodyCut(t *testing.T) {
	for _, c := range []struct {
		name    string
		preread int64
		next    http.HandlerFunc
		status  int
		body    string // "": none of the handler's
		marker  string
		started bool
	}{
		{name: "in advance", next: func(http.ResponseWriter, *http.Request) { panic("it ran") }, status: 413, marker: "too_large"},
		{name: "read", preread: NoPreread, status: 413, started: true},
		{name: "read in advance in part", preread: 100, status: 413, started: true},
		{
			name: "the handler answers", preread: NoPreread, status: 400, body: "mine", started: true,
			next: func(w http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				var tooLarge *http.MaxBytesError
				if !errors.As(err, &tooLarge) || tooLarge.Limit != 1000 {
					panic(fmt.Sprint("read: ", err))
				}
				w.WriteHeader(400)
				fmt.Fprint(w, "mine")
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.next == nil {
				c.next = func(_ http.ResponseWriter, r *http.Request) {
					if n, err := io.Copy(io.Discard, r.Body); n != 1000 || err == nil {
						panic(fmt.Sprint(n, err))
					}
					if n, err := r.Body.Read(make([]byte, 1)); n != 0 || err == nil {
						panic("it goes on")
					}
				}
			}
			lim := limiter(1, goodput.Config{})
			s := &Server{Limiter: one(lim), MaxBody: 1000, MaxPreread: c.preread, Next: c.next}
			var all, started uint64
			for _, p := range overAll(t, s) {
				if p.name != "HTTP/1.1" && !c.started {
					continue // HTTP/2 bodies of unknown length are not read in advance
				}
				all++
				r, _ := http.NewRequest(http.MethodPost, p.url, io.LimitReader(zeros{}, 5000))
				res, err := p.client.Do(r)
				if err != nil {
					t.Fatal(p.name, err)
				}
				p.isTheirs(t, res)
				got := text(t, res)
				if res.StatusCode != c.status || res.Header.Get("Goodput-Rejected") != c.marker || c.body != "" && got != c.body {
					t.Errorf("%s: %d %v %q", p.name, res.StatusCode, res.Header, got)
				}
				if c.started {
					started++
				}
			}
			outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Failed: started})
			if n := s.Stats().LargeBodies; n != all {
				t.Errorf("%d counted of %d", n, all)
			}
			unsampled(t, lim)
			until(t, "nothing is left in memory", func() bool { return s.Stats().Buffered == 0 })
		})
	}
}

// What is exactly as long as is allowed ends as it should, however it is read.
func TestMaxBodyExact(t *testing.T) {
	for _, preread := range []int64{0, NoPreread, 10} {
		s := &Server{Limiter: one(limiter(1, goodput.Config{})), MaxBody: 1000, MaxPreread: preread, Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(w, r.Body)
			if err != nil {
				panic(err)
			}
		})}
		for _, p := range overAll(t, s) {
			r, _ := http.NewRequest(http.MethodPost, p.url, io.LimitReader(zeros{}, 1000))
			res, err := p.client.Do(r)
			if err != nil {
				t.Fatal(p.name, err)
			}
			if got := text(t, res); res.StatusCode != 200 || len(got) != 1000 {
				t.Errorf("%s: %d, %d bytes", p.name, res.StatusCode, len(got))
			}
		}
		if n := s.Stats().LargeBodies; n != 0 {
			t.Errorf("%d counted", n)
		}
	}
}
