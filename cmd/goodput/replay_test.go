package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// accessLog writes n requests as nginx does, 200 a second of 50 ms.
func accessLog(t *testing.T, name string, n int) string {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	var b strings.Builder
	for i := range n {
		at = at.Add(time.Duration(r.ExpFloat64() * float64(5*time.Millisecond)))
		service := r.ExpFloat64() * 0.05
		end := at.Add(time.Duration(service * 1e9))
		fmt.Fprintf(&b, `192.0.2.%d - - [%s] "GET /search?q=%d HTTP/1.1" 200 512 "-" "curl/8" %.3f %.3f`+"\n",
			i%250, end.Format("02/Jan/2006:15:04:05 -0700"), i, service, service)
	}
	return logFile(t, name, []byte(b.String()))
}

// command runs the program in this process.
func command(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(args, &out, &err)
	return code, out.String(), err.String()
}

func logFile(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if strings.HasSuffix(name, ".gz") {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		z := gzip.NewWriter(f)
		if _, err := z.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Bad input is one sentence with the file, and the line where there is one, and the
// exit code says whose fault it is.
func TestReplayRefuses(t *testing.T) {
	good := accessLog(t, "good.log", 300)
	nginx, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	alb, err := os.ReadFile("internal/accesslog/testdata/samples/alb.log")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(nginx), "\n")
	mixed := logFile(t, "mixed.log", []byte(strings.Join(lines[:20], "")+string(alb)))
	few := logFile(t, "few.log", []byte(strings.Join(lines[:20], "")))
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{good, exitUsage, "--limit is required, or --config with a policy file"},
		{"--limit 20", exitUsage, "expected \"<log> ...\""},
		{"--limit 0 " + good, exitUsage, "--limit"},
		{"--limit auto " + good, exitUsage, "--slots is required with --limit auto: a log does not say"},
		{"--limit auto:max=50 " + good, exitUsage, "--slots is required with --limit auto:max=50"},
		{"--limit auto --slots 0 " + good, exitUsage, "--slots"},
		{"--limit auto --slots 20 " + good, exitOK, ""},
		{"--limit 20 --slots 100001 " + good, exitUsage, "--slots 100001 is out of range: 1 to 100000"},
		{"--limit -5 " + good, exitUsage, "-5"},
		{"--limit 20 --load -1 " + good, exitUsage, "--load -1 is out of range: 0.01 to 100 times the capacity"},
		{"--limit 20 --objective 5 " + good, exitUsage, "--objective"},
		{"--limit 20 --policies goodptu " + good, exitUsage, `policy "goodptu" is unknown, did you mean goodput?`},
		{"--limit 20 --output x.pdf " + good, exitUsage, "--output x.pdf: a report is .txt, .json or .html"},
		{"--limit 20 --policies fifo,fifo " + good, exitUsage, `--policies has "fifo" twice`},
		{"--limit 20 --log-format ngnix " + good, exitUsage, "--log-format"},
		{"--limit 20 --zone Berlin/Europe " + good, exitUsage, `--zone "Berlin/Europe" is not a zone`},
		{"--limit 20 --class search " + good, exitUsage, `--class "search" is not a class`},
		{"--limit 20 --columns service=x " + good, exitUsage, "arrival"},
		{"--limit 20 " + good + ".gone", exitUsage, "good.log.gone: no such file"},
		{"--limit 20 " + logFile(t, "empty.log", nil), exitUsage, "empty.log: the file is empty"},
		{"--limit 20 " + logFile(t, "binary.log", []byte("\x7fELF\x02\x01\x01\x00\x00\x00")), exitUsage, "binary.log: the file is binary"},
		{"--limit 20 " + mixed, exitUsage, "mixed.log: line 21 is alb, but most of the first lines are nginx"},
		{"--limit 20 " + few, exitVoid, "no answer: 20 of 20 lines have a service time: 100 are needed"},
		{"--limit 20 --objective 24h --policies aimd_min_rtt " + good, exitOK, ""},
	} {
		code, stdout, stderr := command(append([]string{"replay"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("replay %s: exit %d, want %d, and %q, want %q", c.args, code, c.code, stderr, c.want)
		}
		if c.code == exitUsage && (stdout != "" || strings.Count(strings.TrimSpace(stderr), "\n") != 0) {
			t.Errorf("replay %s: more than one sentence: %q, %q", c.args, stdout, stderr)
		}
	}
}

// Plain and gzip, together and apart, as text, JSON and HTML; the same command
// gives the same bytes.
func TestReplayReports(t *testing.T) {
	plain, zipped := accessLog(t, "a.log", 3000), accessLog(t, "b.log.gz", 3000)
	run := func(args ...string) string {
		code, stdout, stderr := command(append([]string{"replay", "--limit", "10", "--objective", "400ms", "--deadline", "1s"}, args...)...)
		if code != exitOK {
			t.Fatalf("%v: exit %d: %s", args, code, stderr)
		}
		return stdout
	}
	text := run(plain)
	if again := run(plain); again != text {
		t.Errorf("twice is not the same:\n%s\n%s", text, again)
	}
	for _, want := range []string{
		"3000 requests in 1", "goodput", "none", "reject", "Of 3000 lines 3000 are played", "clairvoyant",
		"its stamps are whole seconds", "again: goodput replay " + plain,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q:\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 && !strings.Contains(line, "/") { // but for paths
			t.Errorf("%d columns: %s", n, line)
		}
	}
	type document struct {
		Version  int
		Policies []struct {
			Name string
			Runs []struct {
				Total struct{ Requests int }
			}
		}
	}
	requests := func(text string) int {
		var d document
		if err := json.Unmarshal([]byte(text), &d); err != nil || d.Version != 1 || len(d.Policies) != 2 {
			t.Fatalf("%v: %s", err, text)
		}
		return d.Policies[0].Runs[0].Total.Requests
	}
	// The same lines from two shippers are one log; with --keep-duplicates, two.
	if n := requests(run("--format", "json", "--policies", "goodput,fifo", plain, zipped)); n != 3000 {
		t.Errorf("%d requests of the same log twice, want 3000", n)
	}
	if n := requests(run("--format", "json", "--policies", "goodput,fifo", "--keep-duplicates", plain, zipped)); n != 6000 {
		t.Errorf("%d requests with duplicates, want 6000", n)
	}
	// What makes a report again makes the same one.
	again := run("--class", "all=*,cost=2", "--seed", "7", "--log-format", "nginx", zipped)
	_, line, _ := strings.Cut(strings.Join(strings.Fields(again), " "), "again: ")
	for _, want := range []string{"--class 'all=*,cost=2'", "--seed 7", "--log-format nginx", "--deadline 1s", zipped} {
		if !strings.Contains(line, want) {
			t.Errorf("again does not say %s: %s", want, line)
		}
	}
	page := filepath.Join(t.TempDir(), "report.html")
	run("--output", page, zipped)
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "<!doctype html>") {
		t.Errorf("%s: %v", page, err)
	}
}

// Each knob changes the result.
func TestReplayKnobs(t *testing.T) {
	log := accessLog(t, "a.log", 3000)
	base := []string{"replay", "--limit", "9", "--objective", "400ms", "--format", "json", "--policies", "goodput,fifo", log}
	_, before, _ := command(base...)
	for _, c := range []string{
		"--limit 12", "--objective 1s", "--deadline 100ms", "--load 2", "--depth 3", "--spread 0s", "--policies lifo",
		"--class all=*,cost=2", "--slots 6", "--limit auto --slots 9", "--limit auto:max=5 --slots 9", "--limit auto:shared=true --slots 9",
	} {
		code, after, stderr := command(append(base, strings.Fields(c)...)...)
		if code != exitOK || after == before {
			t.Errorf("%s: exit %d, changes nothing: %s", c, code, stderr)
		}
	}
}
