package soak

import (
	"fmt"
	"strings"
	"time"
)

// Page returns docs/soak.md.
func Page(r *Report, cs []Criterion) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s under everything at once\n", spoken(r.Length))
	b.WriteString(pageHead)
	verdict := "All that must hold is met"
	if u := Unknown(cs); len(u) > 0 {
		verdict = "**Not measured in this run: " + strings.Join(u, ", ") + "**; what else must hold is met"
	}
	if missed := Missed(cs, false); len(missed) > 0 {
		verdict = "**Not met: " + strings.Join(missed, ", ") + "**"
		if u := Unknown(cs); len(u) > 0 {
			verdict += "; **not measured in this run: " + strings.Join(u, ", ") + "**"
		}
	}
	if missed := Missed(cs, true); len(missed) > 0 {
		verdict += "; of what is judged apart **not met: " + strings.Join(missed, ", ") + "**"
	}
	if r.Length < time.Hour {
		verdict += "; **it is not the hour that is asked for**"
	}
	fmt.Fprintf(&b, "## Result\n\n%s. %s, from %s; commit %s, %s, %s. Seed %d.\n\n    %s\n\n",
		verdict, spoken(r.Length), r.Began.Format("2006-01-02 15:04 UTC"), r.Commit, r.Go, r.Machine, r.Seed, r.Command)
	b.WriteString("| criterion | | what was seen |\n|---|---|---|\n")
	for _, c := range cs {
		met := "met"
		switch {
		case !c.Known:
			met = "**not measured**"
		case !c.Met:
			met = "**not met**"
		}
		if c.Apart {
			met += ", apart"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.Name, met, cell(c.Said))
	}
	if r.Note != "" {
		fmt.Fprintf(&b, "\n%s\n", r.Note)
	}
	memories(&b, r)
	restTable(&b, r)
	classes(&b, r)
	counts(&b, r)
	return b.String()
}

const pageHead = `
This page is written by ` + "`make soak-hour`" + `. It plays [bench/soak](../bench/soak): ` + "`goodput serve`" + ` as it is built
for users, with a policy file, an access log that is rotated, a record and the admin listener, before two servers, all
on one machine.

- **Load**, open loop, Poisson: two classes that queue, one with a limit that is a number and one with ` + "`auto`" + `, each at 1.2 times
  of what its slots can do (2 servers x 10 slots / 100 ms, exponential: 200/s, so 240/s each); half in HTTP/1.1, half in
  HTTP/2; deadlines in two headers, of 2 s, and in the first class also of 3 s and of none; bodies of up to 64 KiB; answers of 1 to 128 KiB; 20 tenants that
  come back and one in 50 that never does; and streams of events and upgraded connections, 1.5 a second for 3 s.
- **Each minute**, at instants that follow from the seed: one policy by SIGHUP and one by POST /-/reload, taken from three that
  differ in limits, objectives, weights and classes (every fifth minute a broken one too, which must change nothing);
  one server is killed and started again on its port within 3 s, every tenth minute both at once; 120 clients that
  reset in the middle of a request or an answer, reset streams of HTTP/2, send half and fall silent, read slowly, or talk
  nonsense; and one request in 50 whose client leaves.
- **At rest**: the load stops now and then, in an hour every ten minutes, and at the end. Then nothing may run, wait, or hold bytes, and all who count must agree.

## What must hold

| criterion | |
|---|---|
| ran-to-the-end | the process that was started is there at the end, has logged no error, and drains after SIGTERM |
| chaos | every minute had a reload, a restart, and at least half of the resets: an hour of quiet certifies nothing |
| memory | resident memory, each 10 s: mean of the last half <= 1.05 x the mean of the first, without the first 2 minutes |
| goroutines-and-files | the same of goroutines and of open files |
| nothing-at-rest | without load, in use, running, waiting, their bytes, bodies in memory, exempt, finishing, lasting, tunnels, and in flight at each server are 0 within 5 s, and stay so |
| counters-add-up | at each scrape arrivals = ended + waiting + running in each class; at rest the access log has, line by line, what the metrics have, by class and outcome, and no line was dropped; and both fit what clients were told |
| counters-never-fall | between two scrapes no counter falls, nor goes away, of what has been there all the time |
| reloads | each good policy is in force by its SHA-256; each broken one changes nothing, and is reported |
| log-is-bounded | lines of the decision log in a minute: at most one a second for each class that refuses and for failures of the upstream, and 60 for what changes |
| offered | of each class at least 0.95 of what the plan has, 1.2 times of capacity less those whose clients leave, in the time without rests |
| served | of each class, in time, at least half of capacity, in the time without rests: whoever refuses, fails or hangs everybody serves nobody |
| refused | at least a twelfth of all that was sent, half of what is above capacity, and some of each class |
| nobody-hangs | nobody is without an answer 2 s after the deadline, of those that met no server away or coming back, no rest, and no second in which a request was sent more than 50 ms late |
| losses-explained | nor is anybody of those without a whole answer, or answered with anything but 2xx or a marked refusal before the deadline (504 at its end: the server was not done) |
| goodput | in time / min(offered, capacity) >= 0.95 in each class, in the seconds in which no server was away or coming back (10 s after it is up), no rest was, and no request was sent more than 50 ms late; capacity less what sleeps overran by |
| p99 | of what was answered 200 in those seconds, from when it was due, of requests with a deadline of 2 s: at most the objective, 1 s |

The last two are judged apart: they are reported, and do not decide, since whatever else the machine does in the hour is in
them.

**How clients and server are compared.** A client that behaves ends in one way: a whole 2xx, a marked refusal, another answer, it
left, or it had no whole answer. A request that was answered is in the access log as that: 2xx as completed or
late, any other as refused, failed, or turned away. What broke off, on whichever side (the client left or reset, a server was
killed in the middle of its answer), may be anything in the log, or not there. So of requests, of good ones and of bad ones
the log has at least what clients were told, and at most as many more as broke off.

`

func memories(b *strings.Builder, r *Report) {
	b.WriteString("\n## The process\n\n| | first half | last half | ratio | at the most |\n|---|---|---|---|---|\n")
	for _, x := range []struct {
		name string
		of   func(Sample) float64
	}{{"resident memory, MiB", resident}, {"heap in use, MiB", heap}, {"goroutines", goroutines}, {"open files", files}} {
		h, most, _ := r.halves(x.of)
		ratio := 0.0
		if h[0] > 0 {
			ratio = h[1] / h[0]
		}
		fmt.Fprintf(b, "| %s | %.1f | %.1f | %.3f | %.1f |\n", x.name, h[0], h[1], ratio, most)
	}
	fmt.Fprintf(b, "\nMeans of a look each %v. The heap has 16 MiB in it that are never touched and take no memory. It used %.0f s of processor time, %.0f %% of a core.\n",
		every, r.CPU, 100*r.CPU/max(1, r.Took.Seconds()))
	b.WriteString("\n| minutes | resident memory, MiB | goroutines | files | reloads | broken policies | restarts | clients that broke off | lines of the decision log, at the most in a minute |\n|---|---|---|---|---|---|---|---|---|\n")
	const block = 10
	for from := 0; from < len(r.Minutes); from += block {
		to := min(from+block, len(r.Minutes))
		var m Minute
		for _, x := range r.Minutes[from:to] {
			m.Reloads += x.Reloads
			m.Refused += x.Refused
			m.Restarts += x.Restarts
			m.Resets += x.Resets
			m.Lines = max(m.Lines, x.Lines)
		}
		span := func(of func(Sample) float64) float64 {
			sum, n := 0.0, 0
			for _, s := range r.Samples {
				if s.At >= time.Duration(from)*time.Minute && s.At < time.Duration(to)*time.Minute {
					sum += of(s)
					n++
				}
			}
			return sum / float64(max(1, n))
		}
		fmt.Fprintf(b, "| %d to %d | %.1f | %.1f | %.1f | %d | %d | %d | %d | %d |\n",
			from+1, to, span(resident), span(goroutines), span(files), m.Reloads, m.Refused, m.Restarts, m.Resets, m.Lines)
	}
}

func restTable(b *strings.Builder, r *Report) {
	b.WriteString("\n## At rest\n\n| at | empty after | left | heap in use, MiB | goroutines | files | lines of the access log | clients: sent | 2xx | refused | other answers | left | no whole answer | may have been sent by those that misbehave |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, x := range r.Rests {
		t, left := x.Told, "nothing"
		if len(x.Left) > 0 {
			left = cell(strings.Join(x.Left, "; "))
		}
		fmt.Fprintf(b, "| %v | %v | %s | %.1f | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n", x.At.Round(time.Second), x.Empty.Round(time.Millisecond), left,
			float64(x.Heap)/mib, x.Gorout, x.Files, x.Lines, t.Sent, t.OK, t.Refused, t.Failed, t.Left, t.Lost, t.WildMost)
	}
	fmt.Fprintf(b, "\nOf those without a whole answer %d had none at all until 2 s after their deadline.\n", r.Told.Hung)
}

func classes(b *strings.Builder, r *Report) {
	b.WriteString("\n## Goodput\n\n| class | seconds judged | offered | in time | ratio | speed of the servers |\n|---|---|---|---|---|---|\n")
	for _, c := range r.Classes {
		fmt.Fprintf(b, "| %s | %d | %d | %d | %.3f | %.3f |\n", c.Name, c.Seconds, c.Offered, c.InTime, c.Ratio(), c.Speed)
	}
	b.WriteString("\n| class | deadline | answers of 200 | p50 | p99 |\n|---|---|---|---|---|\n")
	for _, c := range r.Classes {
		for _, q := range c.Of {
			fmt.Fprintf(b, "| %s | %v | %d | %v | %v |\n", c.Name, q.Deadline, q.Answers, q.P50.Round(time.Millisecond), q.P99.Round(time.Millisecond))
		}
	}
	b.WriteString(deadlinesDiffer)
	fmt.Fprintf(b, "\nThe load was late by %v at the 99th percentile, and by %v at the most: other work of the machine is in these numbers.\n", r.LateP99.Round(10*time.Microsecond), r.LateMost.Round(time.Millisecond))
}

func counts(b *strings.Builder, r *Report) {
	b.WriteString("\n## Counters at the last rest\n\n| class | outcome | reason | requests |\n|---|---|---|---|\n")
	for _, o := range r.Outcomes {
		fmt.Fprintf(b, "| %s | %s | %s | %d |\n", o.Class, o.Outcome, o.Reason, o.Count)
	}
	fmt.Fprintf(b, "\nThe access log had %d lines, %.1f MiB in one file at the most; %d were turned away before a limiter was asked. The record took %.1f MiB at the most.\n",
		r.Books.Lines, float64(r.Books.Largest)/mib, r.Books.of(""), float64(r.Record)/mib)
}

const deadlinesDiffer = `
Where deadlines differ, an overload that stands is served earliest deadline first: who can wait longer is
overtaken by who cannot, up to the time that they gave, which may be above the objective. So p99 is judged of the
deadline that most have.
`

// cell is text as a cell of a table.
func cell(s string) string { return strings.NewReplacer("|", "\\|", "\n", " ").Replace(s) }

// spoken is a length in words: "An hour", "3 minutes".
func spoken(d time.Duration) string {
	switch {
	case d == time.Hour:
		return "An hour"
	case d > time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d hours", int(d/time.Hour))
	case d == time.Minute:
		return "A minute"
	}
	return fmt.Sprintf("%d minutes", int(d/time.Minute))
}
