package goodputprom_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputprom"
	"github.com/goodput/goodput/limit"
	"github.com/goodput/goodput/retry"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// From limiters to /metrics. The default registry of client_golang does as well:
// prometheus.MustRegister and promhttp.Handler.
func Example() {
	search := goodput.New(goodput.Config{Name: "search", Limit: limit.Fixed(60), Objective: 400 * time.Millisecond})
	images := goodput.New(goodput.Config{Name: "images", Limit: limit.Fixed(4), Objective: 5 * time.Second})

	registry := prometheus.NewRegistry()
	registry.MustRegister(goodputprom.New(search, images))
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})

	search.Do(context.Background(), func(context.Context) error { return nil })

	fmt.Print(scrape(metrics, "goodput_requests_total", `outcome="completed"`))
	fmt.Print(scrape(metrics, "goodput_concurrency_limit{"))
	// Output:
	// goodput_requests_total{limiter="images",outcome="completed",reason=""} 0
	// goodput_requests_total{limiter="search",outcome="completed",reason=""} 1
	// goodput_concurrency_limit{limiter="images"} 4
	// goodput_concurrency_limit{limiter="search"} 60
}

// Limiters that come and go, with deadlines of up to two minutes: their histograms reach past
// those.
func ExampleCollector() {
	limiters := map[string]*goodput.Limiter{
		"eu": goodput.New(goodput.Config{Name: "eu", Limit: limit.Fixed(10)}),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&goodputprom.Collector{
		Limiters: func() (all []*goodput.Limiter) { // where others change the map, under its lock
			for _, l := range limiters {
				all = append(all, l)
			}
			return all
		},
		Longest: func(string) time.Duration { return 2 * time.Minute },
	})
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})

	limiters["us"] = goodput.New(goodput.Config{Name: "us", Limit: limit.Fixed(20)})
	fmt.Print(scrape(metrics, "goodput_concurrency_limit{"))
	fmt.Print(scrape(metrics, "goodput_request_duration_seconds_bucket", "eu", `le="120"`))
	// Output:
	// goodput_concurrency_limit{limiter="eu"} 10
	// goodput_concurrency_limit{limiter="us"} 20
	// goodput_request_duration_seconds_bucket{limiter="eu",le="120"} 0
}

// What a service calls itself: how many attempts there are for each call, and whether there are
// retries left.
func ExampleClients() {
	billing := &retry.Policy{Name: "billing"}
	registry := prometheus.NewRegistry()
	registry.MustRegister(goodputprom.Clients(billing))

	billing.Do(context.Background(), func(context.Context, int) error { return nil })

	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	fmt.Print(scrape(metrics, "goodput_client_attempts_total"))
	fmt.Print(scrape(metrics, "goodput_client_retry_budget"))
	// Output:
	// goodput_client_attempts_total{dependency="billing"} 1
	// goodput_client_retry_budget{dependency="billing"} 10
}

// scrape returns the lines that have all of words.
func scrape(metrics http.Handler, words ...string) string {
	w := httptest.NewRecorder()
	metrics.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	var found strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		missing := false
		for _, word := range words {
			missing = missing || !strings.Contains(line, word)
		}
		if !missing && !strings.HasPrefix(line, "#") {
			found.WriteString(line)
		}
	}
	return found.String()
}
