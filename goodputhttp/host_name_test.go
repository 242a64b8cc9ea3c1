package goodputhttp

import (
	"net/url"
	"testing"
)

// One host has one name, however it is spelled, and two have two.
func TestHostOf(t *testing.T) {
	for _, c := range []struct {
		want string
		urls []string
	}{
		{"a.test", []string{
			"http://a.test/", "http://A.Test", "http://a.test:", "http://a.test:80", "http://a.test:080", "http://a.test:00080",
			"http://a.test.", "http://A.TEST.:80", "https://a.test:443", "https://a.test.:0443", "http://user:pw@a.test/",
		}},
		{"a.test:443", []string{"http://a.test:443", "http://a.test.:0443"}},
		{"a.test:80", []string{"https://a.test:80"}},
		{"a.test:8080", []string{"http://a.test:8080", "http://A.test.:08080"}},
		{"a.test:0", []string{"http://a.test:0", "http://a.test:000"}},
		{"a.test.", []string{"http://a.test.."}}, // which nobody can look up
		{"b_1-c.test", []string{"http://b_1-c.test"}},
		{"127.0.0.1:81", []string{"http://127.0.0.1:81", "http://[::ffff:127.0.0.1]:81", "http://[::FFFF:7f00:1]:81"}},
		{"127.0.0.1", []string{"http://127.0.0.1", "http://127.0.0.1.:80", "http://[::ffff:7f00:1]:80"}},
		{"[2001:db8::1]", []string{
			"http://[2001:db8::1]", "http://[2001:DB8::1]:80", "http://[2001:0db8:0:0:0:0:0:1]:080", "https://[2001:db8:0::1]:443",
		}},
		{"[2001:db8::1]:81", []string{"http://[2001:db8::1]:81", "http://[2001:db8:0::1]:081"}},
		{"[fe80::1%en0]", []string{"http://[fe80::1%25en0]:80", "http://[fe80:0::1%25en0]"}},
		{"xn--bcher-kva.test", []string{"http://xn--bcher-kva.test", "http://XN--BCHER-KVA.test."}},
		{"", []string{"http://b%C3%BCcher.test", "http://bücher.test:80", "http://ａ.test", "http:///x"}},
		{".", []string{"http://."}},
	} {
		for _, raw := range c.urls {
			u, err := url.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			if got := hostOf(u); got != c.want {
				t.Errorf("%s is %q, want %q", raw, got, c.want)
			}
		}
	}
}

// A request without a URL is for Base to refuse.
func TestHostOfNothing(t *testing.T) {
	if got := hostOf(nil); got != "" {
		t.Errorf("%q", got)
	}
}

// The names that requests have as a rule cost nothing.
func TestHostOfAllocatesNothing(t *testing.T) {
	for _, raw := range []string{"http://a.test/", "http://a.test:8080/", "https://a.test:443", "http://a.test.", "http://127.0.0.1:81"} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { hostOf(u) }); n != 0 {
			t.Errorf("%s: %v allocations", raw, n)
		}
	}
}

// Whatever a URL says, a name is that of itself: asked again it is the same.
func FuzzHostOf(f *testing.F) {
	for _, s := range []string{"http://a.test:080", "http://[::ffff:1.2.3.4%25x]:1", "https://..", "http://a:b@[2001:db8::]:443"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := url.Parse(raw)
		if err != nil {
			return
		}
		name := hostOf(u)
		again, err := url.Parse(u.Scheme + "://" + (&url.URL{Host: name}).Host)
		if err != nil || name == "" || again.Host != name {
			return
		}
		if got := hostOf(again); got != name && got+"." != name {
			t.Errorf("%q is %q, and that is %q", u.Host, name, got)
		}
	})
}
