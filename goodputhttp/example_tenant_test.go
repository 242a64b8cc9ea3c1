package goodputhttp_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/limit"
)

// Clients share a service by their network, so that one of them with many addresses is one
// of them; who is known by a key has a row.
func ExampleByAddress() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(60), Tenants: &goodput.Tenants{
		Rows: []goodput.Tenant{{ID: "acme", Weight: 10}},
	}})
	network := goodputhttp.ByAddress(0, 0)
	customers := map[string]string{"key-1": "acme"} // by a key that only they have
	h := &goodputhttp.Server{
		Limiter: func(*http.Request) *goodput.Limiter { return lim },
		Tenant: func(r *http.Request) string {
			if id, ok := customers[r.Header.Get("Authorization")]; ok {
				return id
			}
			return network(r)
		},
		Next: http.NotFoundHandler(),
	}
	_ = h // http.ListenAndServe(":8080", h)

	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, addr := range []string{"[2001:db8:0:7::1]:50000", "[2001:db8:0:7:ffff::9]:50001", "192.0.2.1:50002"} {
		r.RemoteAddr = addr
		fmt.Println(h.Tenant(r))
	}
	r.Header.Set("Authorization", "key-1")
	fmt.Println(h.Tenant(r))
	// Output:
	// 2001:db8:0:7::/64
	// 2001:db8:0:7::/64
	// 192.0.2.1
	// acme
}

// What an answer of a language model costs is known once it is written: the tenant pays for
// that, and the limiter learns how long so many tokens take.
func ExampleSetCost() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(8), Tenants: &goodput.Tenants{
		Rows: []goodput.Tenant{{ID: "acme", Quota: goodput.Quota{Rate: 1e-3, Burst: 1000}}},
	}})
	h := &goodputhttp.Server{
		Limiter: func(*http.Request) *goodput.Limiter { return lim },
		Tenant:  func(*http.Request) string { return "acme" },
		Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tokens, _ := fmt.Fprint(w, "All is well.")
			goodputhttp.SetCost(r.Context(), tokens)
			goodputhttp.SetSize(r.Context(), tokens)
		}),
	}
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	for _, t := range lim.Tenants(10) {
		if t.ID == "acme" {
			fmt.Println(t.ID, "has", math.Round(t.Left), "tokens left")
		}
	}
	// Output: acme has 988 tokens left
}
