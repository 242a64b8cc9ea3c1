package load

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"
)

func TestRatio(t *testing.T) {
	for _, tc := range []struct {
		offered, inTime int64
		capacity, want  float64
	}{
		{36000, 12000, 1200, 1},   // 3x, all of the capacity
		{36000, 3000, 1200, 0.25}, // collapsed
		{6000, 6000, 1200, 1},     // half the capacity: what was offered counts
		{6000, 3000, 1200, 0.5},
		{0, 0, 1200, 0},
	} {
		r := newResult(Plan{Duration: 10 * time.Second})
		r.Offered, r.InTime = tc.offered, tc.inTime
		if got := r.Ratio(tc.capacity); got != tc.want {
			t.Errorf("%d of %d in time at a capacity of %v: %v, want %v", tc.inTime, tc.offered, tc.capacity, got, tc.want)
		}
	}
}

func TestVoid(t *testing.T) {
	sent := func(n int64, late time.Duration) *Result {
		r := newResult(Plan{Rate: 100, Duration: time.Second, Deadline: time.Second}.withDefaults())
		for range n {
			r.offer(0, true)
			r.Late.add(late)
			r.count(end{total: late + time.Millisecond, answer: Answer{Status: 200}})
		}
		return r
	}
	for _, tc := range []struct {
		name string
		r    func() *Result
		want string // "" is valid
	}{
		{"good", func() *Result { return sent(1000, time.Millisecond) }, ""},
		{"late", func() *Result { return sent(1000, 6*time.Millisecond) }, "late at p99"},
		{"nothing due", func() *Result { return sent(0, 0) }, "no request"},
		{"one in a hundred dropped", func() *Result { r := sent(990, 0); r.Offered, r.Dropped = 1000, 10; return r }, ""},
		{"more dropped", func() *Result { r := sent(989, 0); r.Offered, r.Dropped = 1000, 11; return r }, "11 of 1000 requests dropped"},
		{"target gone", func() *Result {
			r := sent(0, 0)
			r.offer(0, true)
			r.count(end{answer: Answer{Err: errors.New("connection refused")}})
			return r
		}, "answered nothing: connection refused"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.r().Void(); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Reasons come from the wire: a server that invents them fills no memory.
func TestReasonsAreBounded(t *testing.T) {
	r := newResult(Plan{Duration: time.Second})
	for i := range 1000 {
		r.count(end{answer: Answer{Status: 503, Reason: fmt.Sprint("r", i)}})
	}
	if len(r.Reasons) != maxReasons+1 || r.Reasons["other"] != 1000-maxReasons || r.Refused != 1000 {
		t.Errorf("%d reasons, %d other, %d refused", len(r.Reasons), r.Reasons["other"], r.Refused)
	}
}

func TestHistogramOfNothing(t *testing.T) {
	h := newHistogram()
	if _, ok := h.Quantile(0.5); ok {
		t.Error("a median of nothing")
	}
	if _, ok := h.Mean(); ok {
		t.Error("a mean of nothing")
	}
	h.add(-time.Second)
	h.add(100 * maxDuration)
	if h.Count() != 2 {
		t.Errorf("%d of 2 counted", h.Count())
	}
}

func TestHistogramOf(t *testing.T) {
	h := HistogramOf(map[time.Duration]int64{time.Millisecond: 98, time.Second: 2})
	quantileIs(t, h, 0.98, time.Millisecond)
	quantileIs(t, h, 0.99, time.Second)
	if h.Count() != 100 {
		t.Errorf("%d of 100", h.Count())
	}
}

// What a Result says that it takes: a run of verify keeps some 30 of them.
func TestResultIsSmall(t *testing.T) {
	const bins = 100 // of 10 s
	r := newResult(Plan{Duration: 10 * time.Second})
	bytes := r.Latency.h.ByteSize() + r.Refusal.h.ByteSize() + r.Late.h.ByteSize() + len(r.Bins)*int(unsafe.Sizeof(Bin{}))
	if most := 3*(24*1024*8+1024) + bins*48; bytes > most {
		t.Errorf("%d bytes, more than %d", bytes, most)
	}
}
