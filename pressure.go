package goodput

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
)

// A Signal says how short of something, of processors as a rule, the process is: an extra
// brake on a limit that adapts. Package pressure has those of the Go scheduler and of a
// CPU quota. A limiter needs none: its law finds an overload of any kind in the service
// times, and what a signal adds is only that it is earlier where processors are the
// bottleneck.
//
// Both methods are called with no lock held, by a goroutine that came for something else,
// so they should take microseconds. A slow one delays one request at a time and nothing
// else; one that panics is not asked again and counts as absent. One signal may serve many
// limiters: its methods are called concurrently.
//
// If it has a method Validate() error, Config.Validate calls that, and refuses a signal
// whose Validate panics, as that of a nil *pressure.CGroup does.
type Signal interface {
	// Level returns 0 for no pressure, 1 at what somebody said is too much, and beyond. It
	// is called once in a window, every 5 to 100 ms, and is about the time since it was
	// last called or a little longer. ok false says that nothing is known at the moment:
	// the limiter goes on without. NaN and what is below 0 say the same, and what is
	// above 100 counts as 100.
	Level() (level float64, ok bool)

	// String returns a line with the numbers behind the level, or why there is none.
	String() string
}

// maxPressure is the most that a law is told. At 100 times what is too much no law does
// anything that it would not do at 10, and sums of it stay finite.
const maxPressure = 100

// A gauge asks the signal of one configuration. It keeps the level of the last window, so
// that Stats says what the law was told, and asks one caller at a time.
type gauge struct {
	signal Signal
	busy   atomic.Bool            // whoever finds it set makes do with the last level
	last   atomic.Uint64          // bits of the level; NaN where nothing is known
	fault  atomic.Pointer[string] // of the panic, after which the signal is not asked again and last is void
}

func newGauge(s Signal) *gauge {
	if s == nil {
		return nil
	}
	g := &gauge{signal: s}
	g.last.Store(math.Float64bits(math.NaN()))
	return g
}

// read asks the signal and returns the level for the law: 0 where nothing is known. The
// caller holds no lock.
func (g *gauge) read() float64 {
	if g.fault.Load() == nil && g.busy.CompareAndSwap(false, true) {
		g.ask()
	}
	level, _ := g.level()
	return level
}

// ask replaces the level, and must not be called by two at once.
func (g *gauge) ask() {
	level := math.NaN()
	defer func() {
		if r := recover(); r != nil {
			// The slot of a request that is just being admitted would be lost with it.
			g.fail(r)
		}
		g.last.Store(math.Float64bits(level))
		g.busy.Store(false)
	}()
	if v, ok := g.signal.Level(); ok && v >= 0 {
		level = min(v, maxPressure)
	}
}

func (g *gauge) fail(r any) {
	s := fmt.Sprintf("it panicked and is not asked again: %v", r)
	g.fault.Store(&s)
}

// level returns the last level, 0 and false where nothing is known. It looks at fault as
// well as at last: words may panic while somebody is about to replace the level.
func (g *gauge) level() (level float64, ok bool) {
	if g.fault.Load() != nil {
		return 0, false
	}
	if v := math.Float64frombits(g.last.Load()); v >= 0 {
		return v, true
	}
	return 0, false
}

// words returns what the signal says of itself, in one line of bounded length.
func (g *gauge) words() (s string) {
	defer func() {
		if r := recover(); r != nil {
			g.fail(r)
			s = oneLine(*g.fault.Load())
		}
	}()
	if f := g.fault.Load(); f != nil {
		return oneLine(*f)
	}
	if s = oneLine(g.signal.String()); s == "" {
		s = fmt.Sprintf("%T says nothing", g.signal)
	}
	return s
}

// maxSaid is the most that is shown of what a signal says, in bytes: a few lines of a
// terminal, enough for three signals that were combined.
const maxSaid = 500

// oneLine makes one line of at most maxSaid bytes of s.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxSaid {
		s = strings.ToValidUTF8(s[:maxSaid], "") + "..."
	}
	return s
}

// tell puts what is known of the pressure in s.
func (g *gauge) tell(s *Stats) {
	if g == nil {
		return
	}
	says := g.words() // first: if it panics there is no level
	level, ok := g.level()
	s.Pressure, s.PressureAbsent, s.PressureSays = level, !ok, says
}

// validSignal returns what a signal says about its own fields. If it panics instead, that is
// the sentence: whoever validates a configuration from outside expects one.
func validSignal(s Signal) (err error) {
	v, ok := s.(interface{ Validate() error })
	if !ok {
		return nil
	}
	defer func() {
		switch r := recover(); {
		case r == nil:
		case isNilPointer(s):
			err = fmt.Errorf("pressure %T is nil: leave it out for none", s)
		default:
			err = fmt.Errorf("pressure %T panics when it is validated: %s", s, oneLine(fmt.Sprint(r)))
		}
	}()
	if err := v.Validate(); err != nil {
		return fmt.Errorf("pressure: %w", err)
	}
	return nil
}

// isNilPointer reports whether s is, as an interface, more than nil, but points to nothing.
func isNilPointer(s Signal) bool {
	v := reflect.ValueOf(s)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
