package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goodput/goodput/cmd/goodput/internal/verify"
)

// Whatever is wrong with the command line is one sentence with the name and the value in it, and
// exit code 2, before anything is sent.
func TestVerifyUsage_C059(t *testing.T) {
	with := func(args ...string) []string { return append([]string{"http://127.0.0.1:1/"}, args...) }
	dir := t.TempDir()
	for name, size := range map[string]int{"large": verify.MaxBody + 1, "empty": 0} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{`""`, "http://"}},
		{[]string{"127.0.0.1:80"}, []string{"127.0.0.1:80", "http://"}},
		{[]string{"ftp://h/"}, []string{"ftp://h/", "http://"}},
		{[]string{"http://me:secret@h/"}, []string{"password", "--header"}},
		{[]string{"http://h/#a"}, []string{"#a"}},
		{with("--duration", "10000000000s"), []string{"--duration", `"10000000000s"`}},
		{with("--duration", "0"), []string{"--duration", `"0"`}},
		{with("--duration", "-1s"), []string{"--duration", `"-1s"`}},
		{with("--duration", "NaN"), []string{"--duration", `"NaN"`}},
		{with("--duration", "500ms"), []string{"--duration 500ms", "1s to 5m"}},
		{with("--duration", "6m"), []string{"--duration 6m0s", "1s to 5m"}},
		{with("--duration", "0s"), []string{"--duration"}},
		{with("--deadline", "0"), []string{"--deadline", `"0"`}},
		{with("--deadline", "-1s"), []string{"--deadline", `"-1s"`}},
		{with("--objective", "-1s"), []string{"--objective", `"-1s"`}},
		{with("--deadline", "1e300s"), []string{"--deadline", `"1e300s"`}},
		{with("--deadline", "2m"), []string{"--deadline 2m0s", "10ms to 1m"}},
		{with("--deadline", "5ms"), []string{"--deadline 5ms", "10ms to 1m"}},
		{with("--objective", "3s"), []string{"--objective 3s", "the deadline, 2s"}},
		{with("--objective", "0"), []string{"--objective", `"0"`}},
		{with("--steps", ""), []string{"--steps", `""`, "0.1 to 20"}},
		{with("--steps", "0.5,3x"), []string{"--steps", `"3x" in "0.5,3x"`, "0.1 to 20"}},
		{with("--expect", "2xx"), []string{"--expect", `"2xx"`, "200 to 499"}},
		{with("--trace", ""), []string{"--trace is empty"}},
		{with("--body", ""), []string{"--body is empty"}},
		{with("--method", ""), []string{"--method is empty"}},
		{with("--output", ""), []string{"--output is empty"}},
		{with("--confirm", ""), []string{"--confirm is empty"}},
		{with("--confirm", "127.0.0.2"), []string{"--confirm 127.0.0.2", "127.0.0.1"}}, // also of this machine
		{with("--method", "get"), []string{"--method get", "GET"}},
		{[]string{"h/?token=abcdef"}, []string{"h/?..."}},
		{with("--steps", "0.5,0.09"), []string{"--steps", "0.09", "0.1 to 20"}},
		{with("--steps", "1,21"), []string{"--steps", "21", "0.1 to 20"}},
		{with("--steps", "NaN"), []string{"--steps", "NaN", "0.1 to 20"}},
		{with("--steps", "1,+Inf"), []string{"--steps", "+Inf"}},
		{with("--steps", "1,1"), []string{"--steps", "ascend"}},
		{with("--steps", "3,2"), []string{"--steps", "2 comes after 3"}},
		{with("--steps", "1,3"), []string{"--steps begins at 1", "0.5"}},
		{with("--steps", "0.5,1"), []string{"--steps ends at 1"}},
		{with("--steps", "0.5,1.5", "--duration", "3s"), []string{"--steps ends at 1.5", "a queue of 1.5s", "deadline of 2s", "It takes --duration 4s"}},
		{with("--steps", "0.5,1", "--steps", "3"), []string{"--steps is given twice", "--steps 0.5,1,3"}},
		{with("--steps", "1x"), []string{"--steps", "1x"}},
		{with("--steps", "1,2,3,4,5,6,7,8,9,10,11,12,13"), []string{"--steps has 13 loads"}},
		{with("--capacity", "0"), []string{"--capacity", `"0"`, "0.1 to 100000"}},
		{with("--capacity", "NaN"), []string{"--capacity", `"NaN"`}},
		{with("--capacity", "-5/s"), []string{"--capacity", `"-5/s"`}},
		{with("--capacity", "1e9/s"), []string{"--capacity", `"1e9/s"`}},
		{with("--capacity", "5/m"), []string{"--capacity", `"5/m"`, "1200/s"}},
		{with("--arrivals", "often"), []string{"--arrivals", "poisson"}},
		{with("--arrivals", "constant", "--trace", "x"), []string{"--arrivals and --trace"}},
		{with("--columns", "arrival=a"), []string{"--columns is about --trace"}},
		{with("--log-format", "nginx"), []string{"--log-format is about --trace"}},
		{with("--trace", "x", "--log-format", "csv"), []string{"columns"}},
		{with("--trace", "-", "--body", "-"), []string{"both stdin"}},
		{with("--trace", filepath.Join(dir, "none")), []string{"--trace", "none", "no such file"}},
		{with("--trace", filepath.Join(dir, "empty")), []string{"--trace", "empty"}},
		{with("--body", filepath.Join(dir, "none")), []string{"--body", "none", "no such file"}},
		{with("--body", filepath.Join(dir, "large")), []string{"--body", "large", "1048576"}},
		{with("--attempts", "0"), []string{"--attempts 0", "1 to 10"}},
		{with("--attempts", "11"), []string{"--attempts 11", "1 to 10"}},
		{with("--obey"), []string{"--obey", "--attempts 2"}},
		{with("--method", "CONNECT"), []string{"--method", `"CONNECT"`}},
		{with("--method", "G T"), []string{"--method", `"G T"`}},
		{with("--header", "Accept"), []string{"--header", `"Accept"`}},
		{with("--header", "Connection: close"), []string{"--header Connection", "of a connection"}},
		{with("--http", "3"), []string{"--http", "1.1"}},
		{with("--expect", "503"), []string{"--expect 503", "200 to 499"}},
		{with("--expect", "429"), []string{"--expect 429", "refusal"}},
		{with("--expect", "ok"), []string{"--expect", "ok"}},
		{with("--seed", "-1"), []string{"--seed", "-1"}},
		{with("--max-rate", "0"), []string{"--max-rate 0"}},
		{with("--max-rate", "NaN"), []string{"--max-rate NaN"}},
		{with("--max-rate", "1e6"), []string{"--max-rate", "100000"}},
		{with("--max-requests", "0"), []string{"--max-requests 0"}},
		{with("--max-requests", "1e300"), []string{"--max-requests", "1e300"}},
		{with("--format", "xml"), []string{"--format", "xml"}},
		{with("--output", "report.pdf"), []string{"--output report.pdf"}},
		{with("--output", filepath.Join(dir, "nowhere", "report.html")), []string{"--output: open", "nowhere", "no such file or directory"}},
		{with("--output", filepath.Join(dir, "empty", "report.html")), []string{"--output: open", "not a directory"}},
		{[]string{"http://192.0.2.1/"}, []string{"192.0.2.1 is not this machine", "20000 requests per second", "2000000 in all", "--confirm 192.0.2.1"}},
		{[]string{"http://192.0.2.1/", "--confirm", "192.0.2.2"}, []string{"--confirm 192.0.2.2", "192.0.2.1"}},
	} {
		args := append([]string{"verify"}, c.args...)
		code, stdout, stderr := command(args...)
		oneSentence(t, args, stderr)
		if code != exitUsage || stdout != "" {
			t.Errorf("%q: exit code %d, stdout %q", args, code, stdout)
		}
		for _, word := range c.want {
			if !strings.Contains(stderr, word) {
				t.Errorf("%q: %q does not say %s", args, stderr, word)
			}
		}
	}
}

// A target that is not there is no answer, and no wrong usage.
func TestVerifyOfNobody(t *testing.T) {
	for url, want := range map[string]string{
		"http://127.0.0.1:1/":       "connection refused",
		"http://nobody.invalid:80/": "nobody.invalid", // a name that none may have, RFC 2606
	} {
		code, _, stderr := execute(t, []string{"GOODPUT_STEPS=many", "GOODPUT_DEADLINE=1h", "GOODPUT_HTTP=3"}, "verify", url) // the environment of a server
		if code != exitVoid || !strings.Contains(stderr, "no answer: the target is not there") || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s", url, code, stderr)
		}
	}
}

// The whole command over a network: what the service gets is what was asked for, the report is
// of this service, and a run without a load above the capacity is no answer.
//
// wall clock: a process and a network, 2.5 s of idle requests and 1 s of load.
func TestVerifyAsksForWhatItIsTold(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 10 s")
	}
	t.Parallel()
	var mu sync.Mutex
	asked, odd := 0, ""
	url, _ := backend(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got := fmt.Sprintf("%s %s %s %s %s %q", r.Method, r.URL, r.Header.Get("X-A"), r.Header.Get("X-Envoy-Expected-Rq-Timeout-Ms"), r.Proto, body)
		mu.Lock()
		defer mu.Unlock()
		if asked++; got != `PUT /search?q=1 b 700 HTTP/1.1 "hello"` {
			odd = got
		}
		w.WriteHeader(http.StatusNoContent)
	})
	body := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(body, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := execute(t, nil, "verify", url+"/search?q=1", "--steps", "0.5,2", "--duration", "1s", "--deadline", "700ms", "--capacity", "100/s",
		"--arrivals", "constant", "--method", "PUT", "--header", "X-A: b", "--body", body, "--http", "1.1", "--format", "json")
	var got struct {
		Version int
		Verdict string
		Steps   []map[string]any
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
	}
	mu.Lock()
	defer mu.Unlock()
	// 50 idle requests, 3 or more before each step, 0.5 x 100/s x 1 s, 2 x 100/s x 1 s, and half
	// of the capacity for 5 s.
	if asked < 556 || asked > 650 || odd != "" {
		t.Errorf("%d requests, one of them %s", asked, odd)
	}
	if code != exitVoid || got.Version != 1 || len(got.Steps) != 2 || !strings.Contains(stderr, "only 200 got a slot") {
		t.Errorf("exit code %d, version %d, %d steps, %s", code, got.Version, len(got.Steps), stderr)
	}
	for _, line := range []string{"the idle service: 50 requests", "0.5x     offered 50/s"} {
		if !strings.Contains(stderr, line) {
			t.Errorf("the progress has no %q:\n%s", line, stderr)
		}
	}
	if strings.Count(stderr, "\n") > 12 {
		t.Errorf("too many lines of progress:\n%s", stderr)
	}
}

// Interrupted, it says so and ends with the code that a shell expects, with nothing under way.
func TestVerifyIsInterrupted(t *testing.T) {
	t.Parallel()
	url, _ := backend(t, hello)
	report := filepath.Join(t.TempDir(), "report.json")
	p := launch(t, "the idle service", "verify", url, "--output", report)
	p.signal(syscall.SIGINT)
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	if len(p.said("goodput: interrupted: no answer")) != 1 {
		t.Errorf("%v", p.log)
	}
	var got struct{ Void string }
	if text, err := os.ReadFile(report); err != nil || json.Unmarshal(text, &got) != nil || got.Void != "interrupted before its end" {
		t.Errorf("the report says %+v, %v: %s", got, err, text)
	}
	if err := os.WriteFile(report, []byte("of yesterday"), 0o600); err != nil {
		t.Fatal(err)
	}
	p = launch(t, "the idle service", "verify", url, "--output", report)
	p.signal(syscall.SIGINT)
	if code := p.exit(); code != exitInterrupted || len(p.said("goodput: interrupted: no answer; "+report+" is as it was")) != 1 {
		t.Errorf("exit code %d, %v", code, p.log)
	}
	if text, err := os.ReadFile(report); string(text) != "of yesterday" {
		t.Errorf("the report of yesterday is now %q, %v", text, err)
	}
}

// Nothing leaves this machine unless somebody says the name of whoever will get it.
func TestConfirmed(t *testing.T) {
	ask := func(ctx context.Context, typed io.Reader) (string, error) {
		var out strings.Builder
		err := confirmed(ctx, "staging.example", "staging.example is not this machine", typed, &out)
		return out.String(), err
	}
	if out, err := ask(t.Context(), strings.NewReader("Staging.Example\n")); err != nil || !strings.Contains(out, "is not this machine") {
		t.Errorf("%v, %q", err, out)
	}
	for _, typed := range []string{"", "\n", "y\n", "yes\n", "staging\n", "staging.example.org\n"} {
		_, err := ask(t.Context(), strings.NewReader(typed))
		var f *failure
		if !errors.As(err, &f) || f.code != exitUsage {
			t.Errorf("%q: %v", typed, err)
		}
	}
	if err := parsed(t, "http://192.0.2.1:80/", "--confirm", "192.0.2.1").confirm(t.Context()); err != nil {
		t.Errorf("said with --confirm: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	silent, _ := io.Pipe()
	if _, err := ask(ctx, silent); err != context.Canceled {
		t.Errorf("interrupted: %v", err)
	}
}

// parsed is verify with these arguments, checked and not run.
func parsed(t *testing.T, args ...string) *verifyCmd {
	t.Helper()
	var p struct {
		Verify verifyCmd `cmd:""`
	}
	parser := kong.Must(&p, kong.Vars{"logformats": logFormats()}, kong.WithHyphenPrefixedParameters(true))
	if _, err := parser.Parse(append([]string{"verify"}, args...)); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return &p.Verify
}

// The command of a report makes the same run, whatever was said; a shell reads it as it is meant.
func TestVerifyAgain(t *testing.T) {
	log := accessLog(t, "it's a log", 10)
	for _, args := range [][]string{
		nil,
		{"--steps", "0.25,2", "--duration", "90s", "--deadline", "1500ms", "--objective", "300ms", "--capacity", "12.5/s", "--arrivals", "constant", "--seed", "9"},
		{"--trace", log, "--log-format", "nginx", "--attempts", "3", "--obey", "--method", "POST", "--body", "-", "--http", "1.1"},
		{"--header", "A: it's; $HOME", "--header", "B: c", "--expect", "200,404", "--max-rate", "1000", "--max-requests", "5000", "--confirm", "127.0.0.1"},
		{"--trace", "x.csv", "--log-format", "csv", "--columns", "arrival=a b"},
	} {
		first := parsed(t, append([]string{"http://127.0.0.1/a?b=c&d='e'"}, args...)...)
		out, err := exec.Command("sh", "-c", "printf '%s\\n' "+first.again()).Output()
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		if !slices.Equal(words[:2], []string{"goodput", "verify"}) {
			t.Fatalf("%q", words)
		}
		second := parsed(t, words[2:]...)
		first.given, second.given = nil, nil
		if a, b := fmt.Sprintf("%+v", *first), fmt.Sprintf("%+v", *second); a != b && !onlyDefaults(first, second) {
			t.Errorf("%s\nis\n%s\nwant\n%s", first.again(), b, a)
		}
	}
	hidden := parsed(t, "http://h/", "--header", "Authorization: Bearer abc", "--header", "X-Api-Key: abc", "--header", "cookie: abc").again()
	hidden += parsed(t, "http://h/?q=1&token=abc").again()
	if strings.Contains(hidden, "abc") || !strings.Contains(hidden, "X-Api-Key: ...") || !strings.Contains(hidden, "q=1&token=...") {
		t.Errorf("a secret is in %s", hidden)
	}
}

// onlyDefaults reports whether two commands ask for the same, of which one may have said a
// default.
func onlyDefaults(a, b *verifyCmd) bool {
	return fmt.Sprintf("%+v", a.settings()) == fmt.Sprintf("%+v", b.settings()) && a.again() == b.again()
}

// A body is posted unless a method is said, and a report is in the format that is asked for.
func TestVerifyMethodAndFormat(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{{nil, "GET"}, {[]string{"--body", "x"}, "POST"}, {[]string{"--body", "x", "--method", "PUT"}, "PUT"}} {
		if got := parsed(t, append([]string{"http://h/"}, tc.args...)...).settings().Method; got != tc.want {
			t.Errorf("%q: %s, want %s", tc.args, got, tc.want)
		}
	}
	for format, want := range map[string]string{"html": "<!doctype html>", "json": "{", "text": "no answer"} {
		var b strings.Builder
		r := &verify.Report{Target: "http://h/", Void: "interrupted before its end"}
		err := parsed(t, "http://h/", "--format", format).tell(r, &b)
		if err != nil || !strings.HasPrefix(strings.TrimLeft(strings.ToLower(b.String()), "? "), want) {
			t.Errorf("%s: %v\n%.80s", format, err, b.String())
		}
	}
}

// The arrivals of a log are those of its lines, from the first on, in whatever format it is.
func TestVerifyTrace(t *testing.T) {
	log := accessLog(t, "access.log", 50)
	all, err := parsed(t, "http://h/", "--trace", log, "--log-format", "nginx").arrivals()
	if err != nil || len(all) != 50 || all[0] != 0 || !slices.IsSorted(all) || all[49] < 100*time.Millisecond || all[49] > time.Second {
		t.Errorf("%d arrivals of 50, 5 ms apart, %v: %v", len(all), err, all)
	}
	if cfg, err := parsed(t, "http://h/", "--trace", log, "--log-format", "nginx").config(); err != nil || !slices.Equal(cfg.Trace, all) {
		t.Errorf("the run has %d arrivals of the trace, want %d: %v", len(cfg.Trace), len(all), err)
	}
	csv := logFile(t, "some.csv", []byte("at\n2026-01-01T00:00:00Z\n2026-01-01T00:00:03Z\n"))
	all, err = parsed(t, "http://h/", "--trace", csv, "--log-format", "csv", "--columns", "arrival=at").arrivals()
	if err != nil || len(all) != 2 || all[0] != 0 || (all[1]-3*time.Second).Abs() > time.Second { // spread over their second
		t.Errorf("%v, %v", all, err)
	}
	lines := logFile(t, "some.log", []byte("[1.5] a\n[2.25] b\n"))
	all, err = parsed(t, "http://h/", "--trace", lines, "--pattern", `\[(?P<arrival_s>[0-9.]+)\]`).arrivals()
	if err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	one := accessLog(t, "one.log", 1)
	if _, err := parsed(t, "http://h/", "--trace", one).arrivals(); err == nil || !strings.Contains(err.Error(), "2 to") {
		t.Errorf("one arrival has no rate: %v", err)
	}
}
