package figures

import (
	"slices"
	"strings"
	"testing"

	"github.com/goodput/goodput/bench/virtual"
)

// A run with every part: what is measured is judged, what is lost is said, and what cannot be
// measured here is marked.
func TestRender(t *testing.T) {
	r, err := Load(complete(t))
	if err != nil {
		t.Fatal(err)
	}
	text, err := Render(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		// In process.
		"| goodput at 3x, deadlines of 2 s | at least 0.990 | 0.995 | met | virtual |",
		"a limit that finds itself, from cold: 0.980",
		"Where we lose: at 1x lifo/x has 0.015 more",
		"| rivals that reach all of it | at most 0 | 0 | met | virtual |",
		// What a request costs: 12 of 10 in the first pass, 13 of 11, 11 of 9.
		"| admit and release with a fixed limit, of x/sync's semaphore | at most 1.300 | 1.200 (1.182 to 1.222) | met | hot |",
		"xsync admits and releases in 0.833 of the time of goodput",
		// The core.
		"**goodput at 1.5x, the worst of nine scenes**: 0.980, at least 0.990 (fixed, 60 slots). No reason is known; it was met before.",
		"**goodput behind the best known discipline, the worst of the scenes below**: 0.020, at most 0.010 (1 slot, exponential of 50 ms, 1.5x, callers that leave after 400ms; 1 of 1 scenes miss it).",
		"Where we lose by more than a point: 1 slot, exponential work of 50 ms, at 1.5x, by 2.0 points.",
		"| requests per second of one processor, 60 slots at 0.9x and 3x | at least 2,000,000 | 2,500,000 | met | core |",
		"| a | **MISSED** | b |",
		// Over HTTP.
		"| the same over real HTTP | at most 2 s | 0.500 s | met | live |",
		"- cold 3x, kratos-bbr: it rained",
		"| kratos-bbr | 0.000 | 0.000 | never |",
		// Proxies: 97 of 250 of the time.
		"| processor time of a refusal in a closed loop over HTTP/1.1, of that of a pass | at most 0.300 | 0.388 | **MISSED** | proxies |",
		"The cheapest refusal that net/http knows",
		"over HTTP/1.1 haproxy passes a request for 0.32 of what goodput uses",
		"at 3x haproxy-short answers 0.985 within 400 ms, the better of ours 0.980",
		"| goodput at 3x, that finds them, of what the slots can do | at least 0.970 | 0.960 | **MISSED** | proxies |",
		// Elsewhere.
		"**These were measured once from public source, elsewhere than this run, and cannot be reproduced here**",
		"| go-concurrency-limits, Vegas | virtual | 0.47 |",
		"| `demo --load 10` | goodput |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	for _, peer := range []string{"sentinel", "goresilience", "jobqueue", "backpressure"} {
		if at := strings.Index(text, peer); at < strings.Index(text, "## Measured elsewhere") {
			t.Errorf("%s is among what was measured here", peer)
		}
	}
	// A table has as many cells in each line.
	cells := 0
	for i, line := range strings.Split(text, "\n") {
		switch n := strings.Count(line, "|"); {
		case !strings.HasPrefix(line, "|"):
			cells = 0
		case cells == 0:
			cells = n
		case n != cells:
			t.Errorf("line %d has %d cells, its head %d: %s", i+1, n-1, cells-1, line)
		}
	}
}

// A rival that has all of it but one number does not reach it; one that has all does.
func TestReaches(t *testing.T) {
	r, err := Load(complete(t))
	if err != nil {
		t.Fatal(err)
	}
	if !r.reaches(told) || r.reaches(auto) || r.reaches("chan/try") || r.reaches("lifo/x") || r.reaches("nobody") {
		t.Error("only what is told the slots reaches all of it here")
	}
	rows := r.Virtual.Data.Rows
	for i := range rows {
		if rows[i].Contestant == "lifo/x" {
			rows[i].No50 = 0.5
		}
	}
	if !r.reaches("lifo/x") {
		t.Error("lifo/x has all of it")
	}
	// Without scenes of 400 ms, what is answered within them counts: none.
	for i := range rows {
		if rows[i].Contestant == "lifo/x" && strings.HasPrefix(rows[i].Scene, "deadline") {
			rows[i].Contestant = "gone"
		}
	}
	if r.reaches("lifo/x") {
		t.Error("lifo/x answers nothing within 400 ms")
	}
}

// Every scene that is shown is played, once, and none that is not.
func TestScenes(t *testing.T) {
	shown := append([]string{stall}, steps...)
	for _, e := range edges {
		shown = append(shown, e.name)
	}
	for _, s := range shownScenes {
		shown = append(shown, s.names...)
	}
	for _, name := range shown {
		n := 0
		for _, part := range Scenes() {
			if strings.Contains(name, part) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("scene %q is played %d times", name, n)
		}
	}
	for _, s := range virtual.Scenes() {
		for _, part := range Scenes() {
			if strings.Contains(s.Name, part) && !slices.Contains(shown, s.Name) {
				t.Errorf("scene %q is played and not shown", s.Name)
			}
		}
	}
	for _, name := range shown {
		if !slices.ContainsFunc(virtual.Scenes(), func(s virtual.Scene) bool { return s.Name == name }) {
			t.Errorf("scene %q is shown, and nobody plays it", name)
		}
	}
}
