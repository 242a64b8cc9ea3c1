package goodput

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Failures of other systems: limits that change, tests that prove little, and
// times that are read wrongly.

// knative/serving#9019: a semaphore whose capacity changes stalled or admitted
// too many when the usage equalled the new capacity.
func TestC027LimitChangesWhileBusy(t *testing.T) {
	rng := seeded(t)
	synctest.Test(t, func(t *testing.T) {
		l := fixed(5, 200)
		limitNow, inUse := 5, 0
		now := l.enter()
		l.journal = func(c call) { // under the lock
			switch c.op {
			case "settle":
				inUse += int(c.settlement.Admitted)
				for _, n := range c.settlement.Ended {
					inUse -= int(n)
				}
			case "release":
				inUse--
			case "set limit":
				limitNow = c.n
				return
			case "offer":
				if c.decision.Verdict != 1 {
					return
				}
				inUse++
			case "next":
				if c.waiter == nil {
					return
				}
				inUse++
			default:
				return
			}
			if c.op != "release" && c.op != "settle" && inUse > limitNow {
				t.Errorf("%s: %d in use with a limit of %d", c.op, inUse, limitNow)
			}
		}
		l.leave(now)
		var wg sync.WaitGroup
		for range 100 {
			d := time.Duration(1+rng.IntN(50)) * time.Millisecond
			wg.Go(func() {
				if err := l.Do(context.Background(), func(context.Context) error { time.Sleep(d); return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		for range 40 {
			n := []int{2, 4, 0, 6}[rng.IntN(4)]
			if err := l.SetLimit(n); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			s := l.Stats()
			if s.Waiting > 0 && s.InUse < s.Limit {
				t.Errorf("stalled: %d wait, %d of %d in use", s.Waiting, s.InUse, s.Limit)
			}
			time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
		}
		if err := l.SetLimit(0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if s := l.Stats(); s.InUse != 0 {
			t.Errorf("limit 0: %d in use after everybody had time to end", s.InUse)
		}
		if err := l.SetLimit(6); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		checkEmpty(t, l)
	})
}

// jackc/pgx#2620: a stress test that proves little. So a test of races is run
// against a copy of the code in which a hand-on is left out, and must fail there.
// `make mutants` does the same with more of them.
func TestC028PlantedLeakIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a copy of the package")
	}
	const file, test = "wait.go", "TestC021ReleaseAndCancelAtOnce"
	const handOn = "l.releaseCall(now, admission.End{Cost: w.place.Cost(), Outcome: Abandoned, Share: w.place.Share()})"
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), handOn); n != 1 {
		t.Fatalf("%s has %q %d times, want once", file, handOn, n)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	leaky, overlay := filepath.Join(dir, file), filepath.Join(dir, "overlay.json")
	write(t, leaky, strings.Replace(string(source), handOn, "", 1))
	write(t, overlay, fmt.Sprintf(`{"Replace": {%q: %q}}`, path, leaky))
	out, err := exec.Command("go", "test", "-overlay", overlay, "-run", "^"+test+"$", "-count=1", ".").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the slot has vanished") {
		t.Errorf("%s does not find it: %v\n%s", test, err, out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// grpc/grpc-java#6514: calls that began late showed negative waiting times.
func TestC056DeadlineInThePastOnArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		l := fixed(1, 10)
		slot := mustAcquire(t, l)
		_, err := l.AcquireWork(context.Background(), Work{Deadline: time.Now().Add(-2 * time.Second)})
		var r *Rejection
		if !errors.As(err, &r) || r.Outcome != Expired || r.Waited != 0 || r.Remaining != 0 || r.PredictedWait < 0 {
			t.Errorf("got %+v, want expired on arrival, nothing below 0", r)
		}
		// An arrival in the past or the future counts, and makes nothing negative.
		for _, at := range []time.Duration{-2 * time.Hour, 2 * time.Hour} {
			other, err := l.AcquireWork(WithArrival(context.Background(), time.Now().Add(at)), Work{Exempt: true})
			if err != nil || other.Waited() != 0 {
				t.Errorf("arrival %v: %v, waited %v", at, err, other.Waited())
			}
			other.Release()
		}
		slot.Release()
		s := l.Stats()
		for i := range s.Wait {
			if s.Wait[i].Sum < 0 || s.Wait[i].Count != 0 {
				t.Errorf("waits of nobody: %+v", s.Wait[i])
			}
		}
		checkEmpty(t, l)
	})
}
