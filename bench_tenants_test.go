package goodput

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// rowsOf is n tenants, each with its row, and what the others get.
func rowsOf(n int, others Tenant) *Tenants {
	t := &Tenants{Others: others}
	for i := range n {
		t.Rows = append(t.Rows, Tenant{ID: fmt.Sprintf("tenant-%d", i), Weight: float64(1 + i%3)})
	}
	return t
}

// Who is admitted at once with 100 tenants: what the promise of 1 µs is about.
func BenchmarkTenants(b *testing.B) {
	for _, c := range []struct {
		name    string
		tenants *Tenants
		work    func(t *Tenants, n uint32) Work
	}{
		{"rows", rowsOf(100, Tenant{}), func(t *Tenants, n uint32) Work {
			return Work{Tenant: t.Rows[n%100].ID, User: "somebody"}
		}},
		{"others", rowsOf(100, Tenant{}), func(t *Tenants, n uint32) Work {
			return Work{Tenant: strangers[n%uint32(len(strangers))]}
		}},
		{"cost 3", rowsOf(100, Tenant{}), func(t *Tenants, n uint32) Work {
			return Work{Tenant: t.Rows[n%100].ID, Cost: 3}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := New(Config{Limit: limit.Fixed(60), Objective: 400 * time.Millisecond, Tenants: c.tenants})
			ctx := context.Background()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for n := rand.Uint32(); pb.Next(); n++ {
					slot, err := l.AcquireWork(ctx, c.work(c.tenants, n))
					if err != nil {
						b.Error(err)
						return
					}
					slot.Release()
				}
			})
		})
	}
}

var strangers = func() (ids []string) {
	for i := range 1000 {
		ids = append(ids, fmt.Sprintf("stranger-%d", i))
	}
	return ids
}()

// A flood of one tenant against its quota.
func BenchmarkOverQuota(b *testing.B) {
	tenants := rowsOf(100, Tenant{})
	tenants.Rows[0].Quota = Quota{Rate: 10, Burst: 1}
	l, ctx := New(Config{Limit: limit.Fixed(60), Tenants: tenants}), context.Background()
	w := Work{Tenant: tenants.Rows[0].ID}
	b.ReportAllocs()
	for b.Loop() {
		if slot, err := l.AcquireWork(ctx, w); err == nil {
			slot.Release()
		}
	}
}

// A refusal of an overload, with as many rows as there may be.
func BenchmarkRefusalOfTenants(b *testing.B) {
	for _, n := range []int{100, 4096} {
		b.Run(fmt.Sprintf("rows=%d", n), func(b *testing.B) {
			tenants := rowsOf(n, Tenant{})
			l, ctx := New(Config{Limit: limit.Fixed(1), Depth: NoQueue, Tenants: tenants}), context.Background()
			slot := mustAcquire(b, l)
			defer slot.Release()
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				if _, err := l.AcquireWork(ctx, Work{Tenant: tenants.Rows[i%n].ID}); err == nil {
					b.Fatal("admitted")
				}
			}
		})
	}
}
