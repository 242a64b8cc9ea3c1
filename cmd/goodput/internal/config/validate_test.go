package config

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// What flags describe is refused for what a file is refused for, in the words of flags.
func TestContradiction(t *testing.T) {
	flag := func(key string) string { return "--" + strings.ReplaceAll(key, "_", "-") }
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.Classes[0].DeadlineCap = time.Second }, ""},
		{func(c *Config) { c.Classes[0].DeadlineCap = 999 * time.Millisecond }, "--objective 1s is longer than --deadline-cap 999ms: whoever would be late for the objective is gone by then"},
		{func(c *Config) { c.Classes[0].DeadlineCap, c.Classes[0].Deadline = time.Second, time.Minute }, "--deadline 1m is longer than --deadline-cap 1s: no request may have it"},
		{func(c *Config) { c.Classes[0].Deadline = time.Minute }, ""},
		{func(c *Config) { c.Listeners[0].Address = ":9000" }, "--upstream http://127.0.0.1:9000 is where we listen ourselves, --listen :9000: each request would come in again, until none can"},
		{func(c *Config) { c.Listeners[0].Address = "10.0.0.1:9000" }, ""},
		{func(c *Config) { c.Listeners[0].Network, c.Listeners[0].Address = "unix", ":9000" }, ""},
	} {
		cfg := One(&url.URL{Scheme: "http", Host: "127.0.0.1:9000"})
		c.change(cfg)
		got := ""
		if err := cfg.Contradiction(flag); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
