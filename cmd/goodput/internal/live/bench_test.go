package live

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// hundred are limiters that have done something of everything.
func hundred() (lims []*goodput.Limiter) {
	for i := range 100 {
		l := goodput.New(goodput.Config{Name: fmt.Sprintf("class-%d", i), Limit: limit.Fixed(1), Depth: goodput.NoQueue})
		for range 50 {
			slot, err := l.Acquire(context.Background())
			if err == nil {
				_, _ = l.Acquire(context.Background()) // refused
				slot.Release()
			}
		}
		lims = append(lims, l)
	}
	return lims
}

// watching is a hub with five minutes of their past.
func watching(lims []*goodput.Limiter) *Hub {
	h := New(Config{
		Limiters: func() []*goodput.Limiter { return lims },
		State:    func([]Snapshot) any { return nil },
	})
	now := time.Now()
	for i := range kept {
		h.publish(h.sample(now.Add(time.Duration(i) * time.Second)))
	}
	return h
}

// What it costs a second to look at 100 limiters while nobody watches; and what is kept of them.
func BenchmarkLook(b *testing.B) {
	var before, after runtime.MemStats
	lims := hundred()
	runtime.GC()
	runtime.ReadMemStats(&before)
	h := watching(lims)
	runtime.GC()
	runtime.ReadMemStats(&after)
	for b.Loop() {
		h.publish(h.sample(time.Now()))
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MB-kept")
}

// What it costs beside that to encode a tick for viewers, without the state, which is not ours.
func BenchmarkTick(b *testing.B) {
	h := watching(hundred())
	for b.Loop() {
		f, p := h.sample(time.Now())
		h.publish(f, p)
		b.SetBytes(int64(len(f.message(""))))
	}
}

// What it costs to encode five minutes of the past, once in a second in which somebody comes.
func BenchmarkHistory(b *testing.B) {
	h := watching(hundred())
	for b.Loop() {
		clear(h.latest.histories)
		b.SetBytes(int64(len(h.latest.history(""))))
	}
}
