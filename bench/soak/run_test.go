package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput/bench/programs"
)

// TestMain plays a server, as the command does: a restart starts this program again.
func TestMain(m *testing.M) {
	if args := os.Args; len(args) == 4 && args[1] == "as" && args[2] == "server" {
		fmt.Fprintln(os.Stderr, Serve(args[3]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// What goodput writes before the time of the run begins is of no minute, and no race.
func TestLinesBeforeTheTimeBegins(t *testing.T) {
	s := &stage{r: &Report{Minutes: make([]Minute, 1)}}
	s.heard([]byte("early"))
	var all sync.WaitGroup
	all.Go(func() {
		for range 100 {
			s.heard([]byte(`{"level":"INFO"}`))
		}
	})
	s.clock()
	all.Wait()
	before := s.r.Minutes[0].Lines
	s.heard([]byte("late"))
	if got := s.r.Minutes[0].Lines; got != before+1 || got > 101 {
		t.Errorf("%d lines, %d before the last", got, before)
	}
}

// A server that is down when the run is interrupted stays down: nothing is started behind stop,
// and nothing changes the report behind Play.
func TestARestartEndsWithTheRun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := programs.Free(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, interrupted := range []bool{true, false} {
		s := &stage{Run: Run{Self: self}, rng: rand.New(rand.NewPCG(39, 1)), addrs: addrs, r: &Report{Minutes: make([]Minute, 1)}, tally: newTally(time.Minute)}
		s.clock()
		s.begin = s.begin.Add(-20 * time.Second)
		s.crowd = newCrowd("", s.begin, s.tally)
		first, err := start(exec.Command(self, "as", "server", addrs[0]), addrs[0])
		if err != nil {
			t.Fatal(err)
		}
		s.servers = []*process{first}
		ctx, cancel := context.WithCancel(context.Background())
		begun := s.now()
		s.restart(ctx, 0)
		if interrupted {
			cancel()
		}
		s.restarts.Wait()
		cancel()
		again := s.servers[0] != first
		if d := s.disturbed; len(d) != 1 || d[0].from < begun-time.Second || d[0].from > begun || d[0].to-d[0].from < downLeast+settling || d[0].to-d[0].from > downMost+settling+2*time.Second {
			t.Errorf("%v is not judged, of a server that is away for %v to %v and comes back in %v", d, downLeast, downMost, settling)
		}
		s.stop()
		if again == interrupted || s.r.Minutes[0].Restarts == 1 == interrupted || s.crowd.inFlight() > 1 || len(s.r.Wrong) > 0 {
			t.Errorf("interrupted %v: started again %v; %+v", interrupted, again, s.r)
		}
	}
}
