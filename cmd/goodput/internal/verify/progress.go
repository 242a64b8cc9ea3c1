package verify

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

const (
	redrawEvery = 200 * time.Millisecond // fluent to the eye, 0.1 % of a core
	printEvery  = time.Second            // a log of a run that can still be read

	// A terminal that wraps a line could not redraw it: one column less than it has, and no more
	// than the longest line. With fewer than 20 nothing could be read, redrawn or not.
	columns, leastColumns = 79, 20

	// searching is what a search takes: a dozen loads of one to four seconds. It is a guess
	// for those who wait.
	searching = 45 * time.Second
)

// A progress shows a run while it runs: on a terminal one block of lines that is redrawn,
// elsewhere a line now and then. nil shows nothing.
type progress struct {
	w       io.Writer
	redraw  bool
	columns int // of a line that is redrawn
	cfg     Config
	began   time.Time

	mu    sync.Mutex
	drawn int // lines of the block on the screen
}

func newProgress(cfg Config) *progress {
	if cfg.Progress == nil {
		return nil
	}
	p := &progress{w: cfg.Progress, redraw: cfg.Redraw, columns: columns, cfg: cfg, began: time.Now()}
	if cfg.Columns > 0 {
		p.columns = min(max(cfg.Columns-1, leastColumns), columns)
	}
	return p
}

// say prints what stays, whole: on a terminal in as many lines as that takes.
func (p *progress) say(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	lines := []string{fmt.Sprintf(format, args...)}
	if p.redraw && utf8.RuneCountInString(lines[0]) > p.columns {
		lines = wrap(lines[0], p.columns)
	}
	io.WriteString(p.w, strings.Join(lines, "\n")+"\n")
}

// erase takes the block off the screen.
func (p *progress) erase() {
	if p.drawn > 0 {
		fmt.Fprintf(p.w, "\x1b[%dA\r\x1b[J", p.drawn)
		p.drawn = 0
	}
}

// watch shows a load until the function that it returns is called with its end.
func (p *progress) watch(name string, g *load.Generator, r *Report) (stop func(*load.Result)) {
	if p == nil {
		return func(*load.Result) {}
	}
	left := p.left(r)
	every := printEvery
	if p.redraw {
		every = redrawEvery
	}
	done := make(chan struct{})
	var ticks sync.WaitGroup
	ticks.Go(func() {
		t := time.NewTicker(every)
		defer t.Stop()
		var recent []load.Live
		for {
			select {
			case <-done:
				return
			case <-t.C:
			}
			now := g.Live()
			recent = append(recent, now)
			for len(recent) > 1 && now.Elapsed-recent[1].Elapsed >= time.Second {
				recent = recent[1:]
			}
			p.paint(name, recent[0], now, left-now.Elapsed)
		}
	})
	return func(res *load.Result) {
		close(done)
		ticks.Wait()
		p.say("%s", total(name, res))
	}
}

// left guesses what a run still takes, from the beginning of the next load on.
func (p *progress) left(r *Report) time.Duration {
	left := time.Duration(0)
	if r.Capacity.PerSecond == 0 {
		left = max(searching-time.Since(p.began), 5*time.Second)
	}
	for _, l := range p.cfg.Loads[min(len(r.Steps), len(p.cfg.Loads)):] {
		left += p.cfg.Length
		if l > 1 {
			left += p.cfg.Calm
		}
	}
	return left
}

func (p *progress) paint(name string, then, now load.Live, left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := picture(name, then, now, left)
	if !p.redraw {
		fmt.Fprintln(p.w, strings.Join(lines, "  "))
		return
	}
	p.erase()
	for _, line := range lines {
		io.WriteString(p.w, cutTo(line, p.columns)+"\n")
	}
	p.drawn = len(lines)
}

// picture is a load at one moment, in two lines.
func picture(name string, then, now load.Live, left time.Duration) []string {
	if now.Elapsed <= then.Elapsed { // the first look: since the beginning
		then = load.Live{}
	}
	per := func(n int64) string {
		s := (now.Elapsed - then.Elapsed).Seconds()
		if s <= 0 {
			return "-"
		}
		return aSecond(float64(n) / s)
	}
	return []string{
		fmt.Sprintf("%-8s %4.0fs  p99 %-8s in flight %-7d about %v to go", name, now.Elapsed.Seconds(), latency(now.P99), now.InFlight, left.Round(time.Second)),
		fmt.Sprintf("        offered %-9s in time %-9s refused %-9s gave up %s",
			per(now.Offered-then.Offered), per(now.InTime-then.InTime), per(now.Refused-then.Refused), per(now.TimedOut-then.TimedOut)),
	}
}

// total is a load that has ended, in one line.
func total(name string, r *load.Result) string {
	p99, _ := r.Latency.Quantile(0.99)
	return fmt.Sprintf("%-8s offered %-9s in time %-9s refused %-9s p99 %s",
		name, aSecond(r.PerSecond(r.Offered)), aSecond(r.PerSecond(r.InTime)), aSecond(r.PerSecond(r.Refused)), latency(p99))
}

func latency(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// end leaves the screen as it is to stay.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
}

// cutTo returns at most n columns of a line.
func cutTo(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-3]) + "..."
}
