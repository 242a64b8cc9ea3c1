package soak

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A source of random numbers of which each takes a while: whoever draws from it is late.
type slow struct {
	rand.Source
	each time.Duration
}

func (s slow) Uint64() uint64 {
	time.Sleep(s.each)
	return s.Source.Uint64()
}

func slowly(each time.Duration) *rand.Rand { return rand.New(slow{rand.NewPCG(1, 1), each}) }

// How late a request was sent is told: here drawing one takes 180 ms, and one is due each millisecond.
func TestALateLoadIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := played(t)
		ctx, cancel := contextOf(time.Second)
		defer cancel()
		s.crowd.offer(ctx, slowly(60*time.Millisecond), 1000, func(time.Duration, *rand.Rand) {})
		synctest.Wait()
		s.r.Took = time.Second
		s.sum()
		late := s.tally.late // sorted, by sum
		if late[0] < 170*time.Millisecond || late[0] > 180*time.Millisecond || s.r.LateMost != late[len(late)-1] || s.r.LateP99 != s.r.LateMost {
			t.Errorf("%v, late by %v at the most, %v at the 99th percentile", late, s.r.LateMost, s.r.LateP99)
		}
		if s.r.Busy != 1 || s.r.Seconds[0].Late != s.r.LateMost {
			t.Errorf("%+v, %d busy seconds", s.r.Seconds, s.r.Busy)
		}
	})
}

// What the clients saw is summed up by class, second and deadline, over the seconds that are judged.
func TestTheSumOfARun(t *testing.T) {
	s, _ := played(t)
	s.Length, s.Warm, s.r.Took = 4*time.Second, time.Second, time.Minute
	s.disturbed = []span{{3 * time.Second, 4 * time.Second}}
	for _, x := range []seen{
		{due: 500 * time.Millisecond, took: time.Second, end: ok, deadline: shortDeadline},  // in the warm-up
		{due: 3500 * time.Millisecond, took: time.Second, end: ok, deadline: shortDeadline}, // disturbed
		{due: 2 * time.Second, took: time.Second, end: ok, deadline: shortDeadline, work: 80, held: 100},
		{due: 2 * time.Second, took: objective + 1, end: ok, deadline: shortDeadline, work: 10, held: 100},
		{due: 2 * time.Second, took: 3*time.Second + 1, end: ok, deadline: longDeadline},
		{due: 1 * time.Second, took: time.Millisecond, end: refused, deadline: shortDeadline},
		{due: 2 * time.Second, took: time.Millisecond, end: ok, deadline: shortDeadline, leaves: true},
		{due: 1 * time.Second, took: 2 * time.Second, end: ok, deadline: deadlineCap, class: 1, work: time.Second, held: 2 * time.Second},
	} {
		s.tally.add(x)
	}
	s.sum()
	plain := Class{Name: classPlain, Seconds: 2, Offered: 4, InTime: 2, Speed: 0.45, Of: []Quantiles{
		{shortDeadline, 2, time.Second, objective + 1}, {longDeadline, 1, 3*time.Second + 1, 3*time.Second + 1},
	}}
	auto := Class{Name: classAuto, Seconds: 2, Offered: 1, InTime: 1, Speed: 0.5, Of: []Quantiles{{deadlineCap, 1, 2 * time.Second, 2 * time.Second}}}
	if got, want := fmt.Sprintf("%+v", s.r.Classes), fmt.Sprintf("%+v", []Class{plain, auto}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	want := []Second{
		{Offered: [2]int{1, 0}, InTime: [2]int{1, 0}},
		{Judged: true, Offered: [2]int{1, 1}, InTime: [2]int{0, 1}, Above: [2]int{0, 1}},
		{Judged: true, Offered: [2]int{3, 0}, InTime: [2]int{2, 0}, Above: [2]int{2, 0}},
		{Offered: [2]int{1, 0}, InTime: [2]int{1, 0}},
	}
	if !slices.Equal(s.r.Seconds, want) {
		t.Errorf("%+v, want %+v", s.r.Seconds, want)
	}
}

// Whatever is left at rest is named, wherever it is.
func TestWhatIsLeftAtRestIsNamed(t *testing.T) {
	s, a := played(t)
	left := func() []string {
		t.Helper()
		left, err := s.busy()
		if err != nil {
			t.Fatal(err)
		}
		return left
	}
	if got := left(); got != nil {
		t.Errorf("at rest there is %q", got)
	}
	for _, key := range atRestSeries {
		a.series[key] = 3
		if got, want := left(), []string{key + " is 3"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		a.series[key] = 0
	}
	for _, field := range []string{"in_use", "running", "waiting", "waiting_cost", "waiting_bytes"} {
		a.limiters[1][field] = 2
		if got, want := left(), []string{"class auto: " + field + " is 2"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		a.limiters[1][field] = 0
	}
}

// At rest all who count are compared with one another, and what is dropped is counted.
func TestWhoCountsIsCompared(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*stage, *admin)
		says []string
	}{
		{"nothing", func(*stage, *admin) {}, nil},
		{"the identity", func(_ *stage, a *admin) { a.series[`goodput_arrivals_total{limiter="plain"}`]++ }, []string{"class plain: 8 arrivals"}},
		{"the log and the metrics", func(_ *stage, a *admin) {
			a.series[`goodput_arrivals_total{limiter="auto"}`]++
			a.series[`goodput_requests_total{limiter="auto",outcome="completed",reason=""}`]++
		}, []string{"class auto: the access log has 5 that are completed, the metrics 6"}},
		{"the log and the clients", func(s *stage, _ *admin) { s.tally.told = Told{Sent: 13, OK: 12, Refused: 1} }, []string{"requests: the log has 12, clients were told so 13", "completed or late: the log has 11"}},
		{"the lines", func(_ *stage, a *admin) { a.series[`goodput_request_log_lines_total{log="access"}`]++ }, []string{"the access log has 12 lines, the metrics say 13"}},
	} {
		s, a := played(t)
		c.do(s, a)
		var out Rest
		if err := s.settle(&out); err != nil {
			t.Fatal(err)
		}
		ok := len(out.Differs) == len(c.says)
		for i := range c.says {
			ok = ok && strings.HasPrefix(out.Differs[i], c.says[i])
		}
		if !ok {
			t.Errorf("%s: %q, want %q", c.name, out.Differs, c.says)
		}
		if out.Heap != 1<<20 || out.Gorout != 92 || out.Files == 0 || out.Told != s.tally.told || out.Lines != 12 || s.r.Dropped != 0 {
			t.Errorf("%s: %+v, %d dropped", c.name, out, s.r.Dropped)
		}
	}
	s, a := played(t)
	a.series[`goodput_request_log_dropped_total{log="access"}`], a.series[`goodput_request_log_dropped_total{log="record"}`] = 1, 2
	for range 2 {
		if err := s.settle(new(Rest)); err != nil || s.r.Dropped != 3 {
			t.Errorf("%d are dropped, %v", s.r.Dropped, err)
		}
	}
	if want := []Outcome{{"auto", "completed", "", 5}, {"plain", "completed", "", 6}, {"plain", "rejected", "queue_full", 1}}; !slices.Equal(s.r.Outcomes, want) {
		t.Errorf("%v, want %v", s.r.Outcomes, want)
	}
}

// A rest is ten seconds of which a second on either side is not judged, and no more. What goes away
// late, comes back, or never goes is told.
func TestARest(t *testing.T) {
	for _, c := range []struct {
		name         string
		look         func(int, map[string]any)
		empty, lasts time.Duration
		left         string
	}{
		{"nothing is left", func(int, map[string]any) {}, 0, restTime - 3*time.Second, ""},
		{"it goes away after 2 s", func(n int, l map[string]any) { l["in_use"] = count(n <= 100) }, 2 * time.Second, restTime - 3*time.Second, ""},
		{"it goes away after 5 s", func(n int, l map[string]any) { l["in_use"] = count(n <= 250) }, 5 * time.Second, restTime - 3*time.Second, ""},
		{"it comes back", func(n int, l map[string]any) { l["in_use"] = count(n == 3) }, 0, restTime - 3*time.Second, "in_use"},
		{"it never goes", func(_ int, l map[string]any) { l["waiting"] = 1 }, emptying, restTime - 3*time.Second, "waiting"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, a := played(t)
			time.Sleep(20 * time.Second)
			a.looked = func(n int) { c.look(n, a.limiters[0]) }
			if err := s.takeRest(); err != nil {
				t.Fatal(err)
			}
			r := s.r.Rests[0]
			if r.At != 20*time.Second || r.Empty < c.empty || r.Empty > c.empty+50*time.Millisecond || r.Took < c.lasts || r.Took > restTime || r.Stayed < staying/2 || r.Lines != 12 {
				t.Errorf("%s: %+v", c.name, r)
			}
			if met := atRest(s.r).Met; met != (c.left == "") || len(r.Left) != count(!met) || !met && !strings.Contains(r.Left[0], c.left) {
				t.Errorf("%s: met %v, left %q", c.name, met, r.Left)
			}
			if want := []span{{19 * time.Second, 31 * time.Second}}; !slices.Equal(s.disturbed, want) || s.crowd.paused.Load() {
				t.Errorf("%s: %v, want %v; paused %v", c.name, s.disturbed, want, s.crowd.paused.Load())
			}
		})
	}
}

// A look keeps what it saw, and says what must not be so that the criterion of it is missed.
func TestALook(t *testing.T) {
	s, a := played(t)
	if err := os.WriteFile(filepath.Join(s.Dir, "record.1"), make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, resets := range []int{3, 5} { // of all so far
		s.tally.told.Left = resets
		if err := s.look(); err != nil {
			t.Fatal(err)
		}
	}
	if x := s.r.Samples[1]; s.r.Minutes[0].Resets != 5 || s.r.Record != 1000 || x.Goroutines != 92 || x.Heap != 1<<20 || x.Resident < 1<<20 || x.Files == 0 || len(s.r.Wrong)+len(s.r.Unseen) > 0 {
		t.Errorf("%+v", s.r)
	}
	for _, c := range []struct {
		key, crit, says string
		by              float64
	}{
		{`goodput_arrivals_total{limiter="plain"}`, CritCounters, "class plain: 8 arrivals", 1},
		{`goodput_request_duration_seconds_count{limiter="auto"}`, CritNeverFall, "was 6 and is 5", -1},
	} {
		a.series[c.key] += c.by
		if err := s.look(); err != nil {
			t.Fatal(err)
		}
		r := fine()
		r.Wrong = s.r.Wrong
		if got := said(t, r, c.crit); got.Met || !got.Known || !strings.Contains(got.Said, c.says) {
			t.Errorf("%+v", got)
		}
	}
}

// count is 1 if there is one.
func count(is bool) int {
	if is {
		return 1
	}
	return 0
}
