package config

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const head = "version: 1\nupstream: http://h:9\n" // lines 1 and 2

// What contradicts something in a file of one class is said at both lines, and once.
func TestContradictionsOfOneClass(t *testing.T) {
	for src, want := range map[string]string{
		"objective: 2s\ndeadline_cap: 1s":                                     "3,4: objective 2s is longer than deadline_cap 1s: whoever would be late for the objective is gone by then",
		"objective: 1s\ndeadline_cap: 1s":                                     "",
		"deadline_cap: 500ms":                                                 "3: objective 1s, the default, is longer than deadline_cap 500ms: whoever would be late for the objective is gone by then",
		"deadline: 3s\ndeadline_cap: 2s":                                      "3,4: deadline 3s is longer than deadline_cap 2s: no request may have it",
		"objective: 2s\nservice: 3s":                                          "4,3: service 3s is longer than objective 2s: nothing could meet it",
		"hop_margin: 2s\ndeadline: 2s":                                        "3,4: hop_margin 2s is not shorter than deadline 2s: the service would be told that no time is left",
		"hop_margin: 1s":                                                      "",
		"hop_margin: 2s\ndeadline_cap: 1s\nobjective: 1s":                     "3,4: hop_margin 2s is not shorter than deadline_cap 1s: the service would be told that no time is left",
		"idle: 2m\ntotal: 1m":                                                 "3,4: idle 2m is longer than total 1m: a stream is over before it could be idle for so long",
		"deadline_headers: [{name: grpc-timeout, format: ms}]":                "3: deadline header Grpc-Timeout is read anyway: leave it out",
		"deadline_headers: [{name: a, format: s}, {name: A, format: s}]":      "3,3: header A is there twice: it has one format",
		"deadline_headers: [{name: Content-Length, format: s}]":               "3: deadline header Content-Length has a meaning of its own: name another",
		"trust_deadline: [10.0.0.0/8]":                                        "3: trust_deadline says who may bring more than deadline_cap, and there is none: anybody may bring anything",
		"limit: 60\ncost: 61":                                                 "4,3: cost 61 is above limit, 60: each such request would be refused as too costly",
		"limit: {law: auto, max: 7}\ncost: {body: 1KiB, max: 8}":              "4,3: the max of cost, 8, is above limit, 7: a request that costs so much would be refused as too costly",
		"allowance: {rate: 100/s, burst: 5}\ncost: 6":                         "4,3: cost 6 is above the burst of allowance, 5: each such request would be refused as too costly",
		"tenant: address\ntenants: [{id: a, max_in_use: 2}]\ncost: 3":         "5,4: cost 3 is above max_in_use of tenant a, 2: each such request would be refused as too costly",
		"cost: {body: 1KiB, default: 9, max: 8}":                              "3,3: default 9 is above max 8: most a request may be is less than what it is without a word",
		"tenant: {header: X-Tenant}":                                          "3: tenant is what header X-Tenant says, which counts from trusted_proxies only, and there are none: add them, for example trusted_proxies: [10.0.0.0/8]",
		"user: {header: X-User}":                                              "3: user is what header X-User says, which counts from trusted_proxies only, and there are none: add them, for example trusted_proxies: [10.0.0.0/8]",
		"priority: {header: X-P}":                                             "3: priority is what header X-P says, which counts from trusted_proxies only, and there are none: add them, for example trusted_proxies: [10.0.0.0/8]",
		"cost: {header: X-C}":                                                 "3: cost is what header X-C says, which counts from trusted_proxies only, and there are none: add them, for example trusted_proxies: [10.0.0.0/8]",
		"size: {header: X-S}":                                                 "3: size is what header X-S says, which counts from trusted_proxies only, and there are none: add them, for example trusted_proxies: [10.0.0.0/8]",
		"size: {header: X-S}\ntrusted_proxies: [10.0.0.0/8]\nlisten: unix:/s": "3,5: size is what header X-S says, which counts from trusted_proxies only, and who comes by a unix socket has no address",

		"tenant: tls": "3: tenant is the name in the certificate of a client, and no listener asks for one: add client_ca to its tls",

		"user: tls\nlisten: {address: ':1', tls: {cert: a, key: b}}": "3,4: user is the name in the certificate of a client, and no listener asks for one: add client_ca to its tls",
		"tenant: address\nlisten: unix:/s":                           "3,4: tenant is the address of a client, and who comes by a unix socket has none",
		"tenants: {}":                                                "3: tenants share by who sends a request, and nothing says who: add tenant, for example tenant: address",
		"overflow: latest_only":                                      "3: overflow latest_only replaces what is about the same key, and a request that comes by a proxy has none: displace or evict_oldest",
		"durable: true\noverflow: evict_oldest":                      "4,3: overflow evict_oldest and durable contradict each other: what was accepted would be lost; block and refuse_newest lose nothing",
		"durable: true":                                              "3: overflow displace and durable contradict each other: what was accepted would be lost; block and refuse_newest lose nothing",
		"overflow: block\ndepth: none":                               "3: overflow block and no queue contradict each other: who blocks waits in the queue",
		"mode: stream":                                               "3: mode stream needs a limit that is a number, such as limit: 1000: how many streams a service can hold cannot be found by how long they last",
		"mode: stream\nlimit: auto":                                  "3,4: mode stream needs a limit that is a number, such as limit: 1000: how many streams a service can hold cannot be found by how long they last",
		"mode: stream\nlimit: 9\ndepth: 5":                           "5,3: depth and mode stream contradict each other: a stream has no service time, and without one there is no queue",
		"mode: stream\nlimit: 9\nobjective: 1s":                      "5,3: objective and mode stream contradict each other: a stream has no service time, and without one there is no queue",

		"mode: connection\nlisten: {address: ':1', max_connections: 9}\nlimit: 5": "5,3: limit and mode connection contradict each other: requests are not admitted one by one, the connections of the listeners are",

		"mode: connection":               `3: mode connection needs max_connections at each listener, for example listen: {address: ":8080", max_connections: 1000}: it is the only limit there is`,
		"mode: connection\nlisten: ':1'": `3,4: mode connection needs max_connections at each listener, for example listen: {address: ":8080", max_connections: 1000}: it is the only limit there is`,

		"mode: connection\nlisten: [{address: ':1', max_connections: 9}, ':2']": `3,4: mode connection needs max_connections at each listener, for example listen: {address: ":8080", max_connections: 1000}: it is the only limit there is`,

		"match: {path: /a}":    "3: match needs classes: without them the file is one class, which has every request",
		"defaults: {limit: 3}": "3: defaults needs classes: without them the file is one class, which has every request",
		"name: a":              "3: name is unknown here: it belongs to a class or an item of deadline_headers",

		"listen: {address: ':1', protocols: http1, max_streams: 5}": "3,3: max_streams 5 is about HTTP/2, and protocols has no h2",
		"listen: [':1', {address: ':1'}]":                           `3: address ":1" is listened on already, by the one above: one listener has one address`,
		"upstreams: {a: 'http://h:8'}":                              "2,3: upstream and upstreams are both given: one service, or several with names",
		"limit: 60\nprocesses: 8":                                   "",
	} {
		got := wrong(t, head+src+"\n")
		if want == "" && got == nil || len(got) == 1 && (got[0] == want || strings.HasPrefix(got[0], want+":") || strings.HasPrefix(got[0], want+",")) {
			continue
		}
		t.Errorf("%s says\n%s\nwant\n%s", src, strings.Join(got, "\n"), want)
	}
}

// Between classes, and between them and what is behind.
func TestContradictionsBetweenClasses(t *testing.T) {
	two := func(first, second string) string {
		return head + "classes:\n  - {name: a, " + first + "}\n  - {name: b" + second + "}\n"
	}
	servers := func(more string) string {
		return "version: 1\nupstream: {servers: [{url: 'http://h:1', limit: 50}, {url: 'http://h:2', limit: 30}]}\n" + more
	}
	for src, want := range map[string]string{
		two("match: {path: /a}", ", match: {path: /b}"):                                                    "5: the last class has a match: a request that none takes would have no limit; let the last one take what is left, without match",
		two("limit: 3", ""):                                                                                "5,4: class b never gets a request: class a, above it, takes every request",
		two("upstream: x, match: {path: /a}", ""):                                                          `4: upstream "x" is unknown: default`,
		two("upstream: 'http://h:1', match: {path: /a}", ""):                                               `4: upstream "http://h:1" is not a name: a class has the name of one of the upstreams, and where that is stands there`,
		two("match: {path: /a}, probes: [/b]", ""):                                                         "4,4: probe /b is never of class a, which takes /a",
		strings.Replace(two("match: {path: /a}", ""), "name: b", "name: a", 1):                             "5,4: two classes are called a: their metrics and their limits could not be told apart",
		"objective: 1s\n" + two("match: {path: /a}", ""):                                                   "1,5: objective stands beside classes: put it under defaults, for all of them, or into one",
		"listen: {address: ':1', protocols: http1}\n" + two("match: {content_type: application/grpc}", ""): "5,1: class a is of gRPC, which is HTTP/2, and no listener has h2 among its protocols",
		"defaults: {name: c}\n" + two("match: {path: /a}", ""):                                             "1: name is what tells a class from the others: it has no default",
		"defaults: {match: {path: /}}\n" + two("match: {path: /a}", ""):                                    "1: match is what tells a class from the others: it has no default",
		"defaults: {objective: 2s, service: 3s}\n" + two("match: {path: /a}", ""):                          "1,1: service 3s is longer than objective 2s: nothing could meet it", // once
		"defaults: {deadline_cap: 2s}\n" + two("match: {path: /a}, objective: 3s", ""):                     "5,1: objective 3s is longer than deadline_cap 2s: whoever would be late for the objective is gone by then",
		"defaults: {objective: 3}\n" + two("match: {path: /a}, service: 2s", ""):                           `1: objective "3" has no unit: write 3ms or 3s`, // and nothing of a default of 1s
		"version: 1\nupstream: {servers: 'http://h', forward: X-A}\n":                                      `2: forward "X-A" is unknown: none, Grpc-Timeout, Connect-Timeout-Ms, X-Envoy-Expected-Rq-Timeout-Ms or Expect-Within`,
		"version: 1\nupstream: {servers: 'http://h', forward_only: true}\n":                                "2: forward_only needs forward: the header that takes the place of the one that the caller used",
		two("match: {path: a}", ""):                                                                        `4: path "a" is not a path from the root, without escapes and query, such as /healthz`, // and nothing of a class that takes every request
		two("match: {path: /a}, upstream: 'x y'", ""):                                                      `4: upstream "x y" is not a name: a class has the name of one of the upstreams, and where that is stands there`,
		"version: 1\nupstream: {servers: 'http://h', health: {path: /, interval: 2s, timeout: 3s}}\n":      "2,2: timeout 3s is longer than interval 2s: the next question would come before the answer",
		"version: 1\nupstream: {servers: 'http://h', health: {path: /, interval: 500ms}}\n":                "2: timeout 1s, the default, is longer than interval 500ms: the next question would come before the answer",
		"version: 1\nupstream: {servers: 'http://h', health: {path: /, interval: 2s, timeout: 2s}}\n":      "",
		"version: 1\nupstream: http://localhost:8080\n":                                                    "2: server http://localhost:8080 is where we listen ourselves, :8080: each request would come in again, until none can",
		"version: 1\nupstream: http://127.0.0.1\nlisten: '0.0.0.0:80'\n":                                   "2,3: server http://127.0.0.1 is where we listen ourselves, 0.0.0.0:80: each request would come in again, until none can",
		"version: 1\nupstream: https://[::1]\nlisten: '[::1]:443'\n":                                       "2,3: server https://[::1] is where we listen ourselves, [::1]:443: each request would come in again, until none can",
		"version: 1\nupstream: http://10.0.0.1:8080\nlisten: '10.0.0.2:8080'\n":                            "",
		"version: 1\nupstream: http://other:8080\nlisten: unix:/s\n":                                       "",
		"version: 1\nupstream: http://10.0.0.2:8080\nlisten: '10.0.0.2:8080'\n":                            "2,3: server http://10.0.0.2:8080 is where we listen ourselves, 10.0.0.2:8080: each request would come in again, until none can",
		"version: 1\nupstream: http://127.0.0.1:8080\nlisten: '10.0.0.2:8080'\n":                           "",
		servers("limit: 80\n"):                   "",
		servers("limit: 81\n"):                   "3,2: limit 81 is above what the servers of upstream default run at once, 80",
		servers("limit: {law: auto, max: 81}\n"): "3,2: limit 81 is above what the servers of upstream default run at once, 80",
		servers("limit: 60\nprocesses: 2\n"):     "3,2: limit 60, x 2 processes = 120, is above what the servers of upstream default run at once, 80: at most 80 / 2 = 40 in each",
		servers("classes:\n  - {name: a, limit: 50, match: {path: /a}}\n  - {name: b, limit: 30}\n"):               "",
		servers("classes:\n  - {name: a, limit: 50, match: {path: /a}}\n  - {name: b, limit: 31}\n"):               "5,2,4: the limits of upstream default add up to 81 (50 of a, 31 of b), above what its servers run at once, 80",
		servers("processes: 2\nclasses:\n  - {name: a, limit: 25, match: {path: /a}}\n  - {name: b, limit: 16}\n"): "6,2,5: the limits of upstream default add up to 41, x 2 processes = 82, (25 of a, 16 of b), above what its servers run at once, 80: at most 80 / 2 = 40 in each",
		"version: 1\nupstreams:\n  a: http://h:1\n  b: http://h:2\nclasses:\n  - {name: a}\n":                      "6,3: class a has no upstream, and there are several: a or b",
		"version: 1\nupstreams:\n  app: http://h:1\n  b: http://h:2\nclasses:\n  - {name: a, upstream: ap}\n":      `6,3: upstream "ap" is unknown, did you mean app?`,
		"version: 1\nupstreams:\n  app: http://h:1\nclasses:\n  - {name: a}\n":                                     "",
	} {
		got := wrong(t, src)
		if want == "" && got == nil || len(got) == 1 && got[0] == want {
			continue
		}
		t.Errorf("%s\nsays\n%s\nwant\n%s", src, strings.Join(got, "\n"), want)
	}
}

// Everything is reported at once, in the order of lines.
func TestAllAtOnce(t *testing.T) {
	got := wrong(t, `version: 2
listen: {adress: ":1", backlog: 0, max_header: 1KiB, tls: {cert: a}, protocols: [h3]}
upstreams: {"a b": ftp://h, c: {servers: ['http://h:1', 'http://h:1'], health: {path: x, interval: 1s, timeout: 2s}}}
trusted_proxies: [10.0.0.0/40]
classes:
  - name: a/b
    match: {host: "h:80", path: search, method: get, header: {"x y": 1}, content_type: json}
    upstream: c
    mode: queue
    limit: 0
    priority: high
    cost: {header: X, body: 1KiB}
    tenant: {header: X, address: {}}
    overload_status: 500
    markers: [envoy, envoy, aws]
    objektive: 1s
  - {}
`)
	for _, want := range []string{
		`1: version "2" is not 1`, "2: address is missing", "2: adress is unknown, did you mean address?", `2: backlog "0" is not`, `2: max_header "1KiB" is out of range: 4KiB to 16MiB`,
		"2: key is missing", `2: protocols "h3" is unknown, did you mean h2?`, `3: upstream "a b" has other characters`, `3: upstream "ftp://h" has scheme "ftp"`,
		"3,3: server http://h:1 is there twice", `3: path "x" is not a path`, `4: trusted_proxies "10.0.0.0/40" is not`, `6: name "a/b" has other`,
		`7: host "h:80" has a port (80)`, `7: path "search" is not a path`, `7: method "get" is not in capitals: methods are told apart by them, write GET`, `7: header "x y" is not`,
		`7: content_type "json" is not`, `9: mode "queue" is unknown`, `10: limit "0"`, `11: priority "high" is unknown`, "12,12: cost is from a header and from the body",
		"13,13: tenant is a header and an address", "14: overload_status 500 is neither 503 nor 429", "15: markers has envoy twice", `15: markers "aws" is unknown`,
		"16: objektive is unknown, did you mean objective?", "17: name is missing",
	} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("nothing says %s", want)
		}
	}
	if len(got) != 28 {
		t.Errorf("%d sentences:\n%s", len(got), strings.Join(got, "\n"))
	}
}

// One class covers another where it takes all that the other takes.
func TestCovers(t *testing.T) {
	m := func(f func(*Match)) *Match { m := &Match{}; f(m); return m }
	hosts := func(h ...string) *Match { return m(func(m *Match) { m.Hosts = h }) }
	paths := func(p ...string) *Match { return m(func(m *Match) { m.Paths = p }) }
	headers := func(h ...Header) *Match { return m(func(m *Match) { m.Headers = h }) }
	types := func(h ...string) *Match { return m(func(m *Match) { m.ContentTypes = h }) }
	get, both := m(func(m *Match) { m.Methods = []string{"GET"} }), m(func(m *Match) { m.Methods, m.Paths = []string{"GET"}, []string{"/a"} })
	for i, c := range []struct {
		a, b *Match
		want bool
	}{
		{&Match{}, &Match{}, true},
		{&Match{}, both, true},
		{get, &Match{}, false},
		{get, both, true},
		{both, get, false},
		{hosts("a.com"), hosts("a.com"), true},
		{hosts("a.com", "b.com"), hosts("b.com"), true},
		{hosts("b.com"), hosts("a.com", "b.com"), false},
		{hosts("*.a.com"), hosts("x.a.com", "*.y.a.com"), true},
		{hosts("*.a.com"), hosts("a.com"), false},
		{hosts("*.a.com"), hosts("xa.com"), false},
		{hosts("x.a.com"), hosts("*.a.com"), false},
		{paths("/a"), paths("/a/b"), true},
		{paths("/a/"), paths("/a"), true},
		{paths("/a"), paths("/ab"), false},
		{paths("/a/b"), paths("/a"), false},
		{paths("/"), paths("/a", "/b"), true},
		{headers(Header{"A", ""}), headers(Header{"A", "1"}, Header{"B", "2"}), true},
		{headers(Header{"A", "1"}), headers(Header{"A", ""}), false},
		{headers(Header{"A", "1"}, Header{"B", ""}), headers(Header{"A", "1"}), false},
		{types("application/grpc"), types("application/grpc+proto"), true},
		{types("application/grpc"), types("application/grpc-web"), false},
	} {
		if got := c.a.Covers(c.b); got != c.want {
			t.Errorf("%d: %+v covers %+v: %v", i, *c.a, *c.b, got)
		}
	}
}

// What all classes have for the answers of requests does not end their streams.
func TestDeadlinesOfDefaultsAreOfRequests(t *testing.T) {
	cfg, err := Read("f", []byte(head+"listen: {address: ':1', max_connections: 9}\n"+`defaults: {deadline: 2s, deadline_cap: 20s, trust_deadline: [10.0.0.0/8]}
classes:
  - {name: a, match: {path: /a}, mode: stream, limit: 9}
  - {name: b, match: {path: /b}, mode: stream, limit: 9, deadline_cap: 30s}
  - {name: c, match: {path: /c}, mode: stream, limit: 9, deadline: 30s}
  - {name: d, match: {path: /d}, mode: connection}
  - {name: e}
`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		deadline, longest time.Duration
		trust             int
	}{{0, 0, 0}, {0, 30 * time.Second, 1}, {30 * time.Second, 0, 0}, {0, 0, 0}, {2 * time.Second, 20 * time.Second, 1}} {
		if k := cfg.Classes[i]; k.Deadline != want.deadline || k.DeadlineCap != want.longest || len(k.TrustDeadline) != want.trust {
			t.Errorf("class %s has %v, %v, %v; want %v", k.Name, k.Deadline, k.DeadlineCap, k.TrustDeadline, want)
		}
	}
}

// What other programs take for a pattern is no path here, and the sentence says what to write.
func TestPathsAreNoPatterns(t *testing.T) {
	for path, want := range map[string]string{
		"/report/*":            `path "/report/*" has a *: a path matches itself and all below it, write /report`,
		"/report/**":           `path "/report/**" has a *: a path matches itself and all below it, write /report`,
		"/report/.*":           `path "/report/.*" has a *: a path matches itself and all below it, write /report`,
		"/report*":             `path "/report*" has a *: a path matches itself and all below it, write /report`,
		"/*":                   `path "/*" has a *: a path matches itself and all below it, write /`,
		"^/report":             `path "^/report" has a ^: a path matches itself and all below it, write /`,
		"/report$":             `path "/report$" has a $: a path matches itself and all below it, write /report`,
		"/users/{id}/orders":   `path "/users/{id}/orders" has a {: a path matches itself and all below it, write /users`,
		"/(a|b)":               `path "/(a|b)" has a (: a path matches itself and all below it, write /`,
		"/a|/b":                `path "/a|/b" has a |: a path matches itself and all below it, write /a`,
		"/v[0-9]":              `path "/v[0-9]" has a [: a path matches itself and all below it, write /v`,
		"/report?x=1":          `path "/report?x=1" has a ?: a path matches itself and all below it, write /report`,
		"/odata/$metadata":     "",
		"/shop.v1.Catalog/Get": "",
		"/v1/things:batch,a":   "",
		"/a/../b":              `path "/a/../b" is not one that a request has once it is resolved: write it without dot segments, empty ones, semicolons and backslashes, such as /b`,
		"/a//b":                `path "/a//b" is not one that a request has once it is resolved: write it without dot segments, empty ones, semicolons and backslashes, such as /a/b`,
		"/a;b":                 `path "/a;b" is not one that a request has once it is resolved: write it without dot segments, empty ones, semicolons and backslashes, such as /a`,
		"/a+b~c!d'e&f=@":       "",
	} {
		src := head + "classes: [{name: a, match: {path: " + strconv.Quote(path) + "}}, {name: b}]\n"
		got := wrong(t, src)
		if want == "" && got == nil || len(got) == 1 && got[0] == "3: "+want {
			continue
		}
		t.Errorf("%s says %q, want %q", path, got, want)
	}
	if got := wrong(t, head+"probes: [/health/*]\n"); len(got) != 1 || got[0] != `3: probes "/health/*" has a *: each is one path and no pattern, such as /healthz` {
		t.Errorf("%q", got)
	}
}
