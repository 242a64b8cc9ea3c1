package admin

import (
	"net/http"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/live"
)

// State is the answer of /api/v1/state. Units are in the names; fields are
// added, never renamed or dropped, while Version is 1.
type State struct {
	Version       int            `json:"version"`
	Phase         string         `json:"phase"`
	UptimeSeconds float64        `json:"uptime_seconds"`
	Limiters      []LimiterState `json:"limiters"`
	Connections   Connections    `json:"connections"`
	Policy        *Policy        `json:"policy,omitempty"` // of serve --config
	Servers       []Server       `json:"servers"`
}

// Server is one of those of an upstream.
type Server struct {
	Upstream     string  `json:"upstream"`
	Server       string  `json:"server"`
	Well         bool    `json:"well"`
	Why          string  `json:"why,omitempty"` // it is out
	SinceSeconds float64 `json:"since_seconds"`
	Share        float64 `json:"share"`
	InFlight     int     `json:"in_flight"`
	Limit        int     `json:"limit"`
}

// Policy is the file in force.
type Policy struct {
	Source string `json:"source"`
	SHA256 string `json:"sha256"`

	ReloadFailed  string `json:"reload_failed,omitempty"` // why the latest one did; what is above is in force
	RestartNeeded bool   `json:"restart_needed"`          // the file has other listeners than those that are open
}

// Connections are those of clients.
type Connections struct {
	Open     int64 `json:"open"`
	Upgraded int64 `json:"upgraded"`
}

// LimiterState is one snapshot of one limiter:
// arrivals = the sum of ends + waiting + running.
type LimiterState struct {
	Name    string `json:"name"`
	Observe bool   `json:"observe"`

	ObserveSwitched bool `json:"observe_switched"` // by POST /api/v1/observe, whatever the policy says

	Excess        int  `json:"excess"`         // of in_use, what runs because it was observed and the limit has not admitted; it is above the limit until that has ended
	Unlimited     bool `json:"unlimited"`      // the derivation and demand_ratio may follow from work that ran beside more than the limit: nothing to scale by
	TenantsShadow bool `json:"tenants_shadow"` // tenants have what was decided of observed requests as if it had been followed

	Limit             int     `json:"limit"`
	InUse             int     `json:"in_use"`
	Running           int     `json:"running"`
	Waiting           int     `json:"waiting"`
	WaitingCost       int     `json:"waiting_cost"`
	WaitingBytes      int64   `json:"waiting_bytes"`
	WaitingBytesLimit int64   `json:"waiting_bytes_limit"`
	AgeSeconds        float64 `json:"age_seconds"`
	Order             string  `json:"order"`
	Depth             int     `json:"depth"`    // in force; derivation.depth is the derived one
	Overload          bool    `json:"overload"` // a standing one, which may lower depth
	DemandRatio       float64 `json:"demand_ratio"`
	RetryAfterSeconds float64 `json:"retry_after_seconds"`
	Draining          bool    `json:"draining"`
	Absent            bool    `json:"absent"`         // there is nothing to run work on
	AbsentSeconds     float64 `json:"absent_seconds"` // since when
	Condition         string  `json:"condition"`      // the state in a word that stays the same: see goodput.Condition
	State             string  `json:"state"`          // in a sentence with numbers
	Refusing          bool    `json:"refusing"`       // somebody was refused for want of capacity within the last objective, at least a second
	StoodSeconds      float64 `json:"stood_seconds"`  // for how long somebody has waited without a break

	// Of the limit: why its law last moved it, in words with numbers, "" if it never has; what
	// it was before, and how long ago that was; how long ago the law was asked; whether
	// it does not know the capacity yet.
	LimitWhy          string  `json:"limit_why"`
	LimitFrom         int     `json:"limit_from"`
	LimitMovedSeconds float64 `json:"limit_moved_seconds"`
	LimitAskedSeconds float64 `json:"limit_asked_seconds"`
	LimitSearch       bool    `json:"limit_search"`

	// What the law keeps the limit within, both the limit itself of one that is fixed; and how
	// long it has stood at the least while more was offered.
	LimitMin            int     `json:"limit_min"`
	LimitMax            int     `json:"limit_max"`
	LimitFlooredSeconds float64 `json:"limit_floored_seconds"`

	// For how long a unit was held over the last minutes, 0 if that is not known; whether it is
	// held for so much longer now that what it depends on has slowed; and the ratio, 0 if unknown.
	BaselineSeconds float64 `json:"baseline_seconds"`
	Slowed          bool    `json:"slowed"`
	SlowedBy        float64 `json:"slowed_by"`

	Derivation Derivation `json:"derivation"`
	Counts     Counts     `json:"counts"`
	Shadow     []End      `json:"shadow,omitempty"` // observe mode: how requests would have ended
	Tenants    []Tenant   `json:"tenants"`          // those who ask for most, at most ten; see tenants_shadow
}

// Derivation is the arithmetic of the derived depth, in words and in numbers.
type Derivation struct {
	Text               string  `json:"text"`
	Limit              int     `json:"limit"`
	MeanSeconds        float64 `json:"mean_seconds"`
	CapacityPerSecond  float64 `json:"capacity_per_second"`
	ObjectiveSeconds   float64 `json:"objective_seconds"`
	Percentile         float64 `json:"percentile"`
	ServiceSeconds     float64 `json:"service_seconds"`
	Depth              int     `json:"depth"`
	RuleDepth          int     `json:"rule_depth"`
	RuleLatencySeconds float64 `json:"rule_latency_seconds"`
	Reachable          bool    `json:"reachable"`
	Fixed              bool    `json:"fixed"`
	Tight              bool    `json:"tight"`
	Samples            int     `json:"samples"`
	DeclaredSeconds    float64 `json:"declared_seconds"`
	Drifted            bool    `json:"drifted"`
}

// Counts are since the start and never fall.
type Counts struct {
	Arrivals         uint64 `json:"arrivals"`
	Immediate        uint64 `json:"admitted_immediately"`
	Dequeued         uint64 `json:"admitted_after_waiting"`
	ExemptAdmissions uint64 `json:"exempt_admissions"`
	LimitChanges     uint64 `json:"limit_changes"`
	LimitRaised      uint64 `json:"limit_raised"`    // of those, the ones upwards
	LimitCalled      uint64 `json:"limit_called"`    // of limit_changes, those by a call or a reload and not by the law
	LimitCalledUp    uint64 `json:"limit_called_up"` // of limit_called, the ones upwards
	Dropped          uint64 `json:"dropped"`         // of the failed, what is behind the limit refused
	Ends             []End  `json:"ends"`
}

// End is one way for a request to end.
type End struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
	Count   uint64 `json:"count"`
}

func (a *Admin) state(w http.ResponseWriter, _ *http.Request) {
	var snaps []live.Snapshot
	for _, lim := range a.cfg.Limiters() {
		snaps = append(snaps, live.Take(lim))
	}
	writeJSON(w, a.stateOf(snaps))
}

// stateOf returns the state with the limiters as they are in the snapshots: those who watch are
// told rates of the same ones, so that what they see fits together.
func (a *Admin) stateOf(snaps []live.Snapshot) State {
	s := State{
		Version:       1,
		Phase:         Phase(a.phase.Load()).String(),
		UptimeSeconds: time.Since(a.started).Seconds(),
		Limiters:      []LimiterState{},
		Servers:       []Server{},
	}
	observing := a.observing()
	for i := range snaps {
		l := limiterState(&snaps[i].Stats)
		if o := observedOf(observing, l.Name); o != nil {
			l.ObserveSwitched = o.Switched
		}
		l.Tenants = tenants(snaps[i].Tenants)
		s.Limiters = append(s.Limiters, l)
	}
	if a.cfg.Policy != nil {
		if source, sum := a.cfg.Policy(); source != "" {
			s.Policy = &Policy{Source: source, SHA256: sum}
			if r := a.cfg.Proxy.Reloads(); !r.Good {
				s.Policy.ReloadFailed = r.Why
			} else {
				s.Policy.RestartNeeded = r.Restart
			}
		}
	}
	for _, b := range a.cfg.Proxy.Servers() {
		s.Servers = append(s.Servers, Server{
			Upstream: b.Upstream, Server: b.Server, Well: b.Well, Why: b.Why, SinceSeconds: time.Since(b.Since).Seconds(),
			Share: b.Share, InFlight: b.InFlight, Limit: b.Limit,
		})
	}
	s.Connections = Connections{Open: a.cfg.Proxy.Open(), Upgraded: a.cfg.Proxy.Door().Upgraded}
	return s
}

func limiterState(s *goodput.Stats) LimiterState {
	l := LimiterState{
		Name:              s.Name,
		Observe:           s.Observe,
		Excess:            s.Excess,
		Unlimited:         s.Unlimited,
		TenantsShadow:     s.Shadow.Arrivals > 0,
		Limit:             s.Limit,
		InUse:             s.InUse,
		Running:           s.Running,
		Waiting:           s.Waiting,
		WaitingCost:       s.WaitingCost,
		WaitingBytes:      s.WaitingBytes,
		WaitingBytesLimit: s.MaxBytes,
		AgeSeconds:        s.Age.Seconds(),
		Order:             s.Order.String(),
		Depth:             s.Depth,
		Overload:          s.Overload,
		DemandRatio:       s.Load,
		RetryAfterSeconds: s.RetryAfter.Seconds(),
		Draining:          s.Draining,
		Absent:            s.Stats.Absent,
		AbsentSeconds:     s.Stats.AbsentFor.Seconds(),
		Condition:         s.Condition().String(),
		State:             s.State(),
		Refusing:          s.Refusing,
		StoodSeconds:      s.Stood.Seconds(),
		LimitWhy:          s.LimitWhy,
		LimitFrom:         s.LimitFrom,
		LimitMovedSeconds: s.LimitMoved.Seconds(),
		LimitAskedSeconds: s.LimitAsked.Seconds(),
		LimitSearch:       s.LimitSearch,

		LimitMin:            s.LimitMin,
		LimitMax:            s.LimitMax,
		LimitFlooredSeconds: s.LimitFloored.Seconds(),
		BaselineSeconds:     s.Baseline.Seconds(),
		Slowed:              s.Slowed,
		SlowedBy:            s.SlowedBy,

		Derivation: derivation(s.Derivation),
		Counts: Counts{
			Arrivals:         s.Arrivals,
			Immediate:        s.Immediate,
			Dequeued:         s.Dequeued,
			ExemptAdmissions: s.ExemptAdmitted,
			LimitChanges:     s.LimitChanges,
			LimitRaised:      s.LimitRaised,
			LimitCalled:      s.LimitCalled,
			LimitCalledUp:    s.LimitCalledUp,
			Dropped:          s.Dropped,
			Ends:             ends(s.Ends()),
		},
	}
	if s.Observe {
		l.Shadow = ends(s.Shadow.Ends())
	}
	return l
}

func derivation(d goodput.Derivation) Derivation {
	return Derivation{
		Text:               d.String(),
		Limit:              d.Limit,
		MeanSeconds:        d.Mean.Seconds(),
		CapacityPerSecond:  d.Rate,
		ObjectiveSeconds:   d.Objective.Seconds(),
		Percentile:         d.Percentile,
		ServiceSeconds:     d.Service.Seconds(),
		Depth:              d.Depth,
		RuleDepth:          d.Rule,
		RuleLatencySeconds: d.RuleLatency.Seconds(),
		Reachable:          d.Reachable,
		Fixed:              d.Fixed,
		Tight:              d.Tight,
		Samples:            d.Samples,
		DeclaredSeconds:    d.Declared.Seconds(),
		Drifted:            d.Drifted,
	}
}

func ends(of []goodput.Ended) []End {
	var all []End
	for _, e := range of {
		all = append(all, End{e.Outcome.String(), e.Reason.String(), e.Count})
	}
	return all
}
