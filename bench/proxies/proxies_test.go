package proxies

import (
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/bench/live"
)

// What the clients print, as their versions in Debian 12 print it.
func TestClientsAreRead(t *testing.T) {
	wrk := `Running 2s test @ http://127.0.0.1:1/fast
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     3.13ms    2.37ms  36.37ms   81.07%
    Req/Sec    21.77k     1.72k   24.57k    65.00%
  43306 requests in 2.00s, 53.27MB read
`
	failed := wrk + "  Socket errors: connect 1, read 2, write 3, timeout 4\n  Non-2xx or 3xx responses: 306\nRequests/sec: 21653\n"
	h2load := `finished in 2.00s, 19715.00 req/s, 21.09MB/s
requests: 19715 total, 19779 started, 19715 done, 19705 succeeded, 10 failed, 7 errored, 2 timeout
status codes: 19600 2xx, 5 3xx, 10 4xx, 100 5xx
`
	for name, c := range map[string]struct {
		read func(string) (closedLoop, error)
		out  string
		want closedLoop
	}{
		"wrk":          {readWrk, wrk, closedLoop{43306, 43306, 0}},
		"wrk, failing": {readWrk, failed, closedLoop{43306, 43000, 10}},
		"h2load":       {readH2load, h2load, closedLoop{19715, 19605, 9}},
	} {
		if got, err := c.read(c.out); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
	if _, err := readWrk("unable to connect"); err == nil {
		t.Error("wrk that said nothing was read")
	}
	if _, err := readH2load("unable to connect"); err == nil {
		t.Error("h2load that said nothing was read")
	}
}

func TestProcessorTime(t *testing.T) {
	line := "4711 (a) b (c) S 1 4711 4711 0 -1 4194560 1 2 3 4 150 25 7 3 20 0 5 0 1 2 3"
	if got, err := statTime(line); err != nil || got != 1850*time.Millisecond {
		t.Errorf("%v, %v, want 1.85s", got, err)
	}
	for _, line := range []string{"", "4711 (a) S 1", strings.Replace(line, " 150 ", " x ", 1)} {
		if _, err := statTime(line); err == nil {
			t.Errorf("%q was read", line)
		}
	}
	us, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	self := &process{cmd: &exec.Cmd{Process: us}}
	if _, err := self.cpu(); err != nil {
		t.Error(err)
	}
	if n, err := self.resident(); err != nil || n < 1<<20 {
		t.Errorf("we hold %d bytes, %v", n, err)
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want Spread
	}{
		{nil, Spread{}},
		{[]float64{2}, Spread{2, 2, 2}},
		{[]float64{3, 1, 2}, Spread{2, 1, 3}},
		{[]float64{4, 1, 3, 2}, Spread{2.5, 1, 4}},
	} {
		if got := SpreadOf(c.v); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.v, got, c.want)
		}
	}
}

// A number that lies on its bound is reached, one beyond it is not, and one that was not
// measured is not.
func TestNumbersAreJudged(t *testing.T) {
	costs := func(bare, ours, caddy, refusal, floor float64) *Report {
		return &Report{Costs: []*Cost{
			{Bare, HTTP1, Pass, []float64{bare, bare}, nil},
			{Goodput, HTTP1, Pass, []float64{ours, ours}, nil},
			{Caddy, HTTP1, Pass, []float64{caddy, caddy}, nil},
			{Goodput, HTTP1, Refusal, []float64{refusal, refusal}, nil},
			{Floor, HTTP1, Refusal, []float64{floor, floor}, nil},
		}}
	}
	overload := func(load, ours, rival float64, void string) *Report {
		return &Report{Overloads: []*Overload{
			{Result: &live.Result{Contestant: Goodput, Load: load, Quick: ours, Void: void}},
			{Result: &live.Result{Contestant: "haproxy", Load: load, Quick: rival}},
			{Result: &live.Result{Contestant: Bare, Load: load, Quick: 0.1}},
			{Result: &live.Result{Contestant: Caddy, Load: load, Quick: 1, Void: "it was not a run"}},
		}}
	}
	waiting := func(bytes float64) *Report {
		return &Report{Memories: []*Memory{{Goodput, HTTP1, 0, 5000, bytes}, {Floor, HTTP1, 0, 5000, 16000}}}
	}
	// Of three rounds, in which chance favours another rival each, one is better on the whole.
	rounds := func() *Report {
		r := &Report{}
		for round, rivals := range [][2]float64{{0.95, 1.05}, {0.95, 0.90}, {0.96, 0.90}} {
			for i, name := range []string{"haproxy", "nginx"} {
				r.Overloads = append(r.Overloads, &Overload{Result: &live.Result{Contestant: name, Load: 1.5, Quick: rivals[i]}, Round: round})
			}
			r.Overloads = append(r.Overloads, &Overload{Result: &live.Result{Contestant: Goodput, Load: 1.5, Quick: 0.95}, Round: round})
		}
		return r
	}
	for name, c := range map[string]struct {
		r      *Report
		missed string // letters of the numbers in their order: m missed, r reached
	}{
		"all is well":                 {costs(10000, 9300, 8000, 31000, 50000), "rrrr"},
		"dearer than bare":            {costs(10000, 9200, 8000, 31000, 50000), "mrrr"},
		"no better than Caddy":        {costs(10000, 9300, 9000, 31000, 50000), "rmrr"},
		"a refusal costs a third":     {costs(10000, 9300, 8000, 27900, 40000), "rrmr"},
		"net/http refuses no cheaper": {costs(10000, 9300, 8000, 27900, 30000), "rrrr"},
		"much cheaper":                {costs(10000, 9300, 8000, 31000, 60000), "rrrm"},
		"1.5x":                        {overload(1.5, 0.90, 0.90, ""), "r"},
		"3x":                          {overload(3, 0.97, 0.97, ""), "rr"},
		"3x, and a rival":             {overload(3, 0.97, 0.99, ""), "mr"},
		"3x, and capacity":            {overload(3, 0.96, 0.96, ""), "rm"},
		"10x":                         {overload(10, 0.95, 0.95, ""), "rr"},
		"10x, void":                   {overload(10, 0.99, 0.95, "it was late"), "mm"},
		"the best of all rounds":      {rounds(), "r"},
		"memory":                      {waiting(24576), "r"},
		"more memory":                 {waiting(24577), "m"},
	} {
		c.r.Judge()
		got := ""
		for _, n := range c.r.Numbers {
			if n.Missed() {
				got += "m"
			} else {
				got += "r"
			}
		}
		if got != c.missed {
			t.Errorf("%s: %s, want %s: %+v", name, got, c.missed, c.r.Numbers)
		}
	}
}

// Two loads tell what a pass and a refusal cost, in whatever order they are played.
func TestMarginalCost(t *testing.T) {
	play := func(load float64, passes, refusals int, cpu float64) *Overload {
		n := passes + refusals
		return &Overload{Result: &live.Result{Contestant: Goodput, Load: load, Refused: float64(refusals) / float64(n)}, Offered: n, CPU: cpu}
	}
	r := &Report{Overloads: []*Overload{play(10, 1000, 9000, 1000*100e-6+9000*20e-6), play(3, 900, 2100, 900*100e-6+2100*20e-6)}}
	if pass, refusal := r.Marginal(Goodput); len(pass) != 1 || math.Abs(pass[0]-100e-6) > 1e-9 || math.Abs(refusal[0]-20e-6) > 1e-9 {
		t.Errorf("%v and %v, want 100us and 20us", pass, refusal)
	}
	r.Overloads[1].CPU = 1 // the smaller load took more than the larger: no cost of a refusal makes that
	if pass, refusal := r.Marginal(Goodput); len(pass) != 0 || len(refusal) != 0 {
		t.Errorf("%v and %v of nonsense", pass, refusal)
	}
	r.Overloads[1].Round = 1
	if pass, refusal := r.Marginal(Goodput); len(pass) != 0 || len(refusal) != 0 {
		t.Errorf("%v and %v of one load in each round", pass, refusal)
	}
}

// The files name the limits where there are any, and nothing of them where there are none.
func TestFilesSayTheLimit(t *testing.T) {
	dir := t.TempDir()
	limits := map[string]string{Caddy: "unhealthy_request_count 60", "nginx": "limit_conn all 60;", "haproxy-long": "ge 480 }", "haproxy-short": "ge 150 }"}
	write := func(c Contestant, slots int) string {
		file := dir + "/conf"
		s := Setting{Dir: dir, H1: "127.0.0.1:1", H2: "127.0.0.1:2", Upstream: "127.0.0.1:3", Slots: slots}
		if err := s.write(file, c.config); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, c := range Limiting(60) {
		if want := limits[c.Name]; c.config != "" && !strings.Contains(write(c, 60), want) {
			t.Errorf("%s: %q is not in its file", c.Name, want)
		}
	}
	for _, c := range Passing() {
		for _, word := range []string{"limit_conn all", "unhealthy", "maxconn 0", "deny"} {
			if c.config != "" && strings.Contains(write(c, 0), word) {
				t.Errorf("%s: %q is in its file", c.Name, word)
			}
		}
	}
}
