package config

import (
	"errors"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/limit"
)

// The smallest useful file is what serve does with the same two words as flags.
func TestSmallestFile(t *testing.T) {
	cfg, err := Read("f.yaml", []byte("version: 1\nupstream: http://127.0.0.1:9000\nobjective: 400ms\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := One(&url.URL{Scheme: "http", Host: "127.0.0.1:9000"})
	want.Classes[0].Limiter.MaxAbsence = DefaultMaxAbsence
	want.Classes[0].Limiter.Limit, want.Classes[0].Limiter.Objective = limit.Auto{}, 400*time.Millisecond
	want.Source, want.SHA256 = "f.yaml", cfg.SHA256
	if !reflect.DeepEqual(cfg, want) || len(cfg.SHA256) != 64 {
		t.Errorf("%+v, want\n%+v", cfg, want)
	}
}

// everything is a file with what there is beside the limiters themselves.
const everything = `version: 1
listen:
  - ":8080"
  - {address: "unix:/run/goodput.sock", protocols: http1, backlog: 100, max_connections: 1000, pause_accepts: 10ms}
  - address: ":8443"
    tls: {cert: a.crt, key: a.key, client_ca: ca.crt}
    protocols: [http1, h2]
    max_streams: 250
    header_timeout: 5s
    idle_timeout: 1m
    max_header: 32KiB
upstreams:
  app:
    servers: [{url: "http://10.0.0.1:9000", limit: 40}, {url: "http://10.0.0.2:9000", limit: 40}]
    health: {path: /healthz, interval: 3s, timeout: 2s, fall: 3, rise: 1}
    failures: 5
    slow_start: 0s
    max_absence: 3s
    forward: expect-within
  report: h2c://127.0.0.1:9001
trusted_proxies: [10.0.0.0/8, "::1"]
processes: 1
defaults:
  objective: 400ms
  upstream: app
classes:
  - name: search
    match: {host: [api.example.com, "*.example.org"], path: /search, method: [GET, HEAD], header: {x-plan: pro, x-beta: "*"}, content_type: application/json}
    limit: 60
    deadline: 1s
    deadline_cap: 10s
    deadline_headers: [{name: x-server-timeout, format: s}]
    hop_margin: 5ms
    tenant: {header: x-tenant}
    user: {address: {v4: 24, v6: 56}}
    priority: {header: X-Priority, default: sheddable}
    cost: {header: X-Cost, default: 1, max: 8}
    size: {body: 64KiB}
    probes: [/search/health]
    overload_status: 429
    markers: [envoy, finagle]
    max_body: 10MiB
    max_upgraded: 1000
    slow_client: 10s
    finish: 5s
    idle: 60s
    total: 1h
    observe: true
  - name: events
    match: {path: /events}
    mode: stream
    limit: 20
  - name: rest
    upstream: report
    objective: 2s
    slow_client: none
`

// A file with everything, whose values stand where they belong.
func TestWholeFile(t *testing.T) {
	cfg, err := Read("f", []byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	sock := DefaultListener()
	sock.Network, sock.Address, sock.HTTP2 = "unix", "/run/goodput.sock", false
	sock.Backlog, sock.MaxConnections, sock.PauseAccepts = 100, 1000, 10*time.Millisecond
	tls := DefaultListener()
	tls.Address, tls.TLS, tls.MaxStreams = ":8443", &TLS{"a.crt", "a.key", "ca.crt"}, 250
	tls.HeaderTimeout, tls.IdleTimeout, tls.MaxHeader = 5*time.Second, time.Minute, 32<<10
	app := Upstream{
		Name:    "app",
		Servers: []Server{{&url.URL{Scheme: "http", Host: "10.0.0.1:9000"}, 40}, {&url.URL{Scheme: "http", Host: "10.0.0.2:9000"}, 40}},
		Health:  &Health{"/healthz", 3 * time.Second, 2 * time.Second, 3, 1}, Failures: 5, MaxAbsence: 3 * time.Second, Forward: "Expect-Within",
	}
	report := DefaultUpstream(&url.URL{Scheme: "h2c", Host: "127.0.0.1:9001"})
	report.Name = "report"
	want := &Config{
		Listeners: []Listener{DefaultListener(), sock, tls}, Upstreams: []Upstream{app, report}, Processes: 1,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		Source:         "f", SHA256: cfg.SHA256,
		Classes: []Class{
			{
				Name: "search", Upstream: "app",
				Match: Match{
					Hosts: []string{"api.example.com", "*.example.org"}, Paths: []string{"/search"}, Methods: []string{"GET", "HEAD"},
					Headers: []Header{{"X-Plan", "pro"}, {"X-Beta", ""}}, ContentTypes: []string{"application/json"},
				},
				Limiter:  goodput.Config{Name: "search", Limit: limit.Fixed(60), Objective: 400 * time.Millisecond, Observe: true, Tenants: &goodput.Tenants{}, MaxAbsence: 3 * time.Second},
				Deadline: time.Second, DeadlineCap: 10 * time.Second, DeadlineHeaders: []DeadlineHeader{{"X-Server-Timeout", "s"}}, HopMargin: 5 * time.Millisecond,
				Tenant: Key{From: Named, Header: "X-Tenant"}, User: Key{From: Address, V4: 24, V6: 56},
				Priority: Priority{goodput.Sheddable, "X-Priority"}, Cost: Amount{Fixed: 1, Header: "X-Cost", Most: 8}, Size: Amount{Per: 64 << 10},
				Exempt: []string{"/search/health"}, OverloadStatus: 429, Markers: []string{"envoy", "finagle"},
				MaxBody: 10 << 20, MaxUpgraded: 1000, SlowClient: 10 * time.Second, Finish: 5 * time.Second, Idle: time.Minute, Total: time.Hour,
			},
			{
				Name: "events", Upstream: "app", Mode: Stream, Match: Match{Paths: []string{"/events"}},
				Limiter: goodput.Config{Name: "events", Limit: limit.Fixed(20), Objective: 400 * time.Millisecond, Depth: goodput.NoQueue, MaxAbsence: 3 * time.Second},
			},
			{
				Name: "rest", Upstream: "report", SlowClient: -1,
				Limiter: goodput.Config{Name: "rest", Limit: limit.Auto{}, Objective: 2 * time.Second, MaxAbsence: DefaultMaxAbsence},
			},
		},
	}
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("%+v, want\n%+v", cfg, want)
	}
}

// wrong returns the sentences about a file, each as "line: sentence" or, where it
// contradicts something, "line,line: sentence".
func wrong(t *testing.T, src string) []string {
	t.Helper()
	_, err := Read("f", []byte(src))
	return sentences(t, err)
}

func sentences(t *testing.T, err error) (all []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	var e *strictyaml.Errors
	if !errors.As(err, &e) {
		t.Fatalf("%v is not about places", err)
	}
	for _, p := range e.Problems {
		at := strconv.Itoa(p.Line)
		for _, o := range p.Other {
			at += "," + strconv.Itoa(o.Line)
		}
		all = append(all, at+": "+p.Sentence)
	}
	return all
}

// A mistake that somebody who comes from another proxy makes has a sentence that says what to
// write, and not what is known of words.
func TestMistakesHaveTheirSentence(t *testing.T) {
	inClass := func(more string) string { return head + "classes: [{name: a, " + more + "}]\n" }
	for src, want := range map[string]string{
		head + "tenant: X-Api-Key\n":                 `3: tenant "X-Api-Key" is unknown: none, address, tls, or a header: {header: X-Api-Key}`,
		head + "tenant: adress\n":                    `3: tenant "adress" is unknown, did you mean address?`,
		head + "user: somebody\n":                    `3: user "somebody" is unknown: none, address, tls, or a header: {header: X-Tenant}`,
		head + "priority: high\n":                    `3: priority "high" is unknown: critical, default, sheddable, background, or a header: {header: X-Priority}`,
		head + "priority: X-Prio\n":                  `3: priority "X-Prio" is unknown: critical, default, sheddable, background, or a header: {header: X-Prio}`,
		head + "cost: X-Cost\n":                      `3: cost "X-Cost" is not a whole number of 1 to 1048576, {header: X-Cost} or {body: 64KiB}`,
		head + "deadline_headers: [X-Timeout-Ms]\n":  `3: deadline_headers "X-Timeout-Ms" has no format: write {name: X-Timeout-Ms, format: ms}, or another of ms, s, go, grpc, epoch_ms or finagle`,
		head + "deadline_headers: X-Timeout-Ms\n":    `3: deadline_headers "X-Timeout-Ms" has no format: write [{name: X-Timeout-Ms, format: ms}], or another of ms, s, go, grpc, epoch_ms or finagle`,
		head + "idle: 0\n":                           `3: idle "0" is not a duration of 1ms to 24h, such as 400ms, 2s or 1m30s, or none`,
		head + "total: []\n":                         `3: total is a list: a duration such as 400ms, or none is wanted`,
		head + "slow_client: 0s\n":                   `3: slow_client "0s" is not a duration of 1ms to 24h, such as 400ms, 2s or 1m30s, or none`,
		head + "deadline_cap: 0\n":                   `3: deadline_cap "0" is not a duration of 1ms to 24h, such as 400ms, 2s or 1m30s, or none`,
		"version: 1\nupstream: ${WEB_URL}\n":         `2: upstream "${WEB_URL}" has a variable: variables are not expanded, write the URL out`,
		"version: 1\nupstream: http://$(HOST):1\n":   `2: upstream "http://$(HOST):1" has a variable: variables are not expanded, write the URL out`,
		inClass("health: /up"):                       "3: health is unknown here: it belongs to an upstream",
		inClass("path: /a"):                          "3: path is unknown here: it belongs to health of an upstream or match of a class",
		inClass("host: h"):                           "3: host is unknown here: it belongs to match of a class",
		inClass("max_connections: 3"):                "3: max_connections is unknown here: it belongs to a listener",
		inClass("match: {limit: 3}"):                 "3: limit is unknown here: it belongs to a server of an upstream or a class",
		inClass("trusted_proxies: [10.0.0.0/8]"):     "3: trusted_proxies is unknown here: it belongs to the top of the file",
		inClass("shared: true"):                      "3: shared is unknown here: it belongs to limit with law: auto",
		head + "failures: 3\n":                       "3: failures is unknown here: it belongs to an upstream",
		head + "cert: a\n":                           "3: cert is unknown here: it belongs to tls of a listener",
		head + "objektive: 1s\n":                     "3: objektive is unknown, did you mean objective?",
		head + "listen: {address: ':1', idle: 1s}\n": "3: idle is unknown here: it belongs to a class",
	} {
		if got := wrong(t, src); len(got) == 0 || !slices.ContainsFunc(got, func(s string) bool { return s == want }) {
			t.Errorf("%s says\n%s\nwant\n%s", src, strings.Join(got, "\n"), want)
		}
	}
}
