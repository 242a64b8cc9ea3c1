package watch

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/goodput/goodput"
)

// A turn is a state that a limiter is in or not. It has a line when it begins and one when it
// is over; of one that comes and goes within the time of settles there is no second line.
type turn struct {
	is      bool      // as it was told
	differs time.Time // since when it is otherwise; zero: it is not
}

// turns are the states, their lines and the facts that these have.
var turns = [...]struct {
	is          func(*goodput.Stats) bool
	began, over string // messages; began "": it has no line
	level       slog.Level
	settles     time.Duration // how long it has to be over for that to be told
	facts       func(*goodput.Stats) []any
}{
	{
		// Less than that is a load that hangs about what the least limit serves.
		is:    func(s *goodput.Stats) bool { return s.LimitFloored >= quiet },
		began: "limit at its floor", over: "limit off its floor", level: slog.LevelWarn, settles: quiet,
		facts: func(s *goodput.Stats) []any {
			return []any{
				"limit", s.Limit, "limit_min", s.LimitMin, "limit_max", s.LimitMax, "demand_ratio", ratio(s.Load),
				"floor_seconds", s.LimitFloored.Seconds(),
			}
		},
	},
	{
		// A law that looks once more within seconds has not found it.
		is:   func(s *goodput.Stats) bool { return s.LimitSearch },
		over: "capacity found", settles: quiet,
		facts: func(s *goodput.Stats) []any {
			return append([]any{"limit", s.Limit, "capacity_per_second", ratio(s.Derivation.Rate)}, why(*s)...)
		},
	},
	{
		is:    func(s *goodput.Stats) bool { return s.Slowed },
		began: "dependency slowed", over: "dependency normal again", level: slog.LevelWarn, settles: quiet,
		facts: func(s *goodput.Stats) []any {
			return []any{
				"slowed_by", ratio(s.SlowedBy), "baseline_seconds", s.Baseline.Seconds(),
				"service_expected_seconds", s.Derivation.Mean.Seconds(), "limit", s.Limit,
			}
		},
	},
	{
		is:    func(s *goodput.Stats) bool { return s.Absent },
		began: "nothing to run on", over: "something to run on again", level: slog.LevelWarn,
		facts: func(s *goodput.Stats) []any {
			return []any{"waiting", s.Waiting, "max_absence_seconds", s.MaxAbsence.Seconds()}
		},
	},
	{
		is:    func(s *goodput.Stats) bool { return s.Observe },
		began: "observe mode on", over: "observe mode off", level: slog.LevelWarn,
		facts: func(s *goodput.Stats) []any { return []any{"limit", s.Limit, "running", s.Running} },
	},
}

// turned writes what has changed of the states.
func (w *Watcher) turned(log *slog.Logger, now time.Time, s *goodput.Stats) {
	for i := range turns {
		kind, t := &turns[i], &w.turns[i]
		if kind.is(s) == t.is {
			t.differs = time.Time{}
			continue
		}
		if t.differs.IsZero() {
			t.differs = now
		}
		if t.is && now.Sub(t.differs) < kind.settles {
			continue
		}
		t.is, t.differs = !t.is, time.Time{}
		switch {
		case !t.is:
			log.Info(kind.over, kind.facts(s)...)
		case kind.began != "":
			log.Log(context.Background(), kind.level, kind.began, kind.facts(s)...)
		}
	}
}

// ratio is a number to three digits behind the point; what is none is 0, because JSON has no
// word for it.
func ratio(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return math.Round(x*1000) / 1000
}
