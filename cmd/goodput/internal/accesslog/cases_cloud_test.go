package accesslog

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// albLine is a line whose fields from the times to the request vary; tail is
// what follows the agent.
func albLine(kind, times, request, tail string) string {
	return kind + ` 2020-08-27T16:35:01.051646Z app/lb/50dc 192.0.2.40:41542 - ` + times + ` 233 390 "` + request + `" "Hello, \"world\""` + tail
}

const (
	albNew = ` - - - "Root=1-62" "-" "-" 0 2020-08-27T16:35:01.000000Z "redirect" "https://a:443/ b" "-" "-" "-" "Acceptable" "SpaceInUri" TID_1 "new"`
	albOld = ` - - - "Root=1-62"`
)

// TestALB_C174: quotes rule the split, -1 and "-" are none, and lines of all
// years are read.
func TestALB_C174(t *testing.T) {
	const get = "GET http://203.0.113.1:80/shell?cd+/tmp; wget+ x HTTP/1.1"
	rows := checkLines(t, Options{}, "", []lineCase{
		{albLine("http", "-1 -1 -1 301 -", get, albNew), NoSample, whyALBTarget, Absent, Absent, Absent, 301, Served},
		{albLine("http", "-1 -1 -1 301 -", get, albOld), NoSample, whyALBTarget, Absent, Absent, Absent, 301, Served},
		{albLine("h2", "0.001 0.048 0.002 200 200", get, albNew), OK, "", Absent, 48 * ms, 51 * ms, 200, Served},
		{albLine("h2", "0.001 0.048 0.002 200 200", get, albOld), OK, "", Absent, 48 * ms, 51 * ms, 200, Served},
		{albLine("https", "0.000 12.5 -1 460 -", get, albNew), OK, "", Absent, 12500 * ms, Absent, 460, Cancelled},
		{albLine("https", "-1 -1 -1 503 -", get, albNew), NoSample, whyALBTarget, Absent, Absent, Absent, 503, Failed},
		{albLine("https", "-1 -1 -1 400 -", "- http://a:80- -", albNew), MalformedRequest, whyNoRequest, Absent, Absent, Absent, 400, Failed},
		{albLine("ws", "0.001 0.003 0.000 101 101", get, albNew), NoSample, whyStream, Absent, Absent, Absent, 101, Stream},
		{albLine("h2", "0.001 0.048 0.002 200 200", get, ` - - - "Root=1-62`), Malformed, whyAgent, 0, 0, 0, 0, 0},
		{albLine("h2", "0.001 48ms 0.002 200 200", get, albNew), Malformed, whyALBTimes, 0, 0, 0, 0, 0},
		{`2015-05-13T23:39:43.945958Z elb 192.0.2.39:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 "GET http://www.example.com:80/ HTTP/1.1" "curl/7.38.0" - -`, OK, "", Absent, 1048 * time.Microsecond, 1178 * time.Microsecond, 200, Served},
	})
	at := func(s string) int64 {
		ns, ok := readISO([]byte(s), nil)
		if !ok {
			t.Fatal(s)
		}
		return ns
	}
	for i, want := range map[int]string{
		0:  "2020-08-27T16:35:01Z",        // creation
		1:  "2020-08-27T16:35:01.051646Z", // nothing to take off
		2:  "2020-08-27T16:35:01Z",
		3:  "2020-08-27T16:35:01.000646Z", // end - 51 ms
		10: "2015-05-13T23:39:43.945958Z", // a Classic balancer stamps the start
	} {
		if rows[i].Arrival != at(want) {
			t.Errorf("line %d arrives at %v, want %s", i+1, time.Unix(0, rows[i].Arrival).UTC(), want)
		}
	}
}

// TestNoStatus_C176: lines without a status are arrivals, detection goes on, and
// they are counted as unknown.
func TestNoStatus_C176(t *testing.T) {
	tcp := `2015-05-13T23:39:43.945958Z elb 192.0.2.39:2817 10.0.0.1:80 0.001069 0.000028 0.000041 - - 82 305 "- - - " "-" - -`
	for name, lines := range map[string][2]string{
		"alb":     {albLine("https", "-1 -1 -1 - -", "GET http://a:80/ HTTP/1.1", albNew), albLine("h2", "0.001 0.048 0.002 200 200", "GET http://a:80/ HTTP/1.1", albNew)},
		"classic": {tcp, strings.Replace(tcp, "- - 82", "200 200 82", 1)},
		"nginx":   {strings.Replace(nginxLine(200, " 0.010 -"), "200", "-", 1), nginxLine(200, " 0.024 0.010")},
		"haproxy": {haHead + `fe be/<NOSRV> 0/-1/-1/-1/0 -1 0 - - PR-- 1/1/0/0/0 0/0 "GET / HTTP/1.1"`, haHead + `fe be/s1 0/1/2/30/40 200 5 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1"`},
		"envoy":   {`[2024-03-07T08:08:00.746Z] "GET /a HTTP/2" - - 0 512 27 25 "-" "-" "id" "svc:80" "a:1"`, `[2024-03-07T08:08:00.746Z] "GET /a HTTP/2" 200 - 0 512 27 25 "-" "-" "id" "svc:80" "a:1"`},
	} {
		l := mustOpen(t, Options{KeepDuplicates: true}, strings.Repeat(lines[0]+"\n", 10)+lines[1]+"\n")
		s := l.Summary()
		if s.Used != 11 || s.Files[0].Outcomes[Unknown] != 10 || s.Files[0].Outcomes[Served] != 1 {
			t.Errorf("%s: %d used, outcomes %v", name, s.Used, s.Files[0].Outcomes)
		}
		if !strings.Contains(strings.Join(s.Warnings, "\n"), "10 lines have no status") {
			t.Errorf("%s: warnings %q", name, s.Warnings)
		}
	}
}

const (
	iisHead      = "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n#Date: 2015-06-11 00:00:00\n"
	iisFields    = "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) sc-status sc-substatus sc-win32-status time-taken\n"
	iisAdvanced  = "#Fields: date time s-sitename cs-uri-stem cs(User-Agent) sc-status sc-win32-status TimeTakenMS\n"
	iisLine      = "2015-06-11 00:00:01 10.0.0.48 GET /a - 80 - 192.0.2.1 App/316+CFNetwork/711 200 0 0 36"
	iisNoTaken   = "#Fields: date time cs-method cs-uri-stem sc-status\n"
	cfFields     = "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(User-Agent) x-edge-result-type time-taken\n"
	cfLine       = "2019-12-04\t21:02:31\tLAX1\t392\t192.0.2.100\tGET\td111.cloudfront.net\t/index.html\t200\tMozilla/5.0%2520(X11)\tMiss\t0.125"
	cfFieldsMore = "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(User-Agent) x-edge-result-type time-taken x-forwarded-for ssl-protocol time-to-first-byte sc-range-end\n"
)

// TestIIS_C181: columns go by name, in both kinds of IIS logs, and a log without
// time-taken is an error that names the setting.
func TestIIS_C181(t *testing.T) {
	checkLines(t, Options{}, iisHead+iisFields, []lineCase{
		{iisLine, OK, "", Absent, Absent, 36 * ms, 200, Served},
		{strings.Replace(iisLine, "200 0 0", "200 0 64", 1), OK, "", Absent, Absent, 36 * ms, 200, Cancelled},
		{strings.Replace(iisLine, "200 0 0", "503 2 0", 1), OK, "", Absent, Absent, 36 * ms, 503, Rejected},
		{strings.Replace(iisLine, " 36", " -", 1), NoSample, whyNoTime, Absent, Absent, Absent, 200, Served},
		{strings.Replace(iisLine, " 36", "", 1), Malformed, whyCount, 0, 0, 0, 0, 0},
		{iisLine + " 5", Malformed, whyCount, 0, 0, 0, 0, 0},
	})
	checkLines(t, Options{}, iisHead+iisAdvanced, []lineCase{
		{`2015-06-11 00:00:01.250 W3SVC1 /a "Mozilla/5.0 (Windows NT 6.1; WOW64)" 200 0 36`, OK, "", Absent, Absent, 36 * ms, 200, Served},
		{`2015-06-11 00:00:01.250 W3SVC1 /a "-" 404 0 1`, OK, "", Absent, Absent, ms, 404, Served},
	})
	sitename := strings.Replace(iisFields, "time s-ip", "time s-sitename s-computername s-ip", 1)
	checkLines(t, Options{}, sitename, []lineCase{
		{strings.Replace(iisLine, "10.0.0.48", "W3SVC1 WEB01 10.0.0.48", 1), OK, "", Absent, Absent, 36 * ms, 200, Served},
	})
	// No date column: the #Date line has it.
	rows := checkLines(t, Options{}, iisHead+"#Fields: time c-ip cs-method cs-uri-stem sc-status time-taken\n", []lineCase{
		{"00:00:01 192.0.2.1 GET /a 200 1000", OK, "", Absent, Absent, time.Second, 200, Served},
	})
	if got := time.Unix(0, rows[0].Arrival).UTC().Format(time.DateTime); got != "2015-06-11 00:00:00" {
		t.Errorf("arrives at %s", got)
	}
	for _, o := range []Options{{}, {Format: IIS}} {
		_, err := open(t, o, iisHead+iisNoTaken+"2015-06-11 00:00:01 GET /a 200\n")
		if err == nil || !strings.Contains(err.Error(), "line 4: time-taken is not among the #Fields") || !strings.Contains(err.Error(), "Select Fields") {
			t.Errorf("without time-taken: %v", err)
		}
	}
}

// TestHeaders_C182: a header that repeats or changes takes effect, and is no
// error.
func TestHeaders_C182(t *testing.T) {
	text := iisHead + iisFields + iisLine + "\n" +
		iisHead + iisFields + strings.Replace(iisLine, " 36", " 37", 1) + "\n" +
		iisHead + strings.Replace(iisFields, "date time", "date time s-sitename", 1) + strings.Replace(strings.Replace(iisLine, "00:00:01", "00:00:01 W3SVC1", 1), " 36", " 38", 1) + "\n" +
		"#Fields: time-taken sc-status cs-uri-stem time date\n" + "39 200 /a 00:00:02 2015-06-11\n"
	l := mustOpen(t, Options{}, text)
	var totals []time.Duration
	for _, r := range records(t, l) {
		totals = append(totals, r.Total)
	}
	if got := fmt.Sprint(totals); got != "[38ms 37ms 36ms 39ms]" { // ends at 1, 1, 1 and 2 s
		t.Errorf("totals %s", got)
	}
	if f := l.Summary().Files[0]; f.Verdicts[Malformed] != 0 || f.Verdicts[Header] != 13 {
		t.Errorf("verdicts %v", f.Verdicts)
	}
	csv := "at,ms\n1,5\nat,ms\n2,6\n"
	if s := mustOpen(t, Options{Columns: "arrival=1s*at,service=1ms*ms"}, csv).Summary(); s.Used != 2 || s.Files[0].Verdicts[Header] != 2 {
		t.Errorf("a repeated header of a csv: %d used, verdicts %v", s.Used, s.Files[0].Verdicts)
	}
}

// TestUnits_C183: the unit is the format's or given, it is in the rule, and a
// median that cannot be is a warning.
func TestUnits_C183(t *testing.T) {
	apache := func(n ...int) string {
		var b strings.Builder
		for i, d := range n {
			b.WriteString(strings.Replace(nginxLine(200, fmt.Sprintf(" %d\n", d)), "GET /a", fmt.Sprintf("GET /%d", i), 1))
		}
		return b.String()
	}
	uniform := make([]int, 400) // what is left of seconds when only their fraction is logged
	for i := range uniform {
		uniform[i] = i * 2500
	}
	for _, c := range []struct {
		name   string
		o      Options
		text   string
		median time.Duration
		rule   string
		warns  string // "" is no warning about a unit
	}{
		{"Apache %D", Options{}, apache(18598, 18598, 18598), 18598 * time.Microsecond, "units of 1µs (Apache's %D", ""},
		{"Tomcat, not told", Options{}, apache(30, 30, 30), 30 * time.Microsecond, "Tomcat before 10.1", "implausibly short"},
		{"Tomcat, told", Options{Unit: time.Millisecond}, apache(30, 30, 30), 30 * ms, "units of 1ms (given)", ""},
		{"seconds, told wrong", Options{Unit: time.Second}, apache(10800, 10800, 10800), 3 * time.Hour, "units of 1s (given)", "implausibly long"},
		{"%T, not told", Options{}, apache(0, 0, 1), 0, "units of 1µs", "too coarse"},
		{"gunicorn, the fraction alone", Options{}, apache(uniform...), 498 * ms, "units of 1µs", "fraction of the second"},
		{"%T/%D", Options{}, strings.ReplaceAll(apache(18598, 18598), " 18598", " 0/18598"), 18598 * time.Microsecond, "units of 1µs", ""},
		{"IIS", Options{}, iisHead + iisFields + iisLine + "\n", 36 * ms, "(milliseconds)", ""},
		{"CloudFront", Options{}, cfFields + cfLine + "\n", 125 * ms, "(seconds)", ""},
	} {
		s := mustOpen(t, c.o, c.text).Summary()
		f := s.Files[0]
		if off := f.Median - c.median; off < -c.median/1000 || off > c.median/1000 || !strings.Contains(f.Rule, c.rule) {
			t.Errorf("%s: median %v, rule %q", c.name, f.Median, f.Rule)
		}
		w := strings.Join(s.Warnings, "\n")
		unit := strings.Contains(w, "implausibl") || strings.Contains(w, "too coarse") || strings.Contains(w, "fraction of")
		if unit != (c.warns != "") || !strings.Contains(w, c.warns) {
			t.Errorf("%s: warnings %q, want one that says %q", c.name, s.Warnings, c.warns)
		}
	}
}

// TestCloudFront_C185: by header, of any year, tabs alone.
func TestCloudFront_C185(t *testing.T) {
	six := strings.Replace(cfLine, "192.0.2.100", "2001:db8::6fc6", 1)
	spaced := strings.Replace(cfLine, "Mozilla/5.0%2520(X11)", "Mozilla/5.0 (X11) \"x", 1) // a blank and a quote separate nothing
	checkLines(t, Options{}, cfFields, []lineCase{
		{cfLine, OK, "", Absent, Absent, 125 * ms, 200, Served},
		{six, OK, "", Absent, Absent, 125 * ms, 200, Served},
		{spaced, OK, "", Absent, Absent, 125 * ms, 200, Served},
		{strings.Replace(cfLine, "\t200\t", "\t000\t", 1), OK, "", Absent, Absent, 125 * ms, 0, Cancelled},
		{strings.Replace(strings.Replace(cfLine, "\t200\t", "\t503\t", 1), "Miss", "LimitExceeded", 1), OK, "", Absent, Absent, 125 * ms, 503, Rejected},
		{strings.ReplaceAll(cfLine, "\t", " "), Malformed, whyCount, 0, 0, 0, 0, 0},
	})
	checkLines(t, Options{}, cfFieldsMore, []lineCase{
		{six + "\t-\tTLSv1.3\t0.124\t-", OK, "", Absent, Absent, 125 * ms, 200, Served},
	})
	tabbed := "#Version: 1.0\n#Fields:\t" + strings.ReplaceAll(strings.TrimPrefix(strings.Split(cfFields, "\n")[1], "#Fields: "), " ", "\t") + "\n"
	checkLines(t, Options{}, tabbed, []lineCase{{cfLine, OK, "", Absent, Absent, 125 * ms, 200, Served}})
	if _, err := open(t, Options{Format: CloudFront}, cfLine+"\n"); err == nil || !strings.Contains(err.Error(), whyNoFields) {
		t.Errorf("without a header: %v", err)
	}
	if _, err := open(t, Options{}, cfFields+cfLine+"\n"+iisFields+iisLine+"\n"); err == nil || !strings.Contains(err.Error(), "line 4: the #Fields are not those of cloudfront") {
		t.Errorf("then IIS: %v", err)
	}
	if _, err := open(t, Options{}, "#Fields: date time x-edge-location sc-status\n"); err == nil || !strings.Contains(err.Error(), "time-taken") {
		t.Errorf("without time-taken: %v", err)
	}
}

// TestEnvoy_C186: flags, streams, requests that never began.
func TestEnvoy_C186(t *testing.T) {
	line := func(status int, flags string, duration int, service string) string {
		return fmt.Sprintf(`[2024-03-07T08:08:00.746Z] "POST /w HTTP/2" %d %s 0 81 %d %s "-" "a "quoted" agent" "id" "svc:80" "-"`, status, flags, duration, service)
	}
	const none, begun = "no upstream answered", "no response had begun"
	checkLines(t, Options{}, "", []lineCase{
		{line(200, "-", 27, "25"), OK, "", Absent, 25 * ms, 27 * ms, 200, Served},
		{line(200, "-", 300000, "-"), NoSample, none, Absent, Absent, 300000 * ms, 200, Served},
		{line(200, "DC", 300000, "-"), NoSample, none, Absent, Absent, 300000 * ms, 200, Cancelled},
		{line(0, "DC", 15000, "-"), NoSample, begun, Absent, Absent, 15000 * ms, 0, Cancelled},
		{line(0, "-", 15000, "3"), NoSample, begun, Absent, Absent, 15000 * ms, 0, Cancelled},
		{line(503, "UO", 0, "-"), NoSample, none, Absent, Absent, 0, 503, Rejected},
		{line(503, "UF,URX", 750, "-"), NoSample, none, Absent, Absent, 750 * ms, 503, Failed},
		{line(504, "UT", 15000, "-"), NoSample, none, Absent, Absent, 15000 * ms, 504, Failed},
		{line(503, "UH", 0, "-"), NoSample, none, Absent, Absent, 0, 503, Failed},
		{line(429, "RL", 1, "-"), NoSample, none, Absent, Absent, ms, 429, Rejected},
		{line(101, "-", 300000, "4"), NoSample, whyStream, Absent, Absent, 300000 * ms, 101, Stream},
		{`[2024-03-07T08:08:00.746Z] "GET /a"b HTTP/1.1" 200 - 0 512 27 25 "-" "-" "id" "svc:80" "a:1"`, OK, "", Absent, 25 * ms, 27 * ms, 200, Served},
		{`[2024-03-07T08:08:01.000Z] "- - HTTP/1.1" 400 DPE 0 11 0 - "-" "-" "-" "-" "-"`, MalformedRequest, whyNoRequest, Absent, Absent, 0, 400, Failed},
		{`[2024-03-07T08:08:00.746Z] "GET /a HTTP/2" 200 - 0 512 27`, Malformed, whyNumbers, 0, 0, 0, 0, 0},
		{`[2024-03-07T08:08:00.746Z] "GET /a HTTP/2" 200 - via_upstream - "-" 0 512 27 25 "-" "curl" "id" "svc:80" "a:1" outbound|80`, OK, "", Absent, 25 * ms, 27 * ms, 200, Served},
		{`[2024-03-07T08:08:00.746Z] "GET /a HTTP/2" 503 UO upstream_reset{overflow} - "a \"b" 0 81 0 - "-" "curl"`, NoSample, none, Absent, Absent, 0, 503, Rejected},
		{`[2024-03-07T08:08:00.746Z] "GET /a HTTP/2" 200 - a b c d 0 512 27 25 "-"`, Malformed, whyNumbers, 0, 0, 0, 0, 0},
	})
}

// TestGCP_C188: a latency is a string, with or without the s, or missing, which
// is not 0.
func TestGCP_C188(t *testing.T) {
	entry := func(latency, details string) string {
		return `{"insertId":"x","httpRequest":{"requestMethod":"GET","requestUrl":"https://a/b?c=d","status":200` + latency +
			`},"jsonPayload":{"@type":"y","statusDetails":"` + details + `"},"timestamp":"2024-05-01T10:00:00.123456789Z"}`
	}
	const sent = "response_sent_by_backend"
	rows := checkLines(t, Options{}, "", []lineCase{
		{entry(`,"latency":"0.012s"`, sent), OK, "", Absent, Absent, 12 * ms, 200, Served},
		{entry(`,"latency":"0.005"`, sent), OK, "", Absent, Absent, 5 * ms, 200, Served},
		{entry(`,"latency":0.005`, sent), OK, "", Absent, Absent, 5 * ms, 200, Served},
		{entry(`,"latency":"0.000000123s"`, sent), OK, "", Absent, Absent, 123, 200, Served},
		{entry(`,"latency":"3s"`, sent), OK, "", Absent, Absent, 3 * time.Second, 200, Served},
		{entry(``, sent), NoSample, whyNoLatency, Absent, Absent, Absent, 200, Served},
		{entry(`,"latency":null`, sent), NoSample, whyNoLatency, Absent, Absent, Absent, 200, Served},
		{entry(`,"latency":"0s"`, sent), OK, "", Absent, Absent, 0, 200, Served},
		{entry(`,"latency":"300s"`, "websocket_closed"), NoSample, whyStream, Absent, Absent, 300 * time.Second, 200, Stream},
		{entry(`,"latency":"30.5s"`, "client_disconnected_after_partial_response"), NoSample, whyClientLeft, Absent, Absent, 30500 * ms, 200, Cancelled},
		{entry(`,"latency":"soon"`, sent), Malformed, whyLatency, 0, 0, 0, 0, 0},
		{entry(``, sent)[:80], Malformed, whyJSON, 0, 0, 0, 0, 0},
		{`{"timestamp":"2024-05-01T10:00:00Z","textPayload":"started"}`, Malformed, whyGCP, 0, 0, 0, 0, 0},
	})
	if rows[0].Arrival%1e9 != 123456789 || string(rows[0].path) != "/b" {
		t.Errorf("arrives at %d, path %q", rows[0].Arrival, rows[0].path)
	}
}

// TestDeepJSON: nesting is bounded, as each level is a frame of the stack.
func TestDeepJSON(t *testing.T) {
	f := newJSONFields([]string{"a"})
	for n, want := range map[int]bool{1: true, maxDepth - 1: true, maxDepth: false, 1 << 20: false} {
		line := `{"b":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `,"a":5}`
		if got := f.find([]byte(line)); got != want || want && string(f.values[0]) != "5" {
			t.Errorf("%d levels: %t, value %q", n, got, f.values[0])
		}
		line = strings.Repeat(`{"b":`, n) + "1" + strings.Repeat("}", n)
		if got := f.find([]byte(line)); got != (n <= maxDepth) {
			t.Errorf("%d objects: %t", n, got)
		}
	}
}
