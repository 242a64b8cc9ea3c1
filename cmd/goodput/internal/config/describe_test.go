package config

import (
	"strings"
	"testing"
)

// What a file comes to is said in its own words, every part of it.
func TestDescribe(t *testing.T) {
	for src, want := range map[string]string{
		everything: `  listen    :8080 (HTTP/1.1, h2c), 65536 connections at most
            unix:/run/goodput.sock (HTTP/1.1), 1000 connections at most
            :8443 (HTTP/1.1, h2, TLS), 65536 connections at most
  upstream  app: http://10.0.0.1:9000, http://10.0.0.2:9000, 80 at once
  upstream  report: h2c://127.0.0.1:9001
  class search: host api.example.com or *.example.org and path /search and method GET or HEAD and header X-Plan: pro and header X-Beta and content type application/json, to app
    limit     60
    observe   nothing is refused
    depth     60 slots / 40ms mean = 1500/s; objective 400ms p99, service p99 185ms -> 320 deep (rule of thumb 600: p99 would be 588ms); 0 samples, prior service 40ms
    deadline  1s where a request brings none, at most 10s, read from X-Server-Timeout (s) too, forwarded less 5ms
    work      tenant by header X-Tenant, user by address, priority by header X-Priority, cost by header X-Cost, size 1 for each 64KiB of the body
  class events: path /events, to app
    limit     20 streams at once, no queue
`,
		head + "mode: connection\nlisten: {address: ':1', max_connections: 9}\nprocesses: 3\n": `  listen    :1 (HTTP/1.1, h2c), 9 connections at most
  upstream  default: http://h:9
  processes 3
  class default: every request, to default
    limit     none of its own: the connections of the listeners
`,
		head + "cost: 3\nsize: 7\npriority: background\nuser: tls\nlisten: {address: ':1', protocols: h2, tls: {cert: a, key: b, client_ca: c}}\nlimit: 5\n": `  listen    :1 (h2, TLS), 65536 connections at most
  upstream  default: http://h:9
  class default: every request, to default
    limit     5
    depth     5 slots / 100ms mean = 50/s; objective 1s p99, service p99 461ms -> `,
	} {
		cfg, err := Read("f", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := cfg.Describe().Text(&b); err != nil || !strings.HasPrefix(b.String(), want) {
			t.Errorf("%v\n%s\nwant\n%s", err, b.String(), want)
		}
		if strings.Contains(src, "user: tls") && !strings.HasSuffix(b.String(), "    work      user by certificate, priority background, cost 3, size 7\n") {
			t.Errorf("%s", b.String())
		}
	}
}

// While the limit is searched, what is derived is said beside what it becomes: that of the
// number with which it begins. Programs read the arithmetic that is in force.
func TestDepthOfALimitThatIsSearched(t *testing.T) {
	describe := func(limit string) (ClassDescription, string) {
		cfg, err := Read("f", []byte(head+"objective: 400ms\nservice: 50ms\ntenant: address\ntenants: [{id: a, max_in_use: 30}]\nlimit: "+limit+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		d := cfg.Describe()
		var b strings.Builder
		if err := d.Text(&b); err != nil {
			t.Fatal(err)
		}
		return d.Classes[0], b.String()
	}
	auto, text := describe("auto")
	number, _ := describe("20")
	if number.Derivation == "" || !strings.Contains(text, "\n              66 at 20, if that is what is found: "+number.Derivation+"\n") {
		t.Errorf("%s\nwant\n%s", text, number.Derivation)
	}
	if *auto.Depth <= *number.Depth || !strings.Contains(auto.Derivation, "while the limit is searched") || strings.Contains(text, auto.Derivation) {
		t.Errorf("%+v\n%s", auto, text)
	}
}
