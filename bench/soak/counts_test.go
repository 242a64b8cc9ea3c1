package soak

import (
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const metricsText = `# HELP goodput_arrivals_total Requests
# TYPE goodput_arrivals_total counter
goodput_arrivals_total{limiter="plain"} 10
goodput_arrivals_total{limiter="extra"} 3
# TYPE goodput_requests_total counter
goodput_requests_total{limiter="plain",outcome="completed",reason=""} 6
goodput_requests_total{limiter="plain",outcome="rejected",reason="queue_full"} 1
goodput_requests_total{limiter="extra",outcome="completed",reason=""} 3
# TYPE goodput_requests_waiting gauge
goodput_requests_waiting{limiter="plain"} 1
goodput_requests_waiting{limiter="extra"} 0
# TYPE goodput_requests_running gauge
goodput_requests_running{limiter="plain"} 2
goodput_requests_running{limiter="extra"} 0
# TYPE goodput_request_duration_seconds histogram
goodput_request_duration_seconds_bucket{limiter="plain",le="0.1"} 6
goodput_request_duration_seconds_sum{limiter="plain"} 0.25
goodput_request_duration_seconds_count{limiter="plain"} 6
`

func read(t *testing.T, text string) *scrape {
	t.Helper()
	s, err := readScrape(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheIdentityIsChecked(t *testing.T) {
	if wrong := read(t, metricsText).unbalanced(); wrong != nil {
		t.Errorf("what adds up does not: %q", wrong)
	}
	lost := strings.Replace(metricsText, `running{limiter="plain"} 2`, `running{limiter="plain"} 1`, 1)
	if wrong := read(t, lost).unbalanced(); len(wrong) != 1 || wrong[0] != "class plain: 10 arrivals, 7 ended + 1 wait + 1 run" {
		t.Errorf("of one that is lost: %q", wrong)
	}
	for _, bad := range []string{"goodput_x", "goodput_x one"} {
		if _, err := readScrape(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestWhatFalls(t *testing.T) {
	before := read(t, metricsText)
	for _, c := range []struct {
		old, new string
		fallen   int
	}{
		{"", "", 0},
		{`arrivals_total{limiter="plain"} 10`, `arrivals_total{limiter="plain"} 11`, 0},
		{`arrivals_total{limiter="plain"} 10`, `arrivals_total{limiter="plain"} 9`, 1},
		{`goodput_arrivals_total{limiter="plain"} 10` + "\n", "", 1},    // it went away
		{`waiting{limiter="plain"} 1`, `waiting{limiter="plain"} 0`, 0}, // a gauge
		{`le="0.1"} 6`, `le="0.1"} 5`, 1},
		{`sum{limiter="plain"} 0.25`, `sum{limiter="plain"} 0.2`, 1},
		{`arrivals_total{limiter="extra"} 3`, `arrivals_total{limiter="extra"} 0`, 0}, // that class begins anew
	} {
		if fallen := read(t, strings.Replace(metricsText, c.old, c.new, 1)).fallen(before); len(fallen) != c.fallen {
			t.Errorf("%q as %q: %q", c.old, c.new, fallen)
		}
	}
}

// An access log is read as it grows and is rotated, to the last line.
func TestTheLedgerFollowsARotation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "access.log")
	write := func(text string) {
		t.Helper()
		f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	l := newLedger(file)
	write(`{"limiter":"plain","outcome":"completed"}` + "\n" + `{"limiter":"pl`)
	must(l.catchUp())
	write(`ain","outcome":"late"}` + "\n")
	must(l.moved())
	write(`{"limiter":"","reason":"slow_body"}` + "\nnonsense\n")
	must(l.done())
	must(l.catchUp())
	if b := l.b; b.Lines != 4 || b.Bad != 1 || b.good() != 2 || b.bad() != 1 || b.Largest != 79 {
		t.Errorf("%+v", b)
	}
	if _, err := os.Stat(file + ".old"); !os.IsNotExist(err) {
		t.Errorf("the old file is still there: %v", err)
	}
	write(`{"half`)
	must(l.moved())
	if err := l.done(); err == nil || !strings.Contains(err.Error(), "in the middle of a line") {
		t.Errorf("a torn end: %v", err)
	}
}

// A file that is moved before anything of it was read is read all the same, and not the new one.
func TestTheLedgerOfAFileMovedEarly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "access.log")
	for i, text := range []string{"{}\n{}\n", "{}\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l := newLedger(file)
		if err := l.moved(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("{}\n{}\n{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := l.done(); err != nil || l.b.Lines != 2-i {
			t.Errorf("%d lines of %d were read, %v", l.b.Lines, 2-i, err)
		}
	}
}

// books is a log with these outcomes of class plain.
func books(outcomes map[string]int) *Books {
	b := &Books{Outcomes: map[string]map[string]int{classPlain: outcomes}}
	for _, n := range outcomes {
		b.Lines += n
	}
	return b
}

func TestTheLogAndTheMetrics(t *testing.T) {
	s := read(t, metricsText)
	if wrong := books(map[string]int{"completed": 6, "rejected": 1, "": 2}).differs(s); wrong != nil {
		t.Errorf("what is equal differs: %q", wrong)
	}
	for _, outcomes := range []map[string]int{
		{"completed": 5, "rejected": 1},
		{"completed": 6, "rejected": 2},
		{"completed": 7},
		{"completed": 6, "rejected": 1, "late": 1}, // which the metrics do not have at all
	} {
		if wrong := books(outcomes).differs(s); len(wrong) == 0 {
			t.Errorf("%v is taken for equal", outcomes)
		}
	}
}

// What broke off, and nothing else, is what the log may have more than the clients.
func TestTheLogAndTheClients(t *testing.T) {
	told := Told{Sent: 100, OK: 60, Refused: 20, Failed: 5, Left: 10, Lost: 5, WildMost: 3}
	for _, c := range []struct {
		name     string
		outcomes map[string]int
		wrong    int
	}{
		{"nothing that broke off", map[string]int{"completed": 50, "late": 10, "rejected": 15, "expired": 5, "failed": 5}, 0},
		{"all of it", map[string]int{"completed": 60, "rejected": 25, "abandoned": 18}, 0},
		{"one more", map[string]int{"completed": 60, "rejected": 25, "abandoned": 19}, 1},
		{"an answer that is not there", map[string]int{"completed": 59, "rejected": 26}, 1},
		{"a refusal that is not there", map[string]int{"completed": 61, "rejected": 24}, 1},
		{"a request that is not there", map[string]int{"completed": 60, "rejected": 24}, 2},
		{"good ones that nobody had", map[string]int{"completed": 79, "rejected": 24}, 2},
	} {
		if wrong := books(c.outcomes).disagrees(told); len(wrong) != c.wrong {
			t.Errorf("%s: %q", c.name, wrong)
		}
	}
}

// Who could not connect has broken nothing off.
func TestWhoCannotConnectIsNoReset(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody listens there
	tally := newTally(time.Minute)
	c := newCrowd(l.Addr().String(), time.Now(), tally)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 { // of which a fifth are of HTTP/2
		c.misbehave(rng)
	}
	if told := tally.sum(); told.Resets() != 0 {
		t.Errorf("%+v", told)
	}
}
