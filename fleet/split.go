package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Split is what there is to share, the same in all processes.
type Split struct {
	// Budget is how many units the resource has: 1 to 2^20. Required.
	Budget int

	// Reserve is kept for others, as the connections of the superuser, of migrations and of
	// whoever looks at the database by hand: 0, the default, to Budget - 1.
	Reserve int

	// Surge is how many instances may start or leave within Settle without being in the
	// count yet, or any more: those of a rolling update, and the step of an autoscaler.
	// The units are split as though so many more were there, as heavy as the heaviest that
	// is: where instances become heavier from one release to the next, a Surge does not
	// cover the first of the new ones, and there must be none. 0, the default, to 1024.
	//
	// With a Surge, a new instance has its share at once. Without, it has 0 for Settle.
	Surge int

	// Settle is how long a Share waits before it grows: at least the sum of
	//
	//	the age of the news: from the start or end of an instance until every other was told,
	//	the time that an instance which is no longer counted goes on, and
	//	the longest time that a slot is held, since a lower limit revokes none.
	//
	// 1 ms to 24 h. Default 1 minute: 30 s that kubeadm's DNS lets a record be cached, and
	// the 30 s in which Kubernetes lets a pod end its requests
	// (terminationGracePeriodSeconds), which bounds how long a slot is held as well.
	Settle time.Duration
}

const (
	maxSurge      = 1024
	defaultSettle = time.Minute
)

// Validate returns one sentence about the first field that is out of range or contradicts
// another, or nil.
func (s Split) Validate() error {
	switch {
	case s.Budget < 1 || s.Budget > MaxBudget:
		return fmt.Errorf("a budget of %d units is out of range: 1 to %d", s.Budget, MaxBudget)
	case s.Reserve < 0 || s.Reserve >= s.Budget:
		return fmt.Errorf("a reserve of %d units is out of range: 0 to %d, one less than the budget", s.Reserve, s.Budget-1)
	case s.Surge < 0 || s.Surge > maxSurge:
		return fmt.Errorf("a surge of %d instances is out of range: 0 to %d", s.Surge, maxSurge)
	case s.Settle != 0 && (s.Settle < time.Millisecond || s.Settle > 24*time.Hour):
		return fmt.Errorf("settle is %v and out of range: 1ms to 24h, or 0 for %v", s.Settle, defaultSettle)
	}
	return nil
}

func (s Split) settle() time.Duration { return cmp.Or(s.Settle, defaultSettle) }

// A Place is where one process stands in its fleet, as far as it knows.
type Place struct {
	// Count is how many instances there are, this one included: 1 to 2^14. Required.
	Count int

	// Nth is which of them this one is: 1 to Count, in an order that all agree on and in
	// which no two ever change places, as that of the names. In a StatefulSet it is the
	// ordinal + 1, because ordinals begin at 0: pod db-0 is the 1st. 0, the default, says
	// that it is not known; then what does not divide evenly stays unused, less than one
	// unit for each instance.
	Nth int

	// Weights are those of the instances in that order, Count of them, if they are not of
	// one size: 0 for one that gets nothing, or 1e-12 to 1e12. With Weights, Nth is
	// required. If what an instance weighs changes, then at most once within Settle, in which
	// the age of the news is counted twice.
	Weights []float64

	// Workers is how many processes of each instance use the resource, each with a limiter
	// of its own: 1 to 1024. Default 1.
	Workers int

	// Worker is which of them this one is: 1 to Workers. 0, the default, says that it is not
	// known; then what does not divide evenly stays unused.
	Worker int
}

const maxWorkers = 1024

// Validate returns one sentence about the first field that is out of range or contradicts
// another, or nil.
func (p Place) Validate() error {
	switch {
	case p.Count < 1 || p.Count > MaxInstances:
		return fmt.Errorf("a fleet of %d instances is out of range: 1 to %d", p.Count, MaxInstances)
	case p.Nth < 0 || p.Nth > p.Count:
		return fmt.Errorf("instance %d of %d is out of range: 1 to %d, or 0 if it is not known", p.Nth, p.Count, p.Count)
	case p.Weights != nil && len(p.Weights) != p.Count:
		return fmt.Errorf("%d weights for %d instances: one for each, or none", len(p.Weights), p.Count)
	case p.Weights != nil && p.Nth == 0:
		return fmt.Errorf("%d weights, and which of them is this instance's is not known: say Nth, 1 to %d", len(p.Weights), p.Count)
	case p.Workers < 0 || p.Workers > maxWorkers:
		return fmt.Errorf("%d workers for each instance are out of range: 1 to %d, or 0 for 1", p.Workers, maxWorkers)
	case p.Worker < 0 || p.Worker > max(p.Workers, 1):
		return fmt.Errorf("worker %d of %d is out of range: 1 to %d, or 0 if it is not known", p.Worker, max(p.Workers, 1), max(p.Workers, 1))
	}
	return checkWeights(p.Weights)
}

// Share returns how many units the process at p may use: its part of Budget - Reserve, as
// Divide splits it, and of that the part of its worker. It is 0 where there are more
// processes than units; such a process refuses everything, and Check says so before it is
// deployed. It panics if s or p is invalid.
func (s Split) Share(p Place) int {
	if err := cmp.Or(s.Validate(), p.Validate()); err != nil {
		panic("fleet: " + err.Error())
	}
	units := s.Budget - s.Reserve
	switch {
	case p.Nth == 0:
		units /= p.Count + s.Surge
	case p.Weights == nil:
		units = nth(units, p.Count+s.Surge, p.Nth+s.Surge)
	default:
		// Who is not counted is of the heaviest and comes first, which leaves the least.
		weights := slices.Repeat([]float64{slices.Max(p.Weights)}, s.Surge)
		units = Divide(units, append(weights, p.Weights...)...)[s.Surge+p.Nth-1]
	}
	workers := max(p.Workers, 1)
	if p.Worker == 0 {
		return units / workers
	}
	return nth(units, workers, p.Worker)
}

// nth is what Divide gives to the i-th of n equals, 1 to n.
func nth(units, n, i int) int {
	share := units / n
	if i <= units%n {
		share++
	}
	return share
}
