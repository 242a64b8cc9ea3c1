package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/cmd/goodput/internal/listen"
	"github.com/goodput/goodput/cmd/goodput/internal/metrics"
	"github.com/goodput/goodput/cmd/goodput/internal/proxy"
	"github.com/goodput/goodput/cmd/goodput/internal/record"
	"github.com/goodput/goodput/cmd/goodput/internal/upstream"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/limit"
)

// filled sets each field of a struct to something that no other one has.
func filled[T any]() (s T) {
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		switch f, n := v.Field(i), i+2; f.Kind() {
		case reflect.String:
			f.SetString(fmt.Sprint("field ", n))
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(n))
		case reflect.Uint64:
			f.SetUint(uint64(n))
		case reflect.Float64:
			f.SetFloat(float64(n))
		default:
			switch f := f.Addr().Interface().(type) {
			case *time.Time:
				*f = time.Unix(int64(n), 0)
			case *goodput.Histogram:
				f.AddN(time.Second, uint64(n))
			case *config.Mode:
				*f = config.Stream
			default:
				panic(fmt.Sprintf("filled does not know a %T", f))
			}
		}
	}
	return s
}

// handsOn compares what a part counts with what its metrics are made of: each field is the one of
// its name, but for those of renamed, ours -> theirs. "" is one that is not the part's.
func handsOn(t *testing.T, from, to any, renamed map[string]string) {
	t.Helper()
	theirs, ours := reflect.ValueOf(from), reflect.ValueOf(to)
	for i := range ours.NumField() {
		name := ours.Type().Field(i).Name
		of, other := renamed[name]
		if !other {
			of = name
		}
		got := ours.Field(i).Interface()
		if of == "" {
			continue
		}
		f := theirs.FieldByName(of)
		if !f.IsValid() {
			t.Errorf("%T has no %s", from, of)
			continue
		}
		want := f.Interface()
		switch f.Interface().(type) {
		case goodput.Histogram:
			got = ours.Field(i).Elem().Interface()
		case config.Mode:
			want = fmt.Sprint(want)
		}
		if !reflect.DeepEqual(got, want) || f.IsZero() {
			t.Errorf("%T.%s is %v, want %v", to, name, got, want)
		}
	}
}

// What the parts count is shown, all of it, and each number as itself.
func TestPartsHandOnWhatTheyCount(t *testing.T) {
	server := filled[upstream.ServerStats]()
	handsOn(t, server, serverOf("app", server), map[string]string{"Upstream": ""})
	if got := serverOf("app", server).Upstream; got != "app" {
		t.Errorf("a server of %q", got)
	}
	traffic := filled[proxy.Traffic]()
	handsOn(t, traffic, trafficOf(traffic), nil)
	listener := filled[listen.Stats]()
	handsOn(t, listener, listenerOf(listener), map[string]string{"Limit": "MaxConnections"})
}

// A slowLog takes its time for a summary of refusals, as a disk does.
type slowLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *slowLog) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "msg=shedding") {
		time.Sleep(50 * time.Millisecond) // wall clock: who does not wait has gone on
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *slowLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// started is serve in this process, with a policy file; the log is what it has written.
func started(t *testing.T, policy string) (*service, *slowLog) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &serveCmd{Config: path}
	c.Admin = "127.0.0.1:0"
	log := new(slowLog)
	s, err := c.start(slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.closeListeners()
		s.proxy.Close()
	})
	return s, log
}

// C128: histograms of a class reach past the longest deadline that its requests may have: the one
// of its own, or the cap of what clients may ask for.
func TestHistogramsReachPastTheDeadline_C128(t *testing.T) {
	s, _ := started(t, `version: 1
listen: {address: "127.0.0.1:0"}
upstreams: {app: {servers: ["http://127.0.0.1:1"]}}
classes:
  - {name: batch, match: {path: /batch}, upstream: app, limit: 2, deadline: 60s, deadline_cap: 100s}
  - {name: long, match: {path: /long}, upstream: app, limit: 2, deadline: 60s}
  - {name: short, upstream: app, limit: 2, deadline: 1s, deadline_cap: 1s}
`)
	defer s.close()
	res, err := http.Get("http://" + s.adminAddr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for class, want := range map[string]string{"batch": "120", "long": "60", "short": "10"} {
		last := ""
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, fmt.Sprintf(`goodput_request_duration_seconds_bucket{limiter=%q,le="`, class)); ok && !strings.HasPrefix(rest, "+Inf") {
				last, _, _ = strings.Cut(rest, `"`)
			}
		}
		if last != want {
			t.Errorf("the last bucket of %s ends at %q, want %s", class, last, want)
		}
	}
}

// close has the watcher write what was refused since its last look, before it returns: the process
// ends then.
func TestCloseWaitsForTheLastWord(t *testing.T) {
	s, log := started(t, `version: 1
listen: {address: "127.0.0.1:0"}
upstream: http://127.0.0.1:1
limit: 1
depth: none
`)
	for give := time.Now().Add(patience); !strings.Contains(log.String(), "derived depth"); time.Sleep(time.Millisecond) { // wall clock: the watcher is another goroutine
		if time.Now().After(give) {
			t.Fatal("the watcher does not begin")
		}
	}
	lim := s.proxy.Limiters()[0]
	slot, err := lim.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer slot.Release()
	if _, err := lim.Acquire(t.Context()); err == nil {
		t.Fatal("not refused")
	}
	s.close() // nobody writes after it
	if !strings.Contains(log.String(), "msg=shedding") || !strings.Contains(log.String(), "refused=1 ") {
		t.Errorf("the last refusal is not in the log:\n%s", log)
	}
}

// What a log has lost is under its name, and so is what it has.
func TestNumbersOfTheLogs(t *testing.T) {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	trace, err := record.OpenTrace(filepath.Join(t.TempDir(), "trace"), 1<<20, log)
	if err != nil {
		t.Fatal(err)
	}
	access, err := record.OpenAccess(filepath.Join(t.TempDir(), "access"), false, io.Discard, log)
	if err != nil {
		t.Fatal(err)
	}
	both := requestLogs{access: access, trace: trace}
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(1)})
	e := goodputhttp.Ended{Limiter: lim, Offered: true, Arrival: time.Now(), Outcome: goodput.Completed}
	trace.Add(&e)
	both.close(log)
	for range 1 << 18 { // what is added now is lost as soon as its buffer is full
		trace.Add(&e)
	}
	n, got := trace.Numbers(), both.numbers()
	if n.Dropped == 0 || n.Lines != 1 {
		t.Errorf("not the scene: %+v", n)
	}
	if want := []metrics.Log{{Name: "access"}, {Name: "record", Lines: n.Lines, Dropped: n.Dropped}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
