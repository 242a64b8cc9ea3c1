package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

const (
	redrawEvery = 200 * time.Millisecond // fluent to the eye, 0.1 % of a core
	printEvery  = time.Second            // a log of a run that can still be read

	// rateOver is what a live rate looks back on. Shorter than the deadline, so
	// that a collapse is seen when it happens; long enough that 1200 requests
	// are in it and chance moves it by 3 %.
	rateOver = time.Second
)

// A progress shows the runs while they run: one line each. On a terminal the
// block of lines is redrawn; elsewhere a line is printed now and then.
type progress struct {
	w        io.Writer
	redraw   bool
	capacity float64
	window   time.Duration

	lines   [2]string // one per run
	drawn   int       // lines on the screen
	painted time.Time
	recent  []load.Live // of the current run, the last rateOver
}

func newProgress(w io.Writer, redraw bool, r *Report) *progress {
	p := &progress{w: w, redraw: redraw, capacity: r.Capacity, window: r.Duration, painted: time.Now()}
	fmt.Fprintf(w, "%d slots x %v = %.0f/s capacity; %.3gx offered for %v; seed %d\ndeadline %v; objective %v; limit %s\n",
		slots, mean, r.Capacity, r.Load, r.Duration, r.Seed, deadline, objective, r.limit())
	if r.Skipped != "" {
		fmt.Fprintln(w, r.Skipped)
	}
	p.lines = [2]string{unprotected, protected}
	return p
}

// update paints if the last picture is old enough. It asks for the numbers only
// then, since that stops the generator for a moment.
func (p *progress) update(name string, live func() load.Live, waiting int) {
	every := printEvery
	if p.redraw {
		every = redrawEvery
	}
	if now := time.Now(); now.Sub(p.painted) >= every {
		p.painted = now
		p.paint(name, live(), waiting)
	}
}

// next forgets what the current run was like: another one begins.
func (p *progress) next() {
	p.recent = p.recent[:0]
	p.painted = time.Now()
}

// last paints the end of a run: its totals instead of the last second.
func (p *progress) last(name string, l load.Live, waiting int) {
	p.recent = p.recent[:0]
	l.Elapsed = min(l.Elapsed, p.window) // rates are those of the window, not of its drain
	if p.redraw {
		p.paint(name, l, waiting)
	}
	p.next()
}

func (p *progress) paint(name string, l load.Live, waiting int) {
	then := load.Live{}
	if len(p.recent) > 0 {
		then = p.recent[0]
	}
	p.recent = append(p.recent, l)
	for len(p.recent) > 1 && l.Elapsed-p.recent[1].Elapsed >= rateOver {
		p.recent = p.recent[1:]
	}
	line := p.line(name, then, l, waiting)
	if !p.redraw {
		fmt.Fprintln(p.w, line)
		return
	}
	row := 1 // the warm-up is in the place of what it is one for
	if name == unprotected {
		row = 0
	}
	p.lines[row] = line
	var b strings.Builder
	if p.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", p.drawn)
	}
	for _, text := range p.lines {
		fmt.Fprintf(&b, "\r\x1b[2K%s\n", text)
	}
	p.drawn = len(p.lines)
	io.WriteString(p.w, b.String())
}

// line is at most 79 columns wide: a terminal that wraps it could not redraw it.
func (p *progress) line(name string, then, now load.Live, waiting int) string {
	seconds := (now.Elapsed - then.Elapsed).Seconds()
	at := now.Elapsed
	if name != warming {
		at = min(at, p.window) // what is left under way afterwards is waited for, and is no more of the run
	}
	if seconds <= 0 {
		return fmt.Sprintf("%-11s", name)
	}
	offered := float64(now.Offered-then.Offered) / seconds
	inTime := float64(now.InTime-then.InTime) / seconds
	percent := 0.0
	if could := min(offered, p.capacity); could > 0 {
		percent = 100 * inTime / could
	}
	return fmt.Sprintf("%-11s%4.0fs  offered%6.0f/s  in time%5.0f/s  goodput%4.0f %%  waiting%6d",
		name, at.Seconds(), offered, inTime, min(percent, 999), waiting)
}
