package goodputhttp

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goodput/goodput"
)

// Between the look-up and the request a host may lose its place: the request is then on the
// account of the Dependency that takes its place, and whoever only looks keeps no place.
func TestByHostBetweenLookUpAndRequest(t *testing.T) {
	other := at("http://other")
	for _, c := range []struct {
		name   string
		create func(string) *Dependency
		loses  int // how often a loses its place in between
	}{
		{"one each", func(host string) *Dependency { return &Dependency{Name: host} }, 1},
		{"twice", func(host string) *Dependency { return &Dependency{Name: host} }, 2},
		{"one for all", func() func(string) *Dependency {
			all := &Dependency{}
			return func(string) *Dependency { return all }
		}(), 1},
		{"one for all, for ever", func() func(string) *Dependency {
			all := &Dependency{}
			return func(string) *Dependency { return all }
		}(), 1 << 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			hosts, asked := ByHost(c.create, 1), 0
			tr := &Transport{
				Dependency: func(r *http.Request) *Dependency {
					dep := hosts.Dependency(r)
					if asked++; asked <= c.loses {
						hosts.Dependency(other)
					}
					return dep
				},
				Base: base(func(*http.Request) (*http.Response, error) {
					dep := hosts.Dependency(at("http://a"))
					if n := dep.counts.running.Load(); n != 1 {
						t.Errorf("%d requests under way at the one in the table", n)
					}
					return respond(200, ""), nil
				}),
			}
			if _, err := tr.RoundTrip(at("http://a")); err != nil {
				t.Fatal(err)
			}
			dep := hosts.Dependency(at("http://a"))
			if st := dep.Stats(); st.Calls != 1 || !dep.idle() {
				t.Errorf("%+v, idle %v", st, dep.idle())
			}
		})
	}
}

// A panic of create on the second look-up leaves nothing under way.
func TestByHostPanicsOnTheSecondLookUp(t *testing.T) {
	dep := &Dependency{}
	dep.gone.Store(true)
	n := 0
	tr := &Transport{Dependency: func(*http.Request) *Dependency {
		if n++; n == 2 {
			panic("create")
		}
		return dep
	}}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = tr.RoundTrip(at("http://a"))
	}()
	if !dep.idle() {
		t.Error("one is under way for ever")
	}
}

// However many hosts come, those that have a place have one limiter: here 1 at once.
func TestByHostHasOneLimiterForAHost(t *testing.T) {
	const workers, hostsInAll, most = 16, 9, 3
	rounds := stressed(400, 20_000)
	var running [hostsInAll]atomic.Int64
	hosts := ByHost(func(name string) *Dependency {
		dep := &Dependency{Limiter: limiter(1, goodput.Config{})}
		if name != "" { // those without a place share another one
			dep.Work = func(r *http.Request) goodput.Work {
				r.Header.Set("Placed", name)
				return goodput.Work{}
			}
		}
		return dep
	}, most)
	tr := &Transport{Dependency: hosts.Dependency, Base: base(func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("Placed") != "" {
			var i int
			if _, err := fmt.Sscanf(r.URL.Host, "h%d", &i); err != nil {
				t.Error(err)
			}
			if n := running[i].Add(1); n > 1 {
				t.Errorf("%d at once at %s", n, r.URL.Host)
			}
			defer running[i].Add(-1)
		}
		return respond(200, ""), nil
	})}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				_, _ = tr.RoundTrip(at(fmt.Sprintf("http://h%d", (w*7+i)%hostsInAll*(w%2)))) // half of them at h0
			}
		})
	}
	wg.Wait()
}
