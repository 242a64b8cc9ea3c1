package goodput

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// Every way to end a slot, on the fast path and off it, and what it counts as.
func TestOutcomes(t *testing.T) {
	const objective = 400 * time.Millisecond
	short := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, 100*time.Millisecond)
	}
	none := func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }
	for _, c := range []struct {
		name string
		with func(context.Context) (context.Context, context.CancelFunc)
		took time.Duration
		end  func(*Slot)
		want Outcome
		held bool // its time is in Stats.Service
	}{
		{"within the objective", none, objective, (*Slot).Release, Completed, true},
		{"past the objective", none, objective + 1, (*Slot).Release, Late, true},
		{"before the deadline", short, 100*time.Millisecond - 1, (*Slot).Release, Completed, true},
		{"at the deadline", short, 100 * time.Millisecond, (*Slot).Release, Late, true},
		{"nil error", none, 10 * time.Millisecond, func(s *Slot) { s.Fail(nil) }, Completed, true},
		{"error", none, 10 * time.Millisecond, func(s *Slot) { s.Fail(errors.New("5xx")) }, Failed, true},
		{"context error", none, 10 * time.Millisecond, func(s *Slot) { s.Fail(fmt.Errorf("read: %w", context.Canceled)) }, Abandoned, true},
		{"abandoned", none, 10 * time.Millisecond, (*Slot).Abandon, Abandoned, true},
		{"detached", none, 10 * time.Millisecond, (*Slot).Detach, Completed, false},
	} {
		for _, noLend := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/lending=%v", c.name, !noLend), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := New(Config{Limit: limit.Fixed(2), Objective: objective})
					l.noLend = noLend
					l.leave(l.enter())
					ctx, cancel := c.with(context.Background())
					defer cancel()
					slot, err := l.Acquire(ctx)
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(c.took)
					if o := slot.Outcome(); o != Pending {
						t.Errorf("before its end it is %v", o)
					}
					c.end(&slot)
					c.end(&slot)
					slot.Release()
					slot.Served()
					if o := slot.Outcome(); o != c.want {
						t.Errorf("the slot says %v, want %v", o, c.want)
					}
					s := l.Stats()
					if s.Outcomes[c.want] != 1 || ended(&s) != 1 || s.Arrivals != 1 || s.Immediate != 1 {
						t.Errorf("outcomes %v of %d arrivals, want one %v", s.Outcomes, s.Arrivals, c.want)
					}
					if h := s.Service[c.want]; c.held != (h != nil) || c.held && (h.Count != 1 || h.Sum != c.took.Seconds()) {
						t.Errorf("histogram of %v: %v, want one of %v: %v", c.want, h, c.took, c.held)
					}
					checkEmpty(t, l)
				})
			})
		}
	}
}

func TestZeroSlotHoldsNothing(t *testing.T) {
	var s Slot
	s.Release()
	s.Fail(errors.New("no"))
	s.Abandon()
	s.Detach()
	s.Served()
	if s.Waited() != 0 || s.Exempt() {
		t.Error("the zero slot says that it waited or is exempt")
	}
}

// The service sample ends at Served, the hold time at the end.
func TestServedEndsTheSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: limit.Fixed(2), Objective: time.Second})
		var calls []call
		l.journal = func(c call) { calls = append(calls, c) }
		for range 200 { // the prior is replaced after 100
			slot := mustAcquire(t, l)
			time.Sleep(20 * time.Millisecond)
			slot.Served()
			time.Sleep(80 * time.Millisecond)
			slot.Served() // only the first counts
			slot.Release()
		}
		d := l.Stats().Derivation
		// The estimate is of samples in buckets; each is exactly 20 ms.
		if d.Service < 19*time.Millisecond || d.Service > 21*time.Millisecond {
			t.Errorf("service quantile %v, want the 20ms to Served", d.Service)
		}
		if d.Mean < 99*time.Millisecond || d.Mean > 101*time.Millisecond {
			t.Errorf("hold time %v, want the 100ms to the end", d.Mean)
		}
	})
}

func TestDoCountsHowTheFunctionEnds(t *testing.T) {
	own, cancel := context.WithCancel(context.Background())
	boom := errors.New("boom")
	for _, c := range []struct {
		name string
		ctx  context.Context
		fn   func(context.Context) error
		want Outcome
	}{
		{"nil", context.Background(), func(context.Context) error { return nil }, Completed},
		{"error", context.Background(), func(context.Context) error { return boom }, Failed},
		{"somebody else's context", context.Background(), func(context.Context) error { return context.Canceled }, Failed},
		{"panic", context.Background(), func(context.Context) error { panic(boom) }, Failed},
		{"goexit", context.Background(), func(context.Context) error { runtime.Goexit(); return nil }, Failed},
		{"its own context", own, func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() }, Abandoned},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := New(Config{Limit: limit.Fixed(1)})
			var err error
			var recovered any
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { recovered = recover() }()
				err = l.Do(c.ctx, c.fn)
			}()
			<-done
			if s := l.Stats(); s.Outcomes[c.want] != 1 || ended(&s) != 1 {
				t.Errorf("outcomes %v, want one %v (error %v)", s.Outcomes, c.want, err)
			}
			if c.name == "panic" && recovered != any(boom) {
				t.Errorf("recovered %v, want the panic to pass on", recovered)
			}
			if c.name == "error" && !errors.Is(err, boom) {
				t.Errorf("got %v, want the function's error", err)
			}
			checkEmpty(t, l)
		})
	}
}

func TestExemptIsOutsideTheLimit(t *testing.T) {
	l := New(Config{Limit: limit.Fixed(1), Depth: NoQueue, Exempt: 2})
	slot := mustAcquire(t, l)
	var probes [3]Slot
	for i := range probes {
		var err error
		probes[i], err = l.AcquireWork(context.Background(), Work{Exempt: true})
		if i < 2 && (err != nil || !probes[i].Exempt()) {
			t.Errorf("probe %d: %v, exempt %v", i, err, probes[i].Exempt())
		}
		if i == 2 && reason(err) != QueueFull {
			t.Errorf("a third probe got %v, want to be treated like any other", err)
		}
	}
	s := l.Stats()
	if s.Stats.Exempt != 2 || s.ExemptAdmitted != 2 || s.Arrivals != 2 || s.InUse != 1 {
		t.Errorf("%d exempt, %d admitted, %d arrivals, %d in use", s.Stats.Exempt, s.ExemptAdmitted, s.Arrivals, s.InUse)
	}
	for i := range probes {
		probes[i].Release()
	}
	slot.Release()
	checkEmpty(t, l)
	if s = l.Stats(); s.Service[Completed].Count != 1 {
		t.Errorf("%d in the histogram, want none of the probes", s.Service[Completed].Count)
	}
}

func TestCostHoldsSoManyUnits(t *testing.T) {
	l := New(Config{Limit: limit.Fixed(10), Depth: NoQueue})
	slot, err := l.AcquireWork(context.Background(), Work{Cost: 8, Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	if s := l.Stats(); s.InUse != 8 || s.Running != 1 {
		t.Errorf("%d in use by %d", s.InUse, s.Running)
	}
	if _, err := l.AcquireWork(context.Background(), Work{Cost: 3}); reason(err) != QueueFull {
		t.Errorf("3 more: %v, want queue_full", err)
	}
	if _, err := l.AcquireWork(context.Background(), Work{Cost: math.MaxInt}); reason(err) != TooCostly {
		t.Errorf("too many: %v, want too_costly", err)
	}
	if _, err := l.AcquireWork(context.Background(), Work{Bytes: 1 << 40}); reason(err) != TooLarge {
		t.Errorf("a terabyte: %v, want too_large", err)
	}
	two := mustAcquire(t, l)
	slot.Release()
	two.Release()
	checkEmpty(t, l)
}

// go vet reports copies of a Slot, because a copy could be released again. The go command
// remembers that vet has run apart from what vet said: if one is there without the other, as
// while a vet beside this one ends, it says nothing and succeeds. So vet sees a file that no
// vet has seen.
func TestVetReportsCopies(t *testing.T) {
	if testing.Short() {
		t.Skip("runs go vet")
	}
	source, err := os.ReadFile("testdata/copies/copies.go")
	if err != nil {
		t.Fatal(err)
	}
	file, overlay := filepath.Join(t.TempDir(), "copies.go"), filepath.Join(t.TempDir(), "overlay.json")
	unseen := fmt.Appendf(source, "\n// %s\n", file)
	place := fmt.Appendf(nil, `{"Replace": {"testdata/copies/copies.go": %q}}`, file)
	if err := errors.Join(os.WriteFile(file, unseen, 0o600), os.WriteFile(overlay, place, 0o600)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "vet", "-overlay", overlay, "./testdata/copies").CombinedOutput()
	if err == nil {
		t.Error("go vet has nothing to say")
	}
	for _, want := range []string{
		`handOver passes lock by value: .*goodput\.Slot`,
		`assignment copies lock value to again: .*goodput\.Slot`,
		`range var j copies lock: .*goodput\.Slot`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("go vet does not say %s:\n%s", want, out)
		}
	}
}

// A slot that is unsampled gives no sample however it ends, and its outcome counts. What the
// resource refused is a drop all the same.
func TestUnsampled(t *testing.T) {
	for _, c := range []struct {
		end     func(*Slot)
		want    Outcome
		dropped uint64
	}{
		{(*Slot).Release, Completed, 0},
		{(*Slot).Abandon, Abandoned, 0},
		{func(s *Slot) { s.Fail(errors.New("broken")) }, Failed, 0},
		{func(s *Slot) { s.Answered(); s.Release() }, Completed, 0},
		{(*Slot).Dropped, Failed, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := fixed(1, 10)
			var none Slot
			none.Unsampled()                                                                            // does nothing
			slot, err := l.AcquireWork(context.Background(), Work{Deadline: time.Now().Add(time.Hour)}) // timed
			if err != nil {
				t.Fatal(err)
			}
			slot.Unsampled()
			time.Sleep(time.Minute)
			c.end(&slot)
			slot.Unsampled()
			time.Sleep(time.Second)
			if again, ok := l.TryAcquire(); ok { // ends the window
				again.Detach()
			}
			s := l.Stats()
			if s.Outcomes[c.want] == 0 || s.Derivation.Samples != 0 || s.Dropped != c.dropped || s.InUse != 0 {
				t.Errorf("%v: %d samples, %d drops, outcomes %v", c.want, s.Derivation.Samples, s.Dropped, s.Outcomes)
			}
			if rate := s.Derivation.Rate; rate > 0 && rate < 1 { // a hold of a minute is a sixtieth a second
				t.Errorf("%v: a rate of %v from a hold that says nothing", c.want, rate)
			}
		})
	}
}

// How long a slot was held, and what of it was the service, is what passed: of a timed one, and
// once it has ended.
func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, refuses := range []bool{false, true} {
			l := New(Config{Limit: limit.Fixed(1), Depth: NoQueue, Observe: refuses})
			if refuses { // the shadow is full
				first, _ := l.Acquire(context.Background())
				defer first.Release()
				if is, would := first.Observed(); !is || would {
					t.Errorf("the first: observed %v, would be refused %v", is, would)
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			slot, err := l.Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Millisecond)
			if slot.Held() != 0 || slot.Service() != 0 {
				t.Errorf("%v of %v before the end", slot.Service(), slot.Held())
			}
			slot.Served()
			time.Sleep(4 * time.Millisecond)
			if got := slot.Service(); got != 3*time.Millisecond {
				t.Errorf("service %v, want 3ms", got)
			}
			slot.Release()
			if got := slot.Held(); got != 7*time.Millisecond {
				t.Errorf("held for %v, want 7ms", got)
			}
			if is, would := slot.Observed(); is != refuses || would != refuses {
				t.Errorf("observed %v, would be refused %v, want %v", is, would, refuses)
			}
			cancel()
		}
		// What the shadow queues is not refused.
		l := New(Config{Limit: limit.Fixed(1), Depth: 1, Observe: true})
		var all [3]Slot
		for i, want := range []bool{false, false, true} {
			all[i], _ = l.Acquire(context.Background())
			if is, would := all[i].Observed(); !is || would != want {
				t.Errorf("%d: observed %v, would be refused %v, want %v", i, is, would, want)
			}
		}
		for i := range all {
			all[i].Release()
		}
		var none Slot
		if is, _ := none.Observed(); is || none.Held() != 0 || none.Service() != 0 {
			t.Error("a zero Slot says something")
		}
	})
}
