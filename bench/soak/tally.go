package soak

import (
	"sync"
	"time"
)

// An end is what became of a request, as its client saw it. Each has one.
type end int

const (
	ok      end = iota // a whole answer of 2xx, or an upgraded connection that was used to its end
	refused            // an answer with Goodput-Rejected
	failed             // any other answer
	left               // the client left before it had one
	lost               // none, or half of one, though the client had waited
	hung               // lost, because there was none until the deadline and patience were over
	ends
)

// Told is what the clients that behave were told. Sent = OK + Refused + Failed + Left + Lost;
// Hung are among the lost.
type Told struct {
	Sent    int `json:"sent"`
	OK      int `json:"ok"`
	Refused int `json:"refused"`
	Failed  int `json:"failed"`
	Left    int `json:"left"`
	Lost    int `json:"lost"`
	Hung    int `json:"hung"`

	// Of those that misbehave: how many there were, and how many requests they may have
	// sent far enough to be counted.
	Wild     int `json:"wild_clients"`
	WildMost int `json:"wild_requests_most"`
}

// Resets are the clients that broke off something.
func (t Told) Resets() int { return t.Left + t.Wild }

// Open is how many may have been counted by the server in any way, or not at all.
func (t Told) Open() int { return t.Left + t.Lost + t.WildMost }

// A second is what was due in it.
type second struct {
	offered, inTime int
	work, held      time.Duration // of the answers of 2xx
}

// A latency is that of one request that got a slot.
type latency struct {
	second   int32
	took     time.Duration
	deadline time.Duration
}

// A series is one class, second by second.
type series struct {
	seconds []second
	admits  []latency
}

// A mishap is a request that hung, was lost or failed, from when it was due to its end.
type mishap struct {
	from, to time.Duration
	end      end
}

// A tally collects what the clients see.
type tally struct {
	mu      sync.Mutex
	told    Told
	classes [2]series // plain, auto
	amiss   []mishap
	late    []time.Duration
	worst   []time.Duration // lateness by second, the largest
}

func newTally(length time.Duration) *tally {
	n := int(length/time.Second) + 60 // the last rest may take longer
	t := &tally{worst: make([]time.Duration, n)}
	for i := range t.classes {
		t.classes[i].seconds = make([]second, n)
	}
	return t
}

// A seen is one request as its client saw it.
type seen struct {
	class      int // plain, auto; -1: lasting
	due        time.Duration
	end        end
	took       time.Duration // from when it was due
	deadline   time.Duration
	work, held time.Duration
	leaves     bool // it was to leave, whatever the answer: it is no part of the goodput
}

func (t *tally) add(s seen) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told.Sent++
	switch s.end {
	case ok:
		t.told.OK++
	case refused:
		t.told.Refused++
	case failed:
		t.told.Failed++
	case left:
		t.told.Left++
	case hung:
		t.told.Hung++
		t.told.Lost++
	default:
		t.told.Lost++
	}
	inTime := s.class < 0 || s.took < s.deadline-hopMargin // later it is the end of the deadline: 504
	if s.end == hung || s.end == lost || s.end == failed && inTime {
		t.amiss = append(t.amiss, mishap{s.due, s.due + s.took, s.end})
	}
	at := int(s.due / time.Second)
	if s.class < 0 || s.leaves || at >= len(t.classes[0].seconds) {
		return
	}
	c := &t.classes[s.class]
	sec := &c.seconds[at]
	sec.offered++
	if s.end != ok {
		return
	}
	sec.work += s.work
	sec.held += s.held
	if s.took <= s.deadline {
		sec.inTime++
	}
	c.admits = append(c.admits, latency{int32(at), s.took, s.deadline})
}

// sent notes how late a request was sent that was due then.
func (t *tally) sent(due, late time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.late = append(t.late, late)
	if at := int(due / time.Second); at < len(t.worst) {
		t.worst[at] = max(t.worst[at], late)
	}
}

func (t *tally) wild(requests int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told.Wild++
	t.told.WildMost += requests
}

func (t *tally) sum() Told {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.told
}
