package soak

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What is not in /metrics reads as 0, and as nothing to compare. The criteria that read it are
// then not met but unknown, and no others.
func TestWhatIsNotThereIsNotMeasured(t *testing.T) {
	for name, of := range map[string][]string{
		"goodput_arrivals_total": {CritCounters, CritNeverFall}, "goodput_requests_total": {CritCounters, CritNeverFall},
		"goodput_requests_waiting": {CritRest, CritCounters}, "goodput_requests_running": {CritRest, CritCounters},
		"goodput_request_duration_seconds_count": {CritNeverFall},
		"goodput_request_log_lines_total":        {CritCounters}, "goodput_request_log_dropped_total": {CritCounters},
		"goodput_concurrency_usage": {CritRest}, "goodput_queue_depth": {CritRest}, "goodput_queue_size_bytes": {CritRest},
		"goodput_queue_age_seconds": {CritRest}, "goodput_exempt_running": {CritRest}, "goodput_bodies_buffered_bytes": {CritRest},
		"goodput_finishing_requests": {CritRest}, "goodput_lasting_requests": {CritRest}, "goodput_tunnels": {CritRest},
		"goodput_upstream_server_in_flight": {CritRest}, "go_goroutines": {CritLeaks}, "go_memstats_heap_inuse_bytes": {CritMemory},
		"nothing": nil,
	} {
		cs := lookedAt(t, func(a *admin) { a.drop(name) })
		if got := Unknown(cs); len(got) != len(of) || len(Missed(cs, false)) > 0 {
			t.Errorf("without %s: unknown %v, want %v; missed %v", name, got, of, Missed(cs, false))
		}
		for _, c := range cs {
			if slices.Contains(of, c.Name) && (c.Met || c.Known || !strings.Contains(c.Said, "does not have") || !strings.Contains(c.Said, name)) {
				t.Errorf("without %s: %+v", name, c)
			}
		}
	}
}

// The same of a series of one class, of a counter that is no counter, and of the state.
func TestWhatAClassLacks(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*admin)
		of   string
		says string
	}{
		{"a class in a gauge", func(a *admin) { delete(a.series, `goodput_queue_depth{limiter="auto"}`) }, CritRest, `goodput_queue_depth{limiter="auto"}`},
		{"a class that waits nowhere", func(a *admin) { delete(a.series, `goodput_requests_waiting{limiter="lasting"}`) }, CritCounters, `goodput_requests_waiting{limiter="lasting"}`},
		{"the dropped lines of the record", func(a *admin) { delete(a.series, `goodput_request_log_dropped_total{log="record"}`) }, CritCounters, `{log="record"}`},
		{"a class of some policies", func(a *admin) { a.series[`goodput_arrivals_total{limiter="extra"}`] = 1 }, CritCounters, `{limiter="extra"}`},
		{"a class of the state", func(a *admin) { a.limiters = a.limiters[:2] }, CritRest, "/api/v1/state does not have class lasting"},
		{"the state", func(a *admin) { a.limiters = nil }, CritRest, "/api/v1/state does not have class plain"},
		{"in_use", func(a *admin) { delete(a.limiters[1], "in_use") }, CritRest, "does not have in_use of class auto"},
		{"waiting_bytes", func(a *admin) { delete(a.limiters[0], "waiting_bytes") }, CritRest, "does not have waiting_bytes of class plain"},
	} {
		for _, x := range lookedAt(t, c.do) {
			if x.Name == c.of && (x.Met || x.Known || !strings.Contains(x.Said, c.says)) {
				t.Errorf("without %s: %+v", c.name, x)
			}
		}
	}
	uncounted := read(t, "# TYPE goodput_arrivals_total gauge\ngoodput_arrivals_total{limiter=\"plain\"} 1\n")
	if lack := uncounted.unseen()[CritNeverFall]; !slices.Contains(lack, `/metrics does not have as a counter goodput_arrivals_total{limiter="plain"}`) {
		t.Errorf("a gauge is taken for a counter: %q", lack)
	}
}

// Whoever looks notes what is not there.
func TestEachLookNotes(t *testing.T) {
	for name, look := range map[string]func(*stage) error{
		"look": (*stage).look, "settle": func(s *stage) error { return s.settle(new(Rest)) },
		"busy": func(s *stage) error { _, err := s.busy(); return err },
	} {
		s, a := played(t)
		a.drop("goodput_tunnels")
		if err := look(s); err != nil || len(s.r.Unseen) != 1 || s.r.Unseen[0].What != CritRest {
			t.Errorf("%s: %+v, %v", name, s.r.Unseen, err)
		}
	}
}

// lookedAt judges a run that is fine but for what it has in the metrics and the state.
func lookedAt(t *testing.T, do func(*admin)) []Criterion {
	t.Helper()
	s, a := played(t)
	do(a)
	s.r = fine()
	var err error
	if s.last, err = s.operator.scrape(); err != nil {
		t.Fatal(err)
	}
	if err := s.look(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // nothing is noted twice
		if _, err := s.busy(); err != nil {
			t.Fatal(err)
		}
	}
	out := s.r.Rests[0]
	if err := s.settle(&out); err != nil {
		t.Fatal(err)
	}
	s.r.Rests[0] = out
	once := map[string]bool{}
	for _, f := range s.r.Unseen {
		if once[f.What+f.Said] {
			t.Errorf("%+v is noted twice", f)
		}
		once[f.What+f.Said] = true
	}
	return Judge(s.r)
}

// What is wanted is what the program has: each metric is in docs/metrics.md, which is written from
// it, of the same kind and with that label. Those of request logs are there only with a log, and
// those of Go are client_golang's.
func TestGoodputHasWhatIsWanted(t *testing.T) {
	root := filepath.Join("..", "..")
	page, state, logs := text(t, root, "docs/metrics.md"), text(t, root, "cmd/goodput/internal/admin/state.go"), text(t, root, "cmd/goodput/internal/metrics/logs.go")
	for crit, all := range wants {
		for _, w := range all {
			if strings.HasPrefix(w.name, "go_") {
				continue
			}
			if short, is := strings.CutPrefix(w.name, "goodput_request_log_"); is {
				if !strings.Contains(logs, `plain("request_log_`+short+`", `) {
					t.Errorf("%s: goodput has no %s", crit, w.name)
				}
				continue
			}
			name, kind := w.name, "(counter|gauge)"
			if base, is := strings.CutSuffix(name, "_count"); is {
				name, kind = base, "histogram"
			} else if w.climbs {
				kind = "counter"
			}
			if row := regexp.MustCompile("(?m)^\\| `" + name + "` \\| " + kind + ` \| [^|]*\b` + w.label + `\b`); w.label != "" && !row.MatchString(page) || !strings.Contains(page, "| `"+name+"` |") {
				t.Errorf("%s: docs/metrics.md has no %s of that kind with label %q", crit, w.name, w.label)
			}
		}
	}
	for _, field := range append([]string{"name", "limiters", "policy", "sha256", "reload_failed"}, held...) {
		if !regexp.MustCompile("`json:\"" + field + "[\",]").MatchString(state) {
			t.Errorf("the state of goodput has no %s", field)
		}
	}
}

// Whatever is read by name is wanted of a criterion: nothing may read as 0 unseen.
func TestEachNameIsWanted(t *testing.T) {
	wanted := map[string]bool{}
	for _, all := range wants {
		for _, w := range all {
			wanted[w.name] = true
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile("[\"`]((goodput|go|process)_[a-z_]+)").FindAllStringSubmatch(text(t, "", file), -1) {
			names[m[1]] = true
		}
	}
	if len(names) != len(wanted) {
		t.Errorf("%d names are read, %d are wanted: %v", len(names), len(wanted), slices.Sorted(maps.Keys(names)))
	}
	for name := range names {
		if !wanted[name] {
			t.Errorf("%s is read and no criterion wants it", name)
		}
	}
}

func text(t *testing.T, root, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(fmt.Errorf("what goodput has: %w", err))
	}
	return string(data)
}
