package goodput

import (
	"context"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// A slot and its part of an allowance that is there: what BenchmarkAcquireLocked costs, and
// a token bucket.
func BenchmarkAcquireAllowed(b *testing.B) {
	benchAcquire(b, New(Config{Limit: limit.Fixed(60), Objective: 400 * time.Millisecond, Allowance: Quota{Rate: 1e9, Burst: 1e9}}))
}

// Hundreds that wait for an allowance of 100,000 per second all the time: 10 µs each if all
// of it is used. A timer of Go is up to 1 ms late where nothing else happens, so a grant is
// of a hundred at once, and a burst of less would lose some.
func BenchmarkAllowanceHandOff(b *testing.B) {
	l := New(Config{Limit: limit.Fixed(60), Depth: 1000, MaxWait: time.Hour, Allowance: Quota{Rate: 100_000, Burst: 500}})
	b.ReportAllocs()
	b.SetParallelism(300)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			slot, err := l.Acquire(context.Background())
			if err != nil {
				b.Error(err)
				return
			}
			slot.Release()
		}
	})
}
