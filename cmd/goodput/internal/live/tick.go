// Package live looks at limiters once a second and tells those who watch: what the dashboard
// shows, and anybody who reads server-sent events.
//
// The model: a counter says what has happened since the start, and a person wants to know what
// happens now. A Tick has both: the state, which is that of /api/v1/state to the letter, and the
// rates since the tick before, over the time that has really passed, since a busy machine drops
// ticks. A quantile is of the last window and not of all that ever was, and without an
// observation in it there is none: null, not 0.
package live

import (
	"time"
)

// A Tick is what a viewer is sent once a second, as JSON in the event "tick". Fields are added,
// never renamed or dropped, while Version is 1.
type Tick struct {
	Version        int       `json:"version"`
	Number         uint64    `json:"number"` // rises by one; a viewer that was too slow, and has come again, sees a gap
	Time           time.Time `json:"time"`
	ElapsedSeconds float64   `json:"elapsed_seconds"` // since the tick before, measured; 0 in the first
	State          any       `json:"state"`           // as of /api/v1/state
	Limiters       []View    `json:"limiters"`        // in the order of State.limiters
	Demo           any       `json:"demo,omitempty"`  // of demo --web alone
}

// A View is one limiter in a tick.
type View struct {
	Name  string `json:"name"`
	Rates Rates  `json:"rates"`

	// ObservingSeconds is for how long observe mode has been on, or for how long it was seen to be:
	// since the first tick at most. Null while it is off.
	ObservingSeconds *float64 `json:"observing_seconds"`

	// Of the last window of WindowSeconds; null where nothing was measured in it.
	WindowSeconds float64    `json:"window_seconds"`
	Latency       *Quantiles `json:"latency"` // arrival to end, of all that got a slot
	Wait          *Quantiles `json:"wait"`    // of those that waited and got a slot
	Service       *Quantiles `json:"service"` // slot to end, of completed and late work

	Explanation Explanation `json:"explanation"`
	Tenants     []Tenant    `json:"tenants"` // in the order of those in State.limiters, which has the rest of them
}

// Rates are per second, since the tick before.
type Rates struct {
	Offered    float64            `json:"offered"`          // arrivals
	Admitted   float64            `json:"admitted"`         // got a slot
	Throughput float64            `json:"throughput"`       // ended after they had got a slot, however
	Goodput    float64            `json:"goodput"`          // completed in time
	Outcomes   map[string]float64 `json:"outcomes"`         // all seven
	Reasons    map[string]float64 `json:"reasons"`          // of those that did not start; all there are, by name
	Refused    float64            `json:"refused"`          // rejected and expired
	InTime     *float64           `json:"in_time"`          // completed / arrivals, 0 to 1; null without arrivals
	Shadow     map[string]float64 `json:"shadow,omitempty"` // observe mode: Reasons as they would have been
}

// Quantiles are in seconds.
type Quantiles struct {
	Count uint64  `json:"count"` // observations in the window
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Over  bool    `json:"over"` // the p99 is in the last bucket: it is above the number

	Target     float64 `json:"target"`      // at the percentile of the objective, which is to be met
	TargetOver bool    `json:"target_over"` // as over
}

// Explanation is goodput.Explanation, with what is so now and in the words of a policy file;
// /api/v1/explain has the same fields.
type Explanation struct {
	Limiter   string `json:"limiter"`
	Condition string `json:"condition"` // the state in a word that stays the same: goodput.Condition
	State     string `json:"state"`     // in a sentence with numbers
	Facts     []Fact `json:"facts"`

	RefusedBy []RefusalGroup `json:"refused_by"` // the same refusals by what decided; the most first
	Refused   []Refusal      `json:"refused"`    // the latest first
}

// Fact is one thing that an explanation says.
type Fact struct {
	Topic string `json:"topic"`
	Text  string `json:"text"`
}

// Refusal is what callers were told lately.
type Refusal struct {
	AgoSeconds        float64 `json:"ago_seconds"`
	Count             uint64  `json:"count"`
	Outcome           string  `json:"outcome"`
	Reason            string  `json:"reason"`
	Text              string  `json:"text"` // the sentence, with the numbers that decided
	Knob              string  `json:"knob"` // which setting decided, as a policy file calls it
	WaitedSeconds     float64 `json:"waited_seconds"`
	RetryAfterSeconds float64 `json:"retry_after_seconds"`
}

// Tenant is what the state does not know of a tenant.
type Tenant struct {
	ID     string  `json:"id"`
	Served float64 `json:"served"` // cost per second that it gets
}

// History is the event "history", which a viewer is sent first: the last five minutes as
// columns, so that the charts have a past. Times are seconds since 1970; null is a gap.
type History struct {
	Times    []float64         `json:"times"`
	Limiters map[string]Series `json:"limiters"`
	Demo     Series            `json:"demo,omitempty"`
}

// Series are the columns of one limiter, as long as Times. A column that is not there is null
// all along. They are, with the names of where a tick has them:
//
//	offered throughput goodput refused                      Rates, per second
//	reason.queue_full ...                                   Rates.Reasons, those that occurred
//	latency_p50 latency_p99 wait_p50 wait_p99 service_p50 service_p99   Quantiles, seconds
//	limit in_use waiting depth age_seconds derived_depth    State, the last of its derivation
//
// Those of Demo are load protect offered in_time served refused of the Scene, protect as 0 or 1.
type Series map[string]Column
