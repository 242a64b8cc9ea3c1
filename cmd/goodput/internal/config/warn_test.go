package config

import (
	"slices"
	"strings"
	"testing"
)

// warnings returns those of a file, each after the class that it is about.
func warnings(t *testing.T, src string) (all []string) {
	t.Helper()
	cfg, err := Read("f", []byte(src))
	if err != nil {
		t.Fatalf("%s\n%v", src, err)
	}
	for _, w := range cfg.Warnings() {
		all = append(all, strings.TrimPrefix(w.Class+": "+w.Sentence, ": "))
	}
	return all
}

// A warning has the arithmetic that it is made of, and there is none where all is well.
func TestWarnings(t *testing.T) {
	servers := "version: 1\nupstream: {servers: [{url: 'http://h:1', limit: 50}, {url: 'http://h:2', limit: 30}]}\n"
	for src, want := range map[string]string{
		head: "",
		head + "limit: 60\nobjective: 400ms\nservice: 50ms\ndeadline: 1s\ndeadline_cap: 2s": "",

		head + "trusted_proxies: [0.0.0.0/0]":                                                      "trusted_proxies has 0.0.0.0/0, which is everybody: what any client writes into a header is believed",
		"version: 1\nupstreams: {a: 'http://a', b: 'http://b'}\nclasses: [{name: x, upstream: a}]": "upstream b has no class: nothing is ever sent there",
		"version: 1\nupstreams: {a: 'http://a', b: [{url: 'http://a', limit: 90}]}\nclasses: [{name: x, upstream: a, match: {path: /x}}, {name: y, upstream: b, limit: 9}]": "server http://a is of the upstreams a and b, and its limit of 90 counts in each of them alone",

		head + "limit: 60\nprocesses: 8":                        "default: the same file in 8 processes admits 8 x 60 = 480: say the limit of each server, and what is above them is an error",
		head + "processes: 8":                                   "default: limit auto in 8 processes: each sees its own effect and not that of the others, and together they go far beyond what the service can do; say limit: {law: auto, shared: true}",
		head + "limit: {law: auto, shared: true}\nprocesses: 8": "",
		servers + "limit: 10\nprocesses: 8":                     "", // 80 of 80: it is known what the service can do
		servers + "limit: 1":                                    "default: limit 1 for 2 servers: at any time 1 of them have nothing to do",
		servers + "limit: 2":                                    "",
		servers:                                                 "default: the limit is found, and nothing keeps it below 80, what the servers of upstream default run at once: beyond that a request waits where no deadline is watched; say limit: {law: auto, max: 80}",
		servers + "limit: {law: auto, max: 80}":                 "",
		head + "observe: true":                                  "default: observe with a limit that is found: where everything runs at once nothing shows what a limit would do, and it stays where it begins; give a number",
		head + "observe: true\nlimit: 60":                       "",
		head + "slow_client: none":                              "default: slow_client none without a deadline: nothing bounds how long a client that takes its answer byte by byte holds a slot",
		head + "slow_client: none\ndeadline_cap: 10s":           "default: slow_client none: the deadline ends what a client sends, but nothing bounds how long one that takes nothing of its answer holds a slot",
		head + "slow_client: 20s\ndeadline_cap: 10s":            "default: slow_client 20s is longer than deadline_cap 10s: a body that does not come ends with the deadline, and only who does not take an answer is waited for so long",
		head + "slow_client: 20s\ndeadline_cap: 10s\ntrust_deadline: [10.0.0.0/8]":                    "",
		head + "objective: 2s\ndeadline: 1s":                                                          "default: objective 2s is longer than deadline 1s, which requests have that bring none: the queue is made for a wait that they do not survive; an objective of at most 1s",
		head + "limit: 60\nobjective: 200ms\nservice: 50ms":                                           "default: objective 200ms is out of reach: with a mean of 50ms the slowest 1 % of the requests take 230ms or more alone, without waiting; if service times vary less than exponentially, it shows once they are measured",
		head + "limit: 60\nobjective: 400ms\nservice: 50ms\ndepth: 480":                               "default: depth 480 is more than objective 400ms allows: 60 slots / 50ms mean = 1200/s; objective 400ms p99, service p99 230ms -> 201 deep (rule of thumb 480: p99 would be 634ms); 0 samples, prior service 50ms",
		head + "limit: 60\nobjective: 400ms\nservice: 50ms\ndepth: 200":                               "",
		head + "tenant: address\nlimit: 10\ntenants: [{id: a, weight: 0.1}, {id: b, max_in_use: 10}]": "default: tenant a has weight 0.1 of 2.1: in an overload 0.476 of 10 slots, less than one; default: max_in_use 10 of tenant b is not below limit 10: it bounds nothing",
		head + "tenant: tls\nlisten: [':1', {address: ':2', tls: {cert: a, key: b, client_ca: c}}]":   "default: tenants are told apart by certificates, and who comes by :1 shows none: all of them are one",

		head + "classes: [{name: g, match: {content_type: application/grpc}}, {name: r}]":                           "g: gRPC without deadline_cap: a call may bring grpc-timeout: 99999999H, which is 11,415 years, and holds its slot for as long as it likes",
		head + "classes: [{name: g, match: {content_type: [application/grpc+proto]}, deadline_cap: 9s}, {name: r}]": "",
		head + "classes: [{name: g, match: {content_type: application/grpc}, mode: stream, limit: 9}, {name: r}]":   "",
		head + "listen: {address: ':1', max_connections: 9}\nprocesses: 2\nmode: connection":                        "",

		head + "mode: stream\nlimit: 9\ndeadline_cap: 20s":                                                      "default: deadline_cap 20s ends every stream of class default after 20s",
		head + "mode: stream\nlimit: 9\ndeadline: 20s":                                                          "default: deadline 20s ends every stream of class default after 20s that brings no deadline of its own",
		head + "mode: stream\nlimit: 9\ndeadline_cap: 20s\ntotal: 20s":                                          "",
		head + "mode: stream\nlimit: 9\ndeadline_cap: 20s\ntotal: 1h":                                           "default: deadline_cap 20s ends every stream of class default after 20s",
		head + "defaults: {deadline_cap: 20s}\nclasses: [{name: ws, mode: stream, limit: 9}]":                   "",
		head + "defaults: {deadline_cap: 20s}\nclasses: [{name: ws, mode: stream, limit: 9, deadline_cap: 5s}]": "ws: deadline_cap 5s ends every stream of class ws after 5s",
	} {
		if got := strings.Join(warnings(t, src+"\n"), "; "); got != want {
			t.Errorf("%s\nwarns\n%s\nwant\n%s", src, got, want)
		}
	}
}

// Of several classes each has its own, in their order.
func TestWarningsAreOfClasses(t *testing.T) {
	got := warnings(t, head+"processes: 2\nclasses: [{name: a, match: {path: /a}, limit: 3}, {name: b, limit: 4}]\n")
	if len(got) != 2 || !slices.IsSortedFunc(got, strings.Compare) || !strings.HasPrefix(got[0], "a: the same file in 2 processes admits 2 x 3 = 6") {
		t.Errorf("%q", got)
	}
}
