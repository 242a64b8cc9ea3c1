package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// taking is how long a policy may take until it is in force, or refused.
const taking = 5 * time.Second

// do performs one act. The error is of a run that cannot go on.
func (s *stage) do(ctx context.Context, a act) error {
	switch a {
	case hangup, post:
		return s.another(ctx, a == hangup)
	case breakHup, breakPost:
		return s.spoil(ctx, a == breakHup)
	case restart:
		s.restart(ctx, s.rng.IntN(servers))
	case blackout:
		for i := range servers {
			s.restart(ctx, i)
		}
	case burst:
		s.crowd.burst(rand.New(rand.NewPCG(s.rng.Uint64(), 0)), wildEach)
	case stopLoad:
		return s.takeRest()
	}
	return nil
}

// another puts another policy in force, and checks that it is.
func (s *stage) another(ctx context.Context, hup bool) error {
	next := (s.variant + 1 + s.rng.IntN(len(variants)-1)) % len(variants)
	sum, err := put(s.policy, variants[next].policy(s.listen, s.addrs))
	if err != nil {
		return err
	}
	s.variant = next
	if hup {
		if err := s.ledger.moved(); err != nil {
			return err
		}
	}
	taken := s.reload(ctx, hup, func(st state) bool { return st.Policy.SHA256 == sum })
	if hup && taken {
		if err := s.rotated(); err != nil {
			return err
		}
	}
	s.count(func(m *Minute) {
		if taken {
			m.Reloads++
		} else {
			m.Missed++
		}
	})
	return nil
}

// rotated reads the rest of the access log that was moved, once there is a new one.
func (s *stage) rotated() error {
	for end := time.Now().Add(taking); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(s.ledger.file); err == nil {
			return s.ledger.done() // who has opened the new one does not write to the old one
		}
	}
	return fmt.Errorf("there is no new access log %v after SIGHUP", taking)
}

// spoil offers a broken policy and checks that the one before stays in force. The good file is
// put back: whoever reads it next must find it.
func (s *stage) spoil(ctx context.Context, hup bool) error {
	good := variants[s.variant].policy(s.listen, s.addrs)
	before, err := s.operator.state()
	if err != nil {
		return err
	}
	if _, err := put(s.policy, good+brokenPolicies[s.broken%len(brokenPolicies)]); err != nil {
		return err
	}
	s.broken++
	refused := s.reload(ctx, hup, func(st state) bool {
		return st.Policy.ReloadFailed != "" && st.Policy.SHA256 == before.Policy.SHA256
	})
	s.count(func(m *Minute) {
		if refused {
			m.Refused++
		} else {
			m.Missed++
		}
	})
	_, err = put(s.policy, good)
	return err
}

// reload has the policy read again and waits until the state is as it must be then.
func (s *stage) reload(ctx context.Context, hup bool, as func(state) bool) bool {
	if hup {
		if err := s.serve.signal(syscall.SIGHUP); err != nil {
			return false
		}
	} else if _, err := s.operator.reload(ctx); err != nil {
		return false
	}
	for end := time.Now().Add(taking); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if st, err := s.operator.state(); err == nil && as(st) {
			return true
		}
	}
	return false
}

func (s *stage) count(f func(*Minute)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.minute())
}

// restart kills a server, and starts it again on the same port after a while, unless the run is over
// by then. It is counted as in flight, so that no rest begins before; and Play waits for it.
func (s *stage) restart(ctx context.Context, i int) {
	down := downLeast + time.Duration(s.rng.Int64N(int64(downMost-downLeast)))
	s.disturb(span{s.now() - time.Second, s.now() + down + settling}) // requests that were in it are from before
	s.mu.Lock()
	p := s.servers[i]
	s.mu.Unlock()
	p.kill()
	s.restarts.Add(1)
	s.crowd.run(func() {
		defer s.restarts.Done()
		if !sleep(ctx, down) {
			return
		}
		p, err := start(exec.Command(s.Self, "as", "server", s.addrs[i]), s.addrs[i])
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			s.r.Wrong = append(s.r.Wrong, Finding{s.now(), CritChaos, fmt.Sprintf("server %d did not start again: %v", i, err)})
			return
		}
		s.servers[i] = p
		s.minute().Restarts++
	})
}

func (s *stage) disturb(d span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disturbed = append(s.disturbed, d)
}

// look takes a sample and checks what must hold at each instant.
func (s *stage) look() error {
	sample, now, err := s.sample()
	if err != nil {
		return err
	}
	if err := s.ledger.catchUp(); err != nil {
		return err
	}
	resets := s.tally.sum().Resets()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.r.Samples = append(s.r.Samples, sample)
	s.r.Record = max(s.r.Record, size(filepath.Join(s.Dir, "record")))
	s.minute().Resets += resets - s.resets
	s.resets = resets
	for _, wrong := range now.unbalanced() {
		s.find(CritCounters, wrong)
	}
	for _, wrong := range now.fallen(s.last) {
		s.find(CritNeverFall, wrong)
	}
	s.last = now
	if n := len(s.r.Samples); n%6 == 0 {
		m := s.r.Minutes[max(0, int(s.now()/time.Minute)-1)]
		s.Say("%v: %.1f MiB resident, %d goroutines, %d files; %+v; clients %+v", s.now().Round(time.Second), float64(sample.Resident)/(1<<20), sample.Goroutines, sample.Files, m, s.tally.sum())
	}
	return nil
}

// findings bounds what is kept of what must not be: the first tell the story.
const findings = 100

// find notes something that must not be. The caller holds the lock.
func (s *stage) find(what, said string) {
	if len(s.r.Wrong) < findings {
		s.r.Wrong = append(s.r.Wrong, Finding{s.now(), what, said})
	}
}

func (s *stage) sample() (Sample, *scrape, error) {
	m, err := s.scrape()
	if err != nil {
		return Sample{}, nil, err
	}
	resident, err := s.serve.resident()
	if err != nil {
		return Sample{}, nil, err
	}
	files, err := s.serve.files()
	return Sample{
		At: s.now(), Resident: resident, Heap: int64(m.values[heapInUse]),
		Goroutines: int(m.values[goroutinesNow]), Files: files,
	}, m, err
}
