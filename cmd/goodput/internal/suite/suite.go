// Package suite plays laws of the concurrency limit against scenarios, beside an oracle: what
// of the goodput that a limit of the true size has is left when the limit has to be
// found?
//
// All laws run in the same core, with the same queue in front and the same arrivals and work,
// so that the law is the only difference; that is the fairest to them, as most libraries
// have no queue. Door Reject runs the others as those libraries do, refusing at once.
//
// Every run begins cold, at the start of the law and with the load there is, and counts from the first
// request unless the scenario says otherwise. A run is a pure function of scenario, law and
// seed, so runs that are played at the same time change nothing.
package suite

import (
	"fmt"
	"slices"
	"sync"

	"github.com/goodput/goodput/internal/sim"
)

// A Door is what stands before the limit of a rival.
type Door uint8

const (
	Queue  Door = iota // the queue of our core, as before our own law
	Reject             // nothing: who gets no slot is refused at once
)

// Doors are the words for them.
var Doors = []string{"queue", "reject"}

// Options choose what is played. The zero value is all of it.
type Options struct {
	Quick  bool     // fewer scenarios, shorter and with fewer seeds
	Laws   []string // of Laws; Fixed and Auto are played in any case. Default all
	Only   []string // names of scenarios, default all
	Door   Door
	Seed   uint64 // of the first run, default FirstSeed
	Repeat int    // runs of each law and scenario, default as many as the scenario says

	Workers int    // runs at the same time, default 1
	Done    func() // after each run, from any of them
}

// Name is that of the suite.
const Name = "adaptive"

// FirstSeed is none of those with which the constants of a law were chosen.
const FirstSeed = 101

// A Suite is what Run has played.
type Suite struct {
	Quick bool
	Door  Door
	Laws  []string
	Cases []Case
	Rows  []Row // of each scenario one per law, in the order of both

	Requests uint64 // that were simulated
}

// Row returns that of scenario i and law k.
func (s *Suite) Row(i, k int) *Row { return &s.Rows[i*len(s.Laws)+k] }

// law returns the index of a law, or -1.
func (s *Suite) law(name string) int { return slices.Index(s.Laws, name) }

// Jobs returns how many runs the options are.
func (o Options) Jobs() (int, error) {
	s, err := o.choose()
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range s.Cases {
		n += len(s.Laws) * o.repeat(&s.Cases[i])
	}
	return n, nil
}

func (o *Options) repeat(c *Case) int {
	if o.Repeat > 0 {
		return o.Repeat
	}
	return c.Repeat
}

// choose returns the suite before anything is played.
func (o *Options) choose() (*Suite, error) {
	s := &Suite{Quick: o.Quick, Door: o.Door, Laws: []string{Fixed, Auto}}
	for _, name := range o.Laws {
		if !slices.Contains(Laws, name) {
			return nil, fmt.Errorf("law %q is unknown: one of %v", name, Laws)
		}
		if !slices.Contains(s.Laws, name) {
			s.Laws = append(s.Laws, name)
		}
	}
	if len(o.Laws) == 0 {
		s.Laws = Laws
	}
	all := cases(o.Quick)
	for _, name := range o.Only {
		i := slices.IndexFunc(all, func(c Case) bool { return c.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("scenario %q is unknown: one of %v", name, Names(o.Quick))
		}
		s.Cases = append(s.Cases, all[i])
	}
	if len(o.Only) == 0 {
		s.Cases = all
	}
	return s, nil
}

// Run plays the suite. The error is about the options.
func Run(o Options) (*Suite, error) {
	s, err := o.choose()
	if err != nil {
		return nil, err
	}
	runs := make([][]outcome, len(s.Cases)*len(s.Laws)) // by scenario and law, then by seed
	for i := range runs {
		runs[i] = make([]outcome, o.repeat(&s.Cases[i/len(s.Laws)]))
	}
	if err := s.play(&o, runs); err != nil {
		return nil, err
	}
	for i := range s.Cases {
		of := runs[i*len(s.Laws):][:len(s.Laws)]
		oracle := together(of[0])
		for k := range s.Laws {
			s.Rows = append(s.Rows, s.Cases[i].row(s.Laws[k], together(of[k]), oracle))
			s.Requests += s.Rows[len(s.Rows)-1].requests
		}
	}
	return s, nil
}

// play fills in runs, as many at once as there are workers: they share nothing.
func (s *Suite) play(o *Options, runs [][]outcome) (err error) {
	seed := o.Seed
	if seed == 0 {
		seed = FirstSeed
	}
	var wg sync.WaitGroup
	var once sync.Once
	slots := make(chan struct{}, max(o.Workers, 1))
	for i := range runs {
		c, law := &s.Cases[i/len(s.Laws)], s.Laws[i%len(s.Laws)]
		for k := range runs[i] {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				wrong := c.play(law, o.Door, seed+uint64(k), &runs[i][k])
				if wrong != nil {
					once.Do(func() { err = fmt.Errorf("scenario %s, law %s: %w", c.Name, law, wrong) })
				}
				if o.Done != nil {
					o.Done()
				}
			})
		}
	}
	wg.Wait()
	return err
}

// play plays one run.
func (c *Case) play(law string, door Door, seed uint64, into *outcome) error {
	scenario, err := c.with(law, door)
	if err != nil {
		return err
	}
	scenario.Bins = bins(scenario.Length)
	r, err := sim.Run(scenario, seed)
	if err != nil {
		return err
	}
	*into = c.keep(r, seed)
	return nil
}
