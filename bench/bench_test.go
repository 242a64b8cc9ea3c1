package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

// slots is the limit where nobody waits: as many as the service of the README
// has, and far more than there are processors.
const slots = 60

// A contestant is one way to limit. Fields it has no form for are nil.
type contestant struct {
	name string

	// acquire returns n times acquire and release, waiting if need be, on a
	// fresh limiter with that many slots.
	acquire func(slots int) func(n int) error

	// do is acquire around an empty function, safe against its panic.
	do func(slots int) func(n int) error

	// try is acquire without waiting.
	try func(slots int) func(n int) error

	// refusal returns n refusals by a limiter that is full, and an error if one
	// was admitted; stop ends whatever fills it.
	refusal func() (refuse func(n int) error, stop func())

	// turn returns one acquire, yield and release.
	turn func(slots int) func() error
}

var contestants = []contestant{
	xsync, xsyncDeadline, channel,
	failsafeBulkhead, failsafeAdaptive, failsafePriority,
	kratosBBR, gozeroShedder,
	plain, withDeadline, withWork, withAuto,
}

// errAdmitted is a Refusal that was none.
var errAdmitted = fmt.Errorf("admitted by a limiter that should be full")

// each runs a benchmark for every contestant for which op returns an operation.
func each(b *testing.B, op func(contestant) func(b *testing.B)) {
	for _, c := range contestants {
		if run := op(c); run != nil {
			b.Run(c.name, func(b *testing.B) {
				b.ReportAllocs()
				run(b)
			})
		}
	}
}

// warmUp is how long a limiter is used before it is timed. Goodput counts its
// requests for a window of 50 ms before it knows how many of them it need not
// time; the others are given the same.
const warmUp = 150 * time.Millisecond

// warm returns operations on one limiter that has been in use, made once for all
// the rounds in which the testing package looks for b.N.
func warm(b *testing.B, form func(slots int) func(n int) error) func() func(n int) error {
	return sync.OnceValue(func() func(n int) error {
		ops := form(slots)
		for begin := time.Now(); time.Since(begin) < warmUp; {
			must(b, ops(1000))
		}
		return ops
	})
}

// serial runs b.N operations of one caller.
func serial(b *testing.B, form func(slots int) func(n int) error) func(b *testing.B) {
	if form == nil {
		return nil
	}
	limiter := warm(b, form)
	return func(b *testing.B) {
		ops := limiter()
		b.ResetTimer()
		must(b, ops(b.N))
	}
}

// errFull is a refusal where a slot was free.
var errFull = fmt.Errorf("refused by a limiter with free slots")

func nothing(context.Context) error { return nil }

func must(b *testing.B, err error) {
	if err != nil {
		b.Helper()
		b.Error(err)
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	each(b, func(c contestant) func(*testing.B) { return serial(b, c.acquire) })
}

func BenchmarkDo(b *testing.B) {
	each(b, func(c contestant) func(*testing.B) { return serial(b, c.do) })
}

func BenchmarkTryAcquire(b *testing.B) {
	each(b, func(c contestant) func(*testing.B) { return serial(b, c.try) })
}

func BenchmarkParallel(b *testing.B) {
	each(b, func(c contestant) func(*testing.B) {
		limiter := warm(b, c.acquire)
		return func(b *testing.B) {
			ops := limiter()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					must(b, ops(1))
				}
			})
		}
	})
}

func BenchmarkRefusal(b *testing.B) {
	each(b, func(c contestant) func(*testing.B) {
		if c.refusal == nil {
			return nil
		}
		return func(b *testing.B) {
			refuse, stop := c.refusal()
			defer stop()
			must(b, refuse(100))
			b.ResetTimer()
			must(b, refuse(b.N))
			b.StopTimer()
		}
	})
}

func BenchmarkHandOff(b *testing.B) {
	const callers, slots = 32, 2
	each(b, func(c contestant) func(*testing.B) {
		if c.turn == nil {
			return nil
		}
		return func(b *testing.B) {
			turn := c.turn(slots)
			b.SetParallelism(callers / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					must(b, turn())
				}
			})
		}
	})
}
