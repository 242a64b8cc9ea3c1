package sim

import "github.com/goodput/goodput/admission"

// The allowance of a limiter comes with time, so it has an event: the runtime has a timer
// for it, and both call the core when it says.

// await schedules the next grant of the allowance. It follows every call of the core.
func (w *world) await(in *instance) {
	at := in.core.RefillAt()
	if at == in.due {
		return
	}
	in.due = at // what was scheduled for another instant does nothing
	if at != admission.Never {
		w.events.push(event{at: at, what: refills, who: in.index, gen: uint32(in.tier.index)})
	}
}

// refill has the core grant what has come.
func (w *world) refill(in *instance) {
	if in.down || in.due != w.now {
		return
	}
	in.due = never
	in.core.Dispatch(w.now)
	w.collect(in)
}

// allowed returns the cost per second that the allowances of a tier come to; 0 without.
// It is a property of the resource: what somebody else's API grants.
func (t *tier) allowed() float64 {
	if t.Policy.Core == nil {
		return 0
	}
	return float64(len(t.instances)) * t.Policy.Core.Allowance.Rate
}
