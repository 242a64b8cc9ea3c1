package sim

import (
	"fmt"
	"math"
	"testing"

	"github.com/goodput/goodput/admission"
)

// Names come as often as their distribution says: of n draws a share p has a standard
// deviation of sqrt(n p (1-p)), and 4.5 of those are passed once in 150,000 comparisons.
func TestIds(t *testing.T) {
	const n = 200_000
	for _, ids := range []Ids{{N: 1}, {N: 10}, {N: 1000}, {N: 10, Zipf: 1}, {N: 5, Zipf: 0.5}, {N: 100, Zipf: 3}} {
		namer := newNamer(ids, "a", nameStream(1, nameUsers, 0))
		counts := make([]float64, ids.N)
		for range n {
			name, i := namer.draw()
			if want := fmt.Sprintf("a-%d", i+1); name != want {
				t.Fatalf("%+v: the name of %d is %s, want %s", ids, i, name, want)
			}
			counts[i]++
		}
		sum := 0.0
		for i := range ids.N {
			sum += math.Pow(float64(i+1), -ids.Zipf)
		}
		for i, c := range counts {
			p := math.Pow(float64(i+1), -ids.Zipf) / sum
			if se := math.Sqrt(n * p * (1 - p)); math.Abs(c-n*p) > 4.5*se+1e-9 {
				t.Errorf("%+v: name %d comes %.0f times, want %.0f ± %.0f", ids, i+1, c, n*p, se)
			}
		}
	}
}

// A fresh name is nobody's, and costs next to nothing: 256 of them are one text.
func TestFreshIds(t *testing.T) {
	namer, other := newNamer(Ids{Fresh: true}, "a", nameStream(1, nameKeys, 0)), newNamer(Ids{Fresh: true}, "a", nameStream(1, nameKeys, 0))
	seen := map[string]bool{}
	for range 100_000 {
		name, i := namer.draw()
		if again, _ := other.draw(); again != name {
			t.Fatalf("the same stream gives %s and %s", name, again)
		}
		if i != -1 || seen[name] || len(name) != freshBytes {
			t.Fatalf("%q, %d, seen %v", name, i, seen[name])
		}
		seen[name] = true
	}
	if n := testing.AllocsPerRun(2560, func() { namer.draw() }); n > 0 { // the mean, rounded down
		t.Errorf("%v allocations a name", n)
	}
}

// The names of a class change nothing about when its requests come and what they are.
func TestNamesHaveTheirOwnStreams(t *testing.T) {
	s := plain(0.9, exponential50, 0, 5e9)
	s.Classes[0].Sizes = []Size{{1, 1}, {2, 1}}
	draws := func(change func(*Class)) (all []call) {
		s := s
		s.Classes = []Class{s.Classes[0]}
		change(&s.Classes[0])
		w, err := newWorld(&s, 3)
		if err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			from, at := w.soonest()
			w.now = at
			c := *w.draw(from)
			all = append(all, call{arrival: c.arrival, service: c.service, size: c.size, cost: c.cost})
		}
		return all
	}
	want := draws(func(*Class) {})
	got := draws(func(c *Class) {
		c.Tenant, c.Tenants, c.Users, c.Keys = "a", Ids{N: 10}, Ids{Fresh: true}, Ids{N: 3, Zipf: 1}
		c.Told = Hearsay{Cost: 2, CV: 1}
	})
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("request %d is %+v, and without names %+v", i, got[i], want[i])
		}
	}
}

// What a limiter hears is the truth times the factor, and a guess varies as it says,
// around the same mean.
func TestHearsay(t *testing.T) {
	const n = 100_000
	for _, c := range []struct {
		told       Hearsay
		cost, size float64 // means
		cv         float64
	}{
		{Hearsay{Cost: 2}, 2000, 1000, 0},
		{Hearsay{Size: 0.5}, 1000, 500, 0},
		{Hearsay{CV: 0.5}, 1000, 1000, 0.5},
		{Hearsay{Cost: 3, Size: 2, CV: 1}, 3000, 2000, 1},
	} {
		g := newGuesser(c.told, nameStream(1, nameHearsay, 0))
		var costs, sizes []float64
		for range n {
			one := call{cost: 1000, size: 1000, toldCost: 1000, toldSize: 1000}
			g.guess(&one)
			costs, sizes = append(costs, float64(one.toldCost)), append(sizes, float64(one.toldSize))
		}
		what := fmt.Sprintf("%+v", c.told)
		average(costs).near(t, what+": cost", c.cost, 0.5)
		size := average(sizes)
		size.near(t, what+": size", c.size, 0.5)
		// The coefficient of variation of n lognormal draws; its own error is below a
		// percent for one of 1.
		if got := size.se * math.Sqrt(n) / size.mean; math.Abs(got-c.cv) > 0.03*c.cv+1e-3 {
			t.Errorf("%s: the coefficient of variation is %.3f, want %v", what, got, c.cv)
		}
	}
	g := newGuesser(Hearsay{Cost: 0.001, Size: 0.001}, nil)
	if c := (call{cost: 1, size: 1}); true {
		if g.guess(&c); c.toldCost != 1 || c.toldSize != 1 {
			t.Errorf("the least that is told is cost %d, size %d, want 1", c.toldCost, c.toldSize)
		}
	}
}

// Users have the cohort that the adapters give them, in every class and instance.
func TestUsersHaveTheirCohort(t *testing.T) {
	for _, ids := range []Ids{{N: 50}, {Fresh: true}} {
		b := newCrowd(&Class{Users: ids, Turn: 9}, 0, 1)
		twin := newNamer(ids, "user", nameStream(1, nameUsers, 0))
		for range 1000 {
			var c call
			b.introduce(&c)
			name, _ := twin.draw()
			if want := admission.CohortOf(name, 9); c.cohort != want {
				t.Fatalf("%s is of cohort %d, want %d", name, c.cohort, want)
			}
		}
	}
}
