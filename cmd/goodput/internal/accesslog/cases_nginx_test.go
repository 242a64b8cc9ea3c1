package accesslog

import (
	"strings"
	"testing"
	"time"
)

// TestMalformedRequests_C179: whatever clients send is an arrival.
func TestMalformedRequests_C179(t *testing.T) {
	line := func(request, tail string) string {
		return strings.Replace(nginxLine(200, tail), "GET /a HTTP/1.1", request, 1)
	}
	good := line("GET /good%20path HTTP/1.1", " 0.024 0.010")
	bad := []string{
		line("", " 0.000 -"),
		line(`\x16\x03\x01\x02\x00\x01`, " 0.001 -"),
		line("\x80\xff\x01 \x02", " 0.001 -"),
		line("GET /"+strings.Repeat("a", 5000)+" HTTP/1.1", " 0.024 0.010"),
		line("GET /%zz HTTP/1.1", " 0.024 0.010"),
		line("GET /%2 HTTP/1.1", " 0.024 0.010"),
		line("-", " 0.000 -"),
		line("GET", " 0.000 -"),
		line("GET  HTTP/1.1", " 0.000 -"),
		line(`GET /\"quoted\" HTTP/9.`, " 0.000 -"),
	}
	text := good + "\n"
	for _, b := range bad {
		text += b + "\n" + strings.Replace(good, "good", "good"+strings.Repeat("x", len(text)%7+1), 1) + "\n"
	}
	l := mustOpen(t, Options{KeepDuplicates: true}, text)
	f, s := l.Summary().Files[0], l.Summary()
	if f.Verdicts[OK] != 11 || f.Verdicts[MalformedRequest] != 10 || s.Used != 21 || s.Skipped != 0 {
		t.Errorf("verdicts %v, %d used, %d skipped, notes %+v", f.Verdicts, s.Used, s.Skipped, f.Notes)
	}
	if s.Samples != 14 { // 11 good ones, and three whose times are good
		t.Errorf("%d samples", s.Samples)
	}

	// The limit of a line is configurable; what is longer costs itself alone.
	short := mustOpen(t, Options{MaxLine: 1000, KeepDuplicates: true}, text)
	if f := short.Summary().Files[0]; f.Verdicts[Malformed] != 1 || short.Summary().Used != 20 {
		t.Errorf("with short lines: verdicts %v, notes %+v", f.Verdicts, f.Notes)
	}
	huge := good + "\n" + line("GET /"+strings.Repeat("a", 1<<20)+" HTTP/1.1", " 0.024 0.010") + "\n" + bad[0] + "\n"
	if s := mustOpen(t, Options{}, huge).Summary(); s.Used != 2 || s.Files[0].Notes[0].Why != whyTooLong {
		t.Errorf("a line of 1 MiB: %d used, notes %+v", s.Used, s.Files[0].Notes)
	}
	if s := mustOpen(t, Options{MaxLine: 2 << 20}, huge).Summary(); s.Used != 3 {
		t.Errorf("a line of 1 MiB with a limit of 2: %d used", s.Used)
	}
}

// TestNginxOutcomes: what nginx answers by itself is told from what an upstream
// answered.
func TestNginxOutcomes(t *testing.T) {
	checkLines(t, Options{Format: Nginx}, "", []lineCase{
		{nginxLine(503, " 0.000 -"), NoSample, whyNoUpstream, Absent, Absent, 0, 503, Rejected}, // limit_req, limit_conn
		{nginxLine(429, " 0.000 -"), NoSample, whyNoUpstream, Absent, Absent, 0, 429, Rejected},
		{nginxLine(503, " 0.012 0.010"), OK, "", Absent, 10 * ms, 12 * ms, 503, Failed},
		{nginxLine(502, " 0.012 0.010, -"), OK, "", Absent, 10 * ms, 12 * ms, 502, Failed},
		{nginxLine(404, " 0.012 0.010"), OK, "", Absent, 10 * ms, 12 * ms, 404, Served},
		{nginxLine(499, " 2.000 1.999"), OK, "", Absent, 1999 * ms, 2000 * ms, 499, Cancelled},
		{nginxLine(101, " 300.000 300.000"), NoSample, whyStream, Absent, Absent, 300 * time.Second, 101, Stream},
		{nginxLine(0, " 0.000 -"), NoSample, whyNoUpstream, Absent, Absent, 0, 0, Cancelled},
	})
}

// TestEscapedQuotes_C180: what an agent writes does not move the times.
func TestEscapedQuotes_C180(t *testing.T) {
	for _, agent := range []string{
		`Mozilla/5.0 (10\" Build)`, `10\x22 Build`, `\\`, `\\\"`, `\" 9.999 8.888`, `a [b] {c}`, ` `, ``, `x\\\" 1.000 \\`,
		`rt=9.999`, `[21/Jan/2019:08:59:54 +0100]`,
	} {
		line := strings.Replace(nginxLine(200, " 0.024 0.010"), `"curl"`, `"`+agent+`"`, 1)
		checkLines(t, Options{Format: Nginx}, "", []lineCase{{line, OK, "", Absent, 10 * ms, 24 * ms, 200, Served}})
		line = strings.Replace(nginxLine(200, " 24000"), `"curl"`, `"`+agent+`"`, 1)
		checkLines(t, Options{Format: Apache}, "", []lineCase{{line, OK, "", Absent, Absent, 24 * ms, 200, Served}})
	}
}

// TestSlowClients_C189: the service time is the upstream's, and a log with the
// total alone is a warning.
func TestSlowClients_C189(t *testing.T) {
	l := mustOpen(t, Options{}, nginxLine(200, " 30.000 0.020")+"\n")
	r := records(t, l)[0]
	if d, ok := r.Sample(); !ok || d != 20*ms || r.Total != 30*time.Second || len(l.Summary().Warnings) != 0 {
		t.Errorf("sample %v, total %v, warnings %q", d, r.Total, l.Summary().Warnings)
	}
	if f := l.Summary().Files[0]; !strings.Contains(f.Rule, "$upstream_response_time") {
		t.Errorf("rule %q", f.Rule)
	}
	for _, c := range []struct{ text, warns string }{
		{nginxLine(200, " 30.000") + "\n", "only the total time is logged, and it contains slow clients and waits to connect: log $request_time $upstream_response_time"},
		{nginxLine(200, "") + "\n", "no line has a service time: log $request_time"},
		{nginxLine(200, " 24000") + "\n", "only the total time is logged"},
		{iisHead + iisFields + iisLine + "\n", "only the total time is logged"},
		{cfFields + cfLine + "\n", "only the total time is logged"},
		{sample(t, "gcp_lb.jsonl"), "only the total time is logged"},
		{nginxLine(200, " 0.020 30.000") + "\n", "the other way round"},
	} {
		if w := strings.Join(mustOpen(t, Options{}, c.text).Summary().Warnings, "\n"); !strings.Contains(w, c.warns) {
			t.Errorf("%.60s\n got  %q\n want %q", c.text, w, c.warns)
		}
	}
}
