package proxy

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/goodput/goodput"
)

// ended checks how all streams of a class with a limiter have ended.
func (w *world) ended(how goodput.Outcome, n uint64) {
	w.Helper()
	if w.lim == nil {
		return
	}
	if s := w.settle("idle", idle); s.Outcomes[how] != n || s.Arrivals != n {
		w.Errorf("%v: want %v of %d", s.Outcomes, how, n)
	}
}

// That its client leaves is how an event stream ends: it is completed, and so is a call of gRPC
// whose client resets it. Who leaves before it has begun has abandoned it, and a service that
// breaks it off has failed.
func TestStreamIsLeft(t *testing.T) {
	for _, c := range []struct {
		path string
		want goodput.Outcome
	}{
		{"/events", goodput.Completed},
		{"/silent", goodput.Abandoned},
		{"/broken", goodput.Failed},
	} {
		asked := make(chan struct{}, 4)
		up := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			if r.URL.Path != "/silent" {
				io.WriteString(w, "data: first\n\n")
				http.NewResponseController(w).Flush()
			}
			if r.URL.Path == "/broken" {
				panic(http.ErrAbortHandler)
			}
			<-r.Context().Done()
		}))
		lasting(t, up, func(k *Config) { k.Idle = patience }, func(w *world) {
			w.both(func(client *http.Client) {
				for _, kind := range []string{"", "application/grpc"} {
					ctx, leave := context.WithCancel(t.Context())
					r, _ := http.NewRequestWithContext(ctx, http.MethodPost, w.url+c.path, http.NoBody) // the URL is one
					r.Header.Set("Content-Type", kind)
					if c.path == "/silent" {
						go func() {
							<-asked
							leave()
						}()
					}
					res, err := client.Do(r)
					if err == nil {
						if c.path == "/broken" {
							io.ReadAll(res.Body)
						} else {
							io.ReadFull(res.Body, make([]byte, 5))
						}
						leave()
						res.Body.Close()
					}
					if c.path != "/silent" {
						<-asked
					}
					leave()
				}
			})
			w.ended(c.want, 4)
		})
	}
}
