package goodputhttp

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
)

var nothing = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// from is a request from an address.
func from(addr string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = addr
	return r
}

func status(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestByAddress(t *testing.T) {
	for _, c := range []struct {
		v4, v6     int
		addr, want string
	}{
		{0, 0, "192.0.2.1:80", "192.0.2.1"},
		{24, 0, "192.0.2.1:80", "192.0.2.0/24"},
		{0, 0, "[2001:db8:1:2:3:4:5:6]:80", "2001:db8:1:2::/64"},
		{0, 48, "[2001:db8:1:2:3:4:5:6]:80", "2001:db8:1::/48"},
		{0, 128, "[2001:db8::1]:80", "2001:db8::1"},
		{0, 1, "[2001:db8::1]:80", "::/1"},
		{16, 64, "[::ffff:192.0.2.1]:80", "192.0.0.0/16"},
		{0, 0, "[fe80::1%eth0]:80", "fe80::/64"},
		{0, 0, "@", ""},
		{0, 0, "", ""},
		{0, 0, "localhost:80", ""},
	} {
		if got := ByAddress(c.v4, c.v6)(from(c.addr)); got != c.want {
			t.Errorf("ByAddress(%d, %d) of %q: %q, want %q", c.v4, c.v6, c.addr, got, c.want)
		}
	}
	for _, bits := range [][2]int{{-1, 0}, {33, 0}, {0, -1}, {0, 129}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("ByAddress(%d, %d) is taken", bits[0], bits[1])
				}
			}()
			ByAddress(bits[0], bits[1])
		}()
	}
}

// luisgamas/uxnan#101: limited by address, a client of IPv6 was as many clients as it had
// addresses. Two thousand of one /64 are one tenant.
func TestC106OneNetworkIsOneTenant(t *testing.T) {
	lim := limiter(4, goodput.Config{Tenants: &goodput.Tenants{
		Rows: []goodput.Tenant{{ID: "2001:db8:0:7::/64", Quota: goodput.Quota{Rate: 1e-6, Burst: 10}}},
	}})
	s := &Server{Limiter: one(lim), Next: nothing, Tenant: ByAddress(0, 0)}
	served := 0
	for i := range 2000 {
		addr := netip.MustParseAddr("2001:db8:0:7::").As16()
		binary.BigEndian.PutUint64(addr[8:], uint64(i)*0x9E3779B97F4A7C15)
		if status(s, from(netip.AddrPortFrom(netip.AddrFrom16(addr), 80).String())).Code == http.StatusOK {
			served++
		}
	}
	if served != 10 {
		t.Errorf("%d served of a quota of 10", served)
	}
	for _, a := range lim.Tenants(9) {
		if want := map[string]uint64{"2001:db8:0:7::/64": 2000}[a.ID]; a.Arrivals != want {
			t.Errorf("%d arrivals of %q, want %d", a.Arrivals, a.ID, want)
		}
	}
	if code := status(s, from("[2001:db8:0:8::1]:80")).Code; code != http.StatusOK {
		t.Errorf("the next network: %d", code)
	}
}

// Who a request is of: the Server's functions, unless Work says so.
func TestTenantAndUser(t *testing.T) {
	header := func(name string) func(*http.Request) string {
		return func(r *http.Request) string { return r.Header.Get(name) }
	}
	rows := []goodput.Tenant{{ID: "a"}, {ID: "b"}}
	for _, c := range []struct {
		name   string
		server *Server
		want   string
	}{
		{"nobody says", &Server{}, ""},
		{"the server", &Server{Tenant: header("Account")}, "a"},
		{"the work", &Server{Tenant: header("Account"), Work: func(*http.Request) goodput.Work {
			return goodput.Work{Tenant: "b"}
		}}, "b"},
	} {
		lim := limiter(1, goodput.Config{Tenants: &goodput.Tenants{Rows: rows}})
		s := c.server
		s.Limiter, s.Next = one(lim), nothing
		r := from("192.0.2.1:80")
		r.Header.Set("Account", "a")
		status(s, r)
		for _, a := range lim.Tenants(9) {
			if want := map[bool]uint64{true: 1}[a.ID == c.want]; a.Arrivals != want {
				t.Errorf("%s: %d arrivals of %q, want %d", c.name, a.Arrivals, a.ID, want)
			}
		}
	}
	v := &visit{server: &Server{User: header("User")}, r: from("192.0.2.1:80")}
	v.r.Header.Set("User", "u")
	if w := v.work(); w.User != "u" || w.Tenant != "" {
		t.Errorf("got %+v", w)
	}
	v.server.Work = func(*http.Request) goodput.Work { return goodput.Work{User: "v"} }
	if w := v.work(); w.User != "v" {
		t.Errorf("got %+v", w)
	}
}

// A refusal for a quota says when there is enough, rounded up and never cut: to a second,
// and for gRPC to a millisecond.
func TestRetryAfterOfAQuota(t *testing.T) {
	for _, c := range []struct {
		rate       float64
		http, grpc string
	}{
		{20, "1", "50"},       // 50 ms
		{0.4, "3", "2500"},    // 2.5 s
		{0.01, "100", "1e5"},  // longer than a limiter ever says
		{1e-6, "1e6", "1e9"},  // 11 days
		{400, "1", "3"},       // 2.5 ms
		{1.0 / 3, "3", "3e3"}, // 3 s to the nanosecond
	} {
		synctest.Test(t, func(t *testing.T) {
			lim := limiter(4, goodput.Config{Tenants: &goodput.Tenants{
				Others: goodput.Tenant{Quota: goodput.Quota{Rate: c.rate, Burst: 1}},
			}})
			s := &Server{Limiter: one(lim), Next: nothing, OverloadStatus: http.StatusServiceUnavailable}
			if w := status(s, from("")); w.Code != http.StatusOK {
				t.Fatal(w.Code)
			}
			for range 20 { // it is not spread
				w := status(s, from(""))
				got := w.Header().Get("Retry-After")
				if w.Code != http.StatusTooManyRequests || w.Header().Get("Goodput-Rejected") != "quota" || !within(got, c.http) {
					t.Errorf("%v/s: %d %v, want 429 with Retry-After %s", c.rate, w.Code, w.Header(), c.http)
				}
				r := from("")
				r.Header.Set("Content-Type", "application/grpc")
				h := status(s, r).Header()
				if got := h.Get("Grpc-Retry-Pushback-Ms"); h.Get("Grpc-Status") != "8" || !within(got, c.grpc) {
					t.Errorf("%v/s: %v, want status 8 with a pushback of %s ms", c.rate, h, c.grpc)
				}
			}
			var wait float64
			_, _ = fmt.Sscan(status(s, from("")).Header().Get("Retry-After"), &wait)
			time.Sleep(time.Duration(wait * float64(time.Second)))
			if w := status(s, from("")); w.Code != http.StatusOK {
				t.Errorf("%v/s: who waited as it was told is answered %d", c.rate, w.Code)
			}
		})
	}
}

// within reports whether got is want, or one more: a division that is not exact is
// rounded up.
func within(got, want string) bool {
	var g, w float64
	_, err := fmt.Sscan(got, &g)
	_, err2 := fmt.Sscan(want, &w)
	return err == nil && err2 == nil && (g == w || g == w+1)
}
