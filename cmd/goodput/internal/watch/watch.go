// Package watch writes what a limiter does to the log: never a line per
// request, because an overload would then be an overload of the log too.
//
// Once a second it compares two snapshots. What lasts has one line a second, and a limiter
// one of these at the most:
//
//	shedding           each second of an overload that refused somebody, with the counts
//	refused            each other second that refused somebody
//	would refuse       the same in observe mode
//
// What changes has a line when it does:
//
//	derived depth      at the start, and when the arithmetic has changed; what was
//	                   measured has to say so for quiet, and has a line in spaced
//	                   at the most. A law that tries what is next to its limit all
//	                   the time does not fill the log: only half more, or a third
//	                   less, is a line
//	overload began     with the first second that refused somebody for want of
//	                   capacity; a deadline that had passed, a drain or a body
//	                   that is too large are no overload
//	overload ended     after quiet seconds without one
//	and those of turns.go: the limit at its floor, a search that has ended, a dependency
//	that has slowed, nothing to run on, observe mode
//
// The order of the queue changes with an overload, and is in each of its lines. Who reads only
// the changes gets all of them with msg!=shedding; with nothing refused and nothing changed
// there is no line at all.
package watch

import (
	"context"
	"log/slog"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/admission"
)

const (
	// interval is how often the log may speak.
	interval = time.Second

	// quiet is how long nobody may have been refused before an overload has
	// ended: with less, a load around the capacity begins and ends each second.
	quiet = 3 * time.Second

	// material is the relative change of the derived depth that is worth a
	// line. The estimate of a p99 moves by some percent on its own.
	material = 0.1

	// spaced is the least time between two lines about the depth of one configuration. A p99 on
	// the edge of the objective makes it reachable and unreachable by turns, for hours; two
	// lines a minute say so.
	spaced = 30 * time.Second

	// far is that for a limit that a law moves, and for the depth that follows it. To know
	// whether one more makes the others slower a law runs one more now and then: a tenth
	// up or down is how it works, a third is another capacity.
	far = 1.0 / 3
)

// A Watcher watches one limiter. Its methods are called by one goroutine.
type Watcher struct {
	log     *slog.Logger
	last    goodput.Stats
	at      time.Time // of last; zero before the first
	told    goodput.Derivation
	toldAt  time.Time // of told
	differs time.Time // since when the derivation is another than told; zero: it is not
	over    bool
	refused time.Time // the last snapshot that showed a refusal
	turns   [len(turns)]turn
}

// New returns a watcher that writes to log.
func New(log *slog.Logger) *Watcher { return &Watcher{log: log.With("component", "limiter")} }

// Run watches what limiters returns until ctx is done. One that takes the name of another is
// watched from its beginning, and one that is not returned any more no longer.
func Run(ctx context.Context, log *slog.Logger, limiters func() []*goodput.Limiter) {
	watchers := map[*goodput.Limiter]*Watcher{}
	step := func() {
		now := time.Now()
		before := watchers
		watchers = make(map[*goodput.Limiter]*Watcher, len(before))
		for _, lim := range limiters() {
			w := before[lim]
			if w == nil {
				w = New(log)
			}
			watchers[lim] = w
			w.Step(now, lim.Stats())
		}
	}
	step()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			step()
			return
		case <-tick.C:
			step()
		}
	}
}

// Step writes what changed since the step before. The first one only writes
// the derivation, and what is unusual about the beginning.
func (w *Watcher) Step(now time.Time, s goodput.Stats) {
	log := w.log.With("limiter", s.Name)
	if w.derives(now, &s) {
		w.told, w.toldAt, w.differs = s.Derivation, now, time.Time{}
		level := slog.LevelInfo
		if !s.Derivation.Reachable || s.Derivation.Drifted {
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, "derived depth",
			append([]any{"limit", s.Limit, "derived_depth", s.Derivation.Depth, "derivation", s.Derivation.String()}, why(s)...)...)
	}
	w.turned(log, now, &s)
	if !w.at.IsZero() {
		w.shedding(log, now, s)
	}
	w.last, w.at = s, now
}

// derives reports whether the derivation is worth a line now: the first is, and that of another
// configuration. What the same one makes of what was measured has to last for quiet.
func (w *Watcher) derives(now time.Time, s *goodput.Stats) bool {
	a, b, moves := w.told, s.Derivation, s.LimitWhy != ""
	switch {
	case w.at.IsZero() || a.Objective != b.Objective || a.Limit != b.Limit && !moves:
		return true
	case !changed(a, b, moves, w.over):
		w.differs = time.Time{}
		return false
	case w.differs.IsZero():
		w.differs = now
	}
	return now.Sub(w.differs) >= quiet && now.Sub(w.toldAt) >= spaced
}

// changed reports whether b says something that a did not, of a limit that a law moves or
// of one that stands. In an overload each second has a line with the depth.
func changed(a, b goodput.Derivation, moves, over bool) bool {
	if a.Reachable != b.Reachable || a.Drifted != b.Drifted {
		return true
	}
	if moves {
		return apart(a.Limit, b.Limit, far) || apart(a.Depth, b.Depth, far)
	}
	share := material
	if over {
		share = far
	}
	return apart(a.Depth, b.Depth, share)
}

// apart reports whether the smaller of two is below the larger by more than a share.
func apart(a, b int, share float64) bool {
	return float64(max(a, b)-min(a, b)) > share*float64(max(a, b))
}

// why is what the law says about its limit, if it has one to explain.
func why(s goodput.Stats) []any {
	if s.LimitWhy == "" {
		return nil
	}
	return []any{"limit_why", s.LimitWhy}
}

func (w *Watcher) shedding(log *slog.Logger, now time.Time, s goodput.Stats) {
	did, reasons := since(&w.last.Stats, &s.Stats)
	observed := did.refused == 0
	if would, all := since(&w.last.Shadow, &s.Shadow); observed {
		// What happens is in the shadow or not, request by request: after a switch in either
		// for a moment.
		did.refused, did.shed, reasons = would.refused, would.shed, all
	}
	if did.shed > 0 {
		w.refused = now
		if !w.over {
			w.over = true
			log.Warn("overload began", state(s)...)
		}
	}
	if did.refused > 0 {
		message := "refused"
		switch {
		case observed:
			message = "would refuse"
		case w.over:
			message = "shedding"
		}
		log.Info(message, append(state(s),
			"interval_seconds", now.Sub(w.at).Seconds(), // measured: a busy machine drops ticks
			"arrivals", did.arrivals, "admitted", did.admitted,
			"completed", did.completed, "refused", did.refused,
			slog.GroupAttrs("reason", reasons...))...)
		return
	}
	if w.over && !s.Overload && !s.Shadow.Overload && now.Sub(w.refused) >= quiet {
		w.over = false
		log.Info("overload ended", state(s)...)
	}
}

func state(s goodput.Stats) []any {
	return []any{
		"limit", s.Limit, "depth", s.Depth, "derived_depth", s.Derivation.Depth, "waiting", s.Waiting, "order", s.Order.String(),
		"queue_age_seconds", s.Age.Seconds(), "demand_ratio", ratio(s.Load), "condition", s.Condition().String(),
	}
}

// counts is what happened between two snapshots.
type counts struct {
	arrivals, admitted, completed, refused uint64
	shed                                   uint64 // of refused: there was too much, not something wrong with it
}

// since returns the counts between a and b, and by reason those who were not admitted.
func since(a, b *admission.Stats) (counts, []slog.Attr) {
	did := counts{
		arrivals:  b.Arrivals - a.Arrivals,
		admitted:  b.Immediate + b.Dequeued - a.Immediate - a.Dequeued,
		completed: b.Outcomes[goodput.Completed] - a.Outcomes[goodput.Completed],
	}
	was := a.Ends()
	var reasons []slog.Attr
	for i, is := range b.Ends() {
		n := is.Count - was[i].Count
		if is.Reason == goodput.None || n == 0 {
			continue
		}
		reasons = append(reasons, slog.Uint64(is.Reason.String(), n))
		if is.Outcome != goodput.Cancelled { // who left was not refused
			did.refused += n
		}
		if is.Reason.ForCapacity() {
			did.shed += n
		}
	}
	return did, reasons
}
