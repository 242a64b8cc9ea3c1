package soak

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// An act is one thing that is done to the process or to what is around it.
type act int

const (
	hangup    act = iota // SIGHUP with another policy; the access log is rotated before it
	post                 // POST /-/reload with another policy
	breakHup             // SIGHUP with a broken one
	breakPost            // POST with a broken one
	restart              // a server is killed, and started again on the same port
	blackout             // both are
	burst                // clients misbehave
	stopLoad             // for restTime
)

// An event is an act at an instant.
type event struct {
	at  time.Duration
	act act
}

// Of each minute. A restart takes at most downMost, so with settling it is over before the
// minute is: every minute has seconds that are judged.
const (
	bursts    = 3
	wildEach  = 40 // clients of one burst
	downLeast = 200 * time.Millisecond
	downMost  = 3 * time.Second
	restTime  = 10 * time.Second // at the end of a minute that has a rest
)

// plan returns what happens in a run, in its order: in each minute one policy by SIGHUP, one by
// POST, one restart and the bursts; every fifth a broken policy, every tenth both servers at
// once. Nothing begins in the last 12 s of a minute but a rest.
func plan(seed uint64, length, restEvery time.Duration) []event {
	var all []event
	minutes := int(length / time.Minute)
	for m := range minutes {
		rng := rand.New(rand.NewPCG(seed, uint64(m)))
		add := func(a act, from, to float64) {
			at := time.Duration(m)*time.Minute + time.Duration((from+rng.Float64()*(to-from))*float64(time.Second))
			all = append(all, event{at, a})
		}
		add(hangup, 1, 48)
		add(post, 1, 48)
		switch m % 10 {
		case 4:
			add(breakHup, 1, 48)
		case 9:
			add(breakPost, 1, 48)
		}
		if m%10 == 7 {
			add(blackout, 3, 40)
		} else {
			add(restart, 3, 40)
		}
		for range bursts {
			add(burst, 1, 46)
		}
		if over := time.Duration(m+1) * time.Minute; over%restEvery == 0 || m == minutes-1 {
			all = append(all, event{over - restTime, stopLoad})
		}
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return all
}
