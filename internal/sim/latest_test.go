package sim

import (
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
)

// Telemetry of 50 devices, three times what the slots can do: a newer reading takes the
// place of the older of the same device. At no time does more than one of each wait, so
// nothing waits longer than 50 before it take, however deep the queue may be. The other
// two ways to make room for what comes serve readings that are as old as the queue is
// long.
//
// 50 departures at 1,200/s take 42 ms, with a standard deviation of sqrt(50) / 1,200/s =
// 6 ms: 4.5 of those are 69 ms. The clock of the estimate starts from a prior, so at
// first a queue of the derived depth of others is allowed, 201 deep or so.
func TestLatestOnly(t *testing.T) {
	age := map[admission.Overflow]time.Duration{}
	for _, overflow := range []admission.Overflow{admission.LatestOnly, admission.EvictOldest, admission.Block} {
		for seed := range uint64(3) {
			s := plain(3, exponential50, 0, 15*time.Second)
			s.Warmup = 0
			s.Tiers[0].Policy.Core.Overflow = overflow
			s.Classes[0].Keys = Ids{N: 50}
			r := play(t, s, seed+1)
			tier := r.Tiers[0]
			age[overflow] = max(age[overflow], tier.PeakAge)
			if ratio := r.Ratio(); ratio < 0.98 {
				t.Errorf("%v, seed %d: the ratio is %.4f", overflow, seed+1, ratio)
			}
			if replaced := r.Total.Reasons[admission.Replaced]; (overflow == admission.LatestOnly) != (replaced > 0) {
				t.Errorf("%v, seed %d: %d are replaced", overflow, seed+1, replaced)
			}
			if overflow == admission.LatestOnly && tier.PeakQueue > 50 {
				t.Errorf("seed %d: %d wait of 50 keys: one of them twice", seed+1, tier.PeakQueue)
			}
		}
		t.Logf("%v: the oldest that waited had waited %v", overflow, age[overflow])
	}
	if got := age[admission.LatestOnly]; got > 69*ms {
		t.Errorf("latest only: something waited for %v, want at most 69ms", got)
	}
	if age[admission.EvictOldest] < 2*age[admission.LatestOnly] || age[admission.Block] < 400*ms {
		t.Errorf("the others are as fresh: evict oldest %v, block %v", age[admission.EvictOldest], age[admission.Block])
	}
}

// What has no key is nobody's newer one, and that of another tenant is another thing.
func TestLatestOnlyOfItsTenant(t *testing.T) {
	tiers := []Tier{tens(1, func(c *admission.Config) {
		c.Overflow, c.Depth = admission.LatestOnly, 10
		c.Tenants = &admission.Tenants{Rows: []admission.Tenant{{ID: "a"}, {ID: "b"}}}
	})}
	key := Ids{N: 1} // all of them are about the same
	s := Scenario{Length: time.Second, Tiers: tiers, Classes: []Class{
		{},
		{Tenant: "a", Keys: key},
		{Tenant: "a"},
		{Tenant: "b", Keys: key},
		{Tenant: "a", Keys: key},
		{Tenant: "a"},
	}}
	jobs := []Job{{}, {At: 10 * ms}, {At: 20 * ms}, {At: 30 * ms}, {At: 40 * ms}, {At: 50 * ms}}
	for i := range jobs {
		jobs[i].Class = i
	}
	s.Trace = func(j *Job) bool {
		if len(jobs) == 0 {
			return false
		}
		*j, jobs = jobs[0], jobs[1:]
		return true
	}
	// The second of a and its key has the place of the first, which was before b; then the
	// tenants take turns.
	if got, want := fates(play(t, s, 1)), "ok 100; replaced no; ok 380; ok 270; ok 160; ok 450; "; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
