package accesslog

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Summary says what was read and what it is good for.
type Summary struct {
	// Lines were read. Each is used, a duplicate, or skipped:
	// Lines = Used + Duplicates + Skipped.
	Lines, Used, Duplicates, Skipped int64

	// Samples of the Used have a service time, see Record.Sample.
	Samples int64

	// OutOfOrder are lines with a stamp before one above them in their file.
	OutOfOrder int64

	// First and Last are the first and the last arrival.
	First, Last int64

	Files []File

	// Warnings are sentences about what a replay of this cannot know.
	Warnings []string
}

// A File is the part of a Summary that is about one file.
type File struct {
	Name   string
	Format Format

	// Rule is the sentence that says what the stamp, the unit and the service
	// time were taken to be.
	Rule string

	Lines, OutOfOrder, Duplicates int64
	Spread                        int64           // arrivals spread over Options.Spread
	Verdicts                      [verdicts]int64 // by Verdict
	Outcomes                      [outcomes]int64 // of the arrivals, by Outcome

	// Lost requests are missing in a trace: they were dropped when it was written.
	Lost int64

	// Observed arrivals ran because their limiter observed.
	Observed int64

	// OtherClass and Probes are requests that were skipped as what they are: of a class that
	// was not asked for, or of none, and limited by nobody. There are no Notes about them.
	OtherClass, Probes int64

	// Notes say why lines were not plain, most lines first; at most maxNotes.
	Notes []Note

	// Samples of the lines have a service time; Median and P99 are theirs, within
	// 0.1 %. Lower bounds are not among them.
	Samples     int64
	Median, P99 time.Duration

	longest    time.Duration // of the samples
	totals     int64         // samples that are totals
	reversed   int64         // samples longer than their total
	endless    bool          // a trace without its last line
	unfinished bool          // the last line has no end and is not used
	cut        string        // how compressed data ends early
}

// Own reports whether goodput has written the file.
func (f *File) Own() bool { return f.Format == Trace || f.Format == Goodput }

// A Note is a reason, how many lines have it, and the first of them.
type Note struct {
	Verdict Verdict
	Why     string
	Lines   int64
	First   int64  // number of the first such line
	Example string // that line, cut to 200 bytes, printable
}

const (
	maxNotes   = 32 // more than a format has reasons
	maxExample = 200
)

// notes collect reasons. There are few, and the last one comes again most often.
type notes []Note

func (n *notes) add(v Verdict, why string, number int64, line []byte) {
	for i := range *n {
		if note := &(*n)[i]; note.Verdict == v && note.Why == why {
			note.Lines++
			return
		}
	}
	if len(*n) < maxNotes {
		*n = append(*n, Note{Verdict: v, Why: why, Lines: 1, First: number, Example: clip(line)})
	}
}

func (n notes) sorted() []Note {
	slices.SortStableFunc(n, func(a, b Note) int {
		return cmp.Or(cmp.Compare(b.Lines, a.Lines), cmp.Compare(a.First, b.First))
	})
	return n
}

// clip makes a line fit to be shown: a terminal obeys what an attacker wrote.
func clip(line []byte) string {
	tail := ""
	if len(line) > maxExample {
		line, tail = line[:maxExample], "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '.'
		}
		return r
	}, string(bytes.ToValidUTF8(line, []byte(".")))) + tail
}

// What a median of service times is rarely outside of: faster than 100 us is
// less than a round trip inside a rack, and slower than a minute is beyond the
// timeout of most proxies.
const (
	tooFast = 100 * time.Microsecond
	tooSlow = time.Minute
)

// warnings are the sentences about one file.
func (f *File) warnings() (w []string) {
	say := func(format string, args ...any) {
		w = append(w, f.Name+": "+fmt.Sprintf(format, args...))
	}
	arrivals := f.Verdicts[OK] + f.Verdicts[NoSample] + f.Verdicts[MalformedRequest]
	if f.cut != "" {
		say("%s", f.cut)
	}
	if f.unfinished {
		say("the last line, %d, has no end and is not used", f.Lines)
	}
	if f.Lost > 0 {
		say("%d requests are missing: they came faster than the file took them, or the disk was full; the load was %.3g times what the trace has",
			f.Lost, float64(arrivals+f.Lost)/float64(max(arrivals, 1)))
	}
	if f.Observed > 0 {
		say("%d of %d requests ran in observe mode, at once whatever the limit: in an overload their service times are longer than they are with a limit, and the load is overrated", f.Observed, arrivals)
	}
	if f.endless {
		say("the trace has no last line: the process still writes it, or was killed and lost less than a second of it")
	}
	switch {
	case f.Samples == 0:
		if arrivals > 0 {
			say("no line has a service time%s", f.remedy())
		}
	case f.totals*2 > f.Samples && f.Format != CSV && f.Format != JSON && f.Format != Pattern:
		say("only the total time is logged, and it contains slow clients and waits to connect%s", f.remedy())
	}
	if n := f.reversed; n*2 > f.Samples && n > 0 {
		say("%d of %d service times are longer than the total: are the two times the other way round?", n, f.Samples)
	}
	switch {
	case f.Samples == 0:
	case f.Median == 0:
		say("more than half of the service times are 0: the unit of the log is too coarse for this service")
	case f.Median < tooFast:
		say("the median service time is %v, which is implausibly short: is the unit of the log right?", f.Median)
	case f.Median > tooSlow:
		say("the median service time is %v, which is implausibly long: is the unit of the log right?", f.Median)
	case f.Samples >= 100 && f.longest < time.Second && f.Median > 250*time.Millisecond && f.P99 > 900*time.Millisecond:
		// A fraction is uniform over the second: median 0.5 s, 99th percentile 0.99 s.
		say("no duration reaches 1 s, though the median is %v: is the fraction of the second all that is logged?", f.Median)
	}
	if f.Duplicates > 0 {
		say("%d of %d lines are identical to another and counted once; if they are requests of their own, keep the duplicates", f.Duplicates, f.Lines)
	}
	if n := f.Outcomes[Unknown]; n > 0 && f.Format != CSV && f.Format != JSON && f.Format != Pattern {
		say("%d lines have no status: what became of them is not known", n)
	}
	return w
}

// remedy names what to log.
func (f *File) remedy() string {
	switch f.Format {
	case Nginx:
		return ": log $request_time $upstream_response_time behind the combined format"
	case Apache:
		if f.Samples == 0 {
			return ": log %D behind the combined format"
		}
		return ", so the capacity is underrated where clients are slow"
	case CSV, JSON, Pattern:
		return ": give the column of the service time"
	}
	return ""
}
