package upstream

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"net/url"
	"sync"
	"testing"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// pool returns one of servers that nobody connects to, with the given limits.
func pool(t testing.TB, limits ...int) *Pool {
	t.Helper()
	cfg := config.DefaultUpstream()
	for i, n := range limits {
		u := &url.URL{Scheme: "http", Host: "127.0.0.1:" + string(rune('1'+i))}
		cfg.Servers = append(cfg.Servers, config.Server{URL: u, Limit: n})
	}
	p := New(cfg, slog.New(slog.DiscardHandler))
	t.Cleanup(p.Close)
	return p
}

// in returns what each has in flight.
func (p *Pool) in() (n []int64) {
	for _, m := range *p.all.Load() {
		n = append(n, m.inFlight.Load())
	}
	return n
}

func (p *Pool) server(i int) *server { return (*p.all.Load())[i].server }

// Which server takes the next request, from what each has in flight.
func TestPick(t *testing.T) {
	for _, c := range []struct {
		what   string
		limits []int
		in     []int64
		share  []int64 // nil: all of it
		tried  []int
		want   []bool // who may be picked; nil: nobody
	}{
		{"the least in flight", []int{0, 0, 0}, []int64{3, 2, 4}, nil, nil, []bool{false, true, false}},
		{"those that are alike", []int{0, 0, 0}, []int64{2, 3, 2}, nil, nil, []bool{true, false, true}},
		{"the largest part that is free", []int{10, 40}, []int64{1, 7}, nil, nil, []bool{true, true}}, // 0.2 and 0.2: alike
		{"by limits, not by counts", []int{10, 40}, []int64{2, 7}, nil, nil, []bool{false, true}},
		{"full, and the others too: the one that is least over", []int{2, 4}, []int64{2, 4}, nil, nil, []bool{false, true}},
		{"one without a limit counts as the mean", []int{10, 0, 30}, []int64{5, 9, 20}, nil, nil, []bool{false, true, false}},
		{"one that is out takes nothing", []int{0, 0}, []int64{9, 0}, []int64{full, 0}, nil, []bool{true, false}},
		{"one that begins takes a tenth", []int{0, 0}, []int64{8, 0}, []int64{full, full / 10}, nil, []bool{true, false}},
		{"and no less", []int{0, 0}, []int64{10, 0}, []int64{full, full / 10}, nil, []bool{false, true}},
		{"no server gets it twice", []int{0, 0, 0}, []int64{0, 5, 9}, nil, []int{0}, []bool{false, true, false}},
		{"all are out", []int{0, 0}, []int64{0, 0}, []int64{0, 0}, nil, nil},
		{"all were tried", []int{0, 0}, []int64{0, 0}, nil, []int{0, 1}, nil},
		{"there is one", []int{0}, []int64{100}, nil, nil, []bool{true}},
	} {
		p := pool(t, c.limits...)
		var tried []*server
		for _, i := range c.tried {
			tried = append(tried, p.server(i))
		}
		seen := make([]bool, len(c.limits))
		for range 200 { // two that are alike: one of them never, with a chance of 2^-199
			for i := range c.in {
				p.server(i).inFlight.Store(c.in[i])
				if c.share != nil {
					p.server(i).share.Store(c.share[i])
				}
			}
			s := p.pick(tried)
			for i := range seen {
				if p.server(i) == s {
					seen[i] = true
					if n := s.inFlight.Load(); n != c.in[i]+1 {
						t.Errorf("%s: %d in flight there, want %d", c.what, n, c.in[i]+1)
					}
				}
			}
			if s == nil && c.want != nil || s != nil && c.want == nil {
				t.Fatalf("%s: picked %v", c.what, s)
			}
		}
		for i := range seen {
			if c.want != nil && seen[i] != c.want[i] {
				t.Errorf("%s: picked are %v, want %v", c.what, seen, c.want)
			}
		}
	}
}

// Of servers that are alike none is preferred, wherever they stand in the configuration.
func TestPickPrefersNobody(t *testing.T) {
	p := pool(t, 0, 0, 0, 0, 0)
	p.server(1).share.Store(0)
	const picks = 40_000
	var got [5]int
	for range picks {
		s := p.pick(nil)
		s.inFlight.Add(-1)
		for i := range got {
			if p.server(i) == s {
				got[i]++
			}
		}
	}
	// A quarter each: the standard error is sqrt(picks 3/16) = 87, and five of them happen
	// to none of four in a million runs.
	for i, n := range got {
		want := float64(picks) / 4
		if i == 1 {
			want = 0
		}
		if math.Abs(float64(n)-want) > 5*87 {
			t.Errorf("server %d was picked %d times of %d", i, n, picks)
		}
	}
}

// While everybody who has a slot holds it, all servers are filled by their limits to the last
// slot, whoever races.
func TestPickFillsToTheLimits(t *testing.T) {
	limits := []int{3, 17, 5, 25}
	p := pool(t, limits...)
	const together = 50 // what they sum up to
	done := make(chan struct{})
	for range together {
		go func() {
			p.pick(nil)
			done <- struct{}{}
		}()
	}
	for range together {
		<-done
	}
	sum := int64(0)
	for i, n := range p.in() {
		sum += n
		if n != int64(limits[i]) {
			t.Errorf("in flight %v of %v", p.in(), limits)
		}
	}
	if sum != together {
		t.Errorf("%d in flight, want %d", sum, together)
	}
}

// While no more are in flight than the limits sum up to, no server has more than its limit,
// however fast they come and go.
func TestPickNeverOverfills(t *testing.T) {
	limits := []int{2, 1, 3}
	p := pool(t, limits...)
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for range 200_000 {
				s := p.pick(nil)
				for i, n := range p.in() {
					if n > int64(limits[i]) {
						t.Errorf("%d in flight at server %d of %d", n, i, limits[i])
						return
					}
				}
				s.inFlight.Add(-1)
			}
		})
	}
	all.Wait()
}

func BenchmarkPick(b *testing.B) {
	for name, limits := range map[string][]int{"limits": {10, 20, 30, 40}, "alike": {0, 0, 0, 0}, "one": {0}} {
		b.Run(name, func(b *testing.B) {
			p := pool(b, limits...)
			b.ReportAllocs()
			for b.Loop() {
				p.pick(nil).inFlight.Add(-1)
			}
		})
		b.Run(name+"/busy", func(b *testing.B) {
			p := pool(b, limits...)
			for range 20 {
				p.pick(nil)
			}
			var held [64]*server
			i := rand.IntN(64)
			b.ReportAllocs()
			for b.Loop() {
				if i = (i + 1) & 63; held[i] != nil {
					held[i].inFlight.Add(-1)
				}
				held[i] = p.pick(nil)
			}
		})
	}
}
