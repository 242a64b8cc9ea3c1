package goodput

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// A flood of one tenant, live but for the clock: goroutines, contexts, alarms and the
// account of each slot.

// A guest is one tenant of a live run: what it sends and what it got.
type guest struct {
	id       string
	rate     float64 // requests per second, Poisson
	sent     int
	inTime   int
	response Histogram // arrival to end, of those that got a slot
}

// host runs guests against a limiter of 60 slots and 50 ms, exponential, with deadlines of
// 2 s, for a time. The draws of a guest are its own, so that it sends the same whoever is
// there as well.
func host(t *testing.T, seed uint64, length time.Duration, tenants *Tenants, guests []*guest) {
	const (
		mean     = 50 * time.Millisecond
		deadline = 2 * time.Second
	)
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(60), Objective: 400 * time.Millisecond, Tenants: tenants})
		var mu sync.Mutex
		var all sync.WaitGroup
		begun := time.Now()
		for i, g := range guests {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			all.Go(func() {
				for {
					time.Sleep(time.Duration(rng.ExpFloat64() / g.rate * float64(time.Second)))
					if time.Since(begun) > length {
						return
					}
					service := time.Duration(rng.ExpFloat64() * float64(mean))
					g.sent++
					all.Go(func() {
						ctx, cancel := context.WithTimeout(WithTenant(context.Background(), g.id), deadline)
						defer cancel()
						arrived := time.Now()
						err := l.Do(ctx, func(context.Context) error { time.Sleep(service); return nil })
						if err != nil {
							return
						}
						mu.Lock()
						defer mu.Unlock()
						g.response.Add(time.Since(arrived))
						if time.Since(arrived) <= deadline {
							g.inTime++
						}
					})
				}
			})
		}
		all.Wait()
		t.Logf("\n%s", l.Explain())
		checkEmpty(t, l)
	})
}

// One tenant sends fifty times its share, which is five times what there is; the nine others
// send nine tenths of theirs. Each of those must do as well as without it.
func TestOneTenantFloods(t *testing.T) {
	const (
		n         = 10
		share     = 60 / 0.05 / n // 120 a second
		flood     = 50 * share
		length    = 10 * time.Second
		least     = 0.98 // both runs have the same draws, so there is no standard error to leave room for
		objective = 400 * time.Millisecond
	)
	seed := stressSeed(t)
	run := func(flooded bool) (guests []*guest) {
		tenants := rowsOf(n, Tenant{})
		for i := range tenants.Rows {
			tenants.Rows[i].Weight = 1
			guests = append(guests, &guest{id: tenants.Rows[i].ID, rate: 0.9 * share})
		}
		guests[0].rate = 0.001
		if flooded {
			guests[0].rate = flood
		}
		host(t, seed, length, tenants, guests)
		return guests
	}
	alone, beside := run(false), run(true)
	for i := 1; i < n; i++ {
		a, b := alone[i], beside[i]
		p99, _ := b.response.Quantile(0.99)
		t.Logf("%s: %d in time of %d, alone %d; p99 %v", b.id, b.inTime, b.sent, a.inTime, p99)
		if a.sent != b.sent {
			t.Fatal("it does not send the same")
		}
		if ratio := float64(b.inTime) / float64(a.inTime); ratio < least {
			t.Errorf("%s: goodput %.4f of alone", b.id, ratio)
		}
		if p99 > objective*1091/1000 { // a bucket is 9.1 % wide
			t.Errorf("%s: p99 %v", b.id, p99)
		}
	}
}

// Tenants that ask for three times what there is, each, have equal shares, whatever their
// ids are: that of a tenant with a row says nothing about when it is shed. (With the
// cohort of its id for all of its requests, one of cohort 3 had 9,693 of 12,083.)
func TestSharesDoNotGoByTheHash(t *testing.T) {
	ids := map[int]string{3: "", 60: "", 120: ""}               // by cohort: early, in the middle, late
	turn := turnAt(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) // when a bubble begins
	for found, i := 0, 0; found < len(ids); i++ {
		id := fmt.Sprintf("tenant-%d", i)
		if had, ok := ids[admission.CohortOf(id, turn)]; ok && had == "" {
			ids[admission.CohortOf(id, turn)] = id
			found++
		}
	}
	var guests []*guest
	tenants := &Tenants{}
	for _, id := range ids {
		tenants.Rows = append(tenants.Rows, Tenant{ID: id})
		guests = append(guests, &guest{id: id, rate: 1200})
	}
	host(t, stressSeed(t), 10*time.Second, tenants, guests)
	sum := 0
	for _, g := range guests {
		sum += g.inTime
	}
	for _, g := range guests {
		// What is shared out is cost granted, and each is off by a few requests. In
		// time are those that the queue does not lose of it, a Poisson number of a
		// few hundred at most: three standard errors of 4,000 are 5 %.
		if part := float64(g.inTime) / float64(sum) * 3; part < 0.95 || part > 1.05 {
			t.Errorf("%s has %.3f of its share", g.id, part)
		}
	}
}
