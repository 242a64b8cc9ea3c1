package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputhttp"
)

// written returns what an access log says of one request.
func written(t *testing.T, query bool, r *http.Request, e *goodputhttp.Ended, where Where) (string, line) {
	t.Helper()
	log, _ := silent()
	a := newAccess("-", query, log)
	var out bytes.Buffer
	a.out = writeOnly{&out}
	a.Add(r, e, where)
	a.flush(true)
	var l line
	d := json.NewDecoder(strings.NewReader(out.String()))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	return out.String(), l
}

// One request, whole: names and order of the fields are what others read.
func TestAccessLine(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/a%2Fb/c?token=secret", nil)
	r.Host = "shop.example"
	r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	e := ended(time.Date(2026, 11, 30, 9, 8, 7, 654321987, time.FixedZone("", 3600)))
	e.Status, e.Bytes, e.Waited = 200, 512, 1234567
	e.Work = goodput.Work{Tenant: "acme", Cost: 2, Size: 7, Priority: goodput.Critical}
	where := Where{Class: "search", Remote: "192.0.2.7", Upstream: "10.0.0.1:80"}
	const want = `{"time":"2026-11-30T08:08:07.654321Z","limiter":"search","method":"POST","host":"shop.example","path":"/a%2Fb/c","status":200,"bytes":512,` +
		`"remote":"192.0.2.7","upstream":"10.0.0.1:80","queue_seconds":0.001235,"service_seconds":0.04,"held_seconds":0.049812,"duration_seconds":0.05,` +
		`"outcome":"completed","budget_seconds":0.4,"tenant":"acme","priority":"critical","cost":2,"size":7,"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"}` + "\n"
	if got, _ := written(t, false, r, e, where); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if _, l := written(t, true, r, e, where); l.Query != "token=secret" {
		t.Errorf("%+v", l)
	}
	// What ran in observe mode, and a call.
	e.Observed, e.WouldRefuse, e.GRPC = true, true, "14"
	if got, l := written(t, false, r, e, where); !l.Observed || !l.Would || !strings.Contains(got, `"grpc_status":14,`) {
		t.Error(got)
	}
	for _, odd := range []string{"", "x", "-1", "100", "1e1", "\"", "+1"} {
		if e.GRPC = odd; grpcStatus(odd) != "" {
			t.Errorf("%q is a status: %s", odd, grpcStatus(odd))
		}
	}
	// A refusal, a client that left, and a request without a limiter.
	refused := &goodputhttp.Ended{Limiter: lim, Offered: true, Outcome: goodput.Rejected, Reason: "queue_full", Arrival: time.Unix(0, 0), Status: 503, Total: 90 * time.Microsecond}
	if got, l := written(t, false, r, refused, where); l.Outcome != "rejected" || l.Reason != "queue_full" || l.Status != 503 || strings.Contains(got, "held") {
		t.Error(got)
	}
	// What never came to a limiter is in none of its numbers, and so has no outcome.
	large := &goodputhttp.Ended{Limiter: lim, Outcome: goodput.Rejected, Reason: "too_large", Arrival: time.Unix(0, 0), Status: 413}
	if got, l := written(t, false, r, large, where); l.Outcome != "" || l.Reason != "too_large" || l.Status != 413 || l.Limiter != "search" {
		t.Error(got)
	}
	left := &goodputhttp.Ended{Limiter: lim, Offered: true, Outcome: goodput.Cancelled, Reason: "client", Arrival: time.Unix(0, 0)}
	if got, l := written(t, false, r, left, where); l.Status != 499 {
		t.Error(got)
	}
	if got, l := written(t, false, r, &goodputhttp.Ended{Arrival: time.Unix(0, 0), Total: time.Hour}, where); l.Outcome != "" || l.Status != 0 || l.Duration != 3600 {
		t.Error(got)
	}
}

// Whatever a client writes, a line is one line of JSON with the same fields, and no longer than
// what is allowed.
func FuzzAccess(f *testing.F) {
	f.Add("/x\n{\"outcome\":\"completed\"}", "a\"b", "\xff\xfe\u2028", "GET\x00", "00-x")
	f.Add("/"+strings.Repeat("é", 5000), "\r\n", "", "PO\tST", strings.Repeat("0", 60))
	f.Add("/\u009b2J", "\u202eh\u2066\u2069", "\u0085t\x7f\u200e\u061c é", "GET", "")
	f.Add("/", "h", "t", "GET", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	log, _ := silent()
	a := newAccess("-", true, log)
	f.Fuzz(func(t *testing.T, path, host, tenant, method, parent string) {
		var out bytes.Buffer
		a.out = writeOnly{&out}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path, r.URL.RawPath, r.URL.RawQuery, r.Host, r.Method = path, path, path, host, method
		r.Header["Traceparent"] = []string{parent}
		e := ended(time.Unix(1, 0))
		e.Work.Tenant = tenant
		a.Add(r, e, Where{Class: "c", Remote: host, Upstream: tenant})
		a.flush(true)
		text := out.String()
		if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "}\n") || !utf8.ValidString(text) {
			t.Fatalf("not one line: %q", text)
		}
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil || l.Outcome != "completed" || l.Limiter != "c" {
			t.Fatalf("%v: %q", err, text)
		}
		if strings.ContainsFunc(text[:len(text)-1], moves) {
			t.Fatalf("a control character in %q", text)
		}
		// It says what was sent, but for what is no text, and what is cut off.
		if sent := strings.ToValidUTF8(tenant, ""); sent == tenant && len(tenant) <= maxWord && l.Tenant != tenant {
			t.Fatalf("%q is %q in the line", tenant, l.Tenant)
		}
		// A byte is at most six (\u0000) or, invalid, one of three.
		if len(l.Path) > 3*maxPath || len(l.Tenant) > 3*maxWord {
			t.Fatalf("a path of %d bytes, a tenant of %d", len(l.Path), len(l.Tenant))
		}
	})
}

// moves reports whether a terminal does something with c but to show it.
func moves(c rune) bool {
	return c < ' ' || c >= 0x7f && c < 0xa0 || c == 0x61c || c == 0x200e || c == 0x200f || c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069
}

// What would move the terminal of whoever reads a log is escaped, and a reader of JSON has it.
func TestAccessMovesNoTerminal(t *testing.T) {
	const name = "é\u009b31m\u202ex\u2069\x7fы\u200f"
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host = name
	e := ended(time.Unix(1, 0))
	e.Work.Tenant = name
	got, l := written(t, false, r, e, Where{Class: "c", Remote: name})
	if l.Tenant != name || l.Host != name || l.Remote != name {
		t.Errorf("read back: %+q", []string{l.Tenant, l.Host, l.Remote})
	}
	if want := `"é\u009b31m\u202ex\u2069\u007fы\u200f"`; strings.Count(got, want) != 3 || strings.ContainsFunc(got[:len(got)-1], moves) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A disk that takes nothing costs no request anything: beyond the buffer lines are dropped and
// counted, and the log says so once a second at the most.
func TestAccessIsBounded(t *testing.T) {
	log, said := silent()
	a := newAccess("access.log", false, log)
	var out bytes.Buffer
	a.out = writeOnly{&out}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	n := 0
	for a.Numbers().Dropped < 100 && n < accessBuffer/100 { // a line is longer than 100 bytes
		a.Add(r, ended(time.Now()), Where{Class: "c"})
		n++
	}
	if len(a.buf) > accessBuffer || cap(a.buf) != accessBuffer {
		t.Errorf("%d bytes of %d", len(a.buf), cap(a.buf))
	}
	a.flush(false)
	a.flush(false)
	if got := a.Numbers(); got.Dropped != 100 || got.Lines != uint64(n)-100 || strings.Count(out.String(), "\n") != n-100 {
		t.Errorf("%+v of %d", got, n)
	}
	if got := said.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "dropped=100") {
		t.Errorf("the log has\n%s", got)
	}
}

// On a full disk: whole lines are counted, a piece of one gets an end, and the log says it
// when it begins and when it is over.
func TestAccessOnAFullDisk(t *testing.T) {
	log, said := silent()
	disk := &sick{partial: 400}
	a := newAccess("access.log", false, log)
	a.out = disk
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	add := func(n int) {
		for range n {
			a.Add(r, ended(time.Now()), Where{Class: "c"})
		}
		a.flush(false)
	}
	add(3)
	disk.fails = true
	add(4)
	add(5)
	disk.fails = false
	add(2)
	whole := 0
	for l := range strings.Lines(disk.String()) {
		if json.Valid([]byte(l)) {
			whole++
		}
	}
	if n := a.Numbers(); n.Lines != uint64(whole) || n.Lines+n.Dropped != 14 || whole < 5 {
		t.Errorf("%+v, %d whole:\n%s", n, whole, disk)
	}
	if got := said.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "cannot be written") || !strings.Contains(got, "is written again") {
		t.Errorf("the log has\n%s", got)
	}
}

// The way of logrotate: the file is renamed, and a signal has the rest go to a new one. A path
// that cannot be opened then leaves the file as it is.
func TestAccessReopens(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "logs", "access.log")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	log, said := silent()
	a, err := OpenAccess(path, false, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	moved := 0
	for i := range 300 {
		a.Add(r, ended(time.Now()), Where{Class: fmt.Sprint(i)})
		if i%100 == 99 {
			moved++
			if err := os.Rename(path, path+fmt.Sprint(moved)); err != nil {
				t.Fatal(err)
			}
			a.Reopen()
			for give := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) { // wall clock: the writer is a goroutine with a disk
				if _, err := os.Stat(path); err == nil {
					break
				}
				if time.Now().After(give) {
					t.Fatal("no new file")
				}
			}
		}
	}
	if err := os.Rename(filepath.Dir(path), filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	a.Add(r, ended(time.Now()), Where{Class: "last"})
	a.Reopen()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, f := range []string{"access.log1", "access.log2", "access.log3", "access.log"} {
		b, err := os.ReadFile(filepath.Join(dir, "gone", f))
		if err != nil {
			t.Fatal(err)
		}
		all += string(b)
	}
	if n := strings.Count(all, "\n"); n != 301 || !strings.Contains(all, `"last"`) {
		t.Errorf("%d lines, want 301", n)
	}
	if !strings.Contains(said.String(), "cannot be opened again") {
		t.Errorf("the log has\n%s", said)
	}
}

func TestAccessCannotBe(t *testing.T) {
	dir := t.TempDir()
	log, _ := silent()
	for path, want := range map[string]string{
		dir:                             "is a directory",
		filepath.Join(dir, "none", "a"): "no such file or directory",
	} {
		if a, err := OpenAccess(path, false, nil, log); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", path, a, err)
		}
	}
}

// BenchmarkAccess is what a request pays for its line.
func BenchmarkAccess(b *testing.B) {
	log, _ := silent()
	a := newAccess("-", false, log)
	a.out = writeOnly{new(bytes.Buffer)}
	r := httptest.NewRequest(http.MethodGet, "/a/b", nil)
	e := ended(time.Now())
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%8192 == 0 {
			b.StopTimer()
			a.buf = a.buf[:0]
			b.StartTimer()
		}
		a.Add(r, e, Where{Class: "search", Remote: "192.0.2.7", Upstream: "10.0.0.1:80"})
	}
}

// stuck is a pipe that nobody reads any more.
type stuck struct{ began chan struct{} }

func (s *stuck) Write([]byte) (int, error) {
	close(s.began)
	select {}
}

// A pipe that takes nothing: no request waits for it, and neither does the end of the process.
func TestAccessIntoAStuckPipe(t *testing.T) {
	log, _ := silent()
	pipe := &stuck{make(chan struct{})}
	a, err := OpenAccess("-", false, pipe, log)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	a.Add(r, ended(time.Now()), Where{Class: "c"})
	<-pipe.began
	for n := 0; a.Numbers().Dropped == 0 && n < 3*accessBuffer/100; n++ {
		a.Add(r, ended(time.Now()), Where{Class: "c"})
	}
	begun := time.Now()
	if err := a.Close(); err == nil || !strings.Contains(err.Error(), "takes nothing") {
		t.Errorf("%v", err)
	}
	if waited := time.Since(begun); waited < closing { // wall clock: a goroutine that is stuck in a write has no other
		t.Errorf("it waited for %v", waited)
	}
}

// Stdout is not closed, and has whole lines.
func TestAccessOnStdout(t *testing.T) {
	log, said := silent()
	var out bytes.Buffer
	a, err := OpenAccess("-", false, &out, log)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for range 10 {
		a.Add(r, ended(time.Now()), Where{Class: "c"})
	}
	a.Reopen()
	if err := a.Close(); err != nil || strings.Count(out.String(), "}\n") != 10 || said.Len() != 0 {
		t.Errorf("%v, %s%s", err, &out, said)
	}
}
