package accesslog

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An expected is a line of testdata/samples/expect.tsv.
type expected struct {
	file, line, verdict, arrival, queue, service, total, status, outcome, note string
}

func readExpected(t *testing.T) (all []expected) {
	t.Helper()
	f, err := os.Open("testdata/samples/expect.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		v := strings.Split(s.Text(), "\t")
		if len(v) < 9 {
			t.Fatalf("%q has %d columns", s.Text(), len(v))
		}
		v = append(v, "")
		if v[0] != "file" {
			all = append(all, expected{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9]})
		}
	}
	if len(all) < 40 {
		t.Fatalf("expect.tsv has %d lines", len(all))
	}
	return all
}

// parseLines parses each line of a text as its own format says, or as given.
func parseLines(t *testing.T, o Options, text string) (rows []row, whys []string) {
	t.Helper()
	k, err := newMaker(&o)
	if err != nil {
		t.Fatal(err)
	}
	var sample [][]byte
	for line := range strings.Lines(text) {
		sample = append(sample, []byte(strings.TrimRight(line, "\r\n")))
	}
	format := o.Format
	if format == "" {
		if format, err = k.detect(sample); err != nil {
			t.Fatal(err)
		}
	}
	p := k.make(format)
	for _, line := range sample {
		var r row
		r.blank()
		why, err := p.parse(line, &r)
		if err != nil {
			t.Fatal(err)
		}
		rows, whys = append(rows, r), append(whys, why)
	}
	return rows, whys
}

// told is a row in the notation of expect.tsv.
func told(r row) expected {
	ms := func(d time.Duration) string {
		if d < 0 {
			return "-"
		}
		return strconv.FormatFloat(float64(d)/1e6, 'f', -1, 64)
	}
	e := expected{
		verdict: r.Verdict.String(), arrival: "-", queue: ms(r.Queue), service: ms(r.Service), total: ms(r.Total),
		status: "-", outcome: "-",
	}
	if r.TotalAtLeast {
		e.total += "+"
	}
	if r.Verdict.Arrives() {
		e.arrival = time.Unix(0, r.Arrival).UTC().Format("2006-01-02T15:04:05.000Z")
		e.outcome = r.Outcome.String()
	}
	if r.Status != NoStatus {
		e.status = strconv.Itoa(r.Status)
	}
	return e
}

// TestSamples reads each sample as expect.tsv says, with the format detected.
func TestSamples(t *testing.T) {
	rows := map[string][]row{}
	for _, want := range readExpected(t) {
		if _, ok := rows[want.file]; !ok && !strings.HasSuffix(want.file, ".gz") {
			b, err := os.ReadFile(filepath.Join("testdata/samples", want.file))
			if err != nil {
				t.Fatal(err)
			}
			rows[want.file], _ = parseLines(t, Options{}, string(b))
		}
		got := rows[want.file]
		n, err := strconv.Atoi(want.line)
		switch {
		case want.line == "all":
			continue // TestGzipMembers_C177
		case want.line == "last":
			n = len(got)
		case err != nil:
			t.Fatal(err)
		}
		g := told(got[n-1])
		g.file, g.line, g.note = want.file, want.line, want.note
		if g != want {
			t.Errorf("%s:%d\n got  %+v\n want %+v", want.file, n, g, want)
		}
	}
}

// open reads texts as files named a.log, b.log and so on.
func open(t *testing.T, o Options, texts ...string) (*Log, error) {
	t.Helper()
	dir := t.TempDir()
	var names []string
	for i, text := range texts {
		name := filepath.Join(dir, fmt.Sprintf("%c.log", 'a'+i))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	l, err := Open(names, o)
	if err == nil {
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
		adds(t, l)
	}
	return l, err
}

func mustOpen(t *testing.T, o Options, texts ...string) *Log {
	t.Helper()
	l, err := open(t, o, texts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// adds checks that the counters of a summary add up, and that the records are as
// many, in order.
func adds(t *testing.T, l *Log) {
	t.Helper()
	s := l.Summary()
	if s.Lines != s.Used+s.Duplicates+s.Skipped {
		t.Errorf("%d lines are %d used, %d duplicates and %d skipped", s.Lines, s.Used, s.Duplicates, s.Skipped)
	}
	recs := records(t, l)
	if int64(len(recs)) != s.Used {
		t.Errorf("%d records of %d", len(recs), s.Used)
	}
	for i := 1; i < len(recs); i++ {
		if recs[i].Arrival < recs[i-1].Arrival {
			t.Fatalf("record %d arrives %d ns before its predecessor", i, recs[i-1].Arrival-recs[i].Arrival)
		}
	}
}

func records(t *testing.T, l *Log) (all []Record) {
	t.Helper()
	for r, err := range l.Records() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func sample(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata/samples", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.Clone(b))
}

// TestSampleFiles opens each sample as a file: what TestSamples sees by line
// must arrive in order.
func TestSampleFiles(t *testing.T) {
	for name, want := range map[string]struct {
		format  Format
		used    int64
		samples int64
	}{
		"nginx_combined_times.log": {Nginx, 9, 5},
		"cut_last_line.log":        {Nginx, 8, 4},
		"haproxy_httplog.log":      {HAProxy, 7, 4},
		"alb.log":                  {ALB, 4, 1},
		"alb_two_members.log.gz":   {ALB, 4, 1},
		"envoy_default.log":        {Envoy, 5, 1},
		"cloudfront.log":           {CloudFront, 2, 2},
		"apache_combined_D.log":    {Apache, 3, 3},
		"iis_w3c.log":              {IIS, 2, 1},
		"gcp_lb.jsonl":             {GCP, 4, 2},
	} {
		l := mustOpen(t, Options{}, sample(t, name))
		s := l.Summary()
		if s.Files[0].Format != want.format || s.Used != want.used || s.Samples != want.samples {
			t.Errorf("%s: %s, %d used, %d samples, want %+v", name, s.Files[0].Format, s.Used, s.Samples, want)
		}
	}
}
