package goodput

import (
	"context"
	"fmt"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// Work describes one call. The zero value of each field means its default, and
// a field that is set wins over the context.
type Work struct {
	// Cost is how many units of the limit it holds while it runs: 1 to 2^20, and 0 or
	// less counts as 1. What costs more than the limit, than the MaxInUse of its tenant
	// or than the burst of its quota or of the allowance is refused as too costly.
	Cost int

	// Size is the amount of work: tokens, rows, bytes. It scales the expected
	// service time, so use it where that varies with something known at the
	// door. 1 to 2^31-1, and more counts as that; default Cost, for 0 or less as well.
	Size int

	// Bytes is the size of the request body held in memory while it waits.
	// Negative, as an unknown length is written, counts as 0.
	Bytes int64

	// Priority says who goes first. Default: the context's (WithPriority), else
	// Default.
	Priority Priority

	// Tenant is who sends it: it has its share of the limit if there are
	// Config.Tenants. An id without a row, and none, is one of the others. Of an id of
	// more than 128 bytes the first 129 count, so it has no row. Default: the context's
	// (WithTenant).
	Tenant string

	// User is for whom it is. In an overload it says who is shed first within a
	// priority: the users are hashed into 128 cohorts, and those of some of them are
	// refused while those of the others are served, rather than everybody now and
	// then. With Config.Tenants cohorts decide within a tenant, and of the ids without a
	// row within a bucket: between them the shares do. Of an id of more than 128 bytes
	// the first 129 count. Who is no user is shed before all cohorts. Default: the
	// context's (WithUser), else, without Config.Tenants, the tenant.
	User string

	// Key is what it is about, at most 256 bytes, for work that a newer one makes
	// worthless: under LatestOnly it takes the place of the one of the same tenant
	// and key that still waits. Without a key, or with a longer one, it replaces
	// nothing and is not replaced.
	Key string

	// Attempt is 2 or more for a retry, and anything less a first attempt, as is the
	// default; within a priority, and a tenant, retries are shed before first attempts.
	Attempt int

	// Arrival is when the work entered the system, at the first service that
	// it met. Default: the context's (WithArrival), else now.
	Arrival time.Time

	// Deadline is when the caller stops caring. The context's deadline counts
	// as well: the earlier of the two is in force.
	Deadline time.Time

	// Exempt marks a health probe: not limited and not sampled, but at most
	// Config.Exempt run at once, because anybody can pretend to be a probe;
	// beyond that it is treated like any other.
	Exempt bool
}

// attrs is what travels in a context: one value, so that it takes one look-up.
type attrs struct {
	priority     Priority
	arrival      time.Time
	tenant, user string
}

type attrsKey struct{}

var noAttrs attrs

// attrsOf returns what ctx carries, to read.
func attrsOf(ctx context.Context) *attrs {
	if a, ok := ctx.Value(attrsKey{}).(*attrs); ok {
		return a
	}
	return &noAttrs
}

// WithPriority returns a context whose work has priority p, unless its Work
// says otherwise. It panics if p is not one of the four.
func WithPriority(ctx context.Context, p Priority) context.Context {
	mustKnow(p)
	a := *attrsOf(ctx)
	a.priority = p
	return context.WithValue(ctx, attrsKey{}, &a)
}

// WithArrival returns a context whose work entered the system at t: under an
// overload the order of the queue is by this instant, so that the calls of one
// request that fans out stay together. Without a deadline, in time is judged
// from it as well.
//
// A time.Time from another process has no monotonic clock; it is converted
// once, on arrival, and steps of the wall clock after that change nothing.
func WithArrival(ctx context.Context, t time.Time) context.Context {
	a := *attrsOf(ctx)
	a.arrival = t
	return context.WithValue(ctx, attrsKey{}, &a)
}

// WithTenant returns a context whose work is sent by the tenant of that id, unless
// its Work says otherwise. Whoever calls it has seen who that is: an id that a client
// only claims takes the share of its owner. Longer ids than 128 bytes have no row.
func WithTenant(ctx context.Context, id string) context.Context {
	a := *attrsOf(ctx)
	a.tenant = id
	return context.WithValue(ctx, attrsKey{}, &a)
}

// WithUser returns a context whose work is for the user of that id, unless its Work
// says otherwise: see Work.User.
func WithUser(ctx context.Context, id string) context.Context {
	a := *attrsOf(ctx)
	a.user = id
	return context.WithValue(ctx, attrsKey{}, &a)
}

const (
	// maxID is how much of the id of a tenant or user counts: one byte more than
	// the id of a row may have, so that none is mistaken for a row, and a client that
	// sends a megabyte does not have it hashed under the lock.
	maxID = 128 + 1

	// maxKey bounds what LatestOnly keeps of those that wait: 16 MB for the
	// default of 65,536.
	maxKey = 256
)

func cut(id string) string { return id[:min(len(id), maxID)] }

// cohort returns the cohort of a user: 0, which is shed first, if nobody is named. Where
// tenants do not have shares of their own, each counts as a user. Where they have, all
// requests of one would be of one cohort, and whose is late would not have its share: of
// three that ask for all there is, one of cohort 3 had four fifths.
//
// The turn is the hour since the epoch of Unix by the wall clock, so that it is not
// always the same people, and all instances of a service and the services that it
// calls agree without being told: the same users are shed everywhere, and what one
// layer admits the next does not refuse. Clocks that differ by a second disagree for a
// second an hour. A mark of each limiter's own would disagree always.
func (l *Limiter) cohort(user, tenant string) int {
	switch {
	case user != "":
		return admission.CohortOf(cut(user), l.rec.turn.Load())
	case tenant != "" && l.settings.Load().cfg.Tenants == nil:
		return admission.CohortOf(tenant, l.rec.turn.Load())
	}
	return 0
}

// turnAt returns the turn of an instant of the wall clock.
func turnAt(t time.Time) uint64 { return uint64(max(t.Unix(), 0) / 3600) }

func mustKnow(p Priority) {
	if p > Background {
		panic(fmt.Sprintf("goodput: %v is none of Critical, Default, Sheddable, Background", p))
	}
}

// request translates what the caller said for the core. Arrival 0 means now,
// to be filled in under the lock: instants of a limiter start at 1.
func (l *Limiter) request(ctx context.Context, w Work) admission.Request {
	mustKnow(w.Priority)
	a := attrsOf(ctx)
	if w.Priority == 0 {
		w.Priority = a.priority
	}
	if w.Priority == 0 {
		w.Priority = Default
	}
	if w.Arrival.IsZero() {
		w.Arrival = a.arrival
	}
	if w.Tenant == "" {
		w.Tenant = a.tenant
	}
	if w.User == "" {
		w.User = a.user
	}
	if len(w.Key) > maxKey {
		w.Key = ""
	}
	w.Tenant = cut(w.Tenant)
	cost := min(max(w.Cost, 1), limit.Max+1) // no limit has room for limit.Max+1
	r := admission.Request{
		Cost:     cost,
		Size:     w.Size,
		Bytes:    max(w.Bytes, 0),
		Priority: w.Priority,
		Attempt:  w.Attempt,
		Deadline: admission.Never,
		Exempt:   w.Exempt,
		Tenant:   w.Tenant,
		Cohort:   l.cohort(w.User, w.Tenant),
		Key:      w.Key,
	}
	if r.Size <= 0 {
		r.Size = cost
	}
	if !w.Arrival.IsZero() {
		r.Arrival = l.instant(w.Arrival)
	}
	if t, ok := ctx.Deadline(); ok {
		r.Deadline = l.instant(t)
	}
	if !w.Deadline.IsZero() {
		r.Deadline = min(r.Deadline, l.instant(w.Deadline))
	}
	return r
}

// now returns the time since the epoch of the limiter, 1 ns at least: 0 is free
// to mean "not timed".
func (l *Limiter) now() time.Duration { return time.Since(l.epoch) }

// instant returns t as time since the epoch. A t that carries a monotonic
// reading is subtracted from the epoch. One that does not, because it was
// stored or came from another machine, is taken by its distance from the wall
// clock now: measured from the epoch, a step of the wall clock since then would
// move it.
func (l *Limiter) instant(t time.Time) time.Duration {
	if t != t.Round(0) { // Round(0) strips the monotonic reading
		return t.Sub(l.epoch)
	}
	now := time.Now()
	left := t.Sub(now) // saturates
	since := now.Sub(l.epoch)
	if left > admission.Never-since {
		return admission.Never
	}
	return since + left
}
