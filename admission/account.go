package admission

import "time"

// A TenantState is the account of one tenant, for whoever looks.
type TenantState struct {
	ID       string  // as in its row; empty for all ids without a row together
	Weight   float64 // in force
	MaxInUse int     // in force, at most the limit
	Quota    Quota
	Left     float64 // units of cost that the quota has left; negative after a correction

	InUse       int // units of cost that run
	Waiting     int // requests that wait
	WaitingCost int // units of cost that wait

	// Offered is what it asks for, in units of cost per second, and Entitled what it
	// would be served if it asked without end, given what the others ask for. Over says
	// that it asks for more in an overload: then its own part of the queue is short.
	Offered, Entitled float64
	Over              bool

	Arrivals uint64 // offers
	Refused  uint64 // of them, by whatever reason, at the door or while it waited
	Granted  uint64 // units of cost, corrections included
	Quotaed  uint64 // offers refused for its quota, among Refused
}

// SetWeight changes the weight of a row, until the next Reconfigure. A weight that
// New would refuse is clamped to the nearest that it would not, NaN to 1, and counted in
// Stats.Clamped. An id without a row is the others'.
func (c *Core) SetWeight(now time.Duration, id string, weight float64) {
}

// TopTenants returns the accounts of at most n tenants, those that ask for most
// first. It costs as much as there are rows.
func (c *Core) TopTenants(now time.Duration, n int) []TenantState {
	return nil
}
