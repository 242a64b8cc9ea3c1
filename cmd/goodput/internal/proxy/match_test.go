package proxy

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/limit"
)

func TestMatch(t *testing.T) {
	m := func(c config.Match) config.Match { return c }
	for _, tc := range []struct {
		match   config.Match
		request string // method, host and path, then headers
		want    bool
	}{
		{m(config.Match{}), "GET a.b/", true},
		{config.Match{Hosts: []string{"api.example.com"}}, "GET API.example.com:8080/x", true},
		{config.Match{Hosts: []string{"api.example.com"}}, "GET api.example.com./x", true},
		{config.Match{Hosts: []string{"api.example.com"}}, "GET api.example.com..:80/x", true},
		{config.Match{Hosts: []string{"api.example.com"}}, "GET example.com/x", false},
		{config.Match{Hosts: []string{"[::1]"}}, "GET [::1]:80/x", true},
		{config.Match{Hosts: []string{"API.Example.com"}}, "GET api.example.com/x", true},
		{config.Match{Hosts: []string{"*.example.com"}}, "GET a.b.example.com/x", true},
		{config.Match{Hosts: []string{"*.example.com"}}, "GET example.com/x", false},
		{config.Match{Hosts: []string{"*.example.com"}}, "GET evilexample.com/x", false},
		{config.Match{Hosts: []string{"a", "b"}}, "GET b/x", true},

		{config.Match{Paths: []string{"/api"}}, "GET h/api", true},
		{config.Match{Paths: []string{"/api/"}}, "GET h/api", true},
		{config.Match{Paths: []string{"/api"}}, "GET h/api/v1?x=1", true},
		{config.Match{Paths: []string{"/api"}}, "GET h/apiary", false},
		{config.Match{Paths: []string{"/api"}}, "GET h/x/api", false},
		{config.Match{Paths: []string{"/"}}, "GET h/x/api", true},
		{config.Match{Paths: []string{"/a", "/b"}}, "GET h/b/c", true},
		// As the service reads them.
		{config.Match{Paths: []string{"/api"}}, "GET h//api/x", true},
		{config.Match{Paths: []string{"/api"}}, "GET h/x/../api/x", true},
		{config.Match{Paths: []string{"/api"}}, "GET h/./api", true},
		{config.Match{Paths: []string{"/api"}}, "GET h/%61pi/x", true},
		{config.Match{Paths: []string{"/api"}}, "GET h/x/%2e%2e/api", true},
		{config.Match{Paths: []string{"/api"}}, "GET h/api/../x", false},
		{config.Match{Paths: []string{"/api"}}, "GET h/x%2f..%2fapi", true},
		{config.Match{Paths: []string{"/api"}}, "GET h/api;v=1/x", true},
		{config.Match{Paths: []string{"/api"}}, "GET h/x/..;/api", true},
		{config.Match{Paths: []string{"/api"}}, "GET h/;a/api", true},
		{config.Match{Paths: []string{"/api"}}, `GET h/x\..\api\y`, true},
		{config.Match{Paths: []string{"/api"}}, "GET h/;/", false},

		{config.Match{Methods: []string{"GET", "HEAD"}}, "HEAD h/", true},
		{config.Match{Methods: []string{"GET", "HEAD"}}, "POST h/", false},
		{config.Match{Methods: []string{"GET"}}, "HEAD h/", true},
		{config.Match{Methods: []string{"POST"}}, "HEAD h/", false},
		{config.Match{Methods: []string{"HEAD"}}, "GET h/", false},
		{config.Match{Headers: []config.Header{{Name: "x-plan", Value: "pro"}}}, "GET h/ X-Plan=free X-Plan=pro", true},
		{config.Match{Headers: []config.Header{{Name: "x-plan", Value: "pro"}}}, "GET h/ X-Plan=free", false},
		{config.Match{Headers: []config.Header{{Name: "x-plan"}}}, "GET h/ X-Plan=free", true},
		{config.Match{Headers: []config.Header{{Name: "x-plan"}}}, "GET h/", false},
		{config.Match{Headers: []config.Header{{Name: "a"}, {Name: "b"}}}, "GET h/ A=1", false},
		{config.Match{ContentTypes: []string{"application/grpc"}}, "POST h/ Content-Type=application/grpc+proto", true},
		{config.Match{ContentTypes: []string{"application/grpc"}}, "POST h/ Content-Type=application/grpc-web", false},
		{config.Match{ContentTypes: []string{"application/json"}}, "POST h/ Content-Type=application/JSON;charset=utf-8", true},
		{config.Match{ContentTypes: []string{"Application/JSON"}}, "POST h/ Content-Type=application/json", true},
		{config.Match{ContentTypes: []string{"application/json"}}, "POST h/", false},
		{config.Match{Paths: []string{"/api"}, Methods: []string{"POST"}}, "GET h/api", false},
		{config.Match{Paths: []string{"/api"}, Methods: []string{"POST"}}, "POST h/api", true},
	} {
		fields := strings.Fields(tc.request)
		host, path, _ := strings.Cut(fields[1], "/")
		r := httptest.NewRequest(fields[0], "/"+path, nil)
		if strings.HasPrefix(path, "/") { // as it is in a request line; NewRequest takes it for a host
			r.URL = &url.URL{Path: "/" + path}
		}
		r.Host = host
		for _, h := range fields[2:] {
			name, value, _ := strings.Cut(h, "=")
			r.Header.Add(name, value)
		}
		q := newRequest(r)
		matches := match(tc.match)
		if got := matches == nil || matches(&q); got != tc.want {
			t.Errorf("%+v takes %q: %v, want %v", tc.match, tc.request, got, tc.want)
		}
	}
}

// The first class that matches has the request, and its limiter counts it; the last has
// what is left.
func TestFirstClassThatMatches(t *testing.T) {
	u := mustURL(t, "http://"+backend(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	cfg := config.One(u)
	of := func(name string, m config.Match) config.Class {
		return config.Class{Name: name, Upstream: config.DefaultName, Match: m, Limiter: goodput.Config{Name: name, Limit: limit.Fixed(2)}}
	}
	cfg.Classes = []config.Class{
		of("search", config.Match{Paths: []string{"/search"}}),
		of("get", config.Match{Methods: []string{"GET"}}),
		of("rest", config.Match{}),
	}
	p, err := New(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*http.Request{
		httptest.NewRequest("GET", "/search/x", nil),
		httptest.NewRequest("POST", "/search", nil),
		httptest.NewRequest("GET", "/other", nil),
		httptest.NewRequest("POST", "/other", nil),
	} {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Errorf("%s %s: %d %s", r.Method, r.URL, w.Code, w.Body)
		}
	}
	for i, want := range []uint64{2, 1, 1} {
		if n := p.Limiters()[i].Stats().Arrivals; n != want {
			t.Errorf("%s: %d arrivals, want %d", cfg.Classes[i].Name, n, want)
		}
	}
}

// A path that is of one class as it is written and of another as a server may resolve it is
// refused: else who sends it takes the limit of one and the work of the other.
func TestAmbiguousPathsAreRefused(t *testing.T) {
	u := mustURL(t, "http://"+backend(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	cfg := config.One(u)
	of := func(name string, m config.Match) config.Class {
		return config.Class{Name: name, Upstream: config.DefaultName, Match: m, Limiter: goodput.Config{Name: name, Limit: limit.Fixed(2)}}
	}
	cfg.Classes = []config.Class{of("dear", config.Match{Paths: []string{"/dear"}}), of("cheap", config.Match{Paths: []string{"/cheap"}}), of("rest", config.Match{})}
	p, err := New(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"/dear/x": 200, "/cheap/./x": 200, "/cheap//x": 200, "/cheap;v=1": 400, "/cheap/x;v=1": 200, "/other/../else": 200,
		"/dear/../cheap": 400, "/dear/%2e%2e/cheap": 400, "/dear/..;/cheap": 400, "/dear/..%5Ccheap": 400, "/cheap/../dear": 400,
		"//dear": 400, "/dear;x": 400, "/x/..%2fdear": 400, `/x\..\dear`: 400,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		parsed, err := url.ParseRequestURI(path)
		if err != nil {
			t.Fatal(err)
		}
		r.URL = parsed
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}

func BenchmarkClass(b *testing.B) {
	t := &table{}
	for _, path := range []string{"/a", "/b", "/c/d", "/e", "/search"} {
		t.classes = append(t.classes, &class{matches: match(config.Match{Hosts: []string{"*.example.com"}, Paths: []string{path}})})
	}
	t.classes = append(t.classes, &class{})
	r := httptest.NewRequest("GET", "/search/x", nil)
	b.ReportAllocs()
	for b.Loop() {
		t.class(r)
	}
}
