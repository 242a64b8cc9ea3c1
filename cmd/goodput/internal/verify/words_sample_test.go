package verify

import (
	"errors"
	"math"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// Reports that are written by hand: these tests are about how a run is shown.

const (
	sampleCapacity = 400.0 // per second
	sampleLength   = 10 * time.Second
	sampleCalm     = 5 * time.Second
	sampleDeadline = 2 * time.Second
)

// hostile is a string that would run in a page that does not escape it, and would colour a
// terminal that prints it as it is.
const hostile = "</script><script>alert(1)</script>\x1b[31m\"'&`${x}\u202e\r\n"

// A mix is what becomes of the arrivals of a load, as shares.
type mix struct{ inTime, late, refused, gaveUp, failed float64 }

// sampleResult is a load of so many a second, of which shares end as m says. Who is served
// takes p50, and one in 50 takes tail.
func sampleResult(perSecond float64, length time.Duration, m mix, p50, tail time.Duration) *load.Result {
	bins := int(length / load.BinLength)
	r := &load.Result{
		Plan:     load.Plan{Rate: perSecond, Duration: length, Deadline: sampleDeadline, Tolerance: load.DefaultTolerance},
		Status:   map[int]int64{},
		Reasons:  map[string]int64{},
		Refusals: map[load.Told]int64{},
	}
	for i := range bins {
		// Wavy, as arrivals are; the sum of a sine over its period is nothing.
		offered := int64(math.Round(perSecond * load.BinLength.Seconds() * (1 + 0.15*math.Sin(float64(i)))))
		of := func(share float64) int64 { return int64(math.Round(share * float64(offered))) }
		b := load.Bin{Offered: offered, Late: of(m.late), Refused: of(m.refused), TimedOut: of(m.gaveUp), Failed: of(m.failed)}
		b.InTime = max(offered-b.Late-b.Refused-b.TimedOut-b.Failed, 0)
		r.Bins = append(r.Bins, b)
		r.Offered += b.Offered
		r.InTime += b.InTime
		r.Completed += b.InTime + b.Late
		r.Refused += b.Refused
		r.TimedOut += b.TimedOut
		r.Failed += b.Failed
	}
	r.Sent, r.Attempts = r.Offered, r.Offered
	r.Status[200] = r.Completed
	if r.Refused > 0 {
		r.Status[503] = r.Refused
		r.Refusals[load.Told{Status: 503, Marked: true}] = r.Refused
		r.Reasons["queue-full"] = r.Refused - r.Refused/5
		r.Reasons["doomed"] = r.Refused / 5
		r.RetryAfter = load.RetryAfter{Min: time.Second, Max: 3 * time.Second, Values: map[time.Duration]int64{
			time.Second: r.Refused / 2, 3 * time.Second: r.Refused - r.Refused/2,
		}}
	}
	if r.Failed > 0 {
		r.Status[500] = r.Failed
	}
	r.Latency = load.HistogramOf(map[time.Duration]int64{
		p50: r.Completed - r.Completed/50, tail: r.Completed / 50, sampleDeadline: r.TimedOut,
	})
	r.Refusal = load.HistogramOf(map[time.Duration]int64{400 * time.Microsecond: r.Refused - r.Refused/50, 3 * time.Millisecond: r.Refused / 50})
	r.Late = load.HistogramOf(map[time.Duration]int64{80 * time.Microsecond: r.Sent - r.Sent/50, 900 * time.Microsecond: r.Sent / 50})
	return r
}

// sampleReport has steps in which shares end as of says.
func sampleReport(of func(load float64) mix, p50, tail time.Duration, recovery time.Duration) *Report {
	r := &Report{
		Target: "http://127.0.0.1:8080/work", Program: "goodput v0.9.0",
		Command: "goodput verify http://127.0.0.1:8080/work --objective 400ms --seed 1",
		Began:   time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Took: 96 * time.Second,
		Settings: Settings{
			Method: "GET", Deadline: sampleDeadline, Objective: 400 * time.Millisecond, Loads: []float64{0.5, 1, 1.5, 3, 10},
			Length: sampleLength, Calm: sampleCalm, Arrivals: "poisson", Attempts: 1, Seed: 1, Protocol: "HTTP/1.1",
			MaxRate: 20000, MaxRequests: 1_000_000,
		},
		Idle: Idle{
			Requests: 20, Status: map[int]int{200: 20}, P50: 48 * time.Millisecond, Max: 61 * time.Millisecond,
			Content: "200, 3 bytes of text/plain, always the same",
		},
		Capacity: Capacity{
			PerSecond: sampleCapacity, Error: 3.2,
			Why: "at 512/s 401/s were answered in time, and at 1024/s no more than 400/s",
		},
		Notes: []string{"One value of Retry-After for all sends them back as a herd."},
	}
	for i := range 6 {
		offered := 32 * math.Pow(2, float64(i))
		r.Capacity.Probes = append(r.Capacity.Probes, Probe{
			Rate:   offered,
			Result: sampleResult(offered, 2*time.Second, of(offered/sampleCapacity), p50, tail),
		})
	}
	for _, x := range r.Settings.Loads {
		s := Step{Load: x, Rate: x * sampleCapacity, Result: sampleResult(x*sampleCapacity, sampleLength, of(x), p50, tail)}
		if x > 1 {
			s.Calm = sampleResult(sampleCapacity/2, sampleCalm, of(0.5), p50, tail)
			s.Recovery = recovery
			if recovery < 0 {
				s.Calm = sampleResult(sampleCapacity/2, sampleCalm, of(10), p50, tail)
			}
		}
		r.Steps = append(r.Steps, s)
	}
	return r
}

// judged gives r a criterion of each name, of which some are not met.
func judged(r *Report, why map[string]string) *Report {
	for _, name := range Names {
		c := Criterion{Name: name, Text: "what is asked for of " + name, Met: why[name] == "", Measured: "98.7 % at 1.5x, 98.6 % at 3x, 98.8 % at 10x", Why: why[name]}
		if c.Met {
			c.Measured = "0.1 % at 0.5x"
		}
		r.Criteria = append(r.Criteria, c)
	}
	return r
}

// certifiedReport is a service that is protected.
func certifiedReport() *Report {
	return judged(sampleReport(func(x float64) mix {
		if x <= 1 {
			return mix{inTime: 1}
		}
		return mix{inTime: 0.99 / x, refused: 1 - 0.99/x}
	}, 60*time.Millisecond, 310*time.Millisecond, 300*time.Millisecond), nil)
}

// collapsedReport is one without protection: past its capacity nobody is in time.
func collapsedReport() *Report {
	return judged(sampleReport(func(x float64) mix {
		switch {
		case x <= 1:
			return mix{inTime: 1}
		case x < 2:
			return mix{inTime: 0.2 / x, gaveUp: 1 - 0.2/x}
		}
		return mix{gaveUp: 1}
	}, 90*time.Millisecond, 400*time.Millisecond, -1), map[string]string{
		Goodput:  "At 1.5x 13.3 % of the capacity was answered in time: the queue has no bound, so that whoever is served has already left.",
		Flat:     "p99 reaches the deadline of 2 s.",
		Hanging:  "Callers wait for the whole of their deadline to learn nothing.",
		Recovery: "5 s after the load nobody was answered in time: the queue was still full of callers that had left.",
	})
}

const lateVoid = "the load was not offered in time: at 10x the generator was 38 ms late at p99, more than 5 ms"

// voidReport is one whose generator was late.
func voidReport() *Report {
	r := certifiedReport()
	for _, c := range r.Criteria {
		r.Unjudged = append(r.Unjudged, Open{Name: c.Name, Text: c.Text, Measured: c.Measured, Why: lateVoid})
	}
	r.Unjudged[2].Measured = unmeasured.measured
	r.Criteria = nil
	r.Void = lateVoid
	r.Steps[4].Result.Late = load.HistogramOf(map[time.Duration]int64{38 * time.Millisecond: 40000})
	return r
}

// deadReport is one of a service that answers nothing in time: there is no capacity, and no
// step.
func deadReport() *Report {
	r := sampleReport(func(float64) mix { return mix{gaveUp: 1} }, 0, 0, -1)
	r.Steps, r.Capacity.PerSecond, r.Capacity.Error = nil, 0, 0
	r.Capacity.Probes = r.Capacity.Probes[:1]
	r.Capacity.Why = "at 32/s, the least that was offered, nobody was answered in time"
	return judged(r, map[string]string{Below: "Nobody was answered in time.", Goodput: "Nobody was answered in time.", Hanging: "Nobody was answered at all."})
}

// hostileReport has something hostile wherever a stranger has a say, and where he has not.
func hostileReport() *Report {
	r := collapsedReport()
	r.Target, r.Program, r.Command, r.Capacity.Why, r.Idle.Content = hostile, hostile, hostile, hostile, hostile
	r.Settings.Method, r.Settings.Protocol, r.Settings.Arrivals = hostile, hostile, hostile
	r.Notes = []string{hostile}
	r.Unjudged = []Open{{Name: hostile, Text: hostile, Measured: hostile, Why: hostile}}
	for i := range r.Criteria {
		c := &r.Criteria[i]
		c.Text, c.Measured = hostile, hostile
		if !c.Met {
			c.Why = hostile
		}
	}
	l := r.Steps[2].Result
	l.Reasons = map[string]int64{hostile: 3, strings.Repeat("A", 10<<10): 2, "": 1}
	l.Refusals = map[load.Told]int64{{Status: 429}: 4, {Status: 200, Marked: true}: 2}
	l.Refused, l.Unlike, l.Errors = 6, 9, 2
	l.FirstError = errors.New(hostile)
	l.FirstUnlike = load.Answer{Status: 200, Content: load.Content{Type: hostile, Size: 12345}}
	l.RetryAfter = load.RetryAfter{Absent: 1, Zero: 2, Malformed: 3, FirstOdd: hostile + strings.Repeat("9", 10<<10)}
	l.Followed = load.Followed{Asked: 64, Served: 40, Refused: 3, Never: 21}
	return r
}

// samples are all of them, by the names of their files.
func samples() map[string]*Report {
	return map[string]*Report{
		"certified": certifiedReport(), "collapsed": collapsedReport(), "void": voidReport(), "dead": deadReport(), "hostile": hostileReport(),
		"nothing": {},
	}
}
