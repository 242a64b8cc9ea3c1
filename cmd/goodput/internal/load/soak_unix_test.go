//go:build unix

package load

import (
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// soakVariable, set to anything, runs a case at the length that its source had.
const soakVariable = "GOODPUT_SOAK"

// A real process is stopped for half of the run: 1 s of 2 s, or 15 s of 30 s. The bounds are
// one-sided: a busy machine makes the freeze longer and the latencies greater, never smaller.
//
// wall clock: the server is another process
func TestC151FrozenServer(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 2 s")
	}
	freeze := time.Second
	if os.Getenv(soakVariable) != "" {
		freeze = 15 * time.Second
	}
	server, url := serverProcess(t)
	c := dial(t, HTTP{URL: url, HTTP2: true})

	go func() {
		time.Sleep(freeze / 2)
		server.Signal(syscall.SIGSTOP)
		time.Sleep(freeze)
		server.Signal(syscall.SIGCONT)
	}()
	p := constant(500, 2*freeze)
	r := offer(t, p, c.Send)
	all := int64(p.Rate * p.Duration.Seconds())
	if r.Completed != all || r.InTime != all {
		t.Errorf("completed %d and in time %d of %d, first error %v", r.Completed, r.InTime, all, r.FirstError)
	}
	// The longest 1 % were due in the first 2 % of the freeze, which is half of the run.
	if p99, _ := r.Latency.Quantile(0.99); p99 < freeze-freeze/50 {
		t.Errorf("p99 %v, want nearly %v", p99, freeze)
	}
	// Half were due in it, so at least 48 % waited for more than 4 % of it.
	if p, _ := r.Latency.Quantile(0.52); p < freeze/25 {
		t.Errorf("only %v at 0.52: about half of the requests were due in the freeze", p)
	}
	t.Logf("void: %q", r.Void())
}

// The tests of this package, twenty times on one processor of a machine that has other things
// to do: none fails for that.
//
// wall clock: the other things
func TestC161NoTestFailsUnderStress(t *testing.T) {
	if os.Getenv(soakVariable) == "" {
		t.Skip("takes two minutes; " + soakVariable + "=1 runs it")
	}
	var done atomic.Bool
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for !done.Load() {
			}
		})
	}
	defer others.Wait()
	defer done.Store(true)
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.count=20", "-test.cpu=1", "-test.failfast")
	again.Env = append(os.Environ(), soakVariable+"=")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
