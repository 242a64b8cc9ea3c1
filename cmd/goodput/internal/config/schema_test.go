package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
)

// mappings notes the keys of every mapping below s, by where it stands: a.b for a key,
// a[] for an item, a.* for what has a name, a(x) for a law. Alternatives are one.
func mappings(root, s *jsonschema.Schema, at string, all map[string]map[string]bool) {
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		mappings(root, root.Defs[name], at, all)
	}
	if law := s.Properties["law"]; law != nil {
		at += fmt.Sprintf("(%v)", law.Enum[0])
	}
	for name, p := range s.Properties {
		if all[at] == nil {
			all[at] = map[string]bool{}
		}
		all[at][name] = true
		mappings(root, p, strings.TrimPrefix(at+"."+name, "."), all)
	}
	if s.Items != nil {
		mappings(root, s.Items, at+"[]", all)
	}
	if s.AdditionalProperties != nil {
		mappings(root, s.AdditionalProperties, at+".*", all)
	}
	for _, o := range s.AnyOf {
		mappings(root, o, at, all)
	}
}

// mistakes has, for each mapping of the schema, a file with a key in it that nobody knows.
var mistakes = map[string]string{
	"":                      "version: 1\nupstream: http://h\n%s: 1",
	"listen":                "listen: {address: ':1', %s: 1}",
	"listen[]":              "listen: [{address: ':1', %s: 1}]",
	"listen.tls":            "listen: {address: ':1', tls: {%s: 1}}",
	"listen[].tls":          "listen: [{tls: {%s: 1}}]",
	"upstream":              "upstream: {servers: http://h, %s: 1}",
	"upstream[]":            "upstream: [{url: http, %s: 1}]",
	"upstream.servers":      "upstream: {servers: {url: http, %s: 1}}",
	"upstream.servers[]":    "upstream: {servers: [{url: http, %s: 1}]}",
	"upstream.health":       "upstream: {servers: http, health: {%s: 1}}",
	"upstreams.*":           "upstreams: {a: {servers: http, %s: 1}}",
	"upstreams.*[]":         "upstreams: {a: [{url: http, %s: 1}]}",
	"upstreams.*.servers":   "upstreams: {a: {servers: {url: http, %s: 1}}}",
	"upstreams.*.servers[]": "upstreams: {a: {servers: [{url: http, %s: 1}]}}",
	"upstreams.*.health":    "upstreams: {a: {servers: http, health: {%s: 1}}}",
	"defaults":              "classes: [{name: a}]\ndefaults: {%s: 1}",
	"classes[]":             "classes: [{name: a, %s: 1}]",
	"classes[].match":       "classes: [{name: a, match: {%s: 1}}]",
	"limit(auto)":           "limit: {law: auto, %s: 1}",
	"limit(aimd)":           "limit: {law: aimd, %s: 1}",
	"limit(vegas)":          "limit: {law: vegas, %s: 1}",
	"limit(gradient2)":      "limit: {law: gradient2, %s: 1}",
	"allowance":             "allowance: {%s: 1}",
	"tenants":               "tenants: {%s: 1}",
	"tenants[]":             "tenants: [{id: a, %s: 1}]",
	"tenants[].quota":       "tenants: [{id: a, quota: {%s: 1}}]",
	"tenants.rows[]":        "tenants: {rows: [{id: a, %s: 1}]}",
	"tenants.rows[].quota":  "tenants: {rows: [{id: a, quota: {%s: 1}}]}",
	"tenants.others":        "tenants: {others: {%s: 1}}",
	"tenants.others.quota":  "tenants: {others: {quota: {%s: 1}}}",
	"reserve":               "reserve: {%s: 1}",
	"deadline_headers[]":    "deadline_headers: [{%s: 1}]",
	"tenant":                "tenant: {%s: 1}",
	"tenant.address":        "tenant: {address: {%s: 1}}",
	"user":                  "user: {%s: 1}",
	"user.address":          "user: {address: {%s: 1}}",
	"priority":              "priority: {%s: 1}",
	"cost":                  "cost: {%s: 1}",
	"size":                  "size: {%s: 1}",
}

// The schema has the keys that the reader knows, and no others, in every mapping there is:
// the reader lists them itself, where it does not know one.
func TestSchemaHasTheKeysOfTheReader(t *testing.T) {
	const nobody = "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"
	root, all := Schema(), map[string]map[string]bool{}
	mappings(root, root, "", all)
	for _, at := range slices.Sorted(maps.Keys(all)) {
		template, ok := mistakes[at]
		rest, inPart := strings.CutPrefix(at, "defaults.")
		if !inPart {
			rest, inPart = strings.CutPrefix(at, "classes[].")
		}
		if !ok && inPart && mistakes[rest] != "" {
			continue // the same as without classes
		}
		_, err := Read("f", fmt.Appendf(nil, template, nobody))
		if !ok || err == nil {
			t.Errorf("no mistake is made in %s", at)
			continue
		}
		list := regexp.MustCompile(nobody + " is unknown: (.*)").FindStringSubmatch(err.Error())
		if list == nil {
			t.Errorf("in %s: %v", at, err)
			continue
		}
		known := strings.Split(strings.ReplaceAll(list[1], " or ", ", "), ", ")
		if has := slices.Sorted(maps.Keys(all[at])); !slices.Equal(has, known) {
			t.Errorf("in %q the schema has\n%v\nand the reader\n%v", at, has, known)
		}
	}
	for at := range mistakes {
		if all[at] == nil {
			t.Errorf("%s is not in the schema", at)
		}
	}
}

// fits reports whether a file is one of the schema; a file that is no YAML fits anything.
func fits(t testing.TB, schema *jsonschema.Resolved, src string) error {
	text, err := yaml.YAMLToJSON([]byte(src))
	if err != nil {
		return nil
	}
	var doc any
	if json.Unmarshal(text, &doc) != nil {
		return nil
	}
	return schema.Validate(doc)
}

func resolved(t testing.TB) *jsonschema.Resolved {
	t.Helper()
	s, err := Schema().Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What the schema refuses the reader refuses, so that an editor never marks what would run;
// and it refuses what it can.
func TestSchemaRefusesNothingThatIsRead(t *testing.T) {
	schema := resolved(t)
	for _, more := range []string{
		"upstreams: {a: http://h}", "objektive: 1s", "objective: 400", "objective: fast", "percentile: 99", "percentile: '0.9'", "limit: 0", "limit: many", "limit: 1.5",
		"limit: {law: auto, max: 0}", "limit: {law: vegas, shared: true}", "depth: 0", "depth: all", "max_waiting: 0", "max_queue_bytes: 3 parsecs", "overflow: drop", "order: lifo",
		"durable: 1", "allowance: 5", "allowance: {burst: 3}", "tenants: some", "tenants: [{weight: 2}]", "tenants: {hand: 17}", "reserve: {critical: 2}", "exempt: 2000",
		"deadline: soon", "observe: maybe", "deadline_headers: [{name: A}]", "deadline_headers: [{name: A, format: h}]", "hop_margin: 1", "tenant: header", "tenant: {header: A, address: {}}",
		"user: {address: {v4: 33}}", "priority: high", "priority: {default: critical}", "cost: 0", "cost: {header: A, body: 1}", "size: lots", "probes: /x", "probes: [x]", "overload_status: 500",
		"markers: istio", "markers: [envoy, istio]", "max_body: -1", "max_upgraded: 0", "slow_client: never", "finish: -1s", "idle: 0", "total: long", "mode: queue",
		"listen: 8080", "listen: []", "listen: {backlog: 3}", "listen: {address: ':1', backlog: 0}", "listen: {address: ':1', tls: {cert: a}}", "listen: {address: ':1', protocols: h3}",
		"trusted_proxies: 10.0.0.0/8", "trusted_proxies: []", "processes: 0", "defaults: {limit: 3}", "classes: []", "classes: [{limit: 3}]", "classes: [{name: 'a b'}]",
		"classes: [{name: a, match: {path: x}}]", "classes: [{name: a, match: {path: /x/*}}]", "probes: ['/{x}']", "classes: [{name: a, match: {port: 1}}]", "classes: [{name: a}]\nlimit: 3", "version: 2",
	} {
		src := head + more + "\n"
		if strings.HasPrefix(more, "version") {
			src = more + "\nupstream: http://h\n"
		}
		if fits(t, schema, src) == nil {
			t.Errorf("the schema takes %s", more)
		}
		if _, err := Read("f", []byte(src)); err == nil {
			t.Errorf("the reader takes %s", more)
		}
	}
	scalar := regexp.MustCompile(`(?:: |\[|- )([^\s,{}\[\]#|>]+)`)
	tried, taken := 0, 0
	for _, src := range append(odd, everything) {
		for _, at := range scalar.FindAllStringSubmatchIndex(src, -1) {
			for _, with := range []string{src[at[2]:at[3]], "0", "7", "0.5", "30s", "none", "'1'", "[a]", "{a: 1}", "true", "1MiB", "+.5s"} {
				damaged := src[:at[2]] + with + src[at[3]:]
				_, wrong := Read("f", []byte(damaged))
				err := fits(t, schema, damaged)
				if err != nil && wrong == nil {
					t.Errorf("%q for %q is read, and the schema says %v", with, src[at[2]:at[3]], err)
				}
				if tried++; err == nil {
					taken++
				}
			}
		}
	}
	t.Logf("%d files, of which the schema takes %d", tried, taken)
}

// Every key says what it means.
func TestSchemaExplainsEveryKey(t *testing.T) {
	root := Schema()
	for name, p := range root.Properties {
		about := p.Description
		if def, ok := strings.CutPrefix(p.Ref, "#/$defs/"); ok {
			about += root.Defs[def].Description
		}
		if len(about) < 12 || !strings.HasSuffix(strings.TrimSpace(about), ".") {
			t.Errorf("%s is explained by %q", name, about)
		}
	}
}
