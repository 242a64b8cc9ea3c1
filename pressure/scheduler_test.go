package pressure

import (
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
)

func TestScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its clock; the counts are those of the runtime
		var s Scheduler
		if got := s.String(); got != "goroutine waits have not been read yet" {
			t.Errorf("before the first reading: %q", got)
		}
		if _, ok := s.Level(); ok {
			t.Error("a level after one reading: of what came before?")
		}
		if got := s.String(); got != "too few goroutines have waited yet" {
			t.Errorf("after one reading: %q", got)
		}
		time.Sleep(span)
		level, ok := s.Level()
		if !ok || level != s.waits.level.Seconds()/0.010 {
			t.Errorf("level %v, %v of %v", level, ok, s.waits.level)
		}
		if got := s.String(); !strings.HasPrefix(got, "goroutines wait ") || !strings.HasSuffix(got, "; too much is 10ms") {
			t.Errorf("says %q", got)
		}
	})
}

// Limiters that share a signal share its readings: who asks within the shortest window
// has the answer of whoever was first, and takes nothing away from it.
func TestSchedulerIsReadOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Scheduler
		s.Level()
		first := s.readAt
		time.Sleep(fresh - 1)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { s.Level() })
		}
		wg.Wait()
		if s.readAt != first {
			t.Errorf("read again after %v", s.readAt.Sub(first))
		}
		time.Sleep(time.Nanosecond)
		s.Level()
		if s.readAt == first {
			t.Errorf("not read again after %v", fresh)
		}
	})
}

func TestSchedulerSays(t *testing.T) {
	s := Scheduler{Quantile: 0.999, TooMuch: 20 * time.Millisecond}
	s.Level()
	s.waits.known, s.waits.level, s.waits.n = true, 3141592*time.Nanosecond, 1200
	if got, want := s.String(), "goroutines wait 3.14ms, p99.9 of 1200; too much is 20ms"; got != want {
		t.Errorf("says %q, want %q", got, want)
	}
	s.readAt = time.Now().Add(time.Hour) // not read again
	if level, ok := s.Level(); !ok || math.Abs(level-0.15708) > 0.000005 {
		t.Errorf("level %v, %v of 3.14 of 20 ms", level, ok)
	}
}

// Each field changes what is asked, and nonsense is one sentence.
func TestFieldsOfSignals(t *testing.T) {
	for _, c := range []struct {
		signal goodput.Signal
		says   string
	}{
		{&Scheduler{}, ""},
		{&Scheduler{Quantile: 0.5, TooMuch: 100 * time.Microsecond}, ""},
		{&Scheduler{Quantile: 0.999, TooMuch: 10 * time.Second}, ""},
		{&Scheduler{Quantile: 1}, "the quantile 1 of goroutine waits is out of range: 0.5 to 0.999"},
		{&Scheduler{Quantile: math.NaN()}, "the quantile NaN of goroutine waits is out of range: 0.5 to 0.999"},
		{&Scheduler{TooMuch: time.Microsecond}, "a goroutine wait of 1µs as too much is out of range: 100µs to 10s"},
		{&Scheduler{TooMuch: -time.Second}, "a goroutine wait of -1s as too much is out of range: 100µs to 10s"},
		{&CGroup{}, ""},
		{&CGroup{TooMuch: 1}, ""},
		{&CGroup{TooMuch: 0.001}, "a share of 0.001 of the periods as too much is out of range: 0.01 to 1"},
		{&CGroup{TooMuch: math.NaN()}, "a share of NaN of the periods as too much is out of range: 0.01 to 1"},
		{Largest(), "the largest of no signals: name at least one"},
		{Largest(new(CGroup), nil), "signal 2 of 2 is nil"},
		{Largest(new(CGroup), new(Scheduler)), ""},
		{Largest(new(CGroup), &Scheduler{Quantile: 2}), "the quantile 2 of goroutine waits is out of range: 0.5 to 0.999"},
	} {
		err := c.signal.(interface{ Validate() error }).Validate()
		if c.says == "" && err != nil || c.says != "" && (err == nil || err.Error() != c.says) {
			t.Errorf("%T %+v: %v, want %q", c.signal, c.signal, err, c.says)
		}
	}
}

// A said is a signal that says what it was told to.
type said struct {
	level float64
	ok    bool
	line  string
}

func (s said) Level() (float64, bool) { return s.level, s.ok }
func (s said) String() string         { return s.line }

func TestLargest(t *testing.T) {
	calm, busy := said{0.2, true, "calm"}, said{1.5, true, "busy"}
	absent, broken := said{9, false, "absent"}, said{math.NaN(), true, "broken"}
	for _, c := range []struct {
		of    []goodput.Signal
		level float64
		ok    bool
		line  string
	}{
		{[]goodput.Signal{calm}, 0.2, true, "calm"},
		{[]goodput.Signal{calm, busy}, 1.5, true, "calm; busy"},
		{[]goodput.Signal{busy, calm}, 1.5, true, "busy; calm"},
		{[]goodput.Signal{absent, calm}, 0.2, true, "absent; calm"},
		{[]goodput.Signal{calm, broken}, 0.2, true, "calm; broken"},
		{[]goodput.Signal{absent, broken}, 0, false, "absent; broken"},
		{[]goodput.Signal{Largest(absent, busy), calm}, 1.5, true, "absent; busy; calm"},
	} {
		s := Largest(c.of...)
		if level, ok := s.Level(); level != c.level || ok != c.ok || s.String() != c.line {
			t.Errorf("%v, %v, %q of %v, want %v, %v, %q", level, ok, s, c.of, c.level, c.ok, c.line)
		}
	}
}

// What a limiter pays in each of its windows, 5 to 100 ms long.
func BenchmarkSchedulerLevel(b *testing.B) {
	b.Run("read", func(b *testing.B) {
		var s Scheduler
		s.Level()
		b.ReportAllocs()
		for b.Loop() {
			s.readAt = time.Time{}
			s.Level()
		}
	})
	b.Run("shared", func(b *testing.B) {
		var s Scheduler
		s.Level()
		s.readAt = time.Now().Add(time.Hour)
		b.ReportAllocs()
		for b.Loop() {
			s.Level()
		}
	})
}

// Twice of two files for each level with a quota, at most once in 100 ms.
func BenchmarkCGroupLevel(b *testing.B) {
	s := CGroup{FS: containerV2.fs()}
	b.ReportAllocs()
	for b.Loop() {
		s.readAt = time.Time{}
		s.Level()
	}
}

// A reading is part of each window of a limiter, which allocates nothing.
func TestSchedulerAllocatesNothing(t *testing.T) {
	var s Scheduler
	s.Level()
	if n := testing.AllocsPerRun(100, func() {
		s.readAt = time.Time{}
		s.Level()
	}); n != 0 {
		t.Errorf("%v allocations for a reading", n)
	}
}
