package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/accesslog"
	"github.com/goodput/goodput/cmd/goodput/internal/record"
	"github.com/goodput/goodput/cmd/goodput/internal/replay"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/limit"
)

// partsOf returns the files of a record, the oldest first.
func partsOf(path string) (parts []string) {
	for i := record.Files - 1; i > 0; i-- {
		if name := fmt.Sprintf("%s.%d", path, i); exists(name) {
			parts = append(parts, name)
		}
	}
	return append(parts, path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// lines waits until a file has n of them, and returns them.
func lines(t *testing.T, path string, n int) []string {
	t.Helper()
	for give := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) { // wall clock: another process writes
		b, err := os.ReadFile(path)
		if all := strings.SplitAfter(string(b), "\n"); err == nil && len(all) > n {
			return all[:len(all)-1]
		}
		if time.Now().After(give) {
			t.Fatalf("%s has fewer than %d lines: %v\n%s", path, n, err, b)
		}
	}
}

// What is recorded is what is read again, to the microsecond and in the order of the arrivals,
// over as many files as there are: classes, budgets, costs, sizes, priorities, ends; and two
// requests have one tenant where they had one.
func TestRecordIsReadAsItWas(t *testing.T) {
	const seed, n = 1, 4000
	random := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "trace")
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	tr, err := record.OpenTrace(path, 1<<20, log) // eight of 128 KiB, and 4,000 lines of 50 bytes
	if err != nil {
		t.Fatal(err)
	}
	lims := []*goodput.Limiter{
		goodput.New(goodput.Config{Name: "search", Limit: limit.Fixed(1)}), goodput.New(goodput.Config{Name: "rest", Limit: limit.Fixed(1)}),
	}
	outcomes := map[goodput.Outcome]accesslog.Outcome{
		goodput.Completed: accesslog.Served, goodput.Late: accesslog.Served, goodput.Failed: accesslog.Failed, goodput.Abandoned: accesslog.Cancelled,
		goodput.Rejected: accesslog.Rejected, goodput.Expired: accesslog.ExpiredInQueue, goodput.Cancelled: accesslog.Cancelled,
	}
	kinds := []goodput.Outcome{
		goodput.Completed, goodput.Late, goodput.Failed, goodput.Abandoned, goodput.Rejected, goodput.Expired, goodput.Cancelled,
	}
	at := time.Now().Add(-time.Hour)
	var sent []goodputhttp.Ended
	for range n {
		at = at.Add(time.Duration(1+random.IntN(100_000)) * time.Microsecond)
		e := goodputhttp.Ended{
			Limiter: lims[random.IntN(2)], Offered: true, Arrival: at, Outcome: kinds[random.IntN(len(kinds))],
			Work: goodput.Work{
				Cost: random.IntN(5), Size: random.IntN(3) * 100, Priority: goodput.Priority(random.IntN(4)),
				Tenant: []string{"", "acme", "a,b\n\"c\"", "zebra"}[random.IntN(4)],
			},
		}
		if random.IntN(2) == 0 {
			e.Deadline, e.DeadlineSource = at.Add(time.Duration(random.IntN(1e6))*time.Microsecond), "default"
		}
		if r := outcomes[e.Outcome]; r == accesslog.Rejected || r == accesslog.ExpiredInQueue || e.Outcome == goodput.Cancelled {
			e.Reason = "whatever"
		} else {
			e.Held = time.Duration(random.IntN(3e6)) * time.Microsecond
			e.Observed = random.IntN(2) == 0
			e.WouldRefuse = e.Observed && random.IntN(2) == 0
		}
		sent = append(sent, e)
	}
	for _, i := range random.Perm(n) { // requests end in another order
		tr.Add(&sent[i])
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	parts := partsOf(path)
	if len(parts) < 2 {
		t.Errorf("one file: nothing was rotated")
	}
	read, err := accesslog.Open(parts, accesslog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if w := read.Summary().Warnings; slices.ContainsFunc(w, func(s string) bool { return !strings.Contains(s, "observe mode") }) {
		t.Errorf("%q", w)
	}
	i, names := 0, map[string]string{}
	for r, err := range read.Records() {
		if err != nil || i == n {
			t.Fatal(i, err)
		}
		e := &sent[i]
		i++
		held, budget := accesslog.Absent, accesslog.Absent
		if e.Reason == "" {
			held = e.Held
		}
		if !e.Deadline.IsZero() {
			budget = e.Deadline.Sub(e.Arrival)
		}
		size := e.Work.Size
		if size == max(e.Work.Cost, 1) {
			size = 0 // as is usual
		}
		priority := e.Work.Priority.String()
		if priority == "default" { // as it was said, or because nothing was said
			priority = ""
		}
		if r.Arrival != e.Arrival.UnixMicro()*1000 || r.Class != e.Limiter.Name() || r.Service != held || r.Budget != budget ||
			r.Cost != max(e.Work.Cost, 1) || r.Size != size || r.Priority != priority || r.Outcome != outcomes[e.Outcome] || r.Observed != e.Observed {
			t.Fatalf("seed %d: line %d\n%+v\nof\n%+v", seed, i, r, e)
		}
		if was, ok := names[e.Work.Tenant]; ok && was != r.Tenant || strings.Contains(r.Tenant, "acme") || (e.Work.Tenant == "") != (r.Tenant == "") {
			t.Fatalf("tenant %q is %q and %q", e.Work.Tenant, was, r.Tenant)
		}
		names[e.Work.Tenant] = r.Tenant
	}
	if i != n || len(names) != 4 {
		t.Errorf("%d of %d are read, tenants %v", i, n, names)
	}
}

// An overload is recorded, and replayed against the policy that it met: as many are in time as
// there were. The arrivals are the same and so are the service times of those who were served,
// but others are admitted now and then, with a time drawn from theirs. What is in time is the
// slots over a mean service time, of 4,000 exponential ones: its standard error is 1/sqrt(4000),
// 1.6 %, and three of them are 4.7 %.
func TestRecordedOverloadReplays(t *testing.T) {
	const (
		seed      = 3
		slots     = 10
		mean      = 50 * time.Millisecond
		objective = 400 * time.Millisecond
		load      = 3
		length    = 20 * time.Second
	)
	path := filepath.Join(t.TempDir(), "trace")
	var inTime uint64
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 0))
		tr, err := record.OpenTrace(path, 1<<30, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		lim := goodput.New(goodput.Config{Name: "default", Limit: limit.Fixed(slots), Objective: objective})
		s := &goodputhttp.Server{
			Limiter: func(*http.Request) *goodput.Limiter { return lim },
			Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				d, _ := time.ParseDuration(r.Header.Get("Takes")) // written below
				time.Sleep(d)
			}),
			Ended: func(_ *http.Request, e *goodputhttp.Ended) { tr.Add(e) },
		}
		for begun := time.Now(); time.Since(begun) < length; {
			time.Sleep(time.Duration(random.ExpFloat64() * float64(mean) / slots / load))
			takes := time.Duration(random.ExpFloat64() * float64(mean))
			go func() {
				r, _ := http.NewRequest(http.MethodGet, "/", nil) // it is well-formed
				r.Header.Set("Takes", takes.String())
				s.ServeHTTP(&unheard{header: http.Header{}}, r)
			}()
		}
		time.Sleep(10 * time.Second)
		inTime = lim.Stats().Outcomes[goodput.Completed]
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
	})
	read, err := accesslog.Open([]string{path}, accesslog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	survey, err := replay.Look(read)
	if err != nil {
		t.Fatal(err)
	}
	results, _, err := survey.Run(replay.Options{
		Policy: replay.Policy(limit.Fixed(slots), objective), Slots: slots, Compare: []string{"goodput"}, Seed: 1, Depth: 80,
	})
	if err != nil {
		t.Fatal(err)
	}
	got := results[0].Total.InTime
	t.Logf("%d of %d were in time, and %d of the replay", inTime, survey.Used, got)
	if off := float64(got)/float64(inTime) - 1; off < -0.047 || off > 0.047 {
		t.Errorf("seed %d: %d were in time, and %d in the replay: %.1f %% off", seed, inTime, got, 100*off)
	}
	if inTime < 3500 {
		t.Errorf("%d in time: the capacity is %d", inTime, slots*int(length/mean))
	}
}

// unheard is a writer that keeps nothing.
type unheard struct{ header http.Header }

func (u *unheard) Header() http.Header         { return u.header }
func (u *unheard) Write(p []byte) (int, error) { return len(p), nil }
func (u *unheard) WriteHeader(int)             {}

// A request has a line in the access log and one in the record, with what became of it; a drain
// writes the last one, replay reads both without flags about their format, and what a client
// writes stays where it belongs.
func TestLogsOfServe(t *testing.T) {
	upstream, _ := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		io.WriteString(w, "answer")
	})
	dir := t.TempDir()
	access, rec := filepath.Join(dir, "access.log"), filepath.Join(dir, "trace")
	p := serve(t, upstream, "--limit", "4", "--trusted-proxies", "127.0.0.1", "--deadline", "2s", "--access-log", access, "--record", rec)
	for range 200 {
		p.get(p.url + "/fine?secret=1")
	}
	p.ask("/broken", "X-Forwarded-For", "192.0.2.7")
	p.ask("/fine", "Connect-Timeout-Ms", "0") // over when it arrives
	c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "GET /%%0a\"outcome\":%%00\xff HTTP/1.1\r\nHost: a\r\nTraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\nConnection: close\r\n\r\n")
	io.Copy(io.Discard, bufio.NewReader(c))
	c.Close()
	const sent = 203
	if got := p.number(`goodput_request_log_dropped_total{log="access"}`); got != 0 {
		t.Errorf("%v lines were dropped", got)
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != exitOK {
		t.Errorf("exit code %d", code)
	}

	all := lines(t, access, sent)
	var outcomes []string
	for _, text := range all {
		var l map[string]any
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		outcomes = append(outcomes, fmt.Sprint(l["outcome"]))
	}
	if len(all) != sent || !slices.Equal(outcomes[199:], []string{"completed", "failed", "expired", "completed"}) {
		t.Errorf("%d lines, the last of them %q", len(all), outcomes[max(len(all)-4, 0):])
	}
	where := strings.TrimPrefix(upstream, "http://")
	for i, want := range map[int]string{
		0:   `"limiter":"default","method":"GET"|"path":"/fine","status":200,"bytes":6,"remote":"127.0.0.1","upstream":"` + where + `"|"budget_seconds":2`,
		200: `"path":"/broken","status":500|"remote":"192.0.2.7"`,
		201: `"status":504|"reason":"deadline"`,
		202: `"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"|"outcome":"completed"`,
	} {
		for part := range strings.SplitSeq(want, "|") {
			if !strings.Contains(all[i], part) {
				t.Errorf("line %d has no %s: %s", i, part, all[i])
			}
		}
	}
	if strings.Contains(strings.Join(all, ""), "secret") {
		t.Error("a query is in the access log")
	}
	trace := lines(t, rec, sent+3)
	if len(trace) != sent+3 || trace[len(trace)-1] != "#end\n" {
		t.Errorf("%d lines, the last %q", len(trace), trace[len(trace)-1])
	}
	for _, log := range []string{access, rec} {
		code, out, errs := execute(t, nil, "replay", "--limit", "4", log)
		if flat := strings.Join(strings.Fields(out), " "); code != exitOK || !strings.Contains(flat, "203 requests say how long their callers wait") ||
			!strings.Contains(flat, "Of 20") || !strings.Contains(flat, "202 have a service time. 1 was refused") {
			t.Errorf("%s: exit %d\n%s%s", log, code, out, errs)
		}
	}
}

// A process that is killed has written what it knew up to a moment ago, and a log that was
// renamed goes on in a new file after SIGHUP, with or without a policy file.
func TestLogsOutliveTheProcess(t *testing.T) {
	upstream, _ := backend(t, hello)
	dir := t.TempDir()
	access, rec := filepath.Join(dir, "access.log"), filepath.Join(dir, "trace")
	p := serve(t, upstream, "--limit", "4", "--access-log", access, "--record", rec)
	const n = 120
	for range n {
		p.get(p.url)
	}
	lines(t, access, n)
	if err := os.Rename(access, access+".1"); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGHUP)
	for give := time.Now().Add(patience); !exists(access); time.Sleep(5 * time.Millisecond) { // wall clock: another process opens it
		if time.Now().After(give) {
			t.Fatalf("no new file: %v", p.log)
		}
	}
	p.get(p.url)
	if got := len(lines(t, access, 1)); got != 1 {
		t.Errorf("%d lines in the new file", got)
	}
	lines(t, rec, n+3) // two of the head
	p.cmd.Process.Kill()
	<-p.exited
	code, out, errs := execute(t, nil, "replay", "--limit", "4", rec)
	if flat := strings.Join(strings.Fields(out), " "); code != exitOK || !strings.Contains(flat, "was killed") || !strings.Contains(flat, "121 requests in") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	for _, e := range p.log {
		if e["level"] != "INFO" {
			t.Errorf("%v", e)
		}
	}
}

// A disk that is full costs nobody an answer: the log says it once, and a metric counts.
func TestLogsOnAFullDisk(t *testing.T) {
	const full = "/dev/full"
	if !exists(full) {
		t.Skip("there is no " + full)
	}
	upstream, _ := backend(t, hello)
	p := serve(t, upstream, "--limit", "4", "--access-log", full)
	const n = 20
	for range n {
		if code, _ := p.get(p.url); code != http.StatusOK {
			t.Errorf("status %d", code)
		}
	}
	for give := time.Now().Add(patience); p.number(`goodput_request_log_dropped_total{log="access"}`) != n; time.Sleep(5 * time.Millisecond) { // wall clock: another process writes
		if time.Now().After(give) {
			t.Fatalf("%v are dropped", p.number(`goodput_request_log_dropped_total{log="access"}`))
		}
	}
	if got := p.number(`goodput_request_log_lines_total{log="access"}`); got != 0 {
		t.Errorf("%v lines are written", got)
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	const said = "access log cannot be written: requests go on, and what became of them is not kept"
	if all := p.said(said); len(all) != 1 || !strings.Contains(fmt.Sprint(all[0]["err"]), "no space left") {
		t.Errorf("%v", p.log)
	}
}

// What cannot be is one sentence, before anything is served.
func TestLogsRefused(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string]string{
		"--record " + dir:     "--record: " + dir + " is not a regular file",
		"--access-log " + dir: "--access-log: cannot write " + dir + ": is a directory",
		"--record -":          "--record -: a record is kept in several files",
		"--record /x/y/trace": "--record: cannot write /x/y/trace: no such file or directory",
		"--record-size 1KiB":  "--record-size is less than 1MiB",
		"--access-log-query":  "--access-log-query needs --access-log",
		"--record " + dir + "/a --access-log " + dir + "/a":        "is a file of --record",
		"--record " + dir + "/a --access-log " + dir + "/b/../a.1": "is a file of --record",
	} {
		words := append(strings.Fields("serve --upstream http://127.0.0.1:1 --listen 127.0.0.1:0 --admin off"), strings.Fields(args)...)
		code, _, errs := execute(t, nil, words...)
		if last := errs[strings.LastIndex(strings.TrimSpace(errs), "\n")+1:]; code != exitUsage || !strings.Contains(last, want) {
			t.Errorf("%s: exit %d, %q, want %q", args, code, errs, want)
		}
	}
}

const recorded = `version: 1
listen: {address: "127.0.0.1:0"}
upstream: "%s"
trusted_proxies: ["127.0.0.1/32"]
classes:
  - {name: search, match: {path: /search}, limit: 4, objective: 1s, tenant: {header: Tenant}}
  - {name: %s, limit: 4, objective: 1s}
`

// Beside a file the two are flags of the process: a reload, by which a class has another name,
// goes on in the same files, and of a trace with several classes one is played.
func TestLogsBesideAFile(t *testing.T) {
	upstream, _ := backend(t, hello)
	dir := t.TempDir()
	access, rec := filepath.Join(dir, "access.log"), filepath.Join(dir, "trace")
	file := policyFile(t, fmt.Sprintf(recorded, upstream, "rest"))
	p := serveFile(t, file, "--access-log", access, "--record", rec, "--record-size", "8MiB")
	for i := range 150 {
		p.ask("/search/"+fmt.Sprint(i), "Tenant", fmt.Sprint("tenant-", i%3))
		if i%10 == 0 {
			p.get(p.url + "/other")
		}
	}
	rewrite(t, file, fmt.Sprintf(recorded, upstream, "others"))
	if code, body := p.reload(); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	p.get(p.url + "/other")
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	classes, tenants := map[string]int{}, map[string]int{}
	read, err := accesslog.Open([]string{rec}, accesslog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	for r, err := range read.Records() {
		if err != nil {
			t.Fatal(err)
		}
		classes[r.Class]++
		if r.Class == "search" {
			tenants[r.Tenant]++
		}
	}
	if classes["search"] != 150 || classes["rest"] != 15 || classes["others"] != 1 || len(classes) != 3 {
		t.Errorf("%v", classes)
	}
	if len(tenants) != 3 {
		t.Errorf("tenants %v", tenants)
	}
	if b, _ := os.ReadFile(rec); strings.Contains(string(b), "tenant-") {
		t.Error("the name of a tenant is in the record")
	}
	if b, _ := os.ReadFile(access); strings.Count(string(b), `"tenant":"tenant-`) != 150 {
		t.Error("tenants are not in the access log")
	}
	for _, args := range [][]string{{"--config", file, "--class", "search"}, {"--limit", "4", "--class", "search"}} {
		for _, log := range []string{access, rec} {
			code, out, errs := execute(t, nil, append(append([]string{"replay"}, args...), log)...)
			if flat := strings.Join(strings.Fields(out), " "); code != exitOK || !strings.Contains(flat, "150 requests in") || !strings.Contains(flat, "16 requests are of another class") {
				t.Errorf("%q %s: exit %d\n%s%s", args, log, code, out, errs)
			}
		}
	}
	code, out, _ := execute(t, nil, "replay", "--limit", "4", rec)
	if flat := strings.Join(strings.Fields(out), " "); code != exitOK || !strings.Contains(flat, "the requests of 3 classes are played through one limiter") {
		t.Errorf("exit %d\n%s", code, out)
	}
}
