package goodputhttp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

func at(rawurl string) *http.Request {
	u, err := url.Parse(rawurl)
	if err != nil {
		panic(err)
	}
	return &http.Request{URL: u, Header: http.Header{}}
}

func TestByHostKeepsHostsApart(t *testing.T) {
	made := []string{}
	f := ByHost(func(host string) *Dependency {
		made = append(made, host)
		if host == "none.test" {
			return nil
		}
		return &Dependency{Name: host}
	}, 0).Dependency
	for _, c := range []struct{ url, want string }{
		{"http://a.test/", "a.test"},
		{"http://A.TEST:80/x?y", "a.test"},
		{"https://a.test:443/", "a.test"}, // another scheme, the same service
		{"http://a.test:443/", "a.test:443"},
		{"http://a.test:8080/", "a.test:8080"},
		{"http://[2001:db8::1]:80/", "[2001:db8::1]"},
		{"http://none.test/", ""},
	} {
		dep := f(at(c.url))
		if dep != f(at(c.url)) {
			t.Errorf("%s: another one the second time", c.url)
		}
		if got := ""; dep != nil {
			if got = dep.Name; got != c.want {
				t.Errorf("%s is %q, want %q", c.url, got, c.want)
			}
		} else if c.want != "" {
			t.Errorf("%s: nil, want %q", c.url, c.want)
		}
	}
	if len(made) != 5 {
		t.Errorf("made %q", made)
	}
}

// At the bound the host goes that was not used for the longest time and has nothing under
// way; if all have, the newcomers share one.
func TestByHostAtItsBound(t *testing.T) {
	made := map[string]int{}
	f := ByHost(func(host string) *Dependency {
		made[host]++
		return &Dependency{Name: host, Limiter: limiter(1, goodput.Config{})}
	}, 2).Dependency
	open := map[string]*http.Response{}
	tr := &Transport{Dependency: f, Base: base(func(*http.Request) (*http.Response, error) { return respond(200, "x"), nil })}
	begin := func(host string) {
		res, err := tr.RoundTrip(at("http://" + host))
		if err != nil {
			t.Fatal(err)
		}
		open[host] = res
	}
	begin("a")
	begin("b")
	if dep := f(at("http://c")); dep.Name != "" || f(at("http://d")) != dep {
		t.Errorf("both places are taken, and c is %q", dep.Name)
	}
	open["b"].Body.Close()
	f(at("http://a")) // b is the one that was not used for longer, and idle
	if dep := f(at("http://c")); dep.Name != "c" {
		t.Errorf("b is idle, and c is %q", dep.Name)
	}
	f(at("http://a"))
	if made["a"] != 1 || made[""] != 1 {
		t.Errorf("made %v: a had a request under way", made)
	}
	open["a"].Body.Close()
	f(at("http://c"))
	if f(at("http://d")); made["c"] != 1 || made["d"] != 1 {
		t.Errorf("made %v: nothing is made for those without a place", made)
	}
	f(at("http://a"))
	if made["a"] != 2 {
		t.Errorf("made %v: a was used longest ago", made)
	}
	f(at("http://d"))
	f(at("http://e"))
	if f(at("http://d")); made["d"] != 1 {
		t.Errorf("made %v: d was in use when e came", made)
	}
	if dep := f(at("http://" + strings.Repeat("x", 300))); dep.Name != "" {
		t.Errorf("a name of 300 bytes has one of its own: %q", dep.Name)
	}
}

// A request under way keeps its host, before there is a response as well.
func TestByHostKeepsWhoWaitsForItsHeader(t *testing.T) {
	f := ByHost(func(host string) *Dependency { return &Dependency{Name: host} }, 1).Dependency
	tr := &Transport{Dependency: f, Base: base(func(r *http.Request) (*http.Response, error) {
		if dep := f(at("http://b")); dep.Name != "" {
			t.Errorf("a is under way, and %q has its place", dep.Name)
		}
		return respond(200, ""), nil
	})}
	if _, err := tr.RoundTrip(at("http://a")); err != nil {
		t.Fatal(err)
	}
	if dep := f(at("http://b")); dep.Name != "b" {
		t.Errorf("a is idle, and %q has its place", dep.Name)
	}
}

// The place of an idle host is found behind 63 under way; and 1,000 have one by default.
func TestByHostFindsWhoIsIdle(t *testing.T) {
	for _, busy := range []int{1, 63, 64} {
		f := ByHost(func(host string) *Dependency { return &Dependency{Name: host} }, busy+1).Dependency
		for i := range busy {
			f(at(fmt.Sprintf("http://busy%d", i))).counts.running.Add(1)
		}
		f(at("http://idle"))
		want := "new"
		if busy == 64 { // no more are looked at
			want = ""
		}
		if dep := f(at("http://new")); dep.Name != want {
			t.Errorf("%d under way that were used longer ago: %q, want %q", busy, dep.Name, want)
		}
	}
	made := 0
	f := ByHost(func(string) *Dependency { made++; return &Dependency{} }, 0).Dependency
	for _, n := range []int{1000, 1000} {
		for i := range n {
			f(at(fmt.Sprintf("http://h%d", i)))
		}
	}
	if f(at("http://one.more")); made != 1001 {
		t.Errorf("%d made for 1000 hosts and one more", made)
	}
	if f(at("http://h0")); made != 1002 {
		t.Error("1001 have a place")
	}
}

// Hosts that somebody invents cost no more than the bound, and each host that is in use
// has one limiter.
func TestByHostWithHostileHosts(t *testing.T) {
	const most, workers, rounds = 50, 8, 2000
	seed := uint64(time.Now().UnixNano())
	t1 := ByHost(func(host string) *Dependency { return &Dependency{Name: host} }, most)
	tr := &Transport{Dependency: t1.Dependency, Base: base(func(*http.Request) (*http.Response, error) { return respond(200, ""), nil })}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			for range rounds {
				r := at(fmt.Sprintf("http://h%d", rng.IntN(10*most)))
				if _, err := tr.RoundTrip(r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if a, b := len(t1.byName), t1.used.Len(); a != b || a > most {
		t.Errorf("%d names, %d hosts, at most %d (seed %d)", a, b, most, seed)
	}
}

// All has each host that is kept, by name, and those without a place first.
func TestHostsAll(t *testing.T) {
	hosts := ByHost(func(host string) *Dependency {
		if host == "none" {
			return nil
		}
		return &Dependency{Name: host}
	}, 4)
	var list string
	all := func() string {
		list = ""
		for host, dep := range hosts.All() {
			list += fmt.Sprintf("%s=%s ", host, dep.Name)
			hosts.Dependency(at("http://none")) // it may come back to the table
		}
		return list
	}
	if got := all(); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	for _, host := range []string{"none", "c", "a", "b"} {
		hosts.Dependency(at("http://" + host))
	}
	if got := all(); got != "a=a b=b c=c " {
		t.Errorf("%q", got)
	}
	hosts.Dependency(at("http://" + strings.Repeat("x", 300)))
	if got := all(); got != "= a=a b=b c=c " {
		t.Errorf("with the shared one: %q", got)
	}
	for range hosts.All() {
		break
	}
	for host := range hosts.All() {
		if host == "a" {
			break
		}
	}
	hosts.Dependency(at("http://d")) // the place of c, which All has not used
	if got := all(); got != "= a=a b=b d=d " {
		t.Errorf("after a fifth host: %q", got)
	}
}

// What is required and not there is said in one sentence.
func TestRequiredFields(t *testing.T) {
	for want, f := range map[string]func(){
		"goodputhttp: Transport.Dependency is nil: say what a request needs, or use ByHost": func() {
			_, _ = new(Transport).RoundTrip(at("http://a"))
		},
		"goodputhttp: Server.Limiter is nil: say which limiter a request needs, or use Handler": func() {
			(&Server{Next: nothing}).ServeHTTP(nil, at("http://a"))
		},
		"goodputhttp: Server.Next is nil: say what serves the requests that are admitted": func() {
			(&Server{Limiter: one(limiter(1, goodput.Config{}))}).ServeHTTP(nil, at("http://a"))
		},
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("%v, want %s", got, want)
				}
			}()
			f()
		}()
	}
}

// What is kept here, by the throttle, the limiter or the deadline, is the same number for the
// Dependency and its Policy, is no word of the server, and earns no retries.
func TestKeptIsCountedOnce(t *testing.T) {
	full := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	hold(t, full, 1)
	past, cancel := context.WithDeadline(background, time.Now().Add(-time.Second))
	defer cancel()
	for name, c := range map[string]struct {
		dep *Dependency
		ctx context.Context
	}{
		"limiter":  {&Dependency{Limiter: full}, background},
		"throttle": {&Dependency{Throttle: refusing(t)}, background},
		"deadline": {&Dependency{}, past},
	} {
		c.dep.Retry = &retry.Policy{}
		tr := to(c.dep, base(func(*http.Request) (*http.Response, error) { return respond(200, ""), nil }))
		for range 100 {
			if res, err := tr.RoundTrip(at("http://a").WithContext(c.ctx)); err == nil {
				text(t, res)
			}
		}
		d, p := c.dep.Stats(), c.dep.Retry.Stats()
		kept := d.Throttled + d.Refused + d.OutOfTime
		if kept == 0 || kept+d.Attempts != 100 || p.Kept != kept || p.Unsent != kept || p.Stops[retry.StopKept] != kept ||
			p.Stops[retry.StopPushback] != 0 || p.Budget.Calls != d.Attempts {
			t.Errorf("%s: %+v %+v", name, d, p)
		}
	}
}

func TestByHostNeedsAFunction(t *testing.T) {
	for _, f := range []func(){func() { ByHost(nil, 0) }, func() { ByHost(func(string) *Dependency { return nil }, -1) }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		}()
	}
}

// A table that is full of hosts with requests under way is not walked for each new host.
func BenchmarkByHostFull(b *testing.B) {
	const most = 1000
	f := ByHost(func(string) *Dependency { return &Dependency{} }, most).Dependency
	for i := range most {
		f(at(fmt.Sprintf("http://h%d", i))).counts.running.Add(1)
	}
	r := at("http://new")
	b.ReportAllocs()
	for b.Loop() {
		f(r)
	}
}
