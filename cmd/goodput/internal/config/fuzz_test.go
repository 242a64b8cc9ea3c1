package config

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/goodputhttp"
)

// seeds are files that the fuzz begins with: the examples, what has every key, and what is odd.
func seeds(t testing.TB) (all []string) {
	t.Helper()
	names, _ := filepath.Glob("../../../../examples/*.yaml")
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(src))
	}
	return append(append(all, everything), odd...)
}

// odd are small files, of which some are wrong.
var odd = []string{
	head, head + "objective: 400ms\n",
	"version: 1\nlisten: [':1', {address: 'unix:/s'}]\nupstreams: {a: 'http://h:1', b: {servers: ['http://h:2', {url: 'h2c://h:3', limit: 3}], health: /}}\nclasses: [{name: a, upstream: b}]",
	head + "mode: stream\nlimit: 3\n", head + "mode: connection\nlisten: {address: ':1', max_connections: 3}\n",
	head + "defaults: {limit: 3}\nclasses: [{name: a, match: {}}, {}, 3]\n",
	head + "classes: [{name: a, match: {header: {a: '*'}, host: ['*.b', '[::1]']}}, {name: b}]\n",
	head + "tenants: [{id: a, weight: 2}]\ntenant: {address: {v4: 24}}\nreserve: {critical: 20%}\n",
	head + "cost: {body: 1KiB, max: 3}\nsize: 4\ntrusted_proxies: [::1, 10.0.0.0/8]\npriority: {header: a}\n",
	head + "processes: 4096\nlimit: {law: aimd, max: 9}\nslow_client: none\nidle: none\ntotal: 24h\n",
	"upstream: {servers: 3}\nlisten: {}\nclasses: []\ndefaults: []\n", "classes: [[[[]]]]", "upstream: [{url: {a: b}}]", "upstreams: {'': ~}",
}

// FuzzRead: whatever the bytes are, there is no panic; what is accepted is valid, has a
// limiter for each class and makes warnings; what is not has sentences with a place.
func FuzzRead(f *testing.F) {
	for _, src := range seeds(f) {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) { readAny(t, src) })
}

// readAny reports whether a file is accepted, and checks what is true of any.
func readAny(t *testing.T, src []byte) bool {
	t.Helper()
	cfg, err := Read("f", src)
	if err != nil {
		var all *strictyaml.Errors
		if !errors.As(err, &all) || len(all.Problems) == 0 || cfg != nil {
			t.Fatalf("%q: %v", src, err)
		}
		for _, p := range all.Problems {
			whole := strings.HasPrefix(p.Sentence, "the file is ") || strings.HasPrefix(p.Sentence, "this is not ") || strings.HasPrefix(p.Sentence, "the file has ")
			if p.Sentence == "" || p.Line == 0 && !whole {
				t.Errorf("%q: %+v has no place", src, p)
			}
		}
		return false
	}
	if err := cfg.Validate(); err != nil {
		t.Errorf("%q is accepted, and %v", src, err)
	}
	if len(cfg.Listeners) == 0 || len(cfg.Upstreams) == 0 || len(cfg.Classes) == 0 || !cfg.Classes[len(cfg.Classes)-1].Match.Empty() {
		t.Errorf("%q is accepted, and has %d listeners, %d upstreams, %d classes", src, len(cfg.Listeners), len(cfg.Upstreams), len(cfg.Classes))
	}
	for _, c := range cfg.Classes {
		door := goodputhttp.Server{
			Limiter: func(*http.Request) *goodput.Limiter { return nil }, Next: http.NotFoundHandler(),
			HopMargin: c.HopMargin, MaxBody: c.MaxBody, OverloadStatus: c.OverloadStatus, Deadline: c.Deadline, DeadlineCap: c.DeadlineCap,
		}
		for _, h := range c.DeadlineHeaders {
			door.DeadlineHeaders = append(door.DeadlineHeaders, goodputhttp.DeadlineHeader{Name: h.Name, Format: goodputhttp.DeadlineFormat(h.Format)})
		}
		if err := door.Validate(); err != nil {
			t.Errorf("%q is accepted, and %v", src, err)
		}
		if s := goodput.New(c.Limiter).Stats(); s.Name != c.Name {
			t.Errorf("%q: the limiter of %s is called %s", src, c.Name, s.Name)
		}
	}
	return true
}

// A file with one value damaged is read or refused, and where it is refused the errors are
// few: one mistake makes one sentence, or one for each of those that lean on the value.
func TestDamagedFiles(t *testing.T) {
	const most = 4 // a class whose name or match is gone takes part in what is said of others
	scalar := regexp.MustCompile(`(?:: |\[|- )([^\s,{}\[\]#|>]+)`)
	for _, src := range seeds(t) {
		src = regexp.MustCompile(`(?m)(^| +)#.*$`).ReplaceAllString(src, "")
		if !readAny(t, []byte(src)) {
			continue
		}
		places, accepted := scalar.FindAllStringSubmatchIndex(src, -1), 0
		for _, at := range places {
			for _, with := range []string{"0", "-1", "999999999999", "0s", "700h", "none", "''", "~", "[]", "{a: 1}"} {
				damaged := src[:at[2]] + with + src[at[3]:]
				if readAny(t, []byte(damaged)) {
					accepted++
				} else if said := wrong(t, damaged); len(said) > most {
					t.Errorf("%q for %q says\n%s", with, src[at[2]:at[3]], strings.Join(said, "\n"))
				}
			}
		}
		t.Logf("%d values, %d damaged files accepted", len(places), accepted)
	}
}
