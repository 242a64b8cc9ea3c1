package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/term"

	"github.com/goodput/goodput/cmd/goodput/internal/scenario"
	"github.com/goodput/goodput/internal/sim"
)

// leastRequests is how many must have come for an answer: of fewer than a hundred
// none is the 99th percentile.
const leastRequests = 100

// fewest returns the requests of the run that had fewest.
func fewest(runs []*sim.Result) uint64 {
	n := runs[0].Total.Requests
	for _, r := range runs {
		n = min(n, r.Total.Requests)
	}
	return n
}

// play runs each policy of f with each seed, as many at once as there are
// processors: runs share nothing, so their order changes nothing.
func play(f *scenario.File) (runs [][]*sim.Result, err error) {
	seeds := f.Seeds()
	show := countRuns(len(f.Compare) * len(seeds))
	defer show.clear()
	var wg sync.WaitGroup
	var once sync.Once
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	runs = make([][]*sim.Result, len(f.Compare))
	for i := range f.Compare {
		runs[i] = make([]*sim.Result, len(seeds))
		for k, seed := range seeds {
			slots <- struct{}{}
			wg.Go(func() {
				r, wrong := sim.Run(f.Play(i), seed)
				if wrong != nil {
					once.Do(func() { err = wrong })
				}
				runs[i][k] = r
				<-slots
				show.done()
			})
		}
	}
	wg.Wait()
	return runs, err
}

// A runCount shows on a terminal how many runs are done. It is erased at the end.
type runCount struct {
	mu   sync.Mutex
	n    int
	of   int
	live bool
}

func countRuns(of int) *runCount {
	c := &runCount{of: of, live: term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb"}
	c.show()
	return c
}

func (c *runCount) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	c.show()
}

func (c *runCount) show() {
	if c.live {
		fmt.Fprintf(os.Stderr, "\r%d of %d runs", c.n, c.of)
	}
}

func (c *runCount) clear() {
	if c.live {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}
