package limit_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// A second is what a law is told of one, and what its limit is then.
type second struct {
	what    string
	mean    time.Duration
	peak    int // 0: as many as the limit
	dropped int
	samples int // 0: 100
	want    int
}

// script plays seconds to a law, in windows of 50 ms, and fails where the limit is
// another one. It returns the last word of the law.
func script(t *testing.T, law limit.Law, seconds ...second) string {
	t.Helper()
	now, err := law.Start()
	if err != nil {
		t.Fatal(err)
	}
	state := law.Begin(1)
	for i, s := range seconds {
		if s.samples == 0 {
			s.samples = 100
		}
		if s.peak == 0 {
			s.peak = now
		}
		now = play(state, now, s)
		if now != s.want {
			t.Errorf("%v, second %d, %s: limit %d, want %d (%s)", law, i+1, s.what, now, s.want, state.Why())
		}
	}
	return state.Why()
}

// play hands state a second, most of it in its first window.
func play(state limit.State, now int, s second) int {
	for i := range 20 {
		w := limit.Window{Length: 50 * time.Millisecond}
		if i == 0 {
			w.Samples, w.Mean, w.Own = s.samples, s.mean, s.mean
			w.Ended, w.Dropped = s.samples+s.dropped, s.dropped
		}
		if i == 7 {
			w.Peak = s.peak
		}
		now = state.Next(now, &w).Limit
	}
	return now
}

const msec = time.Millisecond

// Nonsense is refused when it is configured, with one sentence that has the name, the value
// and what is allowed (C041).
func TestPublishedRanges(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		law  limit.Law
		want string // start, or words of the sentence
	}{
		{limit.AIMD{}, "20"},
		{limit.AIMD{From: 10}, "10"},
		{limit.AIMD{From: 500}, "500"},
		{limit.AIMD{Max: 5}, "5"},
		{limit.AIMD{Min: 300}, "300"},
		{limit.AIMD{Min: 1, From: 4, Max: 8}, "4"},
		{limit.AIMD{From: 1000, Max: 200}, "start 1000 of the aimd limit is not within its min and max, 20 to 200"},
		{limit.AIMD{Min: 50, Max: 20}, "min 50 of the aimd limit is above its max 20"},
		{limit.AIMD{Min: 50, From: 20}, "start 20 of the aimd limit is not within"},
		{limit.AIMD{From: -1}, "start -1 of the aimd limit is out of range: 1 to 1048576"},
		{limit.AIMD{Min: -5}, "min -5"},
		{limit.AIMD{Max: limit.Max + 1}, "max 1048577"},
		{limit.AIMD{Backoff: 1}, "backoff 1 of the aimd limit is out of range: 0.5 to 0.99"},
		{limit.AIMD{Backoff: nan}, "backoff NaN"},
		{limit.AIMD{Timeout: -1}, "timeout -1ns of the aimd limit is out of range: 1ms to 1h0m0s"},
		{limit.AIMD{Window: msec}, "window 1ms of the aimd limit is out of range: 100ms to 1h0m0s"},

		{limit.Vegas{}, "20"},
		{limit.Vegas{From: 2000}, "2000"},
		{limit.Vegas{From: 1}, "1"},
		{limit.Vegas{From: 50, Max: 40}, "start 50 of the vegas limit"},
		{limit.Vegas{Min: 30, Max: 20}, "min 30 of the vegas limit is above its max 20"},
		{limit.Vegas{Alpha: nan}, "alpha NaN"},
		{limit.Vegas{Alpha: -1}, "alpha -1"},
		{limit.Vegas{Beta: 1}, "beta 1 of the vegas limit is out of range: 3 to 100"},
		{limit.Vegas{Alpha: 8, Beta: 6}, "beta 6 of the vegas limit is out of range: 8 to 100"},
		{limit.Vegas{Alpha: 8}, "20"},
		{limit.Vegas{Smoothing: inf}, "smoothing +Inf"},
		{limit.Vegas{Smoothing: 2}, "smoothing 2"},
		{limit.Vegas{Probe: -1}, "probe -1"},
		{limit.Vegas{Window: 2 * time.Hour}, "window 2h"},

		{limit.Gradient2{}, "20"},
		{limit.Gradient2{From: 4}, "4"},
		{limit.Gradient2{Min: 40, From: 30}, "start 30 of the gradient2 limit"},
		{limit.Gradient2{Min: 400, Max: 300}, "min 400 of the gradient2 limit"},
		{limit.Gradient2{Queue: -1}, "queue -1"},
		{limit.Gradient2{Tolerance: 0.9}, "tolerance 0.9 of the gradient2 limit is out of range: 1 to 100"},
		{limit.Gradient2{Tolerance: nan}, "tolerance NaN"},
		{limit.Gradient2{Smoothing: -0.1}, "smoothing -0.1"},
		{limit.Gradient2{Long: 5}, "long 5 of the gradient2 limit is out of range: 10 to 1e+06"},
		{limit.Gradient2{Drift: 1.1}, "drift 1.1"},
		{limit.Gradient2{Window: -time.Second}, "window -1s"},
	} {
		n, err := c.law.Start()
		got := fmt.Sprint(n)
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != c.want || err != nil && !strings.Contains(got, c.want) {
			t.Errorf("%#v: %q, want %q", c.law, got, c.want)
		}
		if strings.Count(got, ". ") > 0 || strings.HasSuffix(got, ".") {
			t.Errorf("%q is not one sentence", got)
		}
	}
}

// Two of the same are equal, so a configuration that is read again keeps what was learnt.
func TestPublishedAreComparable(t *testing.T) {
	for _, pair := range [][2]limit.Law{
		{limit.AIMD{From: 5}, limit.AIMD{From: 5}},
		{limit.Vegas{Alpha: 2}, limit.Vegas{Alpha: 2}},
		{limit.Gradient2{Queue: 2}, limit.Gradient2{Queue: 2}},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%#v is not itself", pair[0])
		}
	}
	for want, law := range map[string]limit.Law{"aimd": limit.AIMD{}, "vegas": limit.Vegas{}, "gradient2": limit.Gradient2{}} {
		if got := fmt.Sprint(law); got != want {
			t.Errorf("%#v calls itself %q, want %q", law, got, want)
		}
	}
}

func many(n int, s second) []second { return slices.Repeat([]second{s}, n) }

// Every constant changes what the law does.
func TestPublishedKnobs(t *testing.T) {
	calm := second{mean: 50 * msec}
	slow := second{mean: 100 * msec}
	for _, c := range []struct {
		knob        string
		plain, with limit.Law
		seconds     []second
		plainly     int
		then        int
	}{
		{"From", limit.AIMD{}, limit.AIMD{From: 30}, []second{calm}, 21, 31},
		{"Min", limit.AIMD{}, limit.AIMD{Min: 5}, []second{{mean: 50 * msec, dropped: 1}}, 20, 18},
		{"Max", limit.AIMD{}, limit.AIMD{Max: 22}, []second{calm, calm, calm}, 23, 22},
		{"Backoff", limit.AIMD{Min: 1}, limit.AIMD{Min: 1, Backoff: 0.5}, []second{{mean: 50 * msec, dropped: 1}}, 18, 10},
		{"Timeout", limit.AIMD{Min: 1}, limit.AIMD{Min: 1, Timeout: 80 * msec}, []second{slow}, 21, 18},
		{"Window", limit.AIMD{}, limit.AIMD{Window: 3 * time.Second}, []second{calm, calm, calm}, 23, 21},

		{"From", limit.Vegas{}, limit.Vegas{From: 30}, []second{calm, calm}, 26, 36},
		{"Min", limit.Vegas{}, limit.Vegas{Min: 19}, []second{calm, slow, slow}, 18, 19},
		{"Max", limit.Vegas{}, limit.Vegas{Max: 25}, []second{calm, calm}, 26, 25},
		// 20 x (1 - 50/60) = 3.4: 4 is not below 3, and below 5.
		{"Alpha", limit.Vegas{}, limit.Vegas{Alpha: 5}, []second{calm, {mean: 60 * msec}}, 20, 21},
		// 20 x (1 - 50/80) = 7.5: 8 is above 6, and not above 9.
		{"Beta", limit.Vegas{}, limit.Vegas{Beta: 9}, []second{calm, {mean: 80 * msec}}, 19, 20},
		{"Smoothing", limit.Vegas{}, limit.Vegas{Smoothing: 0.5}, []second{calm, calm}, 26, 23},
		// At once: every second after the first is measured as the shortest.
		{"Probe", limit.Vegas{From: 2, Min: 1}, limit.Vegas{From: 2, Min: 1, Probe: 1}, []second{calm, slow, calm, slow, calm, slow}, 18, 2},
		{"Window", limit.Vegas{}, limit.Vegas{Window: 2 * time.Second}, []second{calm, calm, calm, calm}, 38, 26},

		{"From", limit.Gradient2{}, limit.Gradient2{From: 30}, []second{calm, calm}, 21, 31},
		// From 24, with g 0.5, 0.5, 0.57, 0.67, 0.75 and then 0.76: 22.4, 21.0, 19.9 and so on.
		{"Min", limit.Gradient2{}, limit.Gradient2{Min: 10}, append(many(5, calm), many(8, second{mean: 10 * time.Second})...), 20, 18},
		// The long average is 50 ms and hardly moves, or is 200 ms soon.
		{"Long", limit.Gradient2{From: 100}, limit.Gradient2{From: 100, Long: 10}, append(many(10, calm), many(20, second{mean: 200 * msec})...), 20, 107},
		{"Max", limit.Gradient2{}, limit.Gradient2{Max: 21}, []second{calm, calm, calm}, 22, 21},
		{"Queue", limit.Gradient2{}, limit.Gradient2{Queue: 20}, []second{calm}, 20, 24},
		{"Tolerance", limit.Gradient2{From: 100}, limit.Gradient2{From: 100, Tolerance: 1}, []second{calm, slow}, 101, 96},
		{"Smoothing", limit.Gradient2{}, limit.Gradient2{Smoothing: 1}, []second{calm}, 20, 24},
		{"Window", limit.Gradient2{}, limit.Gradient2{Window: 2 * time.Second}, []second{calm, calm, calm, calm}, 23, 21},
	} {
		for i, law := range []limit.Law{c.plain, c.with} {
			now, err := law.Start()
			if err != nil {
				t.Fatal(err)
			}
			state := law.Begin(1)
			for _, s := range c.seconds {
				s.samples = 100
				s.peak = 1000
				now = play(state, now, s)
			}
			if want := []int{c.plainly, c.then}[i]; now != want {
				t.Errorf("%s of %v, %+v: %d, want %d (%s)", c.knob, law, law, now, want, state.Why())
			}
		}
	}
}

// Fewer than ten that end in a second say nothing, and are not added to the next.
func TestPublishedSampleFloor(t *testing.T) {
	for _, law := range []limit.Law{limit.AIMD{}, limit.Vegas{}, limit.Gradient2{Queue: 20}} {
		now, _ := law.Start()
		state := law.Begin(1)
		for range 100 {
			now = play(state, now, second{mean: 50 * msec, samples: 9, peak: 100})
		}
		if now != 20 {
			t.Errorf("%v moved to %d by nine samples a second", law, now)
		}
		for range 3 {
			now = play(state, now, second{mean: 50 * msec, samples: 10, peak: 100})
		}
		if now == 20 {
			t.Errorf("%v did not move with ten samples a second", law)
		}
	}
}

// Where the work needs less than half of the limit, the limit stays: it says nothing about
// what more would do, and is there when the work comes back.
func TestPublishedWhileIdle(t *testing.T) {
	for _, law := range []limit.Law{limit.AIMD{}, limit.Vegas{}, limit.Gradient2{}} {
		now, _ := law.Start()
		state := law.Begin(1)
		for range 1000 {
			now = play(state, now, second{mean: 50 * msec, samples: 100, peak: 9})
		}
		if now != 20 {
			t.Errorf("%v moved to %d, with 9 of 20 in use", law, now)
		}
	}
}

// A limit that someone sets is where the law goes on from, within its bounds.
func TestPublishedFollowWhatIsSet(t *testing.T) {
	for _, law := range []limit.Law{
		limit.AIMD{Min: 10, Max: 90}, limit.Vegas{Min: 10, Max: 90}, limit.Gradient2{Min: 10, Max: 90},
	} {
		state := law.Begin(1)
		for _, c := range [][2]int{{50, 50}, {-7, 10}, {math.MinInt, 10}, {95, 90}, {math.MaxInt, 90}, {11, 11}} {
			if n := state.Next(c[0], &limit.Window{Length: msec}).Limit; n != c[1] {
				t.Errorf("%v: set to %d, it is %d, want %d", law, c[0], n, c[1])
			}
		}
	}
}
