package goodputsql

import (
	"context"
	"errors"
	"fmt"

	"github.com/goodput/goodput"
)

// A NestedError says that somebody who holds a connection asked for another one.
type NestedError struct {
	Holder Hold   // what has the connection
	Site   string // of the call that asked for another, as Hold.Site
	Err    error  // a *goodput.Rejection, if the call was refused or has waited; nil if it failed at once

	// Oldest says that nothing shows Holder to be of the same request. It is the oldest of those
	// that had all the connections, and gave none back, for as long as the call waited, as
	// those do that wait for each other; or the only one, if the limit is 1. Whether the
	// call waits for itself is for the reader to see.
	Oldest bool
}

// Error says who waits for whom.
func (e *NestedError) Error() string {
	switch {
	case e.Err == nil:
		return fmt.Sprintf("goodputsql: the call at %s is inside the transaction of %s and would run outside of it, on another connection: use the *sql.Tx",
			e.Site, e.Holder.Site)
	case e.Oldest:
		return fmt.Sprintf("goodputsql: the call at %s found no connection, and while it waited nobody gave one back; the oldest, %s taken at %s, has had one for %v: does it wait for a second? %v",
			e.Site, e.Holder.Kind, e.Holder.Site, e.Holder.For, e.Err)
	}
	return fmt.Sprintf("goodputsql: the call at %s found no connection while %s of the same request, taken at %s, has had one for %v: %v",
		e.Site, e.Holder.Kind, e.Holder.Site, e.Holder.For, e.Err)
}

// Unwrap returns Err.
func (e *NestedError) Unwrap() error { return e.Err }

// A ride is what the context of a function of Do or Tx says: the connection is here.
type ride struct {
	on *hold
	tx bool // a transaction is open on it
}

type rideKey struct{ db *DB }

// riding returns the ride of ctx, or nil. Who is inside of a transaction gets an error.
func (db *DB) riding(ctx context.Context, kind Kind, at site) (*ride, error) {
	r, ok := ctx.Value(rideKey{db}).(*ride)
	if !ok || r.on.over.Load() { // a context may live longer than its Do, without its cancel
		return nil, nil
	}
	if r.tx {
		return nil, &NestedError{Holder: r.on.describe(db.now()), Site: at.of(kind)}
	}
	return r, nil
}

// with returns the context for a function that may ride.
func (r *ride) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, rideKey{r.on.db}, r)
}

// refused returns what the caller is told whom the limiter did not admit. It is the
// refusal, unless a connection of the same request is in the way: then who has it. ended is
// how many had been given back when the call began.
func (db *DB) refused(ctx context.Context, err error, kind Kind, at site, ended uint64) error {
	var r *goodput.Rejection
	if !errors.As(err, &r) || r.Outcome == goodput.Cancelled {
		return err
	}
	stuck := r.Limit == 1 || db.stuck(ended, r.Waited)
	holder, oldest := db.inTheWay(ctx.Done(), stuck)
	if holder == (Hold{}) {
		return err
	}
	return &NestedError{Holder: holder, Site: at.of(kind), Err: err, Oldest: oldest}
}
