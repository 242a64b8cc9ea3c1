package fleet

import (
	"container/heap"
	"fmt"
	"math"
)

const (
	// MaxBudget is the largest budget: 2^20 units, as the largest limit of a limiter.
	MaxBudget = 1 << 20

	// MaxInstances is the largest fleet: 2^14. Divide takes about 7 ms for so many, each
	// time the fleet changes.
	MaxInstances = 1 << 14

	// Weights are 0, for an instance that gets nothing, or in this range.
	minWeight, maxWeight = 1e-12, 1e12
)

// Divide splits budget units by weight: whole units that add up to the budget, or to 0 if
// no weight is above 0. It is the method of Webster (Balinski and Young, "Fair
// Representation", 1982): unit by unit, the next one goes to the largest
// weight / (2 units + 1), where units are those that it has. Here everybody has a first
// unit before anybody has a second, the heaviest first, since an instance that may do
// nothing serves nobody. So with a budget below the number of weights the heaviest, and of
// equals the first, have one unit each and the others 0: those refuse everything.
//
// It depends on its arguments only, so that instances that agree on the weights and their
// order agree on the result. And three things hold, which are what Settle is proved with
// and which the largest remainder lacks (the Alabama paradox):
//
//   - a larger budget gives nobody less;
//   - one more weight, wherever it is inserted, gives nobody else more;
//   - a larger weight gives its owner no less and nobody else more.
//
// Among equals shares differ by one unit at most, and the first have the larger ones.
//
// It panics if budget is not in 0 to MaxBudget, there are more than MaxInstances weights,
// or a weight is neither 0 nor in 1e-12 to 1e12.
func Divide(budget int, weights ...float64) []int {
	if budget < 0 || budget > MaxBudget {
		panic(fmt.Sprintf("fleet: a budget of %d units: 0 to %d", budget, MaxBudget))
	}
	if err := checkWeights(weights); err != nil {
		panic("fleet: " + err.Error())
	}
	units := make([]int, len(weights))
	most := awards{}
	total := 0.0
	for i, w := range weights {
		if w > 0 {
			most = append(most, award{i, w, math.Inf(1)})
			total += w
		}
	}
	if len(most) == 0 {
		return units
	}
	// A head start, so that the loop is as long as the fleet and not as the budget. At
	// the price total/(budget-n) of a unit, where the n are the first ones, nobody has
	// more than 1 + w/price units, so all fit; one less keeps clear of rounding.
	per := float64(max(budget-len(most), 0)) / total
	for j := range most {
		a := &most[j]
		units[a.index] = max(int(a.weight*per)-1, 0)
		budget -= units[a.index]
		a.price(units[a.index])
	}
	heap.Init(&most)
	for ; budget > 0; budget-- {
		a := &most[0]
		units[a.index]++
		a.price(units[a.index])
		heap.Fix(&most, 0)
	}
	return units
}

// An award is what somebody offers for one more unit.
type award struct {
	index  int
	weight float64
	offer  float64 // weight / (2 units + 1); infinite for the first unit
}

func (a *award) price(units int) {
	if a.offer = math.Inf(1); units > 0 {
		a.offer = a.weight / float64(2*units+1)
	}
}

// awards is a heap of the best offer.
type awards []award

func (a awards) Len() int { return len(a) }

// Less orders by the offer, then by weight, which decides among first units, then by index.
func (a awards) Less(i, j int) bool {
	x, y := &a[i], &a[j]
	switch {
	case x.offer != y.offer:
		return x.offer > y.offer
	case x.weight != y.weight:
		return x.weight > y.weight
	}
	return x.index < y.index
}

func (a awards) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

func (a *awards) Push(x any) { *a = append(*a, x.(award)) }

func (a *awards) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

func checkWeights(weights []float64) error {
	if len(weights) > MaxInstances {
		return fmt.Errorf("%d weights are too many: at most %d instances", len(weights), MaxInstances)
	}
	for i, w := range weights {
		if w != 0 && !(w >= minWeight && w <= maxWeight) { // NaN as well
			return fmt.Errorf("weight %v of instance %d is out of range: 0, or %v to %v", w, i+1, minWeight, maxWeight)
		}
	}
	return nil
}
