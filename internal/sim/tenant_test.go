package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// A fair division: nobody has more than it asked for, all is given if it is asked for,
// and those who have less than they asked for have as much per unit of weight, and no
// less than anybody. There is one such division.
func TestDivide(t *testing.T) {
	for _, c := range []struct {
		asked, weight []float64
		total         float64
		want          []float64
	}{
		{[]float64{10, 10}, []float64{1, 1}, 10, []float64{5, 5}},
		{[]float64{10, 10}, []float64{3, 1}, 10, []float64{7.5, 2.5}},
		{[]float64{1, 100}, []float64{1, 1}, 10, []float64{1, 9}},
		{[]float64{1, 100, 100}, []float64{1, 1, 2}, 10, []float64{1, 3, 6}},
		{[]float64{1, 2}, []float64{1, 1}, 10, []float64{1, 2}},
		{[]float64{0, 5}, []float64{1e-12, 1e-12}, 2, []float64{0, 2}},
		{[]float64{4}, []float64{1}, 0, []float64{0}},
	} {
		given := make([]float64, len(c.asked))
		var claims []claim
		for i := range given {
			claims = append(claims, claim{&given[i], c.asked[i], c.weight[i]})
		}
		divide(claims, c.total)
		for i := range given {
			if math.Abs(given[i]-c.want[i]) > 1e-9 {
				t.Errorf("%+v: %v", c, given)
				break
			}
		}
	}
	// The definition, of divisions that nobody computed by hand.
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 5))
		given := make([]float64, 1+r.IntN(8))
		var claims []claim
		all, total := 0.0, 100*r.Float64()
		for i := range given {
			c := claim{&given[i], 60 * r.Float64() * float64(r.IntN(3)), math.Exp(3 * r.NormFloat64())}
			claims, all = append(claims, c), all+c.asked
		}
		divide(claims, total)
		sum, level := 0.0, 0.0
		for _, c := range claims {
			sum, level = sum+*c.given, max(level, *c.given/c.weight)
		}
		if math.Abs(sum-min(total, all)) > 1e-9*total {
			t.Errorf("seed %d: %v is given of %v, asked for %v", seed, sum, total, all)
		}
		for i, c := range claims {
			if *c.given > c.asked+1e-9 || *c.given < c.asked-1e-9 && *c.given/c.weight < level*(1-1e-9) {
				t.Errorf("seed %d: claim %d of %v with weight %v has %v, and the most per weight is %v", seed, i, c.asked, c.weight, *c.given, level)
			}
		}
	}
}

// The table has a row for each tenant in the order of the classes, the first of many,
// and one for the others; it is bounded, and its rows add up to those of the classes.
func TestTenantRows(t *testing.T) {
	s := plain(1.2, exponential50, 0, 5*time.Second)
	base := s.Classes[0]
	class := func(tenant string, ids Ids) Class {
		c := base
		c.Name, c.Tenant, c.Tenants, c.Cost, c.Arrivals.Rate = tenant, tenant, ids, 2, 100
		return c
	}
	s.Classes = []Class{class("b", Ids{}), class("a", Ids{}), class("few", Ids{N: 3}), class("many", Ids{N: 1000, Zipf: 1}), class("fresh", Ids{Fresh: true}), class("b", Ids{}), class("", Ids{})}
	s.Classes[1].Cost = 1
	r := play(t, s, 4)
	var names []string
	var sum Tally
	for i := range r.Tenants {
		names = append(names, r.Tenants[i].Name)
		sum.add(&r.Tenants[i].Tally)
	}
	want := []string{"b", "a", "few-1", "few-2", "few-3"}
	for i := range maxCrowdRows {
		want = append(want, fmt.Sprintf("many-%d", i+1))
	}
	if want = append(want, "many-*", "fresh-*"); !slices.Equal(names, want) {
		t.Errorf("the rows are %q, want %q", names, want)
	}
	sum.add(&r.Classes[6])
	if sum.Requests != r.Total.Requests || sum.Granted != r.Total.Granted || sum.Asked != r.Total.Asked || sum.Latency.Count != r.Total.Latency.Count || sum.Reasons != r.Total.Reasons {
		t.Errorf("the rows add up to %d requests, %d of %d granted, %d latencies; all have %d, %d of %d and %d",
			sum.Requests, sum.Granted, sum.Asked, sum.Latency.Count, r.Total.Requests, r.Total.Granted, r.Total.Asked, r.Total.Latency.Count)
	}
	if b := r.Tenants[0]; b.Requests != r.Classes[0].Requests+r.Classes[5].Requests || b.Asked != 2*b.Requests || r.Tenants[1].Asked != r.Tenants[1].Requests {
		t.Errorf("b has %d requests of cost %d, its classes %d and %d", b.Requests, b.Asked, r.Classes[0].Requests, r.Classes[5].Requests)
	}
	// By Zipf the first of 1,000 sends 1/7.49 of all; 4.5 standard errors.
	many, first := float64(r.Classes[3].Requests), float64(r.Tenants[5].Requests)
	if p := 1 / 7.485; math.Abs(first-many*p) > 4.5*math.Sqrt(many*p*(1-p)) {
		t.Errorf("many-1 has %v requests of %v", first, many)
	}

	s.Classes = nil
	for i := range 70 {
		s.Classes = append(s.Classes, class(fmt.Sprintf("t%d", i), Ids{}))
	}
	r = play(t, s, 4)
	n, last := len(r.Tenants), r.Tenants[len(r.Tenants)-1]
	if n != maxTenantRows || last.Name != "*" || r.Tenants[n-2].Name != "t62" {
		t.Errorf("%d rows, the last are %q and %q", n, r.Tenants[n-2].Name, last.Name)
	}
	if want := r.Classes[63].Requests; last.Requests < 5*want { // of seven classes
		t.Errorf("the others have %d requests, and one of them %d", last.Requests, want)
	}
}

// Entitled follows the weights of the policy; those without a row there share one.
func TestEntitled(t *testing.T) {
	s := plain(1, exponential50, 0, 5*time.Second)
	class := func(tenant string, rate float64) Class {
		c := s.Classes[0]
		c.Name, c.Tenant, c.Arrivals.Rate = tenant, tenant, rate
		return c
	}
	s.Classes = []Class{class("a", 3000), class("b", 3000), class("c", 3000), class("d", 100)}
	entitled := func(p *admission.Tenants) (all []float64) {
		s := s
		s.Tiers = slices.Clone(s.Tiers)
		s.Tiers[0].Policy.Core = &admission.Config{Limit: limit.Fixed(slots), Objective: 400 * ms, Tenants: p}
		r := play(t, s, 1)
		granted := 0.0
		for i := range r.Tenants {
			granted += float64(r.Tenants[i].Granted)
			all = append(all, r.Tenants[i].Entitled)
		}
		for i := range all {
			all[i] /= granted - float64(r.Tenants[3].Asked) // what is left for the three that ask for more
		}
		return all[:3]
	}
	for _, c := range []struct {
		p    *admission.Tenants
		want []float64
	}{
		{nil, []float64{1. / 3, 1. / 3, 1. / 3}},
		{&admission.Tenants{Rows: []admission.Tenant{{ID: "a", Weight: 3}, {ID: "b"}, {ID: "c"}, {ID: "d"}}}, []float64{0.6, 0.2, 0.2}},
		{&admission.Tenants{Rows: []admission.Tenant{{ID: "a"}, {ID: "d"}}, Others: admission.Tenant{Weight: 4}}, []float64{0.2, 0.4, 0.4}},
	} {
		for i, got := range entitled(c.p) {
			if math.Abs(got-c.want[i]) > 1e-9 {
				t.Errorf("%+v: tenant %d is entitled to %.4f, want %.4f", c.p, i, got, c.want[i])
			}
		}
	}
}

// What is out of range is one sentence.
func TestWrongNames(t *testing.T) {
	for _, c := range []struct {
		change func(*Class)
		says   string
	}{
		{func(c *Class) { c.Users.N = -1 }, "users: n -1 is out of range: 1 to 100000"},
		{func(c *Class) { c.Keys.N = maxIds + 1 }, "keys: n 100001 is out of range: 1 to 100000"},
		{func(c *Class) { c.Users = Ids{N: 3, Zipf: math.NaN()} }, "users: zipf NaN is out of range: 0, which is evenly, to 10"},
		{func(c *Class) { c.Users = Ids{Zipf: 1} }, "users: zipf 1 is of n distinct ones: n is missing"},
		{func(c *Class) { c.Users = Ids{Fresh: true, N: 3} }, "users: fresh contradicts n 3 and zipf 0: each is drawn once"},
		{func(c *Class) { c.Tenants.N = 3 }, "tenants have no name: say tenant, and they are called tenant-1, tenant-2 and so on"},
		{func(c *Class) { c.Turn = 3 }, "turn 3 is about who of the users is shed first: users are missing"},
		{func(c *Class) { c.Tenant = string(make([]byte, 129)) }, "tenant has 129 bytes: at most 128"},
		{func(c *Class) { c.Told.Cost = 1001 }, "told: cost 1001, size 0 are out of range: 0.001 to 1000 times the true one, or 0 for 1"},
		{func(c *Class) { c.Told.Size = math.NaN() }, "told: cost 0, size NaN are out of range: 0.001 to 1000 times the true one, or 0 for 1"},
		{func(c *Class) { c.Told.CV = math.Inf(1) }, "told: cv +Inf is out of range: 0 to 10"},
	} {
		s := plain(1, exponential50, 0, time.Second)
		c.change(&s.Classes[0])
		if _, err := Run(s, 1); err == nil || err.Error() != "class 1: "+c.says {
			t.Errorf("%v, want %s", err, c.says)
		}
	}
}

// Who has had a quota is told when there is enough again, and comes back then: not before,
// and up to half as late again, as the adapters spread it. Without that it would be told
// a second, the least that there is for a queue.
func TestQuotaSaysWhen(t *testing.T) {
	s := Scenario{
		Length: time.Second,
		Tiers: []Tier{tens(4, func(c *admission.Config) {
			c.Tenants = &admission.Tenants{Rows: []admission.Tenant{{ID: "a", Quota: admission.Quota{Rate: 2, Burst: 1}}}}
		})},
		Classes: []Class{{Tenant: "a", Retry: Retry{Attempts: 2, Obey: true}}},
	}
	jobs := []Job{{}, {At: 250 * ms}} // there is a unit again at 500 ms
	s.Trace = func(j *Job) bool {
		if len(jobs) == 0 {
			return false
		}
		*j, jobs = jobs[0], jobs[1:]
		return true
	}
	r := play(t, s, 1)
	if got := r.Total; got.InTime != 2 || got.Reasons[admission.OverQuota] != 1 {
		t.Fatalf("%d in time, %d over the quota", got.InTime, got.Reasons[admission.OverQuota])
	}
	// The first takes 100 ms, the second 250 to 375 ms and 100 of work.
	if sum := r.Total.Good.Sum; sum < 0.45 || sum > 0.575 {
		t.Errorf("the two took %v s together, want 0.45 to 0.575", sum)
	}
}

// What a request has cost is charged when it is known: told a quarter, a tenant has
// its quota of 100 units a second all the same, and four times that if nobody says so.
// Four standard errors, and the bucket that is full at first and below zero later.
func TestCostIsCorrected(t *testing.T) {
	for _, uncorrected := range []bool{false, true} {
		s := sharing(0, 20*time.Second, &admission.Tenants{Rows: []admission.Tenant{{ID: "a", Quota: admission.Quota{Rate: 100, Burst: 20}}}},
			Class{Tenant: "a", Cost: 4, Told: Hearsay{Cost: 0.25, Uncorrected: uncorrected}, Arrivals: Arrivals{Rate: 500}})
		s.Tiers[0].Slots = 400
		want := 100.0
		if uncorrected {
			want = 400
		}
		e := over(t, s, 3, grantedTo(0))
		e[0].near(t, fmt.Sprintf("uncorrected %v: units a second", uncorrected), want, 0.03*want)
	}
}

// The share of a slot goes back with it: a tenant with a ceiling of one has one after the
// other, admitted at once or after a wait.
func TestShareIsReturned(t *testing.T) {
	s := sharing(0, 5*time.Second, &admission.Tenants{Rows: []admission.Tenant{{ID: "a", MaxInUse: 1}, {ID: "b", MaxInUse: 3}}},
		Class{Tenant: "a", Arrivals: Arrivals{Rate: 5}}, Class{Tenant: "b", Arrivals: Arrivals{Rate: 15}})
	r, err := follow(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Tenants {
		if got := inTimeOf(i)(r); got < 0.97 {
			t.Errorf("tenant %s has %.3f in time at a quarter of its ceiling", r.Tenants[i].Name, got)
		}
	}
}

// A flood of fresh ids beside two rows, with users and keys: what the names and the
// shares cost beside BenchmarkPlain. Nine in ten of these are refused.
func BenchmarkTenants(b *testing.B) {
	s := sharing(2*time.Second, 0, &admission.Tenants{Rows: []admission.Tenant{{ID: "a", Weight: 2}, {ID: "b"}}},
		Class{Tenant: "a", Users: Ids{N: 10_000}, Arrivals: Arrivals{Rate: 540}}, Class{Tenant: "b", Arrivals: Arrivals{Rate: 270}},
		Class{Tenant: "x", Tenants: Ids{Fresh: true}, Keys: Ids{N: 100}, Arrivals: Arrivals{Rate: 10_000}})
	s.Length = 5*time.Second + time.Duration(float64(b.N)/10_810*1e9)
	b.ReportAllocs()
	b.ResetTimer()
	r, err := Run(s, 1)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(r.Total.Requests)/b.Elapsed().Seconds(), "requests/s")
}
