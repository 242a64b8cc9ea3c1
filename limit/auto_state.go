package limit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

const (
	saturated = 0.3  // of what arrived was not admitted at once
	whole     = 0.95 // of an epoch has ended: less, and the mean would be that of the short ones
)

// An auto is an Auto at work. An epoch of its limiter is a block: what is admitted under
// one limit. A block is judged when the next one has ended, because only then have nearly all of
// it ended.
type auto struct {
	Auto
	rand   *rand.Rand
	belief belief

	blocks   int        // judged
	took     float64    // mean time of a block, seconds, smoothed
	rate     float64    // ends per second
	cvW, cvN float64    // of the squared coefficient of variation: decayed sums
	judged   float64    // the largest limit... of the latest saturated block that was judged
	void     [2]bool    // open blocks that a standstill has spoilt
	under    [2]float64 // their limits

	arms         [2]int // limits to try next, in random order
	armed        int    // how many of arms are left
	search       bool
	why          string
	lo, hi       float64
	lastX, lastY float64
}

// Begin returns the state of one limiter.
func (a Auto) Begin(seed uint64) State {
	a = a.withDefaults()
	return &auto{Auto: a, rand: rand.New(rand.NewPCG(seed, 0x61757464)), cvW: 20, cvN: 20, search: true, under: [2]float64{float64(a.From), float64(a.From)}}
}

func (s *auto) cv() float64 { return math.Sqrt(s.cvW / s.cvN) }

func (s *auto) Next(current int, w *Window) Move {
	if s.took > 0 {
		quiet := w.Quiet.Seconds()
		if quiet > max(2*s.took, 8/max(s.rate, 1e-9)) {
			s.void[0], s.void[1] = true, true
		}
	}
	m := Move{Limit: current, Search: s.search}
	if !s.over(&w.Epochs[0], &w.Epochs[1]) {
		return m
	}
	s.judge(&w.Epochs[1])
	m.Limit = s.choose(current, &w.Epochs[0])
	m.Mark = true
	m.Search = s.search
	s.void[1], s.void[0] = s.void[0], false
	s.under[1], s.under[0] = s.under[0], float64(m.Limit)
	return m
}

// over reports whether the current block may end.
func (s *auto) over(cur, prev *Epoch) bool {
	few := 6.0
	if s.blocks < 16 {
		few = 8
	}
	few = max(few, min(400, math.Pow(s.cv()/0.4, 2)))
	length := cur.Length.Seconds()
	switch {
	case cur.Admitted < few, length < s.took:
		return false
	case prev.Ended >= whole*prev.Admitted:
		return true
	}
	return s.took > 0 && length >= 20*s.took
}

// judge takes what a block shows.
func (s *auto) judge(b *Epoch) {
	if s.void[1] || b.Samples < 3 || b.InFlight == 0 {
		return
	}
	left := b.Left()
	n := b.Samples + left
	mean := (b.Mean.Seconds()*b.Served + left*b.Age.Seconds()) / (b.Served + left)
	cv := b.Spread.Seconds() / b.Mean.Seconds()
	keep := math.Exp(-n / 1000)
	s.cvW = s.cvW*keep + n*cv*cv
	s.cvN = s.cvN*keep + n
	if s.took == 0 {
		s.took = mean
	}
	s.took += 0.3 * (mean - s.took)
	s.rate = b.Samples / max(b.Length.Seconds(), 1e-3)
	se := math.Hypot(max(s.cv(), cv)/math.Sqrt(n), 0.01) * math.Sqrt(max(1, s.belief.noise))
	full := b.Delayed > saturated*b.Arrived
	s.lastX, s.lastY = b.InFlight, mean
	s.belief.observe(math.Log(b.InFlight), math.Log(mean), se, b.Length.Seconds(), full)
	if full {
		s.judged = s.under[1]
	}
	s.blocks++
}

// choose returns the limit of the next block.
func (s *auto) choose(current int, cur *Epoch) int {
	if s.void[0] || cur.Delayed <= saturated*cur.Arrived || !s.belief.begun {
		return current
	}
	if s.armed > 0 {
		s.armed--
		return s.clamp(s.arms[s.armed])
	}
	lo := s.belief.quantile(0.7)
	hi := s.belief.quantile(0.9)
	lo += 0.2 * math.Sqrt(lo)
	top := 2 * max(s.judged, 1)
	clipped := lo > top/1.2
	lo = max(1, min(lo, top/1.2))
	hi = min(max(hi, 1.12*lo), 1.6*lo, top)
	s.lo, s.hi = lo, hi
	s.search = clipped
	if clipped {
		return s.clamp(max(int(top), current))
	}
	low, high := max(1, int(lo+0.25)), int(hi+0.25)
	if high <= low {
		high = low + 1
	}
	s.arms = [2]int{low, high}
	if s.rand.IntN(2) == 0 {
		s.arms = [2]int{high, low}
	}
	s.armed = 1
	return s.clamp(s.arms[1])
}

func (s *auto) clamp(n int) int { return min(max(n, s.Min), s.Max) }

func (s *auto) Why() string {
	b := &s.belief
	return fmt.Sprintf("capacity %.1f (%.1f..%.1f), service mean %v, last %.1f in flight %v, cv %.2f noise %.1f", b.quantile(.5), b.quantile(.1), b.quantile(.9),
		time.Duration(b.service()*1e9).Round(10*time.Microsecond), s.lastX, time.Duration(s.lastY*1e9).Round(10*time.Microsecond), s.cv(), b.noise)
}
