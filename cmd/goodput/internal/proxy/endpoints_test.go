package proxy

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// A clinic is a service whose endpoints have so many workers each, in one process: what
// comes beyond waits inside, as in front of a pool of connections.
type clinic struct {
	*shop
	mu      sync.Mutex
	workers map[string]chan struct{}
	each    int
}

func (c *clinic) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	free := c.workers[r.URL.Path]
	if free == nil {
		free = make(chan struct{}, c.each)
		c.workers[r.URL.Path] = free
	}
	c.mu.Unlock()
	free <- struct{}{}
	defer func() { <-free }()
	c.shop.ServeHTTP(w, r)
}

// Two endpoints on one listener, with a class each and one server behind both. The
// dependency of one takes 20 times as long as it used to, while three times as many ask for
// it as it could serve when it was well, 60 times as many as it can now. The other one keeps
// 0.98 of the goodput that it has alone.
//
// It is asked 0.6 of what it can do, so that all of it is in time as long as its slots are its
// own, also on a machine that has other work; with GOODPUT_STRESS also three times as much
// as it can do, where goodput is what its workers finish, and the machine must be quiet.
func TestHealthyEndpointKeepsItsGoodput(t *testing.T) {
	loads := []float64{0.6}
	phase := long(t, time.Second)
	if phase > time.Second {
		loads, phase = append(loads, 3), phase/12 // 2 loads, 2 laws, 3 phases
	}
	for name, law := range map[string]limit.Law{"fixed": limit.Fixed(workers), "auto": limit.Auto{From: workers}} {
		for _, load := range loads {
			t.Run(fmt.Sprintf("%s, %.1fx", name, load), func(t *testing.T) {
				s := newShop(func(name string) time.Duration {
					if name == "ill" {
						return 20 * well
					}
					return well
				})
				addr := backend(t, &clinic{shop: s, workers: map[string]chan struct{}{}, each: workers})
				c := newCrowd(t, lanes(t, addr,
					lane{"well", law, 0, 400 * time.Millisecond, "app", false},
					lane{"ill", law, 0, 2 * time.Second, "app", false},
					lane{"rest", limit.Fixed(1), 0, time.Second, "app", true}))
				for try := 1; ; try++ {
					alone := c.goodput(phase, load, false)
					beside := c.goodput(phase, load, true)
					again := c.goodput(phase, load, false)
					c.atRest()
					t.Logf("goodput ratio: alone %.3f, beside the ill one %.3f, alone %.3f", alone, beside, again)
					least := 0.98 * min(alone, again)
					if beside >= least {
						break
					}
					if try == tries {
						t.Errorf("%.3f beside the ill one, want %.3f, in each of %d tries", beside, least, tries)
						break
					}
				}
				if ill := c.proxy.Limiters()[1].Stats(); ill.Outcomes[goodput.Rejected] < ill.Arrivals/2 {
					t.Errorf("the ill one was not overloaded: %v of %d", ill.Outcomes, ill.Arrivals)
				}
			})
		}
	}
}

// tries is how often the machine may have had other work just when both endpoints were asked.
// Without classes the ratio is 0.0 each time.
const tries = 3

// What both endpoints can do while they are well: 4 / 20ms = 200/s.
const (
	workers  = 4
	well     = 20 * time.Millisecond
	capacity = float64(workers) * float64(time.Second/well)
)

// goodput asks for the healthy endpoint, and for the ill one if beside, for half of d until
// the limits stand, and then for d. It returns what the healthy one completed in time, of
// what it was offered or can do.
func (c *crowd) goodput(d time.Duration, load float64, beside bool) float64 {
	c.Helper()
	end := make(chan struct{})
	var fired sync.WaitGroup
	fire := func(load float64, path string) {
		seed := rand.Uint64()
		c.Logf("seed %d for %s", seed, path)
		fired.Go(func() { c.fire(seed, load*capacity, end, path) })
	}
	fire(load, "/well")
	if beside {
		fire(3, "/ill")
	}
	time.Sleep(d / 2)
	lim := c.proxy.Limiters()[0]
	from, at := lim.Stats(), time.Now()
	time.Sleep(d)
	took := time.Since(at)
	close(end)
	fired.Wait() // who arrived has ended
	to := lim.Stats()
	done := float64(to.Outcomes[goodput.Completed] - from.Outcomes[goodput.Completed])
	offered := float64(to.Arrivals - from.Arrivals + uint64(from.Running+from.Waiting))
	if offered == 0 {
		c.Fatal("nothing was offered to the healthy class")
	}
	return done / min(offered, capacity*took.Seconds())
}
