package goodputhttp

import (
	"io"
	"net/http"
	"testing"

	"github.com/goodput/goodput"
)

// TestMarkerOnSuccess: a success is no refusal, whatever is written beside it, and nothing
// that comes after a body is one. A refusal of further down keeps its marker.
func TestMarkerOnSuccess(t *testing.T) {
	const marker = "Goodput-Rejected"
	for _, c := range []struct {
		name            string
		kind            string
		status          int
		header          bool // it is in the header
		trailer         http.Header
		marked, trailed bool
	}{
		{name: "a success", status: 200, header: true},
		{name: "without WriteHeader", header: true},
		{name: "a redirection", status: 302, header: true},
		{name: "a refusal", status: 503, header: true, marked: true},
		{name: "too many", status: 429, header: true, marked: true},
		{name: "a trailer", status: 200, trailer: http.Header{marker: {"queue_full"}}},
		{name: "an undeclared trailer", status: 200, trailer: http.Header{http.TrailerPrefix + marker: {"queue_full"}}},
		{name: "a trailer of an error", status: 503, trailer: http.Header{http.TrailerPrefix + marker: {"queue_full"}}},
		{name: "gRPC", kind: "application/grpc", status: 200, header: true, marked: true},
		{name: "a trailer of gRPC", kind: "application/grpc", status: 200, trailer: http.Header{http.TrailerPrefix + marker: {"queue_full"}}, trailed: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := start(t, Handler(limiter(1, goodput.Config{}), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				h := w.Header()
				if c.header {
					h.Set(marker, "queue_full")
				}
				if c.trailer[marker] != nil {
					h.Set("Trailer", marker)
				}
				if c.status != 0 {
					w.WriteHeader(c.status)
				}
				_, _ = io.WriteString(w, "body")
				_ = http.NewResponseController(w).Flush() // else HTTP/1.1 has no trailers
				for name, values := range c.trailer {
					h[name] = values
				}
			})))
			for name, client := range clients(t) {
				r, _ := http.NewRequest(http.MethodPost, srv.URL, http.NoBody)
				if c.kind != "" {
					r.Header.Set("Content-Type", c.kind)
				}
				client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
				res, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || string(body) != "body" {
					t.Errorf("%s: %q, %v", name, body, err)
				}
				if got := res.Header.Get(marker) != ""; got != c.marked {
					t.Errorf("%s: marked %v, want %v", name, got, c.marked)
				}
				if got := res.Trailer.Get(marker) != ""; got != c.trailed {
					t.Errorf("%s: in the trailer %v, want %v", name, got, c.trailed)
				}
			}
		})
	}
}
