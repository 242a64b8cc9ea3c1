package main

import (
	"net"
	"strings"
	"testing"
)

// Must hold 7 and C059: whatever is wrong with the command line is one clear
// sentence with the name and the value in it, and exit code 2.
func TestWrongUsage_C059(t *testing.T) {
	serve := func(args ...string) []string {
		return append([]string{"serve", "--upstream", "http://127.0.0.1:1", "--limit", "3"}, args...)
	}
	for _, c := range []struct {
		args []string
		want []string // words of the sentence
	}{
		{nil, []string{"a command is required: serve, demo, plan, simulate, replay, verify, check, schema or version; goodput --help"}},
		{[]string{"sevre"}, []string{"sevre", "goodput --help"}},
		{[]string{"--versoin"}, []string{"--versoin", "goodput --help"}},
		{[]string{"check", "/none.yaml"}, []string{"goodput: cannot read /none.yaml: no such file or directory\n"}},
		{[]string{"simulate", "/none.yaml"}, []string{"goodput: cannot read /none.yaml: no such file or directory\n"}},
		{[]string{"plan", "/none.yaml"}, []string{"goodput: cannot read /none.yaml: no such file or directory\n"}},
		{[]string{"serve", "--config", "/none.yaml"}, []string{"goodput: cannot read /none.yaml: no such file or directory\n"}},
		{[]string{"replay", "/none.log", "--limit", "3"}, []string{"goodput: cannot read /none.log: no such file or directory\n"}},
		{[]string{"serve"}, []string{"--upstream is required"}},
		{[]string{"serve", "--limit", "3"}, []string{"--upstream is required"}},
		{[]string{"serve", "--upstream", "127.0.0.1:9000", "--limit", "3"}, []string{"--upstream", "127.0.0.1:9000", "http://"}},
		{[]string{"serve", "--upstream", "localhost:9000", "--limit", "3"}, []string{"--upstream", "scheme", "http://"}},
		{[]string{"serve", "--upstream", "ftp://h", "--limit", "3"}, []string{"--upstream", `"ftp"`, "h2c"}},
		{[]string{"serve", "--upstream", "http://", "--limit", "3"}, []string{"--upstream", "no host"}},
		{[]string{"serve", "--upstream", "http://h/?a=b", "--limit", "3"}, []string{"--upstream", "query"}},
		{[]string{"serve", "--upstream", "http://h:port", "--limit", "3"}, []string{"--upstream"}},
		{serve("--limit", "0"), []string{"--limit", `"0"`, "1 to"}},
		{serve("--limit", "-5"), []string{"--limit", `"-5"`}},
		{serve("--limit=-5"), []string{"--limit", `"-5"`}},
		{serve("--limit", "NaN"), []string{"--limit", `"NaN"`}},
		{serve("--limit", "99999999999999999999"), []string{"--limit", "1048576"}},
		{serve("--limit"), []string{"--limit"}},
		{serve("--limit", "atuo"), []string{"--limit", `"atuo"`, "auto"}},
		{serve("--limit", "auto:max=0"), []string{"--limit", `max "0"`, "1 to 1048576"}},
		{serve("--limit", "auto:min=50,max=20"), []string{"--limit", "min 50", "max 20"}},
		{serve("--limit", "auto:top=3"), []string{"--limit", "top is unknown: from, law, max, min or shared"}},
		{serve("--limit", "auto:shared=yes"), []string{"--limit", `shared "yes" is neither true nor false`}},
		{serve("--objective", "0"), []string{"--objective", "1ms to 24h"}},
		{serve("--objective", "-1s"), []string{"--objective", `"-1s"`}},
		{serve("--objective", "1e300s"), []string{"--objective", `"1e300s"`}},
		{serve("--objective", "10000000000s"), []string{"--objective", `"10000000000s"`}},
		{serve("--objective", "400"), []string{"--objective", `"400"`, "400ms"}},
		{serve("--deadline", "-1s"), []string{"--deadline", `"-1s"`}},
		{serve("--deadline", "2s", "--deadline-cap", "1s"), []string{"--deadline", "2s", "--deadline-cap", "1s"}},
		{serve("--objective", "2s", "--deadline-cap", "1s"), []string{"--objective 2s", "--deadline-cap 1s", "late for the objective"}},
		{serve("--deadline-cap", "999ms"), []string{"--objective 1s", "--deadline-cap 999ms"}},
		{serve("--listen", ":1"), []string{"--upstream http://127.0.0.1:1", "--listen :1", "ourselves"}},
		{[]string{"serve", "--upstream", "${WEB_URL}"}, []string{`--upstream "${WEB_URL}"`, "not expanded"}},
		{serve("--service", "2s", "--objective", "1s"), []string{"service 2s", "objective 1s"}},
		{serve("--max-queue-bytes", "-1"), []string{"--max-queue-bytes", "64MiB"}},
		{serve("--max-queue-bytes", "1e300"), []string{"--max-queue-bytes", "1e300"}},
		{serve("--max-waiting", "0"), []string{"--max-waiting"}},
		{serve("--drain-delay", "-1s"), []string{"--drain-delay"}},
		{serve("--drain-timeout", "0"), []string{"--drain-timeout"}},
		{serve("--listen", "foo"), []string{"--listen", `"foo"`}},
		{serve("--listen", "off"), []string{"--listen", "off"}},
		{serve("--admin", "127.0.0.1:99999"), []string{"--admin", "99999"}},
		{serve("--trusted-proxies", "10.0.0.0/33"), []string{"--trusted-proxies", "10.0.0.0/33"}},
		{serve("--log-level", "loud"), []string{"--log-level", "loud", "warn"}},
		{serve("--log-format", "xml"), []string{"--log-format", "xml", "json"}},
		{serve("--objektive", "1s"), []string{"--objektive", "did you mean", "--objective"}},
		{serve("extra"), []string{"extra"}},
		{[]string{"demo", "--load", "25"}, []string{"--load", "25", "0.1 to 20"}},
		{[]string{"demo", "--load", "NaN"}, []string{"--load", "NaN", "0.1 to 20"}},
		{[]string{"demo", "--load", "-1"}, []string{"--load", "-1", "0.1 to 20"}},
		{[]string{"demo", "--load", "much"}, []string{"--load", "much"}},
		{[]string{"demo", "--duration", "1e300s"}, []string{"--duration", `"1e300s"`}},
		{[]string{"demo", "--duration", "0"}, []string{"--duration", `"0"`}},
		{[]string{"demo", "--duration", "-1s"}, []string{"--duration", `"-1s"`}},
		{[]string{"demo", "--duration", "6m"}, []string{"--duration", "6m", "1s to 5m"}},
		{[]string{"demo", "--format", "xml"}, []string{"--format", "xml", "json"}},
		{[]string{"demo", "--limit", "0"}, []string{"--limit", `"0"`, "1 to 1048576"}},
		{[]string{"demo", "--limit", "1001"}, []string{"--limit", "1001", "1 to 1000"}},
		{[]string{"demo", "--limit", "auto:from=1001"}, []string{"--limit", "1001", "1 to 1000"}},
		{[]string{"demo", "--limit", "atuo"}, []string{"--limit", `"atuo"`, "auto"}},
		{[]string{"demo", "--seed", "-1"}, []string{"--seed", "-1"}},
	} {
		code, stdout, stderr := execute(t, nil, c.args...)
		oneSentence(t, c.args, stderr)
		if code != exitUsage || stdout != "" {
			t.Errorf("%q: exit code %d, stdout %q", c.args, code, stdout)
		}
		for _, word := range c.want {
			if !strings.Contains(stderr, word) {
				t.Errorf("%q: %q does not say %s", c.args, stderr, word)
			}
		}
	}
}

func oneSentence(t *testing.T, args []string, stderr string) {
	t.Helper()
	if !strings.HasPrefix(stderr, "goodput: ") || strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "panic") {
		t.Errorf("%q: this is not one sentence:\n%s", args, stderr)
	}
}

func TestEnvironmentIsCheckedLikeFlags(t *testing.T) {
	code, _, stderr := execute(t, []string{"GOODPUT_UPSTREAM=http://127.0.0.1:1", "GOODPUT_LIMIT=many"}, "serve")
	oneSentence(t, []string{"GOODPUT_LIMIT=many"}, stderr)
	if code != exitUsage || !strings.Contains(stderr, "--limit") || !strings.Contains(stderr, "many") {
		t.Errorf("%d %s", code, stderr)
	}
}

// A port that is taken is no mistake of the command line: exit code 1.
func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, flag := range []string{"--listen", "--admin"} {
		args := []string{"serve", "--upstream", "http://127.0.0.1:1", "--limit", "3", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", flag, l.Addr().String()}
		code, _, stderr := execute(t, nil, args...)
		oneSentence(t, args, stderr)
		if code != exitRun || !strings.Contains(stderr, flag) || !strings.Contains(stderr, "address already in use") {
			t.Errorf("%s: %d %s", flag, code, stderr)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--help"}, "serve"},
		{[]string{"serve", "--help"}, "GOODPUT_ADMIN"},
		{[]string{"serve", "--help"}, "(:8080)"},
		{[]string{"serve", "--help"}, "(127.0.0.1:8431)"},
		{[]string{"serve", "--help"}, "(64MiB)"},
		{[]string{"serve", "--help"}, "(65536)"},
		{[]string{"serve", "--help"}, "(1s)"},
		{[]string{"serve", "--help"}, "(25s)"},
		{[]string{"demo", "--help"}, "0.1 to 20 (3)"},
		{[]string{"serve", "--help"}, "(auto)"},
		{[]string{"serve", "--help"}, "auto:from=100,max=200"},
		{[]string{"serve", "--help"}, "auto:shared=true"},
		{[]string{"serve", "--help"}, "with --observe"},
		{[]string{"demo", "--help"}, "not counted"},
		{[]string{"demo", "--help"}, "(60)"},
		{[]string{"version"}, "goodput "},
		{[]string{"--version"}, "goodput "},
		{[]string{"help"}, "serve"},
		{[]string{"help", "serve"}, "GOODPUT_ADMIN"},
	} {
		if code, stdout, stderr := execute(t, nil, c.args...); code != exitOK || !strings.Contains(stdout, c.want) || stderr != "" {
			t.Errorf("%q: %d %q %q", c.args, code, stdout, stderr)
		}
	}
}
