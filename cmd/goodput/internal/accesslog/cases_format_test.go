package accesslog

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

// A lineCase is a line and what of it must be read.
type lineCase struct {
	line    string
	verdict Verdict
	why     string // a part of it
	queue   time.Duration
	service time.Duration
	total   time.Duration
	status  int
	outcome Outcome
}

func checkLines(t *testing.T, o Options, header string, cases []lineCase) []row {
	t.Helper()
	text := header
	for _, c := range cases {
		text += c.line + "\n"
	}
	rows, whys := parseLines(t, o, text)
	skip := strings.Count(header, "\n")
	rows, whys = rows[skip:], whys[skip:]
	for i, c := range cases {
		r := rows[i]
		if r.Verdict != c.verdict || !strings.Contains(whys[i], c.why) || (c.why == "") != (whys[i] == "") {
			t.Errorf("%s\n got  %v: %q\n want %v: %q", c.line, r.Verdict, whys[i], c.verdict, c.why)
			continue
		}
		if !c.verdict.Arrives() {
			continue
		}
		if r.Queue != c.queue || r.Service != c.service || r.Total != c.total || r.Status != c.status || r.Outcome != c.outcome {
			t.Errorf("%s\n got  queue %d, service %v, total %v, status %d, %v\n want queue %d, service %v, total %v, status %d, %v",
				c.line, r.Queue, r.Service, r.Total, r.Status, r.Outcome, c.queue, c.service, c.total, c.status, c.outcome)
		}
	}
	return rows
}

// nginxLine is a line of the combined format with something behind it.
func nginxLine(status int, tail string) string {
	return fmt.Sprintf(`192.0.2.1 - - [21/Jan/2019:08:59:54 +0100] "GET /a HTTP/1.1" %d 2 "-" "curl"%s`, status, tail)
}

// TestAttempts_C167: several upstream times are attempts; their sum is the
// service time, the last is kept apart.
func TestAttempts_C167(t *testing.T) {
	for _, c := range []struct {
		tail           string
		attempts       int
		sum, last, all time.Duration
	}{
		{` 0.024 0.016`, 1, 16 * ms, 16 * ms, 24 * ms},
		{` 0.024 0.000, 0.016`, 2, 16 * ms, 16 * ms, 24 * ms},
		{` 0.024 "0.000, 0.016"`, 2, 16 * ms, 16 * ms, 24 * ms},
		{` "0.024" "0.004, 0.016"`, 2, 20 * ms, 16 * ms, 24 * ms},
		{` 0.024 0.001, 0.002, 0.003`, 3, 6 * ms, 3 * ms, 24 * ms},
		{` 0.024 0.010 : 0.002`, 2, 12 * ms, 2 * ms, 24 * ms},
		{` 0.024 0.010, 0.001 : 0.002, 0.003`, 4, 16 * ms, 3 * ms, 24 * ms},
		{` 0.024 0.010, -`, 2, 10 * ms, Absent, 24 * ms},
		{` 0.024 -, 0.010`, 2, 10 * ms, 10 * ms, 24 * ms},
		{` "203.0.113.4, 10.0.0.1" 0.024 0.016`, 1, 16 * ms, 16 * ms, 24 * ms},
		{` "-" 0.024 0.016 HIT`, 1, 16 * ms, 16 * ms, 24 * ms},
		{` rt=0.024 uct="0.000" uht="0.015, 0.001" urt="0.015, 0.001"`, 2, 16 * ms, 1 * ms, 24 * ms},
		{` request_time=0.024 upstream_response_time=0.015, 0.001 cs=MISS`, 2, 16 * ms, 1 * ms, 24 * ms},
		{` 463 0.024 [default-svc-80] [] 10.0.0.1:80, 10.0.0.2:80 0, 150 0.004, 0.016 502, 200 5b3f`, 2, 20 * ms, 16 * ms, 24 * ms},
		{` 463 0.024 0.000, 0.016`, 2, 16 * ms, 16 * ms, 24 * ms},
		{` example.com 0.024 10.0.0.1:80 0.016 .`, 1, 16 * ms, 16 * ms, 24 * ms},
		{` 0.024`, 0, Absent, Absent, 24 * ms},
		{` 0.024 -`, 0, Absent, Absent, 24 * ms},
	} {
		rows, whys := parseLines(t, Options{Format: Nginx}, nginxLine(200, c.tail))
		r := rows[0]
		if !r.Verdict.Arrives() || r.Attempts != c.attempts || r.Service != c.sum || r.LastService != c.last || r.Total != c.all {
			t.Errorf("%s: %v %q: %d attempts, sum %v, last %v, total %v; want %+v", c.tail, r.Verdict, whys[0], r.Attempts, r.Service, r.LastService, r.Total, c)
		}
	}
	for _, tail := range []string{
		` 0.024 0.001 0.016`, ` 0.024 0.001 0.002 0.003`, ` 0.024 0.01`, ` 0.02`, ` 0.024 0.001,`, ` 0.024 0.001 :`,
		` 0.024 0.001, x`, ` 18598`, ` 463 18598`, ` "0.024`, ` rt=24`, ` 99999999.000 0.001`,
	} {
		if rows, _ := parseLines(t, Options{Format: Nginx}, nginxLine(200, tail)); rows[0].Verdict != Malformed {
			t.Errorf("%s: %v, attempts %d, service %v: a guess", tail, rows[0].Verdict, rows[0].Attempts, rows[0].Service)
		}
	}
}

const haHead = `Feb  6 12:14:14 lb1 haproxy[14389]: 192.0.2.2:33317 [06/Feb/2024:12:14:14.655] `

// TestAttemptsInColumns_C167: the same lists, where nginx writes JSON.
func TestAttemptsInColumns_C167(t *testing.T) {
	for _, c := range []struct {
		value     string
		attempts  int
		sum, last time.Duration
		verdict   Verdict
	}{
		{"0.016", 0, 16 * ms, 16 * ms, OK},
		{"0.004, 0.016", 2, 20 * ms, 16 * ms, OK},
		{"0.004, 0.006 : 0.001", 3, 11 * ms, ms, OK},
		{"0.004, -", 2, 4 * ms, Absent, OK},
		{"-", 0, Absent, Absent, NoSample},
		{"-, -", 0, Absent, Absent, NoSample},
		{"", 0, Absent, Absent, NoSample},
		{"0.004, x", 0, 0, 0, Malformed},
		{",", 0, 0, 0, Malformed},
		{"1e999", 0, 0, 0, Malformed},
		{"99999999", 0, 0, 0, Malformed},
	} {
		rows, _ := parseLines(t, Options{Columns: "end=1s*msec,total=1s*rt,service=1s*urt", Format: JSON},
			`{"msec":"1548057594.123","rt":"0.024","urt":"`+c.value+`"}`)
		r := rows[0]
		if r.Verdict != c.verdict || r.Verdict == OK && (r.Attempts != c.attempts || r.Service != c.sum || r.LastService != c.last || r.Arrival != 1548057594099e6) {
			t.Errorf("%q: %v, %d attempts, sum %v, last %v, arrival %d", c.value, r.Verdict, r.Attempts, r.Service, r.LastService, r.Arrival)
		}
	}
}

// TestNoServer_C169: -1 did not happen. It is no sample, and an arrival.
func TestNoServer_C169(t *testing.T) {
	checkLines(t, Options{}, "", []lineCase{
		{haHead + `public~ public/<NOSRV> 0/-1/-1/-1/0 401 256 - - LR-- 2/2/0/0/0 0/0 "GET / HTTP/1.1"`, NoSample, whyHANone, Absent, Absent, 0, 401, Served},
		{haHead + `fe be/<NOSRV> 0/-1/-1/-1/0 503 212 - - SC-- 2/2/0/0/0 0/0 "GET / HTTP/1.1"`, NoSample, whyHANone, Absent, Absent, 0, 503, Failed},
		{haHead + `fe be/s1 0/0/-1/-1/3002 503 212 - - SC-- 2/2/0/0/3 0/0 "GET / HTTP/1.1"`, NoSample, whyHANone, 0, Absent, 3002 * ms, 503, Failed},
		{haHead + `fe be/s1 0/7/1/-1/9 -1 0 - - CH-- 2/2/0/0/0 0/0 "GET / HTTP/1.1"`, NoSample, whyHANone, 7 * ms, Absent, 9 * ms, NoStatus, Cancelled},
		{haHead + `fe be/<NOSRV> 0/900/-1/-1/900 -1 0 - - CQ-- 2/2/0/0/0 0/9 "GET / HTTP/1.1"`, NoSample, whyHANone, 900 * ms, Absent, 900 * ms, NoStatus, Cancelled},
		{haHead + `fe be/s1 0/0/1/-1/50001 504 212 - - sH-- 2/2/0/0/0 0/0 "GET / HTTP/1.1"`, NoSample, whyHANone, 0, Absent, 50001 * ms, 504, Failed},
		{haHead + `fe be/s1 0/0/1/2/3600000 101 212 - - ---- 2/2/0/0/0 0/0 "GET /ws HTTP/1.1"`, NoSample, whyStream, 0, Absent, 3600000 * ms, 101, Stream},
	})
}

// TestPlus_C171: a total with a plus sign is a lower bound and in no percentile.
func TestPlus_C171(t *testing.T) {
	line := haHead + `fe be/s1 10/0/30/69/+109 200 +2750 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1"`
	r := checkLines(t, Options{}, "", []lineCase{{line, OK, "", 0, 69 * ms, 109 * ms, 200, Served}})[0]
	if !r.TotalAtLeast || r.ServiceAtLeast {
		t.Errorf("total at least %t, service at least %t", r.TotalAtLeast, r.ServiceAtLeast)
	}
	r.Service = Absent
	if d, ok := r.Sample(); ok {
		t.Errorf("a lower bound of %v is a sample", d)
	}
	// A service time that is a lower bound is stored, but in no percentile.
	l := mustOpen(t, Options{}, nginxLine(200, " 0.020 0.020")+"\n"+nginxLine(504, " 60.001 60.001")+"\n")
	if f := l.Summary().Files[0]; f.Samples != 1 || f.P99 > 21*ms {
		t.Errorf("%d samples with a p99 of %v", f.Samples, f.P99)
	}
	n := 0
	for _, r := range records(t, l) {
		if r.ServiceAtLeast {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d records are lower bounds", n)
	}
}

// TestBadRequests_C172: a request that is not one, or is cut anywhere, costs at
// most its own line.
func TestBadRequests_C172(t *testing.T) {
	good := haHead + `fe be/s1 0/1/2/30/40 200 5 - - ---- 1/1/1/1/0 0/0 {a|b} {} "GET /index.html?q=1 HTTP/1.1"`
	checkLines(t, Options{}, "", []lineCase{
		{haHead + `fe fe/<NOSRV> -1/-1/-1/-1/10001 408 212 - - cR-- 5/5/0/0/0 0/0 "<BADREQ>"`, NoSample, whyHABad, Absent, Absent, 10001 * ms, 408, Failed},
		{haHead + `fe fe/<NOSRV> -1/-1/-1/-1/1 400 187 - - PR-- 5/5/0/0/0 0/0 {|} "<BADREQ>`, NoSample, whyHABad, Absent, Absent, ms, 400, Failed},
		{haHead + `fe be/s1 0/1/2/30/40 200 5 - - ---- 1/1/1/1/0 0/0 "GET /` + strings.Repeat("x", 3000), MalformedRequest, whyCut, ms, 30 * ms, 40 * ms, 200, Served},
		{haHead + `fe be/s1 0/1/2/30/40 200 5 - - ---- 1/1/1/1/0 0/0 "GET /a HT"`, MalformedRequest, whyCut, ms, 30 * ms, 40 * ms, 200, Served},
		{haHead + `fe be/s1 0/1/2/30/40 200 5 - - ---- 1/1/1/1/0 0/0 "GET /a"`, MalformedRequest, whyCut, ms, 30 * ms, 40 * ms, 200, Served},
		{good, OK, "", ms, 30 * ms, 40 * ms, 200, Served},
	})
	// Cut at every byte: never a wrong number, and the next line is as it is.
	for n := 1; n < len(good); n++ {
		rows, _ := parseLines(t, Options{Format: HAProxy}, good[:n]+"\n"+good)
		if r := rows[0]; r.Verdict.Arrives() && (r.Service != 30*ms || r.Total != 40*ms || r.Status != 200) {
			t.Errorf("cut at %d: %v, service %v, total %v", n, r.Verdict, r.Service, r.Total)
		}
		if r := rows[1]; r.Verdict != OK || r.Service != 30*ms {
			t.Errorf("after a line cut at %d: %v, service %v", n, r.Verdict, r.Service)
		}
	}
}

// customHAProxy has six timers, as a log-format of one's own may.
const customHAProxy = haHead + `fe~ be/s1 1/2/3/4/5/60 200 2750 - - ---- 1/1/1/1/0 0/0 {a|b "c"} {|d} "GET /x HTTP/1.1" free text: 5 ms`

// TestCustom_C173: a format that is not ours needs a pattern, and is never
// guessed: the error names the field.
func TestCustom_C173(t *testing.T) {
	_, err := open(t, Options{}, customHAProxy+"\n")
	if err == nil || !strings.Contains(err.Error(), "line 1 resembles haproxy, but the timers") {
		t.Errorf("six timers: %v", err)
	}
	if _, err = open(t, Options{Format: HAProxy}, customHAProxy+"\n"); err == nil || !strings.Contains(err.Error(), "line 1: the timers") {
		t.Errorf("six timers, given as haproxy: %v", err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"1/2/3/4/5/60", "1/2/3/4", "timers"},
		{"1/2/3/4/5/60 200 2750", "1/2/3/4/5 2750 200", "status"},
		{"1/2/3/4/5/60 200 2750 - - ---- 1/1/1/1/0 0/0 {", "1/2/3/4/5 200 2750 - - ---- 1/1/1/1/0 {", "queues"},
		{"1/2/3/4/5/60 200 2750 - - ---- 1/1/1/1/0", "1/2/3/4/5 200 2750 - - ---- 1/1/1/1", "connections"},
		{"1/2/3/4/5/60 200 2750 - - ----", "1/2/3/4/5 200 2750 - - --", "termination state"},
		{`1/2/3/4/5/60 200 2750 - - ---- 1/1/1/1/0 0/0 {`, `1/2/3/4/5 200 2750 - - ---- 1/1/1/1/0 0/0 ms=5 {`, "captured headers"},
	} {
		line := strings.Replace(customHAProxy, c.old, c.new, 1)
		if _, err := open(t, Options{}, line+"\n"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n got %v, want a sentence about the %s", line, err, c.want)
		}
	}
	// Five timers, braces with bars and text behind the request: httplog all the same.
	rows := checkLines(t, Options{}, "", []lineCase{
		{strings.Replace(customHAProxy, "5/60", "60", 1), OK, "", 2 * ms, 4 * ms, 60 * ms, 200, Served},
	})
	if string(rows[0].path) != "/x" {
		t.Errorf("path %q", rows[0].path)
	}
	pattern := `\[(?P<arrival>[^\]]+)\] \S+ \S+ \d+/(?P<queue_ms>-?\d+)/\d+/(?P<service_ms>-?\d+)/\d+/(?P<total_ms>\d+) (?P<status>-?\d+) .*?"[A-Z]+ (?P<path>\S+)`
	l := mustOpen(t, Options{Pattern: pattern, Classes: []Class{{Name: "x", Path: "/x*", Cost: 3}}}, customHAProxy+"\nrubbish\n")
	want := Record{
		Budget: Absent, Arrival: time.Date(2024, 2, 6, 12, 14, 14, 655e6, time.UTC).UnixNano(),
		Queue: 2 * ms, Service: 4 * ms, LastService: 4 * ms, Total: 60 * ms, Class: "x", Cost: 3, Status: 200, Outcome: Served,
	}
	if got := records(t, l); len(got) != 1 || got[0] != want {
		t.Errorf("by pattern\n got  %+v\n want %+v", got, want)
	}
	early, _ := parseLines(t, Options{Pattern: `^(?P<arrival>\S+) (?P<total_ms>\S+)`, Format: Pattern}, "2024-02-06T12:14:14Z +109")
	if r := early[0]; r.Total != 109*ms || !r.TotalAtLeast {
		t.Errorf("a plus sign in a pattern: %+v", r.Record)
	}
	if l.Summary().Skipped != 1 {
		t.Errorf("%d lines skipped by the pattern", l.Summary().Skipped)
	}
}
