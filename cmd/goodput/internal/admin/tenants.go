package admin

import "github.com/goodput/goodput"

// Tenant is the account of one of those who share a limit.
type Tenant struct {
	ID                string       `json:"id"` // "" for all without a row of their own
	Weight            float64      `json:"weight"`
	InUse             int          `json:"in_use"`
	MaxInUse          int          `json:"max_in_use"`
	Waiting           int          `json:"waiting"`
	WaitingCost       int          `json:"waiting_cost"`
	OfferedPerSecond  float64      `json:"offered_per_second"`  // cost that it asks for
	EntitledPerSecond float64      `json:"entitled_per_second"` // cost that it would get if it asked without end
	Over              bool         `json:"over"`                // it asks for more than its share in an overload
	Arrivals          uint64       `json:"arrivals"`            // since it has its row, as all that follows
	Refused           uint64       `json:"refused"`
	QuotaRefused      uint64       `json:"quota_refused"` // of those, for its quota
	GrantedCost       uint64       `json:"granted_cost"`
	Quota             *TenantQuota `json:"quota,omitempty"`
}

// TenantQuota is what a tenant may have.
type TenantQuota struct {
	PerSecond float64 `json:"per_second"`
	Burst     float64 `json:"burst"`
	Left      float64 `json:"left"` // negative after a correction
}

func tenants(of []goodput.TenantState) []Tenant {
	all := []Tenant{}
	for i := range of {
		t := &of[i]
		shown := Tenant{
			ID: t.ID, Weight: t.Weight, InUse: t.InUse, MaxInUse: t.MaxInUse, Waiting: t.Waiting, WaitingCost: t.WaitingCost,
			OfferedPerSecond: t.Offered, EntitledPerSecond: t.Entitled, Over: t.Over,
			Arrivals: t.Arrivals, Refused: t.Refused, QuotaRefused: t.Quotaed, GrantedCost: t.Granted,
		}
		if t.Quota.Rate > 0 {
			shown.Quota = &TenantQuota{PerSecond: t.Quota.Rate, Burst: t.Quota.Burst, Left: t.Left}
		}
		all = append(all, shown)
	}
	return all
}
