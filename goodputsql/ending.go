package goodputsql

import (
	"context"
	"time"
)

// An ending is the context that the rows of a hold have: that of the hold, and whoever asks
// it for the error of its end has seen the end, so that the hold ends too.
//
// For rows whose context can end, database/sql has a goroutine that waits for that and
// closes them with Err of the context (Rows.awaitDone). So it asks, at once, and it costs
// nothing; a context.AfterFunc of ours beside it, set and taken back, takes 280 ns of the
// microsecond that a query may cost here. What else asks, as a driver, does so no earlier
// than the end. TestC142ForgottenRows fails with a database/sql that no longer asks.
type ending struct{ h *hold }

// Deadline is that of the hold.
func (e ending) Deadline() (time.Time, bool) { return e.h.ctx.Deadline() }

// Done is that of the hold: its own channel, so that contexts below it are its children.
func (e ending) Done() <-chan struct{} { return e.h.ctx.Done() }

// Value is that of the hold.
func (e ending) Value(key any) any { return e.h.ctx.Value(key) }

// String keeps whoever prints the context from reading the hold.
func (e ending) String() string { return "goodputsql rows" }

// Err is that of the hold, and ends it if there is one.
func (e ending) Err() error {
	err := e.h.ctx.Err()
	if err != nil && e.h.watched.Load() {
		e.end()
	}
	return err
}

// watch makes the end of the context the end of the hold. Before, whoever runs the query
// ends it. An Err that was asked for too early to find it watched has come from a context
// that is over by now.
func (e ending) watch() {
	e.h.watched.Store(true)
	if e.h.ctx.Err() != nil {
		e.end()
	}
}

// end ends the hold, if nobody has. It waits for nothing: whoever asks is to close the rows,
// for which giving back waits.
func (e ending) end() {
	if !e.h.over.Load() && !e.h.over.Swap(true) {
		go e.h.giveBack(context.Cause(e.h.ctx))
	}
}
