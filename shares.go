package goodput

import (
	"time"

	"github.com/goodput/goodput/admission"
)

// What a limiter whose slots have an account needs beside them. All of it is guarded
// by the lock of the limiter, which such requests take anyway.
type accounts struct {
	// spare are rare parts of slots that have ended, a list by next: so a slot with
	// an account allocates nothing. Invariant: at most as many as have run at once,
	// and nobody else has one of them.
	spare *rare

	// quotas has the last refusal for the quota of each tenant, by the index of its
	// row: at most one for each, and one for the others.
	quotas map[int]overQuota
}

// An overQuota is a refusal that others may share.
type overQuota struct {
	of      *settings // under which it was built
	refusal *refusalValue
	built   time.Duration
}

// takeRare returns a rare part that nobody uses.
func (a *accounts) takeRare() *rare {
	own := a.spare
	if own == nil {
		return &rare{lent: true}
	}
	a.spare = own.next
	own.next = nil
	return own
}

// keepRare takes back the rare part of a slot that has ended, unless there is something
// in it that is asked for afterwards: Exempt.
func (a *accounts) keepRare(s *Slot) {
	own := s.rare
	if own == nil || !own.lent || own.kind&^dropped != 0 {
		return
	}
	s.rare = nil
	*own = rare{next: a.spare, lent: true}
	a.spare = own
}

// quotaSlack is how much longer a refusal may be told to wait for its quota than it
// must, so that those of one tenant can share a value: a flood makes a thousand values
// of 352 bytes a second for each tenant, and not one for each refusal. Who asks
// for Retry-After in seconds does not see it.
const quotaSlack = time.Millisecond

// overQuota returns the refusal of r for its quota. What it is told is never shorter
// than d.RetryAfter, so the newest is kept until it is too long by quotaSlack.
func (l *Limiter) overQuota(now time.Duration, d *admission.Decision, r *admission.Request) *refusalValue {
	s := l.settings.Load()
	i, quota := s.quotaOf(r.Tenant)
	last := l.accounts.quotas[i]
	if last.of == s && now-last.built < s.window {
		if longer := last.refusal.RetryAfter - d.RetryAfter; longer >= 0 && longer <= quotaSlack {
			return last.refusal
		}
	}
	own := refusalValue{Rejection: l.refusal(now, OverQuota, d, r).Rejection}
	own.RetryAfter, own.Quota = d.RetryAfter, quota
	if l.accounts.quotas == nil {
		l.accounts.quotas = map[int]overQuota{}
	}
	l.accounts.quotas[i] = overQuota{s, &own, now}
	return &own
}

// quotaOf returns the index of the row that a tenant is on, -1 for the others, and its
// quota.
func (s *settings) quotaOf(tenant string) (int, Quota) {
	t := s.cfg.Tenants
	if t == nil {
		return -1, Quota{}
	}
	if i, ok := s.rows[tenant]; ok {
		return i, t.Rows[i].Quota
	}
	return -1, t.Others.Quota
}

// SetWeight changes the weight of a tenant, until the next Reconfigure; who runs and
// who waits keeps its place. A weight that New would refuse, with the weights of the
// others, is clamped to the nearest that it would not, NaN to 1, and counted in
// Stats.Tenants.Clamped. An id without a row means the others; without Config.Tenants it
// does nothing.
func (l *Limiter) SetWeight(tenant string, weight float64) {
	now := l.enter()
	l.setWeightCall(now, tenant, weight)
	l.leave(now)
}

// Tenants returns the accounts of at most n tenants, those that ask for most first. It
// costs as much as there are rows: for scraping, not for each request. Without
// Config.Tenants there are none. In observe mode they are the shadow's.
func (l *Limiter) Tenants(n int) []TenantState {
	now := l.enter()
	top := l.tenantsCall(now, n)
	l.leave(now)
	return top
}
