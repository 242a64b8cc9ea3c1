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
	Site   string // file:line of the call that asked for another
	Err    error  // a *goodput.Rejection, if the call was refused or has waited; nil if it failed at once

	// Alone says that the limit is 1 and the contexts have nothing in common: Holder has the only
	// slot, and whether the call waits for itself is for the reader to see.
	Alone bool
}

// Error says who waits for whom.
func (e *NestedError) Error() string {
	switch {
	case e.Err == nil:
		return fmt.Sprintf("goodputsql: the call at %s is inside the transaction of %s and would run outside of it, on another connection: use the *sql.Tx",
			e.Site, e.Holder.Site)
	case e.Alone:
		return fmt.Sprintf("goodputsql: the call at %s found no connection, %s, taken at %s, has had the only one for %v: %v",
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
func (db *DB) riding(ctx context.Context, at site) (*ride, error) {
	r, ok := ctx.Value(rideKey{db}).(*ride)
	if !ok || r.on.over.Load() { // a context may live longer than its Do, without its cancel
		return nil, nil
	}
	if r.tx {
		return nil, &NestedError{Holder: r.on.describe(db.now()), Site: at.String()}
	}
	return r, nil
}

// with returns the context for a function that may ride.
func (r *ride) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, rideKey{r.on.db}, r)
}

// refused returns what the caller is told whom the limiter did not admit. It is the
// refusal, unless a connection of the same request is in the way: then who has it.
func (db *DB) refused(ctx context.Context, err error, at site) error {
	var r *goodput.Rejection
	if !errors.As(err, &r) || r.Outcome == goodput.Cancelled {
		return err
	}
	holder, alone := db.inTheWay(ctx.Done(), r.Limit == 1)
	if holder == (Hold{}) {
		return err
	}
	return &NestedError{Holder: holder, Site: at.String(), Err: err, Alone: alone}
}
