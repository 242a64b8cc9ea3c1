package demo

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
	"github.com/goodput/goodput/limit"
)

// watched feeds 3 s of a run at 3x whose goodput ends after the first second.
func watched(p *progress, name string) {
	for i := range 30 {
		time.Sleep(100 * time.Millisecond)
		elapsed := time.Duration(i+1) * 100 * time.Millisecond
		p.update(name, func() load.Live {
			return load.Live{
				Elapsed: elapsed,
				Offered: int64(3600 * elapsed.Seconds()),
				InTime:  int64(1200 * min(elapsed.Seconds(), 1)),
			}
		}, 7000)
	}
	p.last(name, load.Live{Elapsed: 5 * time.Second, Offered: 10800, InTime: 1200}, 0)
}

func TestProgressPrintsALineASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		watched(newProgress(&b, false, &Report{Load: 3, Capacity: 1200, Limit: limit.Fixed(60), Duration: 3 * time.Second}), protected)
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if len(lines) != 5 || strings.ContainsRune(b.String(), '\x1b') {
			t.Fatalf("want a title of two lines and three plain lines:\n%s", b.String())
		}
		if want := "goodput       1s  offered  3600/s  in time 1200/s  goodput 100 %  waiting  7000"; lines[2] != want {
			t.Errorf("got  %q\nwant %q", lines[2], want)
		}
		// The last second, not the mean since the start.
		if want := "goodput       2s  offered  3600/s  in time    0/s  goodput   0 %  waiting  7000"; lines[3] != want {
			t.Errorf("got  %q\nwant %q", lines[3], want)
		}
	})
}

func TestProgressRedrawsTwoLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		p := newProgress(&b, true, &Report{Load: 3, Capacity: 1200, Limit: limit.Fixed(60), Duration: 3 * time.Second})
		watched(p, unprotected)
		watched(p, protected)
		blocks := strings.Split(b.String(), "\x1b[2A")
		if len(blocks) != 2*16 { // each 200 ms and at the end, twice
			t.Errorf("%d blocks", len(blocks))
		}
		for i, block := range blocks[1:] {
			if n := strings.Count(block, "\n"); n != 2 {
				t.Errorf("block %d has %d lines", i, n)
			}
			for line := range strings.Lines(block) {
				line = strings.TrimPrefix(strings.TrimRight(line, "\n"), "\r\x1b[2K")
				if len(line) > 79 || strings.ContainsRune(line, '\x1b') {
					t.Errorf("%d columns: %q", len(line), line)
				}
			}
		}
		last := blocks[len(blocks)-1]
		if !strings.Contains(last, "unprotected   3s  offered  3600/s  in time  400/s") || !strings.Contains(last, "goodput       3s") {
			t.Errorf("the last block is %q", last)
		}
	})
}

// What is still under way at the end of a run is waited for: the time stays at what was promised.
func TestProgressEndsAtTheWindow(t *testing.T) {
	p := newProgress(new(bytes.Buffer), false, &Report{Duration: 20 * time.Second})
	for name, want := range map[string]string{protected: "goodput      20s ", warming: warming + "      22s "} {
		if got := p.line(name, load.Live{Elapsed: 21 * time.Second}, load.Live{Elapsed: 22 * time.Second}, 7); !strings.HasPrefix(got, want) {
			t.Errorf("%q does not begin with %q", got, want)
		}
	}
}

func TestProgressSaysWhatIsSkipped(t *testing.T) {
	var b bytes.Buffer
	newProgress(&b, true, &Report{Load: 10, Capacity: 1200, Skipped: "the direct run is skipped"})
	if !strings.Contains(b.String(), "\nthe direct run is skipped\n") {
		t.Errorf("%q", b.String())
	}
}
