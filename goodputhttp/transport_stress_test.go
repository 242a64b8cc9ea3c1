package goodputhttp

import (
	"context"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// stressed is how many calls a stress test makes: few, or its part of a million if
// GOODPUT_MILLION is set.
func stressed(few, many int) int {
	switch {
	case os.Getenv("GOODPUT_MILLION") != "":
		return many
	case testing.Short():
		return few / 4
	}
	return few
}

// unruly is a server that does whatever its clients fear.
func unruly(w http.ResponseWriter, r *http.Request) {
	what, _ := strconv.Atoi(r.URL.Query().Get("what"))
	size := 1 << (what >> 3 & 15) // 1 B to 32 KiB
	switch what & 7 {
	case 0:
		w.Header().Set("Goodput-Rejected", "queue_full")
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusServiceUnavailable)
	case 1:
		w.WriteHeader(http.StatusInternalServerError)
	case 2: // no answer
		panic(http.ErrAbortHandler)
	case 3: // half of one
		_, _ = io.WriteString(w, strings.Repeat("x", size))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case 4: // a slow one
		_, _ = io.WriteString(w, "x")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(time.Millisecond):
		}
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, strings.Repeat("x", size))
}

// An unrulyBase panics now and then: before it sends, once it has an answer, and in the body.
type unrulyBase struct {
	http.RoundTripper
	n atomic.Uint64
}

type panickingBody struct{ io.ReadCloser }

func (panickingBody) Read([]byte) (int, error) { panic("unruly: in Read") }

func (u *unrulyBase) RoundTrip(r *http.Request) (*http.Response, error) {
	n := u.n.Add(1)
	if n%97 == 0 {
		panic("unruly: before")
	}
	res, err := u.RoundTripper.RoundTrip(r)
	if err == nil && n%89 == 0 {
		res.Body.Close()
		panic("unruly: after")
	}
	if err == nil && n%83 == 0 {
		res.Body = panickingBody{res.Body}
	}
	return res, err
}

// unrulyCall makes one call and ends it in one of the ways of callers.
func unrulyCall(tr http.RoundTripper, url string, rng *rand.Rand) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	if rng.IntN(4) == 0 {
		ctx, cancel = context.WithTimeout(ctx, HopMargin+time.Duration(rng.IntN(4000))*time.Microsecond)
		defer cancel()
	}
	defer func() { _ = recover() }()
	method, body := http.MethodGet, io.Reader(nil)
	if rng.IntN(4) == 0 {
		method, body = http.MethodPut, strings.NewReader(strings.Repeat("y", rng.IntN(5000)))
	}
	r, err := http.NewRequestWithContext(ctx, method, url+"/?what="+strconv.Itoa(rng.IntN(256)), body)
	if err != nil {
		panic(err)
	}
	switch rng.IntN(16) {
	case 0:
		cancel() // before it begins
	case 1, 2:
		timer := time.AfterFunc(time.Duration(rng.IntN(1000))*time.Microsecond, cancel)
		defer timer.Stop()
	}
	res, err := tr.RoundTrip(r)
	if err != nil {
		return
	}
	switch rng.IntN(32) {
	case 0: // forgotten: the context ends it
	case 1, 6, 7:
		cancel()
		res.Body.Close()
	case 2, 8, 9: // unread
		res.Body.Close()
	case 3, 10, 11: // half read
		defer res.Body.Close()
		_, _ = io.ReadFull(res.Body, make([]byte, 1+rng.IntN(1<<14)))
	case 4, 12, 13: // the reader panics
		defer res.Body.Close()
		_, _ = res.Body.Read(make([]byte, 1))
		panic("unruly: a reader")
	case 5, 14, 15: // closed by another goroutine while it is read
		go res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
	default:
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
	}
}

// Whatever servers, transports and callers do, nothing is left: no slot, no open body, no
// goroutine, no connection.
func TestTransportLeavesNothingBehind(t *testing.T) {
	for _, c := range []struct {
		proto     string
		few, many int
	}{
		{"HTTP/1.1", 2000, 100_000},
		{"h2c", 2000, 200_000},
		{"memory", 4000, 700_000},
	} {
		t.Run(c.proto, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			before := runtime.NumGoroutine()
			var conns atomic.Int64
			srv := httptest.NewUnstartedServer(http.HandlerFunc(unruly))
			srv.Config.ErrorLog = log.New(io.Discard, "", 0)
			srv.Config.Protocols = new(http.Protocols)
			srv.Config.Protocols.SetHTTP1(true)
			srv.Config.Protocols.SetUnencryptedHTTP2(true)
			srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				switch s {
				case http.StateNew:
					conns.Add(1)
				case http.StateClosed, http.StateHijacked:
					conns.Add(-1)
				}
			}
			srv.Start()
			var wire http.RoundTripper = base(unrulyMemory)
			if b, ok := bases(t)[c.proto]; ok {
				wire = b
			}
			lim := limiter(64, goodput.Config{}) // room for the forgotten: 5,000/s x 1/32 x 50 ms is 8
			dep := &Dependency{
				Limiter: lim,
				Retry:   &retry.Policy{Backoff: time.Microsecond, PerAttempt: time.Second, Budget: &retry.Budget{Ratio: 1}},
				Hedge:   &Hedge{Quantile: 0.5, Min: 100 * time.Microsecond},
			}
			tr := to(dep, &unrulyBase{RoundTripper: wire})
			var wg sync.WaitGroup
			const workers = 16
			for w := range workers {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(seed, uint64(w)))
					for range stressed(c.few, c.many) / workers {
						unrulyCall(tr, srv.URL, rng)
					}
				})
			}
			wg.Wait()
			until(t, "no open bodies", func() bool { return dep.Stats().OpenBodies == 0 && dep.counts.running.Load() == 0 })
			st := settled(t, lim)
			until(t, "no connections", func() bool {
				if b, ok := wire.(*http.Transport); ok {
					b.CloseIdleConnections()
				}
				return conns.Load() == 0
			})
			srv.Close()
			until(t, "no goroutines", func() bool { return runtime.NumGoroutine() <= before })
			d := dep.Stats()
			t.Logf("seed %d: %+v, outcomes %v", seed, d, st.Outcomes)
			if d.Retries == 0 || d.Hedges == 0 || d.Shed == 0 || st.Outcomes[goodput.Abandoned] == 0 || st.Outcomes[goodput.Failed] == 0 {
				t.Errorf("something never happened: %+v", d)
			}
		})
	}
}

// unrulyMemory is unruly without a network.
func unrulyMemory(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	what, _ := strconv.Atoi(r.URL.Query().Get("what"))
	body := strings.Repeat("x", 1<<(what>>3&15))
	switch what & 7 {
	case 0:
		return respond(503, body, "Goodput-Rejected: queue_full", "Retry-After: 0"), nil
	case 1:
		return respond(500, ""), nil
	case 2:
		return nil, errNet
	case 3:
		res := respond(200, "")
		res.Body = io.NopCloser(io.MultiReader(strings.NewReader(body), failing{io.ErrUnexpectedEOF}))
		return res, nil
	case 4:
		timer := time.NewTimer(200 * time.Microsecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return respond(200, body), nil
}

// Nothing but forgotten bodies: each costs its slot until a sweep, and no longer.
func TestTransportSweepsTheForgotten(t *testing.T) {
	lim := limiter(64, goodput.Config{Depth: goodput.NoQueue})
	dep := &Dependency{Limiter: lim}
	tr := to(dep, canned{})
	sent := 0
	calls := stressed(4000, 100_000)
	for range calls {
		ctx, cancel := context.WithCancel(background)
		_, err := tr.RoundTrip(get(ctx))
		cancel()
		switch {
		case err == nil:
			sent++
		case errors.Is(err, goodput.ErrRejected):
			dep.sweep() // rather than wait for it
		default:
			t.Fatal(err)
		}
	}
	until(t, "no open bodies", func() bool { return dep.Stats().OpenBodies == 0 })
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Abandoned: uint64(sent), goodput.Rejected: uint64(calls - sent)})
}
