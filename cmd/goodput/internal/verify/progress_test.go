package verify

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// On a terminal the block is redrawn in its place and no line is too wide; elsewhere there is a
// line a second, and never one for each request. At the end there is a line for each load.
func TestProgress(t *testing.T) {
	for _, redraw := range []bool{false, true} {
		var out strings.Builder
		cfg := given(func(c *Config) { c.Progress, c.Redraw = &out, redraw })
		cfg.Target = &Target{URL: &url.URL{Scheme: "http", Host: "service"}}
		synctest.Test(t, func(t *testing.T) {
			r := &run{cfg: cfg, send: slotted(4, 8, 20*time.Millisecond).send, report: newReport(cfg), show: newProgress(cfg)}
			r.measure(t.Context())
			r.show.end()
		})
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		// 3 steps of 2 s, two half loads of which nothing is shown, and the drain: 9 pictures.
		if most := map[bool]int{false: 20, true: 120}[redraw]; len(lines) > most {
			t.Errorf("redraw %v: %d lines", redraw, len(lines))
		}
		if escapes := strings.Count(out.String(), "\x1b"); (escapes > 0) != redraw {
			t.Errorf("redraw %v: %d escapes", redraw, escapes)
		}
		for _, line := range lines {
			if i := strings.LastIndex(line, "\x1b[J"); i >= 0 {
				line = line[i+3:]
			}
			if redraw && utf8.RuneCountInString(line) > columns {
				t.Errorf("too wide: %q", line)
			}
		}
		for _, want := range []string{
			"the idle service: 50 requests", "20ms for half of its answers: 200, 2 bytes of text/plain, always the same",
			"capacity 200/s: given", "0.5x     offered 100/s     in time 100/s     refused 0/s       p99 20ms",
			"3x       offered 600/s ", "to go",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("redraw %v: no %q in\n%s", redraw, want, out.String())
			}
		}
	}
}

// A screen is a terminal that knows what a progress needs: new lines, and the escape that goes up
// some lines and erases from there on.
type screen struct {
	lines  []string
	erased int // times that something was taken off
}

func (s *screen) Write(b []byte) (int, error) {
	text := string(b)
	if rest, up := strings.CutPrefix(text, "\x1b["); up {
		var n int
		if _, err := fmt.Sscanf(rest, "%dA", &n); err != nil || n > len(s.lines) {
			return 0, fmt.Errorf("%q with %d lines above", text, len(s.lines))
		}
		after, ok := strings.CutPrefix(rest, fmt.Sprintf("%dA\r\x1b[J", n))
		if !ok {
			return 0, fmt.Errorf("%q is not of this terminal", text)
		}
		s.lines = s.lines[:len(s.lines)-n]
		s.erased++
		text = after
	}
	for line := range strings.Lines(text) {
		s.lines = append(s.lines, strings.TrimSuffix(line, "\n"))
	}
	return len(b), nil
}

// What a terminal shows at the end is what stays: no line of a block that was drawn anew, and none
// that was taken off with it.
func TestRedrawLeavesWhatStays(t *testing.T) {
	var terminal screen
	cfg := given(func(c *Config) { c.Progress, c.Redraw = &terminal, true })
	cfg.Target = &Target{URL: &url.URL{Scheme: "http", Host: "service"}}
	synctest.Test(t, func(t *testing.T) {
		r := &run{cfg: cfg, send: slotted(4, 8, 20*time.Millisecond).send, report: newReport(cfg), show: newProgress(cfg)}
		r.measure(t.Context())
		r.show.end()
	})
	var begins []string
	for _, line := range terminal.lines {
		begins = append(begins, strings.Join(strings.Fields(line)[:2], " "))
	}
	want := []string{"the idle", "20ms for", "capacity 200/s:", "that is", "no more", "0.5x offered", "1.5x offered", "3x offered"}
	if !slices.Equal(begins, want) {
		t.Errorf("the screen begins its lines with %q, want %q:\n%s", begins, want, strings.Join(terminal.lines, "\n"))
	}
	if terminal.erased < 3*2*5/2 { // three loads of 2 s, five times a second, of which half would do
		t.Errorf("redrawn %d times", terminal.erased)
	}

	// A narrow terminal gets narrow lines: what it wraps it could not take off.
	for has, want := range map[int]int{0: columns, 200: columns, 80: 79, 40: 39, 1: leastColumns} {
		terminal = screen{}
		cfg.Columns = has
		p := newProgress(cfg)
		p.say("%s", strings.Repeat("word ", 40))
		p.paint("3x", load.Live{}, load.Live{Elapsed: time.Second, Offered: 100}, time.Minute)
		widest := 0
		for _, line := range terminal.lines {
			widest = max(widest, utf8.RuneCountInString(line))
		}
		if widest > want || widest < want-len("word ") {
			t.Errorf("%d columns: lines of %d, want %d at the most:\n%s", has, widest, want, strings.Join(terminal.lines, "\n"))
		}
	}
	cfg.Columns = 0

	// A line that stays while a block is there goes above it, and the block is drawn below.
	terminal = screen{}
	p := newProgress(cfg)
	now := load.Live{Elapsed: time.Second, Offered: 100}
	p.paint("3x", load.Live{}, now, time.Minute)
	p.say("a note")
	p.paint("3x", load.Live{}, now, time.Minute)
	p.paint("3x", load.Live{}, now, time.Minute)
	if len(terminal.lines) != 3 || terminal.lines[0] != "a note" || !strings.HasPrefix(terminal.lines[1], "3x ") {
		t.Errorf("%q", terminal.lines)
	}
	if p.end(); !slices.Equal(terminal.lines, []string{"a note"}) {
		t.Errorf("at the end %q", terminal.lines)
	}
	if p.end(); len(terminal.lines) != 1 {
		t.Errorf("ended twice: %q", terminal.lines)
	}
}

// The largest figures there can be fit the width.
func TestPictureIsNarrow(t *testing.T) {
	now := load.Live{Elapsed: 299 * time.Second, Offered: 100_000, InTime: 100_000, Refused: 100_000, TimedOut: 100_000, InFlight: 65_536, P99: time.Minute}
	then := load.Live{Elapsed: 298 * time.Second}
	for _, line := range picture("capacity", then, now, 90*time.Minute) {
		if n := utf8.RuneCountInString(line); n > columns {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	for _, want := range []string{"offered 100,000/s", "in time 100,000/s", "p99 1m0s", "in flight 65536", "gave up 100,000/s", "1h30m0s to go"} {
		if got := strings.Join(picture("capacity", then, now, 90*time.Minute), "\n"); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := picture("3x", load.Live{}, load.Live{}, time.Minute)[1]; strings.Contains(got, "NaN") || !strings.Contains(got, "offered -") {
		t.Errorf("before the beginning: %q", got)
	}
	if got := cutTo(strings.Repeat("x", 200), columns); len(got) != columns || !strings.HasSuffix(got, "...") {
		t.Errorf("%q", got)
	}
	// What stays is whole: it says what to do.
	for redraw, want := range map[bool]int{true: 3, false: 1} {
		var out strings.Builder
		p := newProgress(given(func(c *Config) { c.Progress, c.Redraw = &out, redraw }))
		p.say("%s --duration 3s", strings.Repeat("word ", 30))
		if got := out.String(); strings.Count(got, "\n") != want || !strings.Contains(got, "--duration 3s\n") {
			t.Errorf("redraw %v: %q", redraw, got)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 0.5: "0.5", 12.34: "12.3", 20: "20", 99.96: "100", 100: "100", 999.6: "1,000", 1200: "1,200", 2_000_000: "2,000,000"} {
		if got := grouped(n); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
}
