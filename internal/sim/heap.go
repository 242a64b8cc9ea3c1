package sim

import (
	"math/bits"
	"time"
)

// An event is something that will happen to a call or to a part of the world.
type event struct {
	at   time.Duration
	seq  uint64 // of scheduling; ties go to the earlier
	call *call
	gen  uint32 // of the call then: an event of a call that is over does nothing
	what what

	// Of an event without a call. Of observes, comes and refills: the index of an instance,
	// gen being that of its tier. Of breaks and resizes: that of a tier, gen being that
	// of the restart or of the step. Of turns: that of a tier, gen being 1 when it is back. The two share their places for the sake of 40 bytes.
	who int32
}

type what uint8

const (
	ends     what = iota // the work at the resource
	rings                // the alarm of a waiter of the core
	leaves               // the deadline of a client
	answers              // a fan-out has waited long enough
	retries              // a client tries again
	observes             // the window of an instance
	breaks               // a planned restart
	resizes              // the resource has other slots
	turns                // it is away, or it is back
	comes                // an instance comes back
	refills              // the allowance of who is first in an instance
	samples              // a point of the series
)

// events is a heap with four children a node, by time, then by the order of
// scheduling. It is half as deep as one with two, and an event of 40 bytes moves
// half as often on its way up, which is where most of them stay.
type events struct {
	list []event
	seq  uint64
}

// earlier is 1 if a comes before b, else 0: what a subtraction of the pairs (at, seq) borrows.
// There is no branch in it, which nobody could predict.
func earlier(a, b *event) int {
	_, borrow := bits.Sub64(a.seq, b.seq, 0)
	_, borrow = bits.Sub64(uint64(a.at), uint64(b.at), borrow)
	return int(borrow)
}

func before(a, b *event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

func (h *events) push(e event) {
	h.seq++
	e.seq = h.seq
	i := len(h.list)
	h.list = append(h.list, e)
	for i > 0 {
		up := (i - 1) / 4
		if !before(&e, &h.list[up]) {
			break
		}
		h.list[i] = h.list[up]
		i = up
	}
	h.list[i] = e
}

func (h *events) pop() event {
	top, last := h.list[0], len(h.list)-1
	e := h.list[last]
	h.list[last] = event{}
	h.list = h.list[:last]
	if last == 0 {
		return top
	}
	i := 0
	for {
		first := 4*i + 1
		if first >= last {
			break
		}
		least := first
		if first+4 <= last {
			c := (*[4]event)(h.list[first:])
			a, b := earlier(&c[1], &c[0]), 2+earlier(&c[3], &c[2])
			least += a + (b-a)*earlier(&c[b&3], &c[a&3])
		} else {
			for c := first + 1; c < last; c++ {
				if before(&h.list[c], &h.list[least]) {
					least = c
				}
			}
		}
		if !before(&h.list[least], &e) {
			break
		}
		h.list[i] = h.list[least]
		i = least
	}
	h.list[i] = e
	return top
}
