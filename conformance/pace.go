package conformance

import (
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"
)

// A limiter may be slow and right. So patience is for one step, or for as long as nobody gets
// on, and never for a whole check: that makes fewer rounds once it has taken its time.

// A pace is how far a check has got.
type pace struct {
	end   time.Time     // from then on it makes as few rounds as it can; zero: it has no such time
	quick time.Duration // the least time in which a free slot was had; 0 before the first

	cutMu sync.Mutex
	cuts  []cut
}

// A cut is a loop that has ended early.
type cut struct {
	of      string
	made, n int
}

const (
	// wholeTime is when a check starts to make fewer rounds: all of them take half a second
	// on an idle machine, so one that is 20 times slower makes all.
	wholeTime = 10 * time.Second

	// leastRounds are made at any pace: more than there are slots in any check that looks
	// for one that is lost.
	leastRounds = 8
)

// rounds yields 0 to n-1, or fewer if time is up or the check has failed. of is what they are,
// for the result.
func (e *env) rounds(n int, of string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if i >= leastRounds && e.late() {
				e.cut(of, i, n)
				return
			}
			if e.faulty() != nil || !yield(i) {
				return
			}
		}
	}
}

// took notes that a free slot was had, which was asked for at that time.
func (e *env) took(asked time.Time) {
	if d := max(time.Since(asked), 1); e.quick == 0 || d < e.quick {
		e.quick = d
	}
}

// slack is what a caller may need to get to where it waits, which is what others needed for a
// slot that was free; 0 for a limiter that is quick.
func (e *env) slack() time.Duration {
	if e.quick < time.Millisecond {
		return 0
	}
	return min(2*e.quick, e.patience/2)
}

// late reports whether the check has taken its time.
func (e *env) late() bool { return !e.end.IsZero() && time.Now().After(e.end) }

// cut notes a loop that has ended early; of those that several goroutines make the shortest.
func (e *env) cut(of string, made, n int) {
	e.cutMu.Lock()
	defer e.cutMu.Unlock()
	for i := range e.cuts {
		if c := &e.cuts[i]; c.of == of {
			c.made = min(c.made, made)
			return
		}
	}
	e.cuts = append(e.cuts, cut{of, made, n})
}

// short says which loops have ended early, or nothing.
func (e *env) short() string {
	e.cutMu.Lock()
	defer e.cutMu.Unlock()
	var all []string
	for _, c := range e.cuts {
		all = append(all, fmt.Sprintf("%d of %d %s", c.made, c.n, c.of))
	}
	if all == nil {
		return ""
	}
	return fmt.Sprintf("only %s, in %v", strings.Join(all, " and "), e.whole)
}

// progress waits for done as long as there are beats: nobody may get on for patience.
func (e *env) progress(done <-chan struct{}, what string, args ...any) error {
	for last := e.beats.Load(); ; {
		err := e.await(done, what, args...)
		now := e.beats.Load()
		if err == nil || now == last || e.faulty() != nil {
			return err
		}
		last = now
	}
}

// until waits until ok, as long as it grows: ok returns how far it has got and whether that is
// enough. pause is called in between.
func (e *env) until(ok func() (int, bool), pause func()) bool {
	last, enough := ok()
	for end := time.Now().Add(e.patience); !enough; {
		if !time.Now().Before(end) || e.faulty() != nil {
			return false
		}
		pause()
		var now int
		if now, enough = ok(); now != last {
			last, end = now, time.Now().Add(e.patience)
		}
	}
	return true
}
