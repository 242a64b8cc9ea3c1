package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// What each key of a class changes, and nothing else: a key that is read into nothing would
// be an operator who believes in a setting that is not there.
var effects = map[string]struct{ value, field string }{
	"upstream":         {"b", "Upstream"},
	"mode":             {"stream", "Mode Limiter.Depth"}, // there is no queue before a stream
	"limit":            {"70", "Limiter.Limit"},
	"objective":        {"400ms", "Limiter.Objective"},
	"percentile":       {"0.95", "Limiter.Percentile"},
	"service":          {"50ms", "Limiter.Service"},
	"depth":            {"100", "Limiter.Depth"},
	"max_waiting":      {"100", "Limiter.MaxItems"},
	"max_queue_bytes":  {"1MiB", "Limiter.MaxBytes"},
	"max_wait":         {"1s", "Limiter.MaxWait"},
	"overflow":         {"refuse_newest", "Limiter.Overflow"},
	"order":            {"edf", "Limiter.Order"},
	"durable":          {"true, overflow: block", "Limiter.Overflow Limiter.Durable"},
	"allowance":        {"100/s", "Limiter.Allowance.Rate"},
	"tenants":          {"{buckets: 32}, tenant: address", "Limiter.Tenants Tenant.From"},
	"reserve":          {"{critical: 20%}", "Limiter.Reserve.Critical"},
	"exempt":           {"3", "Limiter.Exempt"},
	"observe":          {"true", "Limiter.Observe"},
	"deadline":         {"2s", "Deadline"},
	"deadline_cap":     {"10s", "DeadlineCap"},
	"deadline_headers": {"[{name: X-A, format: ms}]", "DeadlineHeaders"},
	"trust_deadline":   {"[10.0.0.0/8], deadline_cap: 5s", "DeadlineCap TrustDeadline"},
	"hop_margin":       {"5ms", "HopMargin"},
	"server_timing":    {"true", "ServerTiming"},
	"tenant":           {"address", "Limiter.Tenants Tenant.From"}, // an equal share
	"user":             {"{header: X-User}", "User.From User.Header"},
	"priority":         {"{header: X-P, default: sheddable}", "Priority.Fixed Priority.Header"},
	"cost":             {"{header: X-C, default: 2, max: 3}", "Cost.Fixed Cost.Header Cost.Most"},
	"size":             {"{body: 1KiB}", "Size.Per"},
	"probes":           {"[/b/up]", "Exempt"},
	"overload_status":  {"429", "OverloadStatus"},
	"markers":          {"envoy", "Markers"},
	"max_body":         {"1MiB", "MaxBody"},
	"max_upgraded":     {"10", "MaxUpgraded"},
	"slow_client":      {"20s", "SlowClient"},
	"finish":           {"5s", "Finish"},
	"idle":             {"1m", "Idle"},
	"total":            {"1h", "Total"},
	"name":             {"other", "Name Limiter.Name"},
	"match":            {"{path: /a}", "Match.Paths"},
}

func TestEveryKeyOfAClassHasAnEffect(t *testing.T) {
	file := func(keys, defaults string) string {
		return "version: 1\ntrusted_proxies: [10.0.0.0/8]\nupstreams: {a: http://a, b: http://b}\ndefaults: {" + defaults + "}\nclasses: [{" + keys + "}, {name: rest, upstream: a, limit: 9}]\n"
	}
	read := func(src string) *Class {
		t.Helper()
		cfg, err := Read("f", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		return &cfg.Classes[0]
	}
	base := map[string]string{"name": "first", "upstream": "a", "limit": "60", "match": "{path: /b}"}
	class := func(base map[string]string) string {
		var all []string
		for _, k := range slices.Sorted(maps.Keys(base)) {
			all = append(all, k+": "+base[k])
		}
		return strings.Join(all, ", ")
	}
	before := read(file(class(base), "exempt: 8"))
	before.Limiter.Exempt = 0
	for key, e := range effects {
		with := maps.Clone(base)
		with[key] = e.value
		after := read(file(class(with), "total: 24h")) // no key of a class by itself
		after.Total = onlyIf(key == "total", after.Total)
		if got := strings.Join(differ("", *before, *after), " "); got != e.field {
			t.Errorf("%s changes %q, want %q", key, got, e.field)
		}
		if key == "name" || key == "match" {
			continue
		}
		// The same as a default, unless the class says otherwise.
		delete(with, key)
		byDefault := read(file(class(with), key+": "+e.value))
		if byDefault.Total = onlyIf(key == "total", byDefault.Total); !reflect.DeepEqual(byDefault, after) {
			t.Errorf("%s as a default is\n%+v\nand in the class\n%+v", key, byDefault, after)
		}
	}
	for key := range Schema().Properties["classes"].Items.Properties {
		if _, ok := effects[key]; !ok {
			t.Errorf("what %s changes is not said", key)
		}
	}
}

func onlyIf[T any](yes bool, v T) (zero T) {
	if yes {
		return v
	}
	return zero
}

// differ returns the fields in which two structs differ, in their order.
func differ(at string, a, b any) (all []string) {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range va.NumField() {
		name := strings.TrimPrefix(at+"."+va.Type().Field(i).Name, ".")
		switch fa, fb := va.Field(i), vb.Field(i); {
		case reflect.DeepEqual(fa.Interface(), fb.Interface()):
		case fa.Kind() == reflect.Struct:
			all = append(all, differ(name, fa.Interface(), fb.Interface())...)
		default:
			all = append(all, name)
		}
	}
	return all
}

// Every field of a listener, an upstream and the file itself is what its key says.
func TestEveryOtherKeyHasAnEffect(t *testing.T) {
	read := func(src string) *Config {
		t.Helper()
		cfg, err := Read("f", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	listener := func(keys string) Listener {
		return read(head + "listen: {address: ':1'" + keys + "}\n").Listeners[0]
	}
	upstream := func(keys string) Upstream {
		return read("version: 1\nupstream: {servers: [http://a]" + keys + "}\n").Upstreams[0]
	}
	for keys, field := range map[string]string{
		"tls: {cert: a, key: b}": "TLS", "protocols: h2": "HTTP1", "protocols: [http1]": "HTTP2", "backlog: 5": "Backlog", "max_connections: 5": "MaxConnections",
		"max_streams: 5": "MaxStreams", "pause_accepts: 1ms": "PauseAccepts", "header_timeout: 1s": "HeaderTimeout", "idle_timeout: 1s": "IdleTimeout", "max_header: 4KiB": "MaxHeader",
	} {
		if got := differ("", listener(""), listener(", "+keys)); fmt.Sprint(got) != "["+field+"]" {
			t.Errorf("%s changes %v, want %s", keys, got, field)
		}
	}
	for keys, field := range map[string]string{
		"health: /h": "Health", "failures: 5": "Failures", "slow_start: 1s": "SlowStart", "max_absence: 2s": "MaxAbsence", "forward: grpc-timeout": "Forward", "forward: none": "Forward", "forward: none, forward_only: true": "Forward ForwardOnly",
	} {
		if got := differ("", upstream(""), upstream(", "+keys)); fmt.Sprint(got) != "["+field+"]" {
			t.Errorf("%s changes %v, want %s", keys, got, field)
		}
	}
	plain := *read(head)
	for keys, field := range map[string]string{"trusted_proxies: [::1]": "TrustedProxies", "processes: 3": "Processes", "listen: ':9'": "Listeners", "limit: 3": "Classes"} {
		with := *read(head + keys + "\n")
		with.SHA256 = plain.SHA256
		if got := differ("", plain, with); fmt.Sprint(got) != "["+field+"]" {
			t.Errorf("%s changes %v, want %s", keys, got, field)
		}
	}
}
