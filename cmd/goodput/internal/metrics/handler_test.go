package metrics

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputprom"
	"github.com/goodput/goodput/limit"
	"github.com/prometheus/client_golang/prometheus"
)

// busy returns n limiters that have had traffic of every kind, with latencies over four decades.
func busy(n int) []*goodput.Limiter {
	rng := rand.New(rand.NewPCG(7, 8))
	var all []*goodput.Limiter
	for i := range n {
		lim := goodput.New(goodput.Config{
			Name: fmt.Sprintf("class-%03d", i), Limit: limit.Fixed(4), Objective: 400 * time.Millisecond,
		})
		for range 300 {
			slot, err := lim.Acquire(context.Background())
			if err != nil {
				continue
			}
			for began, d := time.Now(), time.Duration(rng.IntN(1<<rng.IntN(14))); time.Since(began) < d; { // nanoseconds
			}
			if rng.IntN(10) == 0 {
				slot.Fail(errors.New("failed"))
			} else {
				slot.Release()
			}
		}
		all = append(all, lim)
	}
	return all
}

func handler(limiters ...*goodput.Limiter) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(goodputprom.New(limiters...))
	return Handler(r)
}

func scrape(h http.Handler, encoding string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
	r.Header.Set("Accept-Encoding", encoding)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Who asks for gzip gets the same text as who does not.
func TestCompressedIsTheSame(t *testing.T) {
	h := handler(goodput.New(goodput.Config{Limit: limit.Fixed(60), MaxWait: time.Second}))
	plain, packed := scrape(h, ""), scrape(h, "gzip")
	if got := plain.Header().Get("Content-Encoding"); got != "" {
		t.Errorf("what nobody asked for: %q", got)
	}
	if got := packed.Header().Get("Content-Encoding"); got != "gzip" || packed.Body.Len() > plain.Body.Len()/5 {
		t.Fatalf("%q, %d bytes of %d", got, packed.Body.Len(), plain.Body.Len())
	}
	z, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if len(body) < plain.Body.Len()*9/10 { // limit_asked_seconds has other digits
		t.Errorf("%d bytes, and %d without", len(body), plain.Body.Len())
	}
	if a, b := plain.Header().Get("Content-Type"), packed.Header().Get("Content-Type"); a != b {
		t.Errorf("content types %q and %q", a, b)
	}
}

// A scrape of 100 limiters as Prometheus makes it.
func BenchmarkScrapeOf100(b *testing.B) {
	h := handler(busy(100)...)
	for _, encoding := range []string{"identity", "gzip"} {
		b.Run(encoding, func(b *testing.B) {
			b.ReportAllocs()
			var n int
			for b.Loop() {
				n = scrape(h, encoding).Body.Len()
			}
			b.ReportMetric(float64(n), "bytes")
		})
	}
}
