package metrics

import (
	"compress/gzip"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler answers scrapes of r. A Prometheus asks for gzip, and promhttp compresses as well as
// it can, which for the text of 100 limiters, 2 MB, takes about as long as to make that, and is
// time that the requests do not have. The fastest level takes a third of it and leaves 100 KB in
// place of 87.
func Handler(r *prometheus.Registry) http.Handler {
	return compressed(promhttp.HandlerFor(r, promhttp.HandlerOpts{DisableCompression: true}))
}

var compressed = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.CompressionLevel(gzip.BestSpeed))
	if err != nil {
		panic(err) // a level that there is not
	}
	return wrap
}()
