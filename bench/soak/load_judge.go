package soak

import (
	"fmt"
	"strings"
	"time"
)

// Criteria of the load and of what clients were told: without them a proxy that serves nobody, and
// whose memory is flat for that, would be certified.

const (
	// offeredLeast of the plan: of an hour the deviation of Poisson is 0.1 %, of a minute 0.8 %.
	offeredLeast = 0.95

	// servedLeast of capacity. In each minute one server of two is away for 3 s at the most and comes
	// back in 4 s more, which is 6 % of capacity; the rest is for other work of the machine.
	servedLeast = 0.5

	// refusedLeast of what was sent: 1 - 1/1.2 is above capacity, and half of it is this.
	refusedLeast = (1 - 1/multiple) / 2

	// leaving is the part of requests whose client leaves, which are not counted by second: see draw.
	leaving = 1.0 / 50

	// calmLeast is of how many requests it must be known that nothing disturbed them.
	calmLeast = secondsLeast * rate
)

var queueing = [2]string{classPlain, classAuto}

func unknown(name, what string) Criterion {
	return Criterion{Name: name, Said: what + " not measured in this run"}
}

// loaded sums up the seconds without rests.
func (r *Report) loaded() (n int, offered, inTime [2]int) {
	for sec, x := range r.Seconds {
		from, rests := time.Duration(sec)*time.Second, false
		for _, p := range r.Rests {
			rests = rests || from+time.Second > p.At && from < p.At+max(p.Took, restTime)+time.Second
		}
		if rests {
			continue
		}
		n++
		for i := range queueing {
			offered[i] += x.Offered[i]
			inTime[i] += x.InTime[i]
		}
	}
	return n, offered, inTime
}

// perSecond judges a count of each class by the least that it may be in a second.
func (r *Report) perSecond(name string, n int, counts [2]int, least float64) Criterion {
	if n == 0 {
		return unknown(name, "what was sent in each second was")
	}
	met, said := true, make([]string, len(queueing))
	for i, class := range queueing {
		each := float64(counts[i]) / float64(n)
		met = met && each >= least
		said[i] = fmt.Sprintf("%s %.1f/s", class, each)
	}
	return criterion(name, met, "%s in %d s; %.1f/s is the least", strings.Join(said, ", "), n, least)
}

func offered(r *Report) Criterion {
	n, sent, _ := r.loaded()
	return r.perSecond(CritOffered, n, sent, offeredLeast*rate*(1-leaving))
}

func served(r *Report) Criterion {
	n, _, inTime := r.loaded()
	return r.perSecond(CritServed, n, inTime, servedLeast*capacity)
}

func refusals(r *Report) Criterion {
	met := r.Told.Sent > 0 && float64(r.Told.Refused) >= refusedLeast*float64(r.Told.Sent)
	said := []string{fmt.Sprintf("%d of %d, %.3f is the least", r.Told.Refused, r.Told.Sent, refusedLeast)}
	for _, class := range queueing {
		n := r.Books.Outcomes[class]["rejected"] + r.Books.Outcomes[class]["expired"]
		met = met && n > 0
		said = append(said, fmt.Sprintf("%s %d in the access log", class, n))
	}
	return criterion(CritRefused, met, "%s", strings.Join(said, "; "))
}

func hangs(r *Report) Criterion {
	if r.Calm == nil {
		return unknown(CritHangs, fmt.Sprintf("%d hung in all; how many while nothing disturbed them was", r.Told.Hung))
	}
	return criterion(CritHangs, r.Calm.Hung == 0 && r.Calm.Requests >= calmLeast, "%d in calm, of %d requests, %.0f are the least; %d in all", r.Calm.Hung, r.Calm.Requests, float64(calmLeast), r.Told.Hung)
}

func losses(r *Report) Criterion {
	lost := r.Told.Lost - r.Told.Hung
	if r.Calm == nil {
		return unknown(CritLosses, fmt.Sprintf("%d were cut and %d had another answer in all; how many while nothing disturbed them was", lost, r.Told.Failed))
	}
	return criterion(CritLosses, r.Calm.Lost+r.Calm.Failed == 0 && r.Calm.Requests >= calmLeast, "%d cut and %d other answers in calm, of %d requests, %.0f are the least; %d and %d in all",
		r.Calm.Lost, r.Calm.Failed, r.Calm.Requests, float64(calmLeast), lost, r.Told.Failed)
}
