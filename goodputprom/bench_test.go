package goodputprom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// busy returns n limiters that have had traffic of every kind: served, late, failed, refused.
func busy(n int) []*goodput.Limiter {
	rng := rand.New(rand.NewPCG(7, 8))
	var all []*goodput.Limiter
	for i := range n {
		lim := goodput.New(goodput.Config{
			Name: fmt.Sprintf("class-%03d", i), Limit: limit.Fixed(4), Depth: 4, Objective: 400 * time.Millisecond,
		})
		for range 300 {
			slot, err := lim.Acquire(context.Background())
			if err != nil {
				continue
			}
			// Latencies over four decades, so that the histograms have as many buckets as real ones.
			spin(time.Duration(rng.ExpFloat64() * float64(time.Duration(1<<rng.IntN(14)))))
			switch rng.IntN(10) {
			case 0:
				slot.Fail(errors.New("failed"))
			default:
				slot.Release()
			}
		}
		all = append(all, lim)
	}
	return all
}

func spin(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
	}
}

// A scrape of 100 limiters, as Prometheus makes it: over the handler, in each format.
func BenchmarkScrapeOf100(b *testing.B) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(New(busy(100)...))
	h := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	for _, c := range []struct{ name, accept, encoding string }{
		{"text", "text/plain", ""},
		{"text gzip", "text/plain", "gzip"},
		{"protobuf", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", ""},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := httptest.NewRequest("GET", "/metrics", nil)
			r.Header.Set("Accept", c.accept)
			r.Header.Set("Accept-Encoding", c.encoding)
			b.ReportAllocs()
			var w *discard
			for b.Loop() {
				w = &discard{header: http.Header{}}
				h.ServeHTTP(w, r)
			}
			b.ReportMetric(float64(w.n), "bytes")
		})
	}
}

type discard struct {
	header http.Header
	n      int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { d.n += len(p); return io.Discard.Write(p) }

// What a scrape takes of one limiter.
func BenchmarkStats(b *testing.B) {
	lim := busy(1)[0]
	b.ReportAllocs()
	for b.Loop() {
		lim.Stats()
	}
}

// What scrapes cost those who are admitted meanwhile, by the same limiter: one scrape after the
// other, without the 15 seconds that a Prometheus leaves between. "longest" and "p99.99" are of all
// admissions, in ns; the scheduler, which takes a core away for milliseconds, is in both.
func BenchmarkAdmission(b *testing.B) {
	for _, c := range []struct {
		name   string
		scrape func(*goodput.Limiter) func()
	}{
		{"alone", nil},
		{"beside Stats", func(l *goodput.Limiter) func() { return func() { l.Stats() } }},
		{"beside scrapes", func(l *goodput.Limiter) func() {
			registry := prometheus.NewRegistry()
			registry.MustRegister(New(l))
			return func() { registry.Gather() }
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			lim := busy(1)[0]
			var over atomic.Bool
			var scrapes atomic.Int64
			var done sync.WaitGroup
			if c.scrape != nil {
				scrape := c.scrape(lim)
				done.Go(func() {
					for !over.Load() {
						scrape()
						scrapes.Add(1)
					}
				})
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour) // so that each is timed, and some meet the lock
			defer cancel()
			var took goodput.Histogram
			var longest time.Duration
			b.ReportAllocs()
			for b.Loop() {
				began := time.Now()
				slot, err := lim.Acquire(ctx)
				if err != nil {
					b.Fatal(err)
				}
				slot.Release()
				d := time.Since(began)
				took.Add(d)
				longest = max(longest, d)
			}
			p, _ := took.Quantile(0.9999)
			b.ReportMetric(float64(p), "p99.99")
			b.ReportMetric(float64(longest), "longest")
			b.ReportMetric(float64(scrapes.Load())/b.Elapsed().Seconds(), "scrapes/s")
			over.Store(true)
			done.Wait()
		})
	}
}
