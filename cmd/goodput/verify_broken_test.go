package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/verify"
	"github.com/goodput/goodput/cmd/goodput/internal/verify/servers"
)

// The command over the wire, against services that are good and services that are broken. The
// same services are in internal/verify in virtual time, exact and all of them; here are those of
// which the wire is a part. wall clock: a load takes the time that it takes.

// byTime are the criteria that a machine with other things to do may fail for the service.
var byTime = []string{
	verify.Below, verify.Goodput, verify.Flat, verify.Refusals, verify.Prompt, verify.Hanging, verify.Late, verify.Recovery,
}

// verdicts is what one run of the command said.
type verdicts struct {
	code   int
	void   string
	failed []string
	all    int
	text   string
}

// longest is what one run may take: three times that of the default loads for 3 s.
const longest = 3 * time.Minute

// verifies runs the command, to its own end.
func verifies(t *testing.T, url string, args ...string) (v verdicts) {
	file := filepath.Join(t.TempDir(), "report.json")
	p := launch(t, "the idle service", append([]string{"verify", url, "--format", "json", "--output", file}, args...)...)
	stuck := time.AfterFunc(longest, func() { p.cmd.Process.Kill() }) // it is a test that failed
	defer stuck.Stop()
	<-p.exited
	v.code = p.cmd.ProcessState.ExitCode()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err, p.log)
	}
	var report struct {
		Void     *string
		Notes    []string
		Criteria []struct {
			Name string
			Met  bool
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	if report.Void != nil {
		v.void = *report.Void
	}
	v.all, v.text = len(report.Criteria), string(text)
	for _, c := range report.Criteria {
		if !c.Met {
			v.failed = append(v.failed, c.Name)
		}
	}
	t.Logf("%s: exit %d, void %q, failed %q", url, v.code, v.void, v.failed)
	// The exit code is what the report says.
	want := exitOK
	switch {
	case v.void != "":
		want = exitVoid
	case len(v.failed) > 0:
		want = exitNo
	}
	// A no needs not all of the criteria, if a load that says nothing was left out.
	fewer := v.code == exitNo && slices.ContainsFunc(report.Notes, func(n string) bool { return strings.HasPrefix(n, "Left out of the verdict: ") })
	if v.code != want || v.void == "" && v.all != len(verify.Names) && !fewer {
		t.Errorf("exit code %d, void %q, failed %q of %d", v.code, v.void, v.failed, v.all)
	}
	return v
}

// A subject is a server that is run against, and what the verdict should be.
type subject struct {
	name  string
	fails []string // nil: it is good
	start func(*testing.T) (url string)
	args  []string

	said []verdicts // of each attempt
}

// right reports whether the last verdict is what it should be.
func (s *subject) right() bool {
	if len(s.said) == 0 {
		return false
	}
	v := s.said[len(s.said)-1]
	if s.fails == nil {
		return v.code == exitOK
	}
	// What is on the wire stands although the run is no answer; the rest needs one.
	return v.code == exitNo && !slices.ContainsFunc(s.fails, func(name string) bool { return !slices.Contains(v.failed, name) })
}

// check asserts that one of the attempts was right, and that none said what no machine excuses:
// that a broken server is certified, or that a good one fails what does not depend on time.
func (s *subject) check(t *testing.T) {
	for _, v := range s.said {
		if v.code == exitOK && s.fails != nil {
			t.Errorf("it is certified\n%s", v.text)
		}
		for _, name := range v.failed {
			if s.fails == nil && !slices.Contains(byTime, name) {
				t.Errorf("it fails %s\n%s", name, v.text)
			}
		}
	}
	if s.right() {
		return
	}
	for i, v := range s.said {
		t.Errorf("attempt %d: exit %d, void %q, failed %q; it should fail %q", i+1, v.code, v.void, v.failed, s.fails)
	}
	t.Logf("the last of them:\n%s", s.said[len(s.said)-1].text)
}

// attempts is how often a run is tried that is not right: see calmly for how seldom one is not.
const attempts = 3

// apart is how long after one run the next begins, so that not all loads are at the same time.
const apart = time.Second

// settle runs all of them, each apart from the one before, and those that are not right again.
func settle(t *testing.T, all []*subject) {
	for range attempts {
		var running sync.WaitGroup
		for _, s := range all {
			if s.right() {
				continue
			}
			url := s.start(t)
			running.Go(func() { s.said = append(s.said, verifies(t, url, s.args...)) })
			if everything() {
				running.Wait()
			} else {
				time.Sleep(apart)
			}
		}
		running.Wait()
	}
}

// everything reports whether to run all of them, one after another and with the default loads,
// which takes half an hour: GOODPUT_VERIFY_ALL is a part of their names, or "all".
func everything() bool { return os.Getenv("GOODPUT_VERIFY_ALL") != "" }

// wanted reports whether a server is one of those to run.
func wanted(name string) bool {
	part := os.Getenv("GOODPUT_VERIFY_ALL")
	return part == "" && slices.Contains(overTheWire, name) || part == "all" || part != "" && strings.Contains(name, part)
}

// overTheWire are those of every day: the two that are ours, the ways to be broken that anybody
// thinks of first, and one that the wire alone has. The demo is run by whoever runs the commands of
// the README, and by make verify-demo.
var overTheWire = []string{
	"goodput serve", "the library",
	"a queue without a bound", "Retry-After: 0", "refuses with 200 and a body as long as the real one",
	"hangs instead of refusing", "refuses everybody", "serves late", "closes the connection",
}

// calmly returns the flags of every day, for a machine that has other things to do. The rate is
// low, a slot makes up for 47 ms, and the generator may be late by a hundredth of the objective.
// As small as a p99 allows: 150/s x 4 s are 600 that get a slot. At 3x a queue without a bound
// is then longer than 2 s after 1 s, so that of 600 that could be in time 450 are.
func calmly(deadline time.Duration) []string {
	return []string{"--steps", "0.5,3", "--duration", "4s", "--capacity", strconv.Itoa(servers.CalmCapacity), "--deadline", deadline.String()}
}

// demoCalmly is that for the demo, 60 slots / 50 ms = 1,200/s, which remembers by how much a
// slot was late. The queue without a bound would be longer at the end than callers stay: 4 s at 3x
// after 2 s, for 3 s, and at 2x after 4 s, for 2 s.
func demoCalmly(through bool) []string {
	if through {
		return []string{"--capacity", "1200", "--steps", "0.5,3", "--duration", "2s", "--deadline", "3s"}
	}
	return []string{"--capacity", "1200", "--steps", "0.5,2", "--duration", "4s", "--deadline", "2s"}
}

// What callers wait in those: the good ones may be judged by a generator that is 50 ms late,
// the broken ones need a queue that is too long within 4 s.
const (
	patient   = 5 * time.Second
	impatient = 2 * time.Second
)

func subjects() (all []*subject) {
	add := func(name string, fails []string, deadline, p99 time.Duration, start func(t *testing.T, p *servers.Pool) string) {
		if !wanted(name) {
			return
		}
		s := &subject{name: name, fails: fails, args: calmly(deadline), start: func(t *testing.T) string { return start(t, servers.Calm()) }}
		if strings.HasPrefix(name, "the demo") {
			s.args = demoCalmly(fails == nil)
		}
		if everything() {
			s.args = []string{"--deadline", servers.Deadline.String(), "--objective", p99.String(), "--duration", "3s"}
			s.start = func(t *testing.T) string { return start(t, servers.Small()) }
		}
		all = append(all, s)
	}
	wait := servers.Deadline // of callers
	if !everything() {
		wait = impatient
	}
	add("goodput serve", nil, patient, servers.Objective, func(t *testing.T, p *servers.Pool) string {
		return serve(t, hosted(t, servers.Plain(p)), "--limit", strconv.Itoa(p.Slots()), "--objective", (10 * p.Each).String()).url
	})
	for _, s := range servers.AllGood() {
		add(s.Name, nil, patient, s.Objective, func(t *testing.T, p *servers.Pool) string { return hosted(t, s.On(p, 10*p.Each)) })
	}
	for _, s := range servers.AllBroken() {
		add(s.Name, s.Fails, impatient, servers.Objective, func(t *testing.T, p *servers.Pool) string { return hosted(t, s.On(p, wait)) })
	}
	add("the demo through goodput", nil, patient, demoObjective, func(t *testing.T, _ *servers.Pool) string { return demoServed(t, 0) })
	add("the demo directly", []string{verify.Flat}, impatient, demoObjective, func(t *testing.T, _ *servers.Pool) string { return demoServed(t, 1) })
	return all
}

// demoObjective is that of the demo's limiter.
const demoObjective = 400 * time.Millisecond

// demoServed starts the demo's service and returns its URL through goodput, or its own.
func demoServed(t *testing.T, which int) string {
	p := launch(t, "Ctrl-C", "demo", "--serve", "--listen", "127.0.0.1:0", "--limit", "60")
	p.mu.Lock()
	defer p.mu.Unlock()
	words := strings.Fields(p.log[which]["msg"].(string))
	return words[len(words)-1]
}

func TestVerifyTellsGoodServersFromBrokenOnes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	all := subjects()
	settle(t, all)
	for _, s := range all {
		t.Run(s.name, s.check)
	}
}

// hosted serves h, with room for as many requests on a connection as an overload has.
func hosted(t *testing.T, h http.Handler) string {
	srv := httptest.NewUnstartedServer(h)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 1 << 16}
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}
