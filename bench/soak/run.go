package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/goodput/goodput/bench/programs"
)

// A stage is a run as it goes on.
type stage struct {
	Run
	begin  time.Time
	addrs  []string // of the servers
	listen string
	policy string // file

	serve    *process
	servers  []*process
	operator *operator
	ledger   *ledger
	tally    *tally
	crowd    *crowd
	rng      *rand.Rand // of what is drawn while it goes on
	variant  int        // in force
	broken   int        // the next of brokenPolicies
	last     *scrape

	restarts  sync.WaitGroup // of servers
	mu        sync.Mutex
	r         *Report
	disturbed []span // in which goodput is not judged
	resets    int    // of the minutes before
}

// A span is a time from the start of the run.
type span struct{ from, to time.Duration }

// Play plays a run. The error is of what could not be done at all; what was seen before is in
// the report, which says so itself.
func Play(ctx context.Context, run Run) (*Report, error) {
	s := &stage{Run: run, rng: rand.New(rand.NewPCG(run.Seed, 1<<32)), r: newReport(run)}
	defer s.stop()
	if err := s.open(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	s.load(ctx, &all)
	err := s.follow(ctx)
	cancel()
	all.Wait()
	s.restarts.Wait()
	s.crowd.leave()
	if err != nil {
		s.r.Broken = err.Error()
	}
	s.end()
	return s.r, nil
}

func newReport(run Run) *Report {
	return &Report{
		Seed: run.Seed, Length: run.Length, Warm: run.Warm, Began: time.Now().UTC(),
		Go: runtime.Version(), Machine: fmt.Sprintf("%s/%s, %d cores", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		Minutes: make([]Minute, int(run.Length/time.Minute)),
	}
}

// open starts the servers, and goodput before them.
func (s *stage) open() error {
	addrs, err := programs.Free(servers + 2)
	if err != nil {
		return err
	}
	s.addrs, s.listen, s.policy = addrs[:servers], addrs[servers], filepath.Join(s.Dir, "policy.yaml")
	for _, addr := range s.addrs {
		p, err := start(exec.Command(s.Self, "as", "server", addr), addr)
		if err != nil {
			return err
		}
		s.servers = append(s.servers, p)
	}
	if _, err := put(s.policy, variants[0].policy(s.listen, s.addrs)); err != nil {
		return err
	}
	access := filepath.Join(s.Dir, "access.log")
	cmd := exec.Command(s.Program, "serve", "--config", s.policy, "--admin", addrs[servers+1],
		"--access-log", access, "--record", filepath.Join(s.Dir, "record"), "--record-size", "32MiB")
	cmd.Stderr = &lines{each: s.heard}
	if s.serve, err = start(cmd, s.listen); err != nil {
		return err
	}
	s.operator, s.ledger = newOperator(addrs[servers+1]), newLedger(access)
	s.tally = newTally(s.Length)
	s.clock()
	s.crowd = newCrowd(s.listen, s.begin, s.tally)
	s.last, err = s.scrape()
	return err
}

// errorsKept bounds the lines of the decision log that are kept: those of level ERROR, of which
// broken policies are 288 a day.
const errorsKept = 1000

// clock begins the time of the run. It is under the lock since goodput may write its log already.
func (s *stage) clock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin = time.Now()
}

// heard is called with each line of the decision log.
func (s *stage) heard(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begin.IsZero() {
		s.minute().Lines++
	}
	if strings.Contains(string(line), `"level":"ERROR"`) && len(s.r.Errors) < errorsKept {
		s.r.Errors = append(s.r.Errors, string(line))
	}
}

// minute is the present one. The caller holds the lock.
func (s *stage) minute() *Minute {
	return &s.r.Minutes[min(int(time.Since(s.begin)/time.Minute), len(s.r.Minutes)-1)]
}

func (s *stage) now() time.Duration { return time.Since(s.begin) }

// load begins what is offered.
func (s *stage) load(ctx context.Context, all *sync.WaitGroup) {
	for class := range s.tally.classes {
		all.Go(func() {
			s.crowd.offer(ctx, rand.New(rand.NewPCG(s.Seed, 1<<33+uint64(class))), rate, func(due time.Duration, rng *rand.Rand) {
				s.crowd.request(due, rng, class)
			})
		})
	}
	all.Go(func() {
		s.crowd.offer(ctx, rand.New(rand.NewPCG(s.Seed, 1<<34)), lastingRate, s.crowd.last)
	})
}

// follow does what the plan says when it says it, and looks at the process in between.
func (s *stage) follow(ctx context.Context) error {
	look := every
	for _, e := range append(plan(s.Seed, s.Length, s.Every), event{s.Length, -1}) {
		for ; look < e.at; look += every {
			if err := s.until(ctx, look); err != nil {
				return err
			}
			if err := s.look(); err != nil {
				return err
			}
		}
		if err := s.until(ctx, e.at); err != nil {
			return err
		}
		if err := s.do(ctx, e.act); err != nil {
			return err
		}
	}
	return nil
}

var errEnded = errors.New("goodput has ended")

// until waits for an instant of the run.
func (s *stage) until(ctx context.Context, at time.Duration) error {
	t := time.NewTimer(at - s.now())
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.serve.ended:
		return fmt.Errorf("%w after %v: %v", errEnded, s.now().Round(time.Second), s.serve.err)
	}
}

// end asks the process to end and reads what it has written.
func (s *stage) end() {
	s.crowd.h1.CloseIdleConnections()
	s.crowd.h2.CloseIdleConnections()
	if err := s.serve.signal(syscall.SIGTERM); err != nil {
		s.r.Drained = err.Error()
	}
	select {
	case <-s.serve.ended:
		if s.serve.err != nil {
			s.r.Drained = s.serve.err.Error()
		}
	case <-time.After(30 * time.Second): // its drain takes 25 s at the most
		s.r.Drained = "it had not ended 30 s after SIGTERM"
	}
	if state := s.serve.cmd.ProcessState; state != nil {
		s.r.CPU = (state.UserTime() + state.SystemTime()).Seconds()
	}
	if err := s.ledger.catchUp(); err != nil {
		s.r.Drained = strings.TrimSpace(s.r.Drained + " " + err.Error())
	}
	s.r.Took = s.now()
	s.r.Told, s.r.Books = s.tally.sum(), s.ledger.b
	s.sum()
}

// stop ends what is left of the processes.
func (s *stage) stop() {
	for _, p := range append(s.servers, s.serve) {
		if p != nil && p.alive() {
			p.kill()
		}
	}
}

// size is how many bytes the files have whose names begin so.
func size(begin string) (n int64) {
	names, _ := filepath.Glob(begin + "*") // the pattern is well formed
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			n += info.Size()
		}
	}
	return n
}
