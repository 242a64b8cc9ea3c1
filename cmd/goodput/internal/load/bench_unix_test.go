//go:build unix

package load

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Whether the generator offers 10,000 requests/s from one core, with a p99 of its lateness of
// 5 ms or less, and what a request costs it. The server is a process of its own:
//
//	GOMAXPROCS=1 go test -run '^$' -bench Generator ./internal/load
//
// On a machine that has other things to do, chrt -f 1 before it gives it a core of its own.
// One iteration is a run of 2 s. "void" is how many of the runs say that they were late; a
// figure of CPU above 100 µs a request is what one core cannot do 10,000 times a second.
func BenchmarkGenerator(b *testing.B) {
	defer Undisturbed()()
	noop := func(context.Context) Answer { return Answer{Status: 200} }
	b.Run("noop/rate=10000", func(b *testing.B) { benchmarkGenerator(b, 10_000, noop) })
	b.Run("noop/rate=50000", func(b *testing.B) { benchmarkGenerator(b, 50_000, noop) })
	for _, tc := range []struct {
		path string
		rate float64
	}{
		{"/", 10_000},
		{"/", 50_000},       // one core cannot send so many: it says so
		{"/nothing", 1_000}, // 1,000 wait at any time, and leave at their deadline
		{"/nothing", 3_000},
	} {
		for _, http2 := range []bool{true, false} {
			b.Run(fmt.Sprintf("http2=%v%s/rate=%.0f", http2, strings.TrimSuffix(tc.path, "/"), tc.rate), func(b *testing.B) {
				_, url := serverProcess(b)
				url.Path = tc.path
				c, err := Dial(b.Context(), HTTP{URL: url, HTTP2: http2, Budget: time.Second})
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				benchmarkGenerator(b, tc.rate, c.Send)
			})
		}
	}
}

func benchmarkGenerator(b *testing.B, rate float64, send Send) {
	var sent, left, void, runs float64
	var took, cpu time.Duration
	late := newHistogram()
	for b.Loop() {
		g, err := New(Plan{Rate: rate, Duration: 2 * time.Second, Seed: 1, Deadline: time.Second}, send)
		if err != nil {
			b.Fatal(err)
		}
		before := processorTime(b)
		r := g.Run(b.Context())
		cpu += processorTime(b) - before
		took += r.Plan.Duration
		sent += float64(r.Sent)
		runs++
		if why := r.Void(); why != "" {
			void++
			b.Log(why)
		}
		if r.Errors > 0 {
			b.Logf("%d errors, the first: %v", r.Errors, r.FirstError)
		}
		left += float64(r.TimedOut)
		late.h.Merge(r.Late.h)
		late.max = max(late.max, r.Late.max)
	}
	for _, q := range []float64{0.5, 0.99} {
		d, _ := late.Quantile(q)
		b.ReportMetric(float64(d.Microseconds())/1000, fmt.Sprintf("late-p%.0f-ms", 100*q))
	}
	b.ReportMetric(sent/took.Seconds(), "sent/s")
	b.ReportMetric(float64(cpu.Microseconds())/sent, "cpu-µs/req")
	b.ReportMetric(left/sent, "timed-out")
	b.ReportMetric(void/runs, "void")
	b.ReportMetric(0, "ns/op")
}

// processorTime is that of this process so far.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
