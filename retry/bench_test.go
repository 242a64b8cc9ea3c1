package retry

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// What a call costs that succeeds at once.
func BenchmarkDo(b *testing.B) {
	p := &Policy{}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Do(ctx, func(context.Context, int) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// The same for an adapter, which needs no context that it can end.
func BenchmarkCall(b *testing.B) {
	p := &Policy{}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		c := p.Begin(ctx)
		_, cancel := c.Context()
		cancel()
		c.Done()
	}
}

// A call that the server refused, up to the decision not to send it again.
func BenchmarkRefused(b *testing.B) {
	p := &Policy{Attempts: 1}
	ctx, h, now := b.Context(), http.Header{"Goodput-Rejected": {"queue_full"}, "Retry-After": {"2"}}, time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if p.Begin(ctx).Again(HTTPFault(503, h, now)) != StopExhausted {
			b.Fatal("tried again")
		}
	}
}

func BenchmarkThrottle(b *testing.B) {
	var t Throttle
	b.ReportAllocs()
	for b.Loop() {
		if !t.Refuses() {
			t.Accepted()
		}
	}
}
