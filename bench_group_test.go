package goodput

import (
	"context"
	"testing"
	"time"
)

func benchGroup() *Group {
	return NewGroup(GroupConfig{Units: 60, Members: []Member{
		{Config: Config{Name: "a", Objective: 400 * time.Millisecond, MaxWait: time.Hour}}, // a machine may stall
		{Config: Config{Name: "b", Depth: 1000, MaxWait: time.Hour}},
	}})
}

// As BenchmarkAcquire, of a member of a group in which nobody wants more than it has.
func BenchmarkAcquireOfMember(b *testing.B) {
	benchAcquire(b, benchGroup().Limiter("a"))
}

// The same while the other member is hungry: every unit is taken back to serve a
// request, once somebody has ended, and lent again.
func BenchmarkAcquireOfLender(b *testing.B) {
	g := benchGroup()
	other := g.Limiter("b")
	for range 120 { // more than there are units
		go func() {
			for {
				slot, err := other.Acquire(context.Background())
				if err != nil {
					return
				}
				slot.Release()
			}
		}()
	}
	defer func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = other.Drain(ctx)
	}()
	benchAcquire(b, g.Limiter("a"))
}
