package goodput

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// A signal that a test sets: what it answers, and what it does before.
type steered struct {
	mu    sync.Mutex
	level float64
	ok    bool
	line  string
	do    func() // under no lock of the signal
	asked int
}

func (s *steered) set(level float64, ok bool, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level, s.ok, s.line = level, ok, line
}

func (s *steered) does(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.do = f
}

func (s *steered) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *steered) Level() (float64, bool) {
	s.mu.Lock()
	s.asked++
	do := s.do
	s.mu.Unlock()
	if do != nil {
		do()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level, s.ok
}

func (s *steered) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.line
}

// A braking law does with the pressure what a law that adapts is to do: from 0.8 on it
// does not raise the limit, and beyond 1 it lowers it. It keeps what it was told.
type braking struct{ told *[]float64 }

func (b braking) Start() (int, error)      { return 10, nil }
func (b braking) Begin(uint64) limit.State { return b }
func (b braking) Why() string              { return "" }

func (b braking) Next(current int, w *limit.Window) limit.Move {
	*b.told = append(*b.told, w.Pressure)
	switch {
	case w.Pressure > 1:
		return limit.Move{Limit: current - 1}
	case w.Pressure >= 0.8:
		return limit.Move{Limit: current}
	}
	return limit.Move{Limit: current + 1}
}

// braked is a limiter with windows of 5 ms, and what its law is told.
func braked(s Signal) (l *Limiter, told *[]float64) {
	told = new([]float64)
	return New(Config{Limit: braking{told}, Objective: 40 * time.Millisecond, Pressure: s}), told
}

// pressWindow lets one window pass, with one request that ends in it.
func pressWindow(t testing.TB, l *Limiter) {
	t.Helper()
	slot := mustAcquire(t, l)
	time.Sleep(5 * time.Millisecond)
	slot.Release()
	l.endWindow(l.now())
}

func TestPressureReachesTheLaw(t *testing.T) {
	for _, c := range []struct {
		level  float64
		ok     bool
		told   float64
		absent bool
		limit  int // from 10, after one window
	}{
		{0, true, 0, false, 11},
		{0.3, true, 0.3, false, 11},
		{0.8, true, 0.8, false, 10},
		{1, true, 1, false, 10},
		{1.5, true, 1.5, false, 9},
		{100, true, 100, false, 9},
		{250, true, 100, false, 9},
		{math.Inf(1), true, 100, false, 9},
		{7, false, 0, true, 11},
		{math.NaN(), true, 0, true, 11},
		{-0.1, true, 0, true, 11},
		{math.Inf(-1), true, 0, true, 11},
	} {
		t.Run(fmt.Sprint(c.level, c.ok), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signal := &steered{level: c.level, ok: c.ok, line: "as said"}
				l, told := braked(signal)
				pressWindow(t, l)
				if len(*told) != 1 || (*told)[0] != c.told {
					t.Errorf("the law was told %v, want [%v]", *told, c.told)
				}
				s := l.Stats()
				if s.Limit != c.limit {
					t.Errorf("limit %d, want %d", s.Limit, c.limit)
				}
				if s.Pressure != c.told || s.PressureAbsent != c.absent || s.PressureSays != "as said" {
					t.Errorf("stats: %v, absent %v, %q", s.Pressure, s.PressureAbsent, s.PressureSays)
				}
				checkEmpty(t, l)
			})
		})
	}
}

func TestPressureIsExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signal := &steered{line: "not read yet"}
		l, _ := braked(signal)
		says := func(want string) {
			t.Helper()
			if text := l.Explain(); !strings.Contains(flat(text), flat(want)) {
				t.Errorf("want %q in\n%s", want, text)
			}
		}
		says("  pressure not known, goes on without: not read yet\n")
		signal.set(0.3, true, "goroutines wait 3ms, p99 of 812; too much is 10ms")
		pressWindow(t, l)
		says("  pressure 0.3 of what is too much: goroutines wait 3ms, p99 of 812; too much is 10ms\n")
		signal.set(0, false, "cgroup: cpu.stat:\n\tfile does not exist\n")
		pressWindow(t, l)
		says("  pressure not known, goes on without: cgroup: cpu.stat: file does not exist\n")
		signal.set(2, true, "")
		pressWindow(t, l)
		says("  pressure 2 of what is too much: *goodput.steered says nothing\n")
		signal.set(2, true, strings.Repeat("é", 1000))
		if n := len(l.Stats().PressureSays); n > maxSaid+3 {
			t.Errorf("%d bytes are shown, at most %d", n, maxSaid+3)
		}
		l, _ = braked(nil)
		pressWindow(t, l)
		if text := l.Explain(); strings.Contains(text, "pressure") {
			t.Errorf("without a signal:\n%s", text)
		}
		if s := l.Stats(); s.Pressure != 0 || s.PressureAbsent || s.PressureSays != "" {
			t.Errorf("without a signal: %v, %v, %q", s.Pressure, s.PressureAbsent, s.PressureSays)
		}
	})
}

// It is asked once in a window, with no lock held: it may use the limiter itself.
func TestPressureIsAskedOnceAWindow(t *testing.T) {
	for _, observe := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			signal := &steered{ok: true}
			told := new([]float64)
			l := New(Config{Limit: braking{told}, Objective: 40 * time.Millisecond, Pressure: signal, Observe: observe})
			signal.does(func() {
				if l.mu.TryLock() {
					l.mu.Unlock()
				} else {
					t.Error("asked with the lock held")
				}
				_ = l.Explain()
			})
			for range 10 {
				pressWindow(t, l)
				for range 50 {
					mustAcquire(t, l).Release()
				}
			}
			// A limiter that observes keeps its limit and asks no law.
			if signal.asked != 10 || !observe && len(*told) != 10 {
				t.Errorf("observe %v: asked %d times, the law %d times, in 10 windows", observe, signal.asked, len(*told))
			}
		})
	}
}

// A signal that takes a second holds up one request for that long. The others go on
// meanwhile, and their windows end with the level from before.
func TestPressureSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signal := &steered{level: 0.5, ok: true}
		l, told := braked(signal)
		pressWindow(t, l)
		signal.does(func() { time.Sleep(time.Second) })
		signal.set(3, true, "slow")
		var held sync.WaitGroup
		held.Go(func() { pressWindow(t, l) })
		synctest.Wait()
		time.Sleep(6 * time.Millisecond) // the window of that request is over, and it asks
		synctest.Wait()
		begun := time.Now()
		for range 20 {
			pressWindow(t, l)
		}
		if d := time.Since(begun); d != 20*5*time.Millisecond {
			t.Errorf("20 windows of 5 ms took %v", d)
		}
		now := l.enter()
		seen, asked := slices.Clone(*told), signal.calls()
		l.leave(now)
		if asked != 2 {
			t.Errorf("asked %d times, want no second time while it is asked", asked)
		}
		for i, p := range seen {
			if p != 0.5 {
				t.Errorf("window %d: the law was told %v, want the level from before", i, p)
			}
		}
		if n := len(seen); n < 20 {
			t.Errorf("the law was asked %d times in 20 windows", n)
		}
		held.Wait()
		if d := time.Since(begun); d > time.Second+5*time.Millisecond {
			t.Errorf("one request was held up for %v by a signal that takes a second", d)
		}
		signal.does(nil)
		if s := l.Stats(); s.Pressure != 3 {
			t.Errorf("level %v, want what it said in the end", s.Pressure)
		}
		checkEmpty(t, l)
	})
}

// A panic of a signal costs nobody a slot, is said, and is the last time it was asked
// until the limiter is configured again.
func TestPressurePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signal := &steered{level: 2, ok: true, line: "fine"}
		l, told := braked(signal)
		pressWindow(t, l)
		signal.does(func() { panic(errors.New("no such file")) })
		for range 5 {
			pressWindow(t, l)
		}
		if signal.asked != 2 {
			t.Errorf("asked %d times, want never again after the panic", signal.asked)
		}
		s := l.Stats()
		if want := "it panicked and is not asked again: no such file"; !s.PressureAbsent || s.Pressure != 0 || s.PressureSays != want {
			t.Errorf("stats: %v, absent %v, %q, want %q", s.Pressure, s.PressureAbsent, s.PressureSays, want)
		}
		if got := (*told)[len(*told)-1]; got != 0 {
			t.Errorf("the law is told %v of a signal that is broken", got)
		}
		checkEmpty(t, l)
		signal.does(nil)
		if err := l.Reconfigure(Config{Limit: braking{told}, Objective: 40 * time.Millisecond, Pressure: signal}); err != nil {
			t.Fatal(err)
		}
		pressWindow(t, l)
		if s := l.Stats(); s.PressureAbsent || s.Pressure != 2 || s.PressureSays != "fine" {
			t.Errorf("configured again: %v, absent %v, %q", s.Pressure, s.PressureAbsent, s.PressureSays)
		}
		checkEmpty(t, l)
	})
}

// A typed nil, whose methods panic, is what a caller gets wrong most easily.
func TestPressureNilPointer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, told := braked((*steered)(nil))
		pressWindow(t, l)
		s := l.Stats()
		if !s.PressureAbsent || !strings.Contains(s.PressureSays, "nil pointer") || len(*told) != 1 || (*told)[0] != 0 {
			t.Errorf("stats: absent %v, %q, told %v", s.PressureAbsent, s.PressureSays, *told)
		}
		checkEmpty(t, l)
	})
}

// A wordless signal has a level and panics as soon as it is to say more.
type wordless struct{ *steered }

func (w wordless) String() string { panic("no words") }

// A signal that panics when it is asked for words is broken as a whole: the level that it
// gave before is in force no longer, not even in the Stats that found it out, and not if it
// was being asked for a level meanwhile.
func TestPressureWordsPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const want = "it panicked and is not asked again: no words"
		signal := &steered{level: 5, ok: true}
		l, told := braked(wordless{signal})
		pressWindow(t, l)
		absent := func(when string) {
			t.Helper()
			if s := l.Stats(); !s.PressureAbsent || s.Pressure != 0 || s.PressureSays != want {
				t.Errorf("%s: %v, absent %v, %q, want %q", when, s.Pressure, s.PressureAbsent, s.PressureSays, want)
			}
		}
		absent("as soon as it panics")
		if text := l.Explain(); !strings.Contains(flat(text), flat("pressure not known, goes on without: "+want)) {
			t.Errorf("explained as\n%s", text)
		}
		pressWindow(t, l)
		absent("a window later")
		if n := signal.calls(); n != 1 || !slices.Equal(*told, []float64{5, 0}) {
			t.Errorf("asked %d times, the law was told %v", n, *told)
		}
		checkEmpty(t, l)

		signal = &steered{level: 5, ok: true}
		l, told = braked(wordless{signal})
		signal.does(func() { absent("while it is asked") })
		pressWindow(t, l)
		absent("after it was asked")
		if !slices.Equal(*told, []float64{0}) {
			t.Errorf("the law was told %v", *told)
		}
		checkEmpty(t, l)
	})
}

// 0.8 and 1 are where a law acts: no other level reads as one of them, and none needs to be
// read twice.
func TestPressureFigures(t *testing.T) {
	for level, want := range map[float64]string{
		0: "0", 0.001: "0", 0.3: "0.3", math.Nextafter(0.3, 1): "0.3", 0.29: "0.29", 1. / 3: "0.33",
		0.8: "0.8", 0.7999: "0.7999", 0.8001: "0.8001", 0.81: "0.81", 0.797: "0.797",
		1: "1", 1.01: "1.01", 1.004: "1.004", 0.996: "0.996", 0.9999996: "0.9999996", 1.5: "1.5",
		math.Nextafter(1, 2): "1.0000000000000002", math.Nextafter(1, 0): "0.9999999999999999",
		2: "2", 10: "10", 12.345: "12.35", 99.999: "100", 100: "100",
	} {
		if got := pressureFigure(level); got != want {
			t.Errorf("%v reads %s, want %s", level, got, want)
		}
		var f facts
		explainPressure(&f, &Stats{Pressure: level, PressureSays: "as said"})
		if say := (Fact{"pressure", want + " of what is too much: as said"}); len(f) != 1 || f[0] != say {
			t.Errorf("%v is explained as %q, want %q", level, f, say)
		}
	}
}

// SetLimit goes on asking, and a limiter without a signal may be given one.
func TestPressureIsConfiguredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signal := &steered{level: 0.4, ok: true}
		l, told := braked(nil)
		pressWindow(t, l)
		cfg := Config{Limit: braking{told}, Objective: 40 * time.Millisecond, Pressure: signal}
		if err := l.Reconfigure(cfg); err != nil {
			t.Fatal(err)
		}
		pressWindow(t, l)
		if got := (*told)[len(*told)-1]; got != 0.4 {
			t.Errorf("the law is told %v, want 0.4", got)
		}
		if err := l.SetLimit(3); err != nil {
			t.Fatal(err)
		}
		signal.set(0.6, true, "")
		pressWindow(t, l)
		if s := l.Stats(); s.Pressure != 0.6 {
			t.Errorf("a fixed limit shows %v, want 0.6", s.Pressure)
		}
	})
}

type strict struct{ steered }

func (*strict) Validate() error { return errors.New("the threshold is out of range") }

func TestPressureIsValidated(t *testing.T) {
	err := Config{Limit: limit.Fixed(1), Pressure: new(strict)}.Validate()
	if want := "pressure: the threshold is out of range"; err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
	if err := (Config{Limit: limit.Fixed(1), Pressure: new(steered)}).Validate(); err != nil {
		t.Errorf("a signal without fields to be wrong: %v", err)
	}
}

// hollow looks at a field, as package pressure does, so that a nil one cannot say whether
// it is valid.
type hollow struct {
	steered
	err error
}

func (h *hollow) Validate() error { return h.err }

// bare says that it is valid whether there is one or not.
type bare struct{ steered }

func (*bare) Validate() error { return nil }

type fragile struct{}

func (fragile) Level() (float64, bool) { return 0, false }
func (fragile) String() string         { return "" }
func (fragile) Validate() error        { panic("index 3 of 2") }

// A signal that cannot even be asked whether it is valid is a sentence, not a panic.
func TestPressureValidatePanics(t *testing.T) {
	for want, s := range map[string]Signal{
		"pressure *goodput.hollow is nil: leave it out for none":             (*hollow)(nil),
		"pressure goodput.fragile panics when it is validated: index 3 of 2": fragile{},
		"": (*bare)(nil),
	} {
		got := ""
		if err := (Config{Limit: limit.Fixed(1), Pressure: s}).Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%T: %q, want %q", s, got, want)
		}
	}
}
