package accesslog

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// TestBadFiles: what cannot be read is one sentence with the file, and the line
// where there is one.
func TestBadFiles(t *testing.T) {
	envoy := sample(t, "envoy_default.log")
	nginx := sample(t, "nginx_combined_times.log")
	rest := strings.Repeat(nginxLine(200, " 0.024 0.010")+"\n", 3000)
	for _, c := range []struct {
		name string
		o    Options
		text string
		want []string
	}{
		{"empty", Options{}, "", []string{"the file is empty"}},
		{"compressed and empty", Options{}, gz(t, ""), []string{"the file is empty"}},
		{"blank lines", Options{}, "\n\n \n", []string{"the file is empty"}},
		{"binary", Options{}, "\x7fELF\x02\x01\x01\x00\x00", []string{"the file is binary", "byte 7 is zero"}},
		{"binary without zeros", Options{}, strings.Repeat("\x01\x02\x03abcdefgh", 100), []string{"the file is binary", "control characters"}},
		{"binary in gzip", Options{}, gz(t, "\x00\x01\x02"), []string{"the file is binary"}},
		{"UTF-16", Options{}, "\xff\xfea\x00b\x00", []string{"UTF-16"}},
		{"not gzip", Options{}, "\x1f\x8bnothing of the kind", []string{"not gzip"}},
		{"lines beyond the limit", Options{MaxLine: 256}, strings.Repeat("x", 300) + "\n", []string{"each of the 1 first lines is longer than the limit of 256 bytes"}},
		{"prose", Options{}, "It was a dark and stormy night.\n", []string{"known format", "nginx, apache", "pattern"}},
		{"other JSON", Options{}, `{"time":"2024-05-01T10:00:00Z","ms":5}` + "\n", []string{"the lines are JSON", "columns"}},
		{"two formats", Options{}, nginx + envoy, []string{"line 10 is envoy, but most of the first lines are nginx"}},
		{"two formats, the other way", Options{}, envoy + nginx, []string{"line 1 is envoy, but most of the first lines are nginx"}},
		{"two formats, far apart", Options{}, rest + sample(t, "haproxy_httplog.log"), []string{"line 3001 is haproxy"}},
		{"two formats with a header", Options{}, rest + sample(t, "iis_w3c.log"), []string{"line 3001 is iis"}},
		{"JSON in nginx", Options{}, rest + sample(t, "gcp_lb.jsonl"), []string{"line 3001 is gcp"}},
		{"nginx, then Apache", Options{}, nginx + strings.Repeat(nginxLine(200, " 18598")+"\n", 5), []string{"line 10 is apache, but most of the first lines are nginx"}},
		{"given another format", Options{Format: HAProxy}, nginx, []string{"none of its 9 lines is a request of format haproxy: line 1: the timers"}},
		{"a column that is not there", Options{Columns: "arrival=when"}, "at,ms\n1,2\n", []string{`line 1: column "when" is not in the header "at,ms"`}},
		{"a number without a unit", Options{Columns: "arrival=at,service=ms"}, "at,ms\n1,2\n", []string{"line 2: the arrival is missing or not a date", "arrival=1ms*timestamp_ms"}},
	} {
		l, err := open(t, c.o, c.text)
		if err == nil {
			t.Errorf("%s: read as %+v", c.name, l.Summary())
			continue
		}
		for _, want := range append(c.want, "a.log: ") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", c.name, err, want)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q is more than one line", c.name, err)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{dir, filepath.Join(dir, "no.log")} {
		_, err := Open([]string{name}, Options{})
		if err == nil || strings.Count(err.Error(), dir) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMixedFilesAreFine: each file has a format of its own, and an empty one
// among others, as rotation leaves it, is a warning.
func TestMixedFilesAreFine(t *testing.T) {
	l := mustOpen(t, Options{}, sample(t, "nginx_combined_times.log"), "", sample(t, "envoy_default.log"), gz(t, sample(t, "alb.log")))
	s := l.Summary()
	if s.Used != 9+5+4 || len(s.Files) != 4 || s.Files[3].Format != ALB {
		t.Errorf("%d used of files %+v", s.Used, s.Files)
	}
	if !strings.Contains(strings.Join(s.Warnings, "\n"), "b.log is empty") {
		t.Errorf("warnings %q", s.Warnings)
	}
	if s.First != records(t, l)[0].Arrival || s.Last < s.First {
		t.Errorf("from %d to %d", s.First, s.Last)
	}
}

// TestOneCutLineOfTheSibling: a line of nginx that is cut inside its last number
// may look like Apache's. It costs one line.
func TestOneCutLineOfTheSibling(t *testing.T) {
	good := nginxLine(200, " 0.024 0.010") + "\n"
	l := mustOpen(t, Options{KeepDuplicates: true}, good+nginxLine(200, " 0")+"\n"+good)
	if s := l.Summary(); s.Used != 2 || s.Skipped != 1 {
		t.Errorf("%d used, %d skipped", s.Used, s.Skipped)
	}
}

// TestLastLine: a last line without an end is used only where it must be whole.
func TestLastLine(t *testing.T) {
	for _, c := range []struct {
		o    Options
		text string
		used int64
	}{
		{Options{}, sample(t, "cut_last_line.log"), 8},
		{Options{}, nginxLine(200, " 0.024 0.010") + "\n" + nginxLine(200, " 0.025 0.010"), 2},
		{Options{}, nginxLine(200, " 0.024 0.010") + "\n" + nginxLine(200, " 0.025 0.01"), 1},
		{Options{}, nginxLine(200, " 24000") + "\n" + nginxLine(200, " 2500"), 1},
		{Options{}, strings.TrimSuffix(sample(t, "envoy_default.log"), "\n"), 5},
		{Options{}, strings.TrimSuffix(sample(t, "gcp_lb.jsonl"), "\n"), 4},
		{Options{}, strings.TrimSuffix(sample(t, "iis_w3c.log"), "\n"), 1},
		{Options{Columns: "arrival=1s*at,service=1ms*ms"}, "at,ms\n1,2\n2,3", 2},
	} {
		s := mustOpen(t, c.o, c.text).Summary()
		if s.Used != c.used {
			t.Errorf("%q: %d used, want %d", c.text[max(0, len(c.text)-40):], s.Used, c.used)
		}
		if cut := s.Lines > s.Used+2; cut && !strings.Contains(strings.Join(s.Warnings, "\n"), "has no end") {
			t.Errorf("warnings %q", s.Warnings)
		}
	}
	s := mustOpen(t, Options{}, sample(t, "cut_last_line.log")).Summary()
	if w := strings.Join(s.Warnings, "\n"); !strings.Contains(w, "the last line, 9, has no end and is not used") {
		t.Errorf("warnings %q", w)
	}
}

// TestStdin reads "-", in small pieces, compressed or not.
func TestStdin(t *testing.T) {
	for _, text := range []string{sample(t, "alb.log"), sample(t, "alb_two_members.log.gz"), "\xef\xbb\xbf" + strings.ReplaceAll(sample(t, "alb.log"), "\n", "\r\n")} {
		l, err := Open([]string{"-"}, Options{Stdin: iotest.OneByteReader(strings.NewReader(text))})
		if err != nil {
			t.Fatal(err)
		}
		if s := l.Summary(); s.Used != 4 || s.Files[0].Name != "standard input" {
			t.Errorf("%+v", s)
		}
	}
	if _, err := Open([]string{"-"}, Options{}); err == nil {
		t.Error("no standard input is no error")
	}
	// What ends in the middle of compressed data may end in the middle of a list.
	cut := io.MultiReader(strings.NewReader(nginxLine(200, " 0.024 0.010")+"\n"+nginxLine(200, " 0.025 0.010")), iotest.ErrReader(io.ErrUnexpectedEOF))
	l, err := Open([]string{"-"}, Options{Stdin: cut})
	if err != nil {
		t.Fatal(err)
	}
	if s := l.Summary(); s.Used != 1 || !strings.Contains(strings.Join(s.Warnings, "\n"), "ends early after line 2") {
		t.Errorf("%+v", s)
	}
	broken := io.MultiReader(strings.NewReader(sample(t, "alb.log")), iotest.ErrReader(errors.New("the disk is gone")))
	if _, err := Open([]string{"-"}, Options{Stdin: broken}); err == nil || !strings.Contains(err.Error(), "standard input: ") {
		t.Errorf("a read error: %v", err)
	}
}

// TestNothingIsLeft: the temporary file is gone after Close.
func TestNothingIsLeft(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(t.TempDir(), "a.log")
	if err := os.WriteFile(name, []byte(sample(t, "envoy_default.log")), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Open([]string{name}, Options{MaxPending: 2, TempDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.sorted.runs) != 3 || len(records(t, l)) != 5 {
		t.Errorf("%d runs", len(l.sorted.runs))
	}
	for range l.Records() { // a walk may stop
		break
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	if _, err := Open([]string{name}, Options{MaxPending: 2, TempDir: filepath.Join(dir, "no")}); err == nil || !strings.Contains(err.Error(), "temporary") {
		t.Errorf("without a folder: %v", err)
	}
}

// TestStoredWhole: a record survives the temporary file, with all it has.
func TestStoredWhole(t *testing.T) {
	want := entry{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, -1, 15, 16, 3, 4}
	var b [entrySize]byte
	want.encode(&b)
	var got entry
	if got.decode(&b); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestOptions(t *testing.T) {
	for want, o := range map[string]Options{
		`log format "squid" is not known: it is one of auto, nginx`:     {Format: "squid"},
		"the line length limit is 10 bytes: it must be 256 to 16777216": {MaxLine: 10},
		"the number of records kept in memory is -1":                    {MaxPending: -1},
		"the unit of Apache's duration is 1ns":                          {Unit: 1},
		"a unit is given, but format iis has its own":                   {Unit: ms, Format: IIS},
		"a pattern is given beside the format nginx":                    {Pattern: "x", Format: Nginx},
		"format pattern needs a pattern":                                {Format: Pattern},
		"format csv needs columns: such as":                             {Format: CSV},
		"columns are given, but format alb has its own":                 {Format: ALB, Columns: "arrival=x"},
		"the pattern is not a regular expression":                       {Pattern: "("},
		"the pattern has no named group":                                {Pattern: "x"},
		`the pattern has no group named "y"`:                            {Pattern: "(?P<x>.)", Columns: "arrival=y"},
		"class rule 1 has no name":                                      {Classes: []Class{{Path: "/"}}},
		`class "a" has no path: "*" fits all`:                           {Classes: []Class{{Name: "a"}}},
		`class "a" has cost -1 and size 0`:                              {Classes: []Class{{Name: "a", Path: "*", Cost: -1}}},
		"columns: neither arrival nor end is given":                     {Columns: "service=1ms*x"},
		"columns: both arrival and end are given":                       {Columns: "arrival=a,end=b"},
		"columns: end is given without total or service":                {Columns: "end=a"},
		"columns: arrival is given twice":                               {Columns: "arrival=a,arrival=b"},
		`columns: "sizes" is not a field: it is one of arrival, end`:    {Columns: "arrival=a,sizes=b"},
		`columns: "arrival" is not field=column`:                        {Columns: "arrival"},
		`columns: service: "" is not a term`:                            {Columns: "arrival=a,service=2ms*b+"},
		`columns: service: "5" is not a unit`:                           {Columns: "arrival=a,service=5*b"},
		`columns: service: "b" is not a unit`:                           {Columns: "arrival=a,service=b*5ms"},
		`columns: size: "1ms" is not a number above 0`:                  {Columns: "arrival=a,size=1ms*b"},
		`columns: service: a column in a sum needs a unit`:              {Columns: "arrival=a,service=b+c"},
		`columns: a quote in "arrival=\"a" has no end`:                  {Columns: `arrival="a`},
		`columns: class: "1*c" is not a term`:                           {Columns: "arrival=a,class=1*c"},
		"columns: the stamp names no column":                            {Columns: "arrival=5ms"},
		`columns: service: "0s" is not a unit`:                          {Columns: "arrival=a,service=0s*b"},
		"0 log files are given: 1 to 65535":                             {},
	} {
		_, err := Open(nil, o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\n want %s", err, want)
		}
	}
}

// TestClasses: the first rule decides, a column wins, and no column makes more
// classes than are bounded.
func TestClasses(t *testing.T) {
	o := Options{
		Columns: "arrival=1s*#1,service=1ms*#2,path=#3,class=#4,cost=#5,size=#6",
		Classes: []Class{{Name: "images", Path: "*.jpg", Cost: 2, Size: 9}, {Name: "api", Path: "/api/*"}, {Name: "rest", Path: "*"}},
	}
	l := mustOpen(t, o, "1,5,/api/x.jpg?y,,,\n2,5,/api/a,,,\n3,5,/other,,,3\n4,5,/b.jpg,mine,7,8\n5,5,,,,\n")
	for i, want := range []Record{
		{Class: "images", Cost: 2, Size: 9},
		{Class: "api", Cost: 1},
		{Class: "rest", Cost: 1, Size: 3},
		{Class: "mine", Cost: 7, Size: 8},
		{Cost: 1},
	} {
		if r := records(t, l)[i]; r.Class != want.Class || r.Cost != want.Cost || r.Size != want.Size {
			t.Errorf("record %d: class %q, cost %d, size %d, want %+v", i, r.Class, r.Cost, r.Size, want)
		}
	}
	var b strings.Builder
	for i := range maxClasses + 50 {
		b.WriteString("1,5,/x," + strings.Repeat("x", i+1) + ",,\n")
	}
	o.Classes = nil
	l = mustOpen(t, o, b.String())
	seen := map[string]int{}
	for _, r := range records(t, l) {
		seen[r.Class]++
	}
	if len(seen) != maxClasses+1 || seen[otherClass] != 50 || !strings.Contains(strings.Join(l.Summary().Warnings, "\n"), `taken together as "other"`) {
		t.Errorf("%d classes, %d others, warnings %q", len(seen), seen[otherClass], l.Summary().Warnings)
	}
}

// TestGap: a stamp of another year is a warning, and so is a missing night.
func TestGap(t *testing.T) {
	lines := strings.Join(nginxLog(rand.New(rand.NewPCG(3, 3)), 100), "")
	if s := mustOpen(t, Options{}, lines).Summary(); len(s.Warnings) != 0 {
		t.Errorf("warnings %q", s.Warnings)
	}
	old := strings.Replace(nginxLine(200, " 0.024 0.010"), "2019", "1999", 1) + "\n"
	if w := strings.Join(mustOpen(t, Options{}, lines+old).Summary().Warnings, "\n"); !strings.Contains(w, "nothing arrives for") || !strings.Contains(w, "after 1999-01-21T07:59:53Z") {
		t.Errorf("warnings %q", w)
	}
}

// TestFits compares with a dumb matcher over all words of a small alphabet.
func TestFits(t *testing.T) {
	words := []string{""}
	for i := 0; len(words[i]) < 5; i++ {
		for _, c := range "ab*" {
			words = append(words, words[i]+string(c))
		}
	}
	var dumb func(p, s string) bool
	dumb = func(p, s string) bool {
		switch {
		case p == "":
			return s == ""
		case p[0] == '*':
			return dumb(p[1:], s) || s != "" && dumb(p, s[1:])
		}
		return s != "" && p[0] == s[0] && dumb(p[1:], s[1:])
	}
	for _, p := range words {
		for _, s := range words {
			if strings.Contains(s, "*") {
				continue
			}
			if got, want := fits(p, []byte(s)), dumb(p, s); got != want {
				t.Fatalf("%q fits %q: %t", s, p, got)
			}
		}
	}
}

// TestTraces reads the real ones with their cost model.
func TestTraces(t *testing.T) {
	read := func(name, columns string) []Record {
		t.Helper()
		l, err := Open([]string{filepath.Join("testdata/traces", name)}, Options{Columns: columns})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		adds(t, l)
		if s := l.Summary(); s.Skipped != 1 || s.Duplicates != 0 || s.Samples != s.Used || len(s.Warnings) != 0 {
			t.Errorf("%s: %+v", name, s)
		}
		return records(t, l)
	}
	azure := read("AzureLLMInferenceTrace_2023_code.csv",
		"arrival=TIMESTAMP,service=0.1ms*ContextTokens+20ms*GeneratedTokens,size=ContextTokens+GeneratedTokens")
	if first := azure[0]; len(azure) != 8819 || first.Service != 4808*ms/10+200*ms || first.Size != 4818 ||
		first.Arrival != time.Date(2023, 11, 16, 18, 17, 3, 979960000, time.UTC).UnixNano() {
		t.Errorf("%d requests, the first is %+v", len(azure), first)
	}
	if span := time.Duration(azure[8818].Arrival - azure[0].Arrival).Round(time.Second); span != 3436*time.Second {
		t.Errorf("the trace spans %v", span)
	}
	mooncake := read("mooncake_conversation_min.csv",
		"arrival=1ms*timestamp_ms,service=0.1ms*input_length+20ms*output_length")
	if span := time.Duration(mooncake[len(mooncake)-1].Arrival); len(mooncake) != 12031 || mooncake[0].Arrival != 0 || span.Round(time.Second) != 3537*time.Second {
		t.Errorf("%d requests until %v", len(mooncake), span)
	}
}

// TestColumns reads the same request from each kind of columns.
func TestColumns(t *testing.T) {
	at := time.Date(2024, 5, 1, 10, 0, 0, 250e6, time.UTC).UnixNano()
	want := Record{Arrival: at, Budget: Absent, Queue: 2 * ms, Service: 5 * ms, LastService: 5 * ms, Total: 9 * ms, Cost: 1, Status: 200, Outcome: Served}
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		o    Options
		text string
	}{
		{Options{Columns: "arrival=time,queue=1ms*q,service=1ms*http.ms,total=total,status=status"}, `{"time":"2024-05-01T10:00:00.25Z","q":2,"http":{"ms":5.0},"total":"9ms","status":200}` + "\n"},
		{Options{Columns: "arrival=1s*t,queue=1s*q,service=1s*http.s,total=1s*total,status=status"}, `{"t":1714557600.25,"q":2e-3,"http.s":0.005,"total":9.0E-3,"status":"200","x":[{"t":5},[]],"y":{"t":null}}` + "\n"},
		{Options{Columns: "end=t,queue=1ms*q,service=1us*s,total=1ms*total,status=s2"}, "t;q;s;total;s2\n\"2024-05-01 10:00:00.259\";2;5000;9;200\n"},
		{Options{Columns: "arrival=t,queue=2ms,service=1ms*\"a,b\"+2ms*\"c+d\"+1ms,total=1ms*total,status=st", Zone: paris}, "t,\"a,b\",c+d,total,st\n2024-05-01 12:00:00.25,2,1,9,200\n"},
		{Options{Columns: "arrival=#2,queue=1ms*#3,service=1ms*#4,total=1ms*#5,status=#6"}, "x\t01/May/2024:12:00:00.25 +0200\t2\t5\t9\t200\n"},
		{Options{Pattern: `^(?P<arrival>\S+) q=(?P<queue_ms>\d+) s=(?P<service_us>\d+) t=(?P<total_s>[\d.]+) (?P<status>\d+)`}, "2024-05-01T12:00:00.25+02:00 q=2 s=5000 t=0.009 200\n"},
	} {
		got := records(t, mustOpen(t, c.o, c.text))
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s\n got  %+v\n want %+v", c.o.Columns+c.o.Pattern, got, want)
		}
	}
}
