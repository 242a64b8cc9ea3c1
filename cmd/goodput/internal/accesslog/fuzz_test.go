package accesslog

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mappedOptions are columns for the formats that need them.
var mappedOptions = map[Format]Options{
	JSON:    {Columns: "arrival=t,queue=1ms*q,service=1ms*http.ms+1us*us,total=total,status=status,class=class,path=path,size=0.1*q"},
	CSV:     {Columns: "arrival=#1,queue=1ms*#2,service=1ms*#3,total=1s*#4,status=#5,class=#6,path=#7,cost=#8"},
	Pattern: {Pattern: `(?P<end>\d{4}\S+) (?P<service_ms>[\d.]+) (?P<total_ms>\S+)(?: (?P<status>\S+))?`},
}

// seeds are good lines of each format, the first ones headers.
var seeds = map[Format][]string{
	Trace: {
		"#goodput-trace 1 1796065760000000", "arrival,class,held,cost,size,tenant,budget,priority,outcome,observe",
		"-12,a,,,,,400000,,rejected,", "#dropped 12", "#end", "1204311,default,49812,2,900,3k2j,,background,late,observed",
	},
	Goodput: {goodputLine("")},
	Nginx: {
		nginxLine(200, " 0.024 0.000, 0.016"), nginxLine(499, ` "10.0.0.1" 0.024 -`), nginxLine(200, ` rt=0.1 urt="0.001 : 0.002"`),
		nginxLine(200, ` 463 0.024 [svc] [] 10.0.0.1:80, 10.0.0.2:80 0, 150 0.004, 0.016 502, 200 5b3f`),
	},
	Apache:     {nginxLine(200, " 18598"), nginxLine(408, "")},
	Envoy:      {`[2024-03-07T08:08:00.746Z] "GET /a"b HTTP/2" 200 UF,URX 0 512 27 25 "-" "-" "id" "svc:80" "a:1"`},
	HAProxy:    {haHead + `fe~ be/s1 0/1/2/30/+40 200 +5 - - ---- 1/1/1/1/+0 0/0 {a|b} {} "GET /index.html?q=1 HTTP/1.1" x`},
	ALB:        {albLine("h2", "0.001 0.048 0.002 200 200", "GET http://a:80/ HTTP/1.1", albNew), albLine("http", "-1 -1 -1 - -", "- - - ", albOld)},
	CloudFront: {strings.Split(cfFields, "\n")[1], cfLine},
	IIS:        {strings.TrimSpace(iisFields), iisLine, "#Date: 2024-01-01 00:00:00", "#Fields: date time time-taken cs(User-Agent)", `2024-01-01 00:00:00 5 "a b"`},
	GCP:        {`{"timestamp":"2024-05-01T10:00:00.1Z","httpRequest":{"status":200,"latency":"0.012s","requestUrl":"https://a/b"},"jsonPayload":{"statusDetails":"x\u0041"}}`},
	JSON:       {`{"t":"2024-05-01T10:00:00Z","q":1.5,"http":{"ms":2e-3},"us":7,"x":[1,{"a":null}],"total":"9ms","status":200,"class":"a","path":"/x"}`},
	CSV:        {`2024-05-01 10:00:00.25,1,2.5,0.009,200,"a ""b""",/x,3`},
	Pattern:    {`2024-05-01T10:00:00Z 5 9 200`},
}

// makerFor returns a maker that can make format f.
func makerFor(t testing.TB, f Format) *maker {
	o := mappedOptions[f]
	k, err := newMaker(&o)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func parseOne(p parser, line []byte) (row, string, error) {
	var r row
	r.blank()
	why, err := p.parse(line, &r)
	return r, why, err
}

// checkRow asserts what holds for every row that a parser makes.
func checkRow(t *testing.T, f Format, line []byte, r row, why string, err error) {
	t.Helper()
	if err != nil {
		if f != Trace && f != IIS && f != CloudFront && f != CSV {
			t.Fatalf("%s: %q is an error of the file: %v", f, line, err)
		}
		return
	}
	if (r.Verdict == OK || r.Verdict == Header) != (why == "") {
		t.Fatalf("%s: %q: %v because %q", f, line, r.Verdict, why)
	}
	if !r.Verdict.Arrives() {
		return
	}
	// A record lies within 63 bits whatever is added to it.
	for _, d := range []int64{int64(r.Queue), int64(r.Service), int64(r.LastService), int64(r.Total)} {
		if d < -1 || d > 3*int64(maxSpan) {
			t.Fatalf("%s: %q: a duration of %d", f, line, d)
		}
	}
	if r.Arrival > r.stamp || r.stamp-r.Arrival > 3*int64(maxSpan) {
		t.Fatalf("%s: %q: stamp %d, arrival %d", f, line, r.stamp, r.Arrival)
	}
	if r.Status < NoStatus || r.Status > 999 || r.Cost < 1 || r.Size < 0 || r.Attempts < 0 || r.Outcome >= outcomes {
		t.Fatalf("%s: %q: %+v", f, line, r.Record)
	}
	if r.Outcome == Stream && r.Service >= 0 {
		t.Fatalf("%s: %q: a stream has a service time", f, line)
	}
	if d, ok := r.Sample(); ok && (d < 0 || r.Verdict == NoSample) {
		t.Fatalf("%s: %q: %v has a sample of %d", f, line, r.Verdict, d)
	}
}

// fuzzParser checks that a damaged line costs itself alone: no panic, a row that
// holds, and a good line behind it reads as it would without it.
func fuzzParser(f *testing.F, format Format) {
	good := seeds[format]
	for _, s := range good {
		f.Add([]byte(s))
		f.Add([]byte(s[:len(s)/2]))
		f.Add([]byte(strings.ReplaceAll(s, `"`, `\"`)))
	}
	k := makerFor(f, format)
	last := []byte(good[len(good)-1])
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(bytes.TrimSpace(line)) == 0 || bytes.IndexByte(line, '\n') >= 0 {
			return
		}
		p := k.make(format)
		alone := k.make(format)
		for _, s := range good {
			parseOne(p, []byte(s))
			parseOne(alone, []byte(s))
		}
		before := bytes.Clone(line)
		r, why, err := parseOne(p, line)
		checkRow(t, format, line, r, why, err)
		if !bytes.Equal(line, before) {
			t.Fatalf("%s: %q was changed to %q", format, before, line)
		}
		if r.Verdict == Header || err != nil {
			return // it means the lines below to be different
		}
		got, _, _ := parseOne(p, last)
		want, _, _ := parseOne(alone, last)
		if got.Record != want.Record {
			t.Fatalf("%s: after %q\n got  %+v\n want %+v", format, line, got.Record, want.Record)
		}
	})
}

func FuzzTrace(f *testing.F)      { fuzzParser(f, Trace) }
func FuzzGoodput(f *testing.F)    { fuzzParser(f, Goodput) }
func FuzzNginx(f *testing.F)      { fuzzParser(f, Nginx) }
func FuzzApache(f *testing.F)     { fuzzParser(f, Apache) }
func FuzzEnvoy(f *testing.F)      { fuzzParser(f, Envoy) }
func FuzzHAProxy(f *testing.F)    { fuzzParser(f, HAProxy) }
func FuzzALB(f *testing.F)        { fuzzParser(f, ALB) }
func FuzzCloudFront(f *testing.F) { fuzzParser(f, CloudFront) }
func FuzzIIS(f *testing.F)        { fuzzParser(f, IIS) }
func FuzzGCP(f *testing.F)        { fuzzParser(f, GCP) }
func FuzzJSON(f *testing.F)       { fuzzParser(f, JSON) }
func FuzzCSV(f *testing.F)        { fuzzParser(f, CSV) }
func FuzzPattern(f *testing.F)    { fuzzParser(f, Pattern) }

// FuzzColumns: no text of a mapping panics, and what is accepted can be used.
func FuzzColumns(f *testing.F) {
	for _, o := range mappedOptions {
		f.Add(o.Columns)
	}
	f.Add("arrival=0s")
	f.Add("arrival=TIMESTAMP,service=0.1ms*\"a,b\"+20ms*G")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseColumns(text)
		if err != nil {
			return
		}
		values := make([][]byte, len(m.names))
		for i := range values {
			values[i] = []byte("1")
		}
		p := mapped{mapping: m, values: values}
		var r row
		r.blank()
		why, err := p.fill(&r)
		checkRow(t, JSON, []byte(text), r, why, err)
	})
}

// FuzzOpen reads any bytes as a file: no panic, and the counters add up.
func FuzzOpen(f *testing.F) {
	for _, name := range []string{"alb_two_members.log.gz", "haproxy_httplog.log", "iis_w3c.log", "cut_last_line.log"} {
		b, err := os.ReadFile(filepath.Join("testdata/samples", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := Open([]string{"-", "-"}, Options{Stdin: bytes.NewReader(data), MaxPending: 3, MaxLine: 512, TempDir: t.TempDir()})
		if err != nil {
			return
		}
		defer l.Close()
		adds(t, l)
	})
}

// TestDamage breaks good lines in the middle of a file at random: each costs at
// most its own line.
func TestDamage(t *testing.T) {
	const seed = 31
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, format := range Formats[1:] {
		good := seeds[format]
		k := makerFor(t, format)
		last := []byte(good[len(good)-1])
		alone := k.make(format)
		for _, s := range good {
			parseOne(alone, []byte(s))
		}
		want, _, _ := parseOne(alone, last)
		if !want.Verdict.Arrives() {
			t.Fatalf("%s: the last seed is %v", format, want.Verdict)
		}
		for range 20_000 {
			line := []byte(good[rng.IntN(len(good))])
			for range 1 + rng.IntN(4) {
				switch i := rng.IntN(len(line)); rng.IntN(4) {
				case 0:
					line[i] = byte(rng.IntN(256))
				case 1:
					line = line[:i+1]
				case 2:
					line = append(line[:i:i], line[rng.IntN(len(line)):]...)
				case 3:
					line[i] = "\"[]-,:/ 0.9\\{}#+\t"[rng.IntN(17)]
				}
				if len(line) == 0 {
					line = []byte{'x'}
				}
			}
			p := k.make(format)
			for _, s := range good {
				parseOne(p, []byte(s))
			}
			r, why, err := parseOne(p, line)
			checkRow(t, format, line, r, why, err)
			if r.Verdict == Header || err != nil {
				continue
			}
			if got, _, _ := parseOne(p, last); got.Record != want.Record {
				t.Fatalf("seed %d, %s: after %q\n got  %+v\n want %+v", seed, format, line, got.Record, want.Record)
			}
		}
	}
}
