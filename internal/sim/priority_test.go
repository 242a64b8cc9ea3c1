package sim

import (
	"math"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
)

// prior is a class of a priority that sends a part of what the slots can do.
func prior(p admission.Priority, part float64) Class {
	return Class{Tenant: p.String(), Priority: p, Arrivals: Arrivals{Rate: part * capacity}}
}

// Six times what the slots can do in the background: who is critical notices at most in
// one request of a hundred. 1,080/s for 20 s and three seeds are 64,800 requests, so 1 %
// has an error of 0.04 %, and 0.1 % since they come in bunches.
func TestBackgroundHarmsNoCritical(t *testing.T) {
	for _, deadline := range deadlines {
		s := sharing(deadline, 20*time.Second, nil, prior(admission.Critical, 0.9), prior(admission.Background, 6))
		e := over(t, s, 3, inTimeOf(0), p99Of(0), (*Result).Ratio)
		if e[0].mean < 0.99 || e[1].mean > 0.4 || e[2].mean < 0.98 {
			t.Errorf("deadline %v: critical has %v in time, p99 %v s; the ratio of all is %v", deadline, e[0], e[1], e[2])
		}
		t.Logf("deadline %v: %v in time, p99 %v s, ratio of all %v", deadline, e[0], e[1], e[2])
	}
}

// Critical work alone is more than the slots can do. Without a reserve the default gets
// what the guard against starvation leaves, one grant in 33; with a reserve of 20 % it
// has that: 240/s for 20 s and three seeds, 14,400, have an error of 0.8 %, and it may
// have a twentieth more, since what it leaves for a moment it takes back from its queue.
// Below its reserve it loses nothing.
func TestCriticalLeavesTheReserve(t *testing.T) {
	granted := func(i int) func(*Result) float64 {
		return func(r *Result) float64 { return grantedTo(i)(r) / capacity }
	}
	for _, deadline := range deadlines {
		for _, c := range []struct{ reserve, offered, least, most float64 }{
			{0, 0.3, 0, 0.05},
			{0.2, 0.3, 0.2 * 0.98, 0.2 * 1.06},
			{0.2, 0.15, 0.15 * 0.97, 0.15 * 1.03}, // 10,800 requests come, +- 1 %
		} {
			s := sharing(deadline, 20*time.Second, nil, prior(admission.Critical, 1.5), prior(admission.Default, c.offered))
			s.Tiers[0].Policy.Core.Reserve.Default = c.reserve
			e := over(t, s, 3, granted(1), granted(0), p99Of(0))
			if e[0].mean < c.least || e[0].mean > c.most || e[0].mean+e[1].mean < 0.98 || e[2].mean > 0.4 {
				t.Errorf("deadline %v, %+v: default has %v of the slots, critical %v, p99 %v s", deadline, c, e[0], e[1], e[2])
			}
			t.Logf("deadline %v, %+v: default has %v of the slots, critical %v", deadline, c, e[0], e[1])
		}
	}
}

// profile is the share of the requests of each cohort that were answered in time.
func profile(r *Result) (p [admission.Cohorts]float64) {
	for i, c := range r.Total.Cohorts {
		p[i] = float64(c.InTime) / float64(max(c.Requests, 1))
	}
	return p
}

// Users of one priority in an overload: who is shed is decided by who they are, alike
// in another hour, in two instances that know nothing of one another, and the more are
// shed, one cohort after the other, the more is offered.
//
// A cohort is 1/128 of load x 1,200/s x 20 s: 206 requests at 1.1 times the capacity, 562
// at 3, so that its share has a binomial error of at most 0.035; twice that for refusals
// that come in bunches, and the mean square over the cohorts is within a fifth of that.
func TestCohorts(t *testing.T) {
	for _, load := range []float64{1.1, 1.3, 2, 3} {
		s := plain(load, exponential50, 2*time.Second, 20*time.Second)
		s.Classes[0].Users = Ids{N: 20_000}
		one := profile(play(t, s, 1))
		two := s
		two.Tiers = []Tier{s.Tiers[0]}
		two.Tiers[0].Instances = 2
		two.Classes = []Class{s.Classes[0]}
		two.Classes[0].Arrivals.Rate *= 2
		for what, other := range map[string][admission.Cohorts]float64{"another seed": profile(play(t, s, 2)), "two instances": profile(play(t, two, 3))} {
			square := 0.0
			for i := range one {
				square += (one[i] - other[i]) * (one[i] - other[i]) / admission.Cohorts
			}
			if off := math.Sqrt(square); off > 0.07 {
				t.Errorf("load %v: %s serves other cohorts, off by %.3f", load, what, off)
			}
		}
		// With a hard threshold all of the first 128/load would be served, and nobody
		// else; with a lottery 1/load of each. What is served of the others came when
		// nobody waited, which in an overload is often: the queue in force is short. At
		// 1.1 nobody need be shed for much of the time. Measured it is 0.4 of the way from
		// the lottery to the threshold there, 0.65, 0.6 and 0.5 at the higher loads.
		first, all := 0.0, 0.0
		for i, p := range one {
			if all += p; float64(i) < admission.Cohorts/load {
				first += p
			}
		}
		if got, lottery := first/all, 1/load; got < lottery+0.35*(1-lottery) {
			t.Errorf("load %v: %.3f of the served are of the cohorts for which there is room, of a lottery %.3f", load, got, lottery)
		}
		// Smooth: from one eighth of the cohorts to the next it falls, or does not move.
		last := 1.0
		for k := range 8 {
			p := 0.0
			for _, x := range one[16*k : 16*k+16] {
				p += x / 16
			}
			if p > last+0.04 {
				t.Errorf("load %v: the eighth %d of the cohorts has %.3f in time, and the one before it %.3f", load, k+1, p, last)
			}
			last = p
		}
		if best := one[0]; best < 0.97 {
			t.Errorf("load %v: the first cohort has %.3f in time", load, best)
		}
		t.Logf("load %v: %.3f of the served are of the cohorts for which there is room", load, first/all)
	}
}

// A turn makes others the first.
func TestTurnOfCohorts(t *testing.T) {
	s := plain(2, exponential50, 2*time.Second, 5*time.Second)
	s.Classes[0].Users = Ids{N: 1000}
	a, _ := newWorld(&s, 1)
	turned := s
	turned.Classes = []Class{s.Classes[0]}
	turned.Classes[0].Turn = 1
	b, _ := newWorld(&turned, 1)
	same := 0
	for i, c := range a.classes[0].crowd.cohorts {
		if c == b.classes[0].crowd.cohorts[i] {
			same++
		}
	}
	// One in 128 of 1,000, and 4.5 standard errors.
	if same > 21 {
		t.Errorf("%d of 1000 users have the cohort of the turn before", same)
	}
}
