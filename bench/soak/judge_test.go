package soak

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// fine is a run as it must be.
func fine() *Report {
	r := &Report{Length: 4 * time.Minute, Warm: time.Minute, Took: 4*time.Minute + time.Second, Minutes: make([]Minute, 4)}
	for i := range r.Minutes {
		r.Minutes[i] = Minute{Reloads: 2, Refused: 1, Restarts: 1, Resets: resetsLeast, Lines: linesMost}
	}
	for at := time.Duration(0); at < r.Length; at += every {
		r.Samples = append(r.Samples, Sample{At: at, Resident: 60 << 20, Heap: 30 << 20, Goroutines: 100, Files: 50})
	}
	r.Errors = []string{`{"level":"ERROR","msg":"reload failed: the configuration until now stays in force","err":"x"}`}
	r.Rests = []Rest{{At: 3 * time.Minute, Empty: time.Second, Stayed: staying, Took: restTime, Lines: 1000}}
	r.Told = Told{Sent: 12000, OK: 10000, Refused: 1000, Failed: 500, Lost: 500, Hung: 200}
	r.Books.Outcomes = map[string]map[string]int{classPlain: {"rejected": 1}, classAuto: {"expired": 1}}
	r.Calm = &Calm{Requests: calmLeast}
	for sec := range int(r.Length / time.Second) {
		x := Second{Offered: [2]int{224, 224}, InTime: [2]int{100, 100}} // 0.95 x 240 x 0.98 = 223.4
		if at := time.Duration(sec) * time.Second; at >= 3*time.Minute && at <= 3*time.Minute+restTime {
			x = Second{} // nobody asks at rest
		}
		r.Seconds = append(r.Seconds, x)
	}
	r.Classes = []Class{{Name: classPlain, Seconds: 100, Offered: 24000, InTime: 19000, Speed: 1, Of: []Quantiles{{shortDeadline, 18000, objective / 2, objective}, {deadlineCap, 1000, objective, 2 * objective}}}}
	return r
}

func TestAFineRunIsMet(t *testing.T) {
	cs := Judge(fine())
	for _, c := range cs {
		if !c.Met {
			t.Errorf("%s is not met: %s", c.Name, c.Said)
		}
	}
	if len(cs) != 16 || Missed(cs, false) != nil || Missed(cs, true) != nil {
		t.Errorf("%d criteria, missed %v and %v", len(cs), Missed(cs, false), Missed(cs, true))
	}
}

// Each is a run with one thing wrong, and the criterion that must say so, and no other.
func TestEachCriterionCanFail(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*Report)
		fails string
		says  string
	}{
		{"the process died", func(r *Report) { r.Broken = "goodput has ended" }, CritRan, "has ended"},
		{"too short", func(r *Report) { r.Took = r.Length - 1 }, CritRan, "of 4m0s"},
		{"cut by its drain", func(r *Report) { r.Drained = "exit status 1" }, CritRan, "exit status 1"},
		{"an error in the log", func(r *Report) { r.Errors = []string{"panic"} }, CritRan, "panic"},
		{"a minute without a restart", func(r *Report) { r.Minutes[2].Restarts = 0 }, CritChaos, "minute 3 had 2 reloads, 0 restarts"},
		{"a minute without a reload", func(r *Report) { r.Minutes[0].Reloads = 0 }, CritChaos, "minute 1 had 0 reloads"},
		{"few resets", func(r *Report) { r.Minutes[3].Resets-- }, CritChaos, "59 resets"},
		{"a server that stays away", func(r *Report) { r.Wrong = []Finding{{0, CritChaos, "no server"}} }, CritChaos, "no server"},
		{"memory 6 % above", func(r *Report) { last(r, func(s *Sample) { s.Resident += s.Resident * 6 / 100 }) }, CritMemory, "1.060 of it"},
		{"memory that grows by 1 MiB a look", func(r *Report) {
			for i := range r.Samples {
				r.Samples[i].Resident += int64(i) << 20
			}
		}, CritMemory, "of it, 1.05 at the most"},
		{"goroutines", func(r *Report) { last(r, func(s *Sample) { s.Goroutines = 106 }) }, CritLeaks, "106.0 goroutines: 1.060"},
		{"files", func(r *Report) { last(r, func(s *Sample) { s.Files = 53 }) }, CritLeaks, "53.0 open files: 1.060"},
		{"a slot that is not given back", func(r *Report) { r.Rests[0].Left = []string{"class plain: 1 in use"} }, CritRest, "1 in use"},
		{"counters at a scrape", func(r *Report) { r.Wrong = []Finding{{0, CritCounters, "3 arrivals, 2 ended"}} }, CritCounters, "3 arrivals"},
		{"counters at rest", func(r *Report) { r.Rests[0].Differs = []string{"the access log has 1"} }, CritCounters, "the access log has 1"},
		{"lines dropped", func(r *Report) { r.Dropped = 1 }, CritCounters, "1 lines of the logs were dropped"},
		{"lines of nonsense", func(r *Report) { r.Books.Bad = 2 }, CritCounters, "2 cannot be read"},
		{"a counter that fell", func(r *Report) { r.Wrong = []Finding{{0, CritNeverFall, "x was 2 and is 1"}} }, CritNeverFall, "x was 2"},
		{"a reload that was not taken", func(r *Report) { r.Minutes[1].Missed = 1 }, CritReloads, "otherwise: 1"},
		{"a log that is flooded", func(r *Report) { r.Minutes[1].Lines++ }, CritLog, "361 lines in minute 2"},
		{"at rest it came back", func(r *Report) { r.Rests[0].Stayed = staying/2 - 1 }, CritRest, "stayed so for 1s"},
		{"1.1 times", func(r *Report) { r.Seconds[7].Offered[0] -= 200 }, CritOffered, "plain 223.1/s"},
		{"nobody is sent anything", func(r *Report) { clear(r.Seconds) }, CritOffered + " " + CritServed, "0.0/s"},
		{"everybody is answered 502, or hangs", func(r *Report) {
			for i := range r.Seconds {
				r.Seconds[i].InTime[1] = 0
			}
		}, CritServed, "auto 0.0/s"},
		{"a class that serves less than half", func(r *Report) { r.Seconds[9].InTime[0]-- }, CritServed, "100.0/s is the least"},
		{"nobody is refused", func(r *Report) { r.Told.Refused = 0 }, CritRefused, "0 of 12000"},
		{"few are refused", func(r *Report) { r.Told.Refused = 999 }, CritRefused, "999 of 12000"},
		{"a class of which nobody is refused", func(r *Report) { r.Books.Outcomes[classAuto]["expired"] = 0 }, CritRefused, "auto 0 in"},
		{"one hangs", func(r *Report) { r.Calm.Hung = 1 }, CritHangs, "1 in calm"},
		{"one is cut", func(r *Report) { r.Calm.Lost = 1 }, CritLosses, "1 cut and 0 other"},
		{"one is answered 502", func(r *Report) { r.Calm.Failed = 1 }, CritLosses, "0 cut and 1 other"},
		{"no calm", func(r *Report) { r.Calm.Requests-- }, CritHangs + " " + CritLosses, "of 11999 requests"},
		{"goodput", func(r *Report) { r.Classes[0].InTime = 18999 }, CritGoodput, "0.950 in 100 s"},
		{"few seconds", func(r *Report) {
			r.Classes[0] = Class{Seconds: 49, Offered: 49, InTime: 49, Speed: 1, Of: r.Classes[0].Of}
		}, CritGoodput, "1.000 in 49 s"},
		{"p99", func(r *Report) { r.Classes[0].Of[0].P99++ }, CritP99, "the objective is 1s"},
	} {
		r := fine()
		c.spoil(r)
		cs := Judge(r)
		apart := c.fails == CritGoodput || c.fails == CritP99
		if decides := len(Missed(cs, false)) > 0; decides == apart || len(Missed(cs, apart)) != len(strings.Fields(c.fails)) {
			t.Errorf("%s: missed %v and apart %v", c.name, Missed(cs, false), Missed(cs, true))
		}
		for _, x := range cs {
			switch {
			case x.Met == slices.Contains(strings.Fields(c.fails), x.Name):
				t.Errorf("%s: %s is met: %v; %s", c.name, x.Name, x.Met, x.Said)
			case !x.Met && !strings.Contains(x.Said, c.says):
				t.Errorf("%s: %q does not say %q", c.name, x.Said, c.says)
			}
		}
		if page := Page(r, cs); !strings.Contains(page, "| "+strings.Fields(c.fails)[0]+" | **not met**") {
			t.Errorf("%s: the page does not say that %s is not met", c.name, c.fails)
		}
	}
}

// last changes the samples of the last half.
func last(r *Report, f func(*Sample)) {
	for i := range r.Samples {
		if r.Samples[i].At >= r.Warm+(r.Length-r.Warm)/2 {
			f(&r.Samples[i])
		}
	}
}

// What nobody has seen is not certified.
func TestNothingSeenIsNothingMet(t *testing.T) {
	for _, c := range Judge(new(Report)) {
		if c.Met && c.Name != CritRan { // a run of 0 s has ended
			t.Errorf("%s is met by a run that saw nothing: %s", c.Name, c.Said)
		}
	}
}

// The samples of the warm-up are in no half.
func TestWarmUpIsNotJudged(t *testing.T) {
	r := fine()
	for i := range r.Samples {
		if r.Samples[i].At < r.Warm {
			r.Samples[i].Resident = 1 << 40
		}
	}
	if h, most, n := r.halves(resident); h != [2]float64{60, 60} || most != 60 || n != [2]int{9, 9} {
		t.Errorf("halves %v, at the most %v, of %v samples", h, most, n)
	}
}

// A run of before has not measured all: what it has not is not met, and the page says which.
func TestWhatWasNotMeasuredIsNotMet(t *testing.T) {
	r := fine()
	r.Calm, r.Seconds, r.Rests[0].Stayed = nil, nil, 0
	cs := Judge(r)
	want := []string{CritRest, CritOffered, CritServed, CritHangs, CritLosses}
	if got := Unknown(cs); !slices.Equal(got, want) || Missed(cs, false) != nil {
		t.Errorf("unknown %v, want %v; missed %v", got, want, Missed(cs, false))
	}
	for _, c := range cs {
		if c.Met && !c.Known {
			t.Errorf("%s is met and was not measured", c.Name)
		}
	}
	page := Page(r, cs)
	for _, says := range []string{"**Not measured in this run: " + strings.Join(want, ", ") + "**", "| " + CritHangs + " | **not measured** | 200 hung in all"} {
		if !strings.Contains(page, says) {
			t.Errorf("the page does not say %q", says)
		}
	}
	if strings.Contains(page, "All that must hold is met") {
		t.Error("the page says that all is met")
	}
}

// What nobody could have seen is not met either: each is a run that lacks what a criterion goes by.
func TestBlindnessIsNotMet(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*Report)
		of    string
		says  string
	}{
		{"no error line, though policies were broken", func(r *Report) { r.Errors = nil }, CritRan, "nothing at level ERROR of 4 broken policies"},
		{"no decision log in a minute", func(r *Report) { r.Minutes[1].Lines = 0 }, CritLog, "in minute 2"},
		{"no memory", func(r *Report) { each(r, func(s *Sample) { s.Resident = 0 }) }, CritMemory, "a mean of 0.0 MiB"},
		{"no goroutines", func(r *Report) { each(r, func(s *Sample) { s.Goroutines = 0 }) }, CritLeaks, "a mean of 0.0 goroutines"},
		{"no open files", func(r *Report) { each(r, func(s *Sample) { s.Files = 0 }) }, CritLeaks, "a mean of 0.0 open files"},
		{"an access log without lines", func(r *Report) { r.Rests[0].Lines = 0 }, CritCounters, "an access log without lines"},
		{"a name that is not there", func(r *Report) { r.Unseen = []Finding{{0, CritRest, "no x"}} }, CritRest, "no x"},
		{"the same, judged apart", func(r *Report) { r.Unseen = []Finding{{0, CritP99, "no x"}} }, CritP99, "no x"},
	} {
		r := fine()
		c.spoil(r)
		cs := Judge(r)
		if got := Unknown(cs); !slices.Equal(got, []string{c.of}) || len(Missed(cs, false))+len(Missed(cs, true)) > 0 {
			t.Errorf("%s: unknown %v, want %s; missed %v", c.name, got, c.of, Missed(cs, false))
		}
		for _, x := range cs {
			if x.Name == c.of && (x.Met || !strings.Contains(x.Said, c.says)) {
				t.Errorf("%s: met %v, %q does not say %q", c.name, x.Met, x.Said, c.says)
			}
		}
	}
}

// What is missed stays missed, with what was not there beside it.
func TestAMissIsNotHidden(t *testing.T) {
	r := fine()
	r.Rests[0].Left = []string{"one that runs"}
	r.Unseen = []Finding{{0, CritRest, "no x"}}
	cs := Judge(r)
	if c := cs[4]; !slices.Equal(Missed(cs, false), []string{CritRest}) || !strings.Contains(c.Said, "one that runs") || !strings.Contains(c.Said, "no x") {
		t.Errorf("missed %v, unknown %v: %+v", Missed(cs, false), Unknown(cs), c)
	}
}

// A class without answers has no p99, whatever that of the other is.
func TestP99IsOfEachClass(t *testing.T) {
	r := fine()
	r.Classes = append(r.Classes, Class{Name: classAuto, Seconds: 100, Offered: 24000, InTime: 20000, Speed: 1})
	if c := p99(r); c.Met || !strings.Contains(c.Said, "auto had no answers") {
		t.Errorf("%+v", c)
	}
}

func each(r *Report, f func(*Sample)) {
	for i := range r.Samples {
		f(&r.Samples[i])
	}
}

// The page has what whoever made the run says of it.
func TestThePageHasTheNote(t *testing.T) {
	r := fine()
	r.Note = "Something else ran beside it."
	if page := Page(r, Judge(r)); !strings.Contains(page, "\n\nSomething else ran beside it.\n\n## The process") {
		t.Error("the note is not between the criteria and what was measured")
	}
}

// The page says how long the run was, and what is shorter than an hour is not taken for one.
func TestThePageSaysTheLength(t *testing.T) {
	for _, c := range []struct {
		length time.Duration
		title  string
		hour   bool
	}{
		{time.Minute, "# A minute under", false},
		{3 * time.Minute, "# 3 minutes under", false},
		{time.Hour, "# An hour under", true},
		{90 * time.Minute, "# 90 minutes under", true},
		{2 * time.Hour, "# 2 hours under", true},
	} {
		r := fine()
		r.Length = c.length
		page := Page(r, Judge(r))
		if !strings.HasPrefix(page, c.title) || strings.Contains(page, "it is not the hour") == c.hour {
			t.Errorf("%v: %.200s", c.length, page)
		}
	}
}
