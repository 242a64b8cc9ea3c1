package config

import (
	"github.com/goodput/goodput"
	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/cmd/goodput/internal/policy"
)

// A class is limited by a goodput.Limiter, and simulated by the core that is in one: the
// same policy, in the words of either.

// limiter is a policy as the library takes it.
func limiter(c admission.Config) goodput.Config {
	return goodput.Config{
		Limit: c.Limit, Allowance: c.Allowance,
		Objective: c.Objective, Percentile: c.Percentile, Service: c.Service,
		Depth: c.Depth, MaxItems: c.MaxItems, MaxBytes: c.MaxBytes, MaxWait: c.MaxWait, MaxAbsence: c.MaxAbsence,
		Overflow: c.Overflow, Order: c.Order, Durable: c.Durable,
		Tenants: c.Tenants, Reserve: c.Reserve, Exempt: c.Exempt,
	}
}

// Policy is what the requests of the class are admitted by, for what plays it in virtual
// time.
func (c *Class) Policy() policy.Policy {
	l := &c.Limiter
	return policy.Policy{
		Limiter: admission.Config{
			Limit: l.Limit, Allowance: l.Allowance,
			Objective: l.Objective, Percentile: l.Percentile, Service: l.Service,
			Depth: l.Depth, MaxItems: l.MaxItems, MaxBytes: l.MaxBytes, MaxWait: l.MaxWait, MaxAbsence: l.MaxAbsence,
			Overflow: l.Overflow, Order: l.Order, Durable: l.Durable,
			Tenants: l.Tenants, Reserve: l.Reserve, Exempt: l.Exempt,
		},
		Deadline: c.Deadline, DeadlineCap: c.DeadlineCap,
	}
}
