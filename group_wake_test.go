package goodput

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A member that was refused and does not come again holds up nobody: what was kept for
// it goes to those that wait an objective later, though nothing else happens.
func TestGroupForgetsTheRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup(GroupConfig{Units: 10, Members: []Member{
			{Config: Config{Name: "a", Objective: 5 * time.Second}},
			{Config: Config{Name: "b", Objective: 100 * time.Millisecond, Depth: NoQueue}},
		}})
		a, b := g.Limiter("a"), g.Limiter("b")
		ctx := context.Background()
		var held []*Slot
		for range 30 {
			if slot, err := b.Acquire(ctx); err == nil {
				held = append(held, &slot)
			}
		}
		for _, slot := range held {
			slot.Release()
		}
		start, got := time.Now(), make(chan time.Duration, 10)
		for range 10 {
			go func() {
				if _, err := a.Acquire(ctx); err == nil { // for ever: nothing of a ends
					got <- time.Since(start)
				}
			}()
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if len(got) != 10 {
			t.Errorf("a has %d of 10 units, and b is idle", len(got))
		}
		for range len(got) {
			if d := <-got; d > 200*time.Millisecond {
				t.Errorf("a waited %v for what b has not wanted for 100ms", d)
			}
		}
	})
}
