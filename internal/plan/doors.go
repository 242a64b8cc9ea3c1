package plan

import (
	"fmt"
	"math"
)

// narrower is the share of what a layer and those further in could do that its
// slots may cost by being held: below it, somebody has forgotten that they are.
const narrower = 0.9

// checkDoors: the slots of a layer are held while it waits further in. A layer
// whose own work is fast needs as many slots as all that takes, or those further in
// can never be used.
func (a *Layers) checkDoors() {
	for i := range a.Layers {
		one := &a.Layers[i]
		h := one.Hold
		if h == nil || h.next == "" || h.Door == 0 {
			continue
		}
		if h.Door < narrower*h.best {
			a.doorFinding(i, h)
		}
		if h.dark != "" {
			a.add(Warning, "service_unknown", one.Name,
				fmt.Sprintf("its slots are also held for %s, of which no service is said: they are held longer, and less is done, than stands here.", h.dark),
				fmt.Sprintf("say the service and the limit of %s.", h.dark))
		}
	}
}

// doorFinding is the error about a layer that is narrower than what it calls.
func (a *Layers) doorFinding(i int, h *Hold) {
	l, next := a.in.Layers[i], a.layer(h.next)
	fewest, _ := l.replicas()
	each := float64(fewest * l.limits())
	needed := math.Ceil(h.best * h.Held / each * (1 - 1e-9))
	idle, enough := "", ""
	if n := next.Hold; n.Slots > 0 {
		used := math.Ceil(h.Door * float64(h.calls) * n.Held * (1 - 1e-9))
		idle = fmt.Sprintf(", and %s uses %.0f of its %s", h.next, min(used, float64(n.Slots)), plural(n.Slots, "slot"))
		enough = fmt.Sprintf(" If %s is enough, %s needs no more than %s.", perSecond(h.Door), h.next, plural(int(used), "slot"))
		if used >= float64(n.Slots) {
			idle, enough = "", ""
		}
	}
	a.add(Error, "door_narrower", l.Name,
		fmt.Sprintf("the door is narrower than what is behind it: each slot is held for %s = %s, and %s / %s = %s. It and all behind it could do %s%s.",
			h.sum(), brief(h.Held), plural(h.Slots, "slot"), brief(h.Held), perSecond(h.Door), perSecond(h.best), idle),
		fmt.Sprintf("change the limit of %s from %d to %.0f: %s x %s held%s.%s",
			l.Name, l.Limit, needed, perSecond(h.best), brief(h.Held), across(each), enough))
}

// across names the limits that a product of slots is divided over.
func across(limits float64) string {
	if limits <= 1 {
		return ""
	}
	return fmt.Sprintf(", over %.0f limits", limits)
}
