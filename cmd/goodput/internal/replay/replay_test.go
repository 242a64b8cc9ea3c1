package replay

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/accesslog"
	"github.com/goodput/goodput/internal/sim"
	"github.com/goodput/goodput/limit"
)

// look opens a file and surveys it.
func look(t *testing.T, name string, o accesslog.Options) (*Survey, *accesslog.Summary) {
	t.Helper()
	log, err := accesslog.Open([]string{name}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	s, err := Look(log)
	if err != nil {
		t.Fatal(err)
	}
	return s, log.Summary()
}

// write writes a log.
func write(t *testing.T, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// azure is the code trace of 2023 with the cost model of its README: 2 slots, and
// callers that wait for 10 s.
func azure(t *testing.T) *Survey {
	s, _ := look(t, "../accesslog/testdata/traces/AzureLLMInferenceTrace_2023_code.csv", accesslog.Options{
		Columns: "arrival=TIMESTAMP,service=0.1ms*ContextTokens+20ms*GeneratedTokens",
	})
	return s
}

// On a real trace, whose arrivals come in bursts (CV 13) and whose work varies by
// three orders of magnitude, the default policy is within a point of the best
// discipline that is blind to size, at every load: it answers in time at most one
// request in a hundred fewer. The bound, which knows every job, is printed beside
// it. There is one trace and no repetition; the standard error of a share of 8,819
// requests, were they independent, is half a point.
func TestAzureTrace(t *testing.T) {
	s := azure(t)
	if s.Used != 8819 || s.Sampled != 8819 {
		t.Fatalf("%d used, %d with a service time", s.Used, s.Sampled)
	}
	for _, load := range []float64{0.65, 1, 2, 3} {
		o := Options{
			Policy: Policy(limit.Fixed(2), 10*time.Second), Slots: 2, Deadline: 10 * time.Second, Load: load, Seed: 1,
			Compare: append([]string{"goodput"}, blind()...),
		}
		o.Depth = s.Rule(2, 10*time.Second)
		results, ceilings, err := s.Run(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := ceilings.Offered / ceilings.Capacity; math.Abs(got-load) > 0.01*load {
			t.Errorf("%v times the capacity is %v", load, got)
		}
		most := ceilings.Clairvoyant * min(ceilings.Offered, ceilings.Capacity) / ceilings.Offered
		ours := share(results[0])
		var row strings.Builder
		for _, r := range results {
			fmt.Fprintf(&row, " %s %.1f", r.Policy, 100*share(r))
			if share(r) > ours+0.01 {
				t.Errorf("%vx: %s answers %.2f %% in time, and we %.2f %%", load, r.Policy, 100*share(r), 100*ours)
			}
			if share(r) > most {
				t.Errorf("%vx: %s is above the bound, %.2f %%", load, r.Policy, 100*most)
			}
		}
		t.Logf("%vx, in time %%: bound %.1f%s", load, 100*most, row.String())
	}
}

// blind are the baselines that can play a trace: all but AIMD, which begins above
// the two slots there are.
func blind() (names []string) {
	for _, n := range sim.Baselines {
		if n != "aimd_min_rtt" {
			names = append(names, n)
		}
	}
	return names
}

func share(r *sim.Result) float64 { return float64(r.Total.InTime) / float64(r.Total.Requests) }

// Who is played, and with which work.
func TestWhoIsPlayed(t *testing.T) {
	line := func(clock, status, total, upstream string) string {
		return fmt.Sprintf(`192.0.2.1 - - [21/Jan/2019:08:00:%s +0000] "GET /a HTTP/1.1" %s 0 "-" "-" %s %s`, clock, status, total, upstream)
	}
	name := write(t,
		line("00", "200", "0.100", "0.080"),
		line("01", "200", "0.000", "0.000"),
		line("02", "304", "0.000", "-"), // answered without the service
		line("03", "499", "2.000", "-"), // left before an answer: it wanted one
		line("04", "101", "60.000", "60.000"),
		line("05", "504", "1.000", "1.000"), // cut off: at least a second
		"nonsense",
	)
	s, sum := look(t, name, accesslog.Options{})
	for _, c := range []struct {
		what      string
		got, want int64
	}{
		{"used", s.Used, 4},
		{"sampled", s.Sampled, 3},
		{"drawn", s.Drawn, 1},
		{"answered", s.Answered, 1},
		{"streams", s.Streams, 1},
		{"lower bounds", s.Floors, 1},
		{"lines", sum.Lines, 7},
		{"skipped", sum.Skipped, 1},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.what, c.got, c.want)
		}
	}
	// 80 ms, next to nothing, and a second at least.
	if m := s.Mean(); m != (1080*time.Millisecond+1)/3 {
		t.Errorf("mean %v", m)
	}
	if v := s.Void(sum); !strings.Contains(v, "3 of 7 lines have a service time: 100 are needed") {
		t.Errorf("void: %q", v)
	}
	notes := strings.Join(s.Notes(sum, []accesslog.Class{{Name: "checkout", Path: "/nope*"}}), "\n")
	for _, want := range []string{
		"Of 7 lines 4 are played: 3 have a service time. 1 was refused, or its caller left", "No request is of class checkout, /nope*.", "1 request was answered without the service",
		"1 upgraded connection is", "1 service time is a lower bound", "Of 1 line no request can be read", "$upstream_response_time",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
}

// What Void refuses to conclude from.
func TestVoid(t *testing.T) {
	sum := &accesslog.Summary{Lines: 1000}
	for _, c := range []struct {
		s    Survey
		want string
	}{
		{Survey{Sampled: 99, last: 1e9}, "100 are needed"},
		{Survey{Sampled: 100}, "one instant"},
		{Survey{Sampled: 100, Drawn: 101, last: 1e9}, "more would be invented"},
		{Survey{Sampled: 100, Drawn: 100, last: 1e9}, ""},
	} {
		if got := c.s.Void(sum); !strings.Contains(got, c.want) || got == "" != (c.want == "") {
			t.Errorf("%+v: %q, want %q", c.s, got, c.want)
		}
	}
}

// Time is stretched or compressed to offer the load, and left alone without one.
func TestLoad(t *testing.T) {
	s := azure(t)
	own := s.Load(2)
	if math.Abs(own-0.98) > 0.005 { // as published for this trace and model
		t.Errorf("the trace offers %.3f times the capacity of two slots, want 0.98", own)
	}
	for _, c := range []struct{ load, factor float64 }{{0, 1}, {own, 1}, {2 * own, 0.5}, {own / 2, 2}} {
		_, factor, err := s.scenario(Options{Policy: Policy(limit.Fixed(2), time.Second), Slots: 2, Load: c.load})
		if err != nil || math.Abs(factor-c.factor) > 1e-9 {
			t.Errorf("load %v: factor %v, %v, want %v", c.load, factor, err, c.factor)
		}
	}
}

// A request of cost 2 holds two slots: half as many can be served.
func TestCostIsLoad(t *testing.T) {
	var lines []string
	for i := range 200 {
		lines = append(lines, fmt.Sprintf(`192.0.2.1 - - [21/Jan/2019:08:%02d:%02d +0000] "GET /%d HTTP/1.1" 200 0 "-" "-" 0.100 0.100`, i/60, i%60, i))
	}
	name := write(t, lines...)
	once, _ := look(t, name, accesslog.Options{})
	twice, _ := look(t, name, accesslog.Options{Classes: []accesslog.Class{{Name: "all", Path: "*", Cost: 2}}})
	if a, b := once.Load(1), twice.Load(1); math.Abs(b-2*a) > 1e-9 || math.Abs(a-200*0.1/199) > 1e-6 {
		t.Errorf("load %v, and %v at a cost of 2", a, b)
	}
	if about := twice.About(Options{Slots: 1}); !strings.Contains(about, "mean service 100ms of 2 slots: 0.20 times") {
		t.Errorf("%s", about)
	}
}

// Classes by path have their own rows, costs and counts; beyond maxClasses they
// share one.
func TestClasses(t *testing.T) {
	s := &Survey{}
	for i := range 2 * maxClasses {
		s.class(fmt.Sprint(i))
	}
	if len(s.classes) != maxClasses || s.classes[maxClasses-1] != other || s.class("1000") != maxClasses-1 || s.class("7") != 7 {
		t.Errorf("%d classes, the last %q", len(s.classes), s.classes[len(s.classes)-1])
	}
	for text, want := range map[string]string{
		"search=/api/search*":               "{search /api/search* 0 0}",
		"search=/api/search*,cost=8,size=2": "{search /api/search* 8 2}",
		"search":                            `"search" is not a class: a name and a path, such as search=/api/search*`,
		"=/x":                               `"=/x" is not a class: a name and a path, such as search=/api/search*`,
		"a=/x,cost=0":                       `"a=/x,cost=0": "cost=0" is out of range: cost and size are 1 to 1048576`,
		"a=/x,weight=1":                     `"a=/x,weight=1": "weight=1" is unknown: cost=N or size=N`,
	} {
		c, err := ParseClass(text)
		if got := fmt.Sprint(c); err == nil && got != want || err != nil && err.Error() != want {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
}

// A stamp that is years off, and work of a year, are what logs hold: the answer is a
// sentence, and sums do not overflow.
func TestTooLongToPlay(t *testing.T) {
	line := func(at time.Time, seconds string) string {
		return fmt.Sprintf(`10.0.0.1 - - [%s] "GET /%d HTTP/1.1" 200 1 "-" "curl" %s`, at.Format("02/Jan/2006:15:04:05 -0700"), at.Unix(), seconds)
	}
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var wrong, slow, plain []string
	for i := range 400 {
		at := start.Add(time.Duration(i) * time.Second)
		slow = append(slow, line(at.AddDate(1, 0, 0), "31000000.000"))
		plain = append(plain, line(at, "0.001"))
		if i == 200 {
			at = at.AddDate(-5, 0, 0)
		}
		wrong = append(wrong, line(at, "0.001"))
	}
	s, sum := look(t, write(t, wrong...), accesslog.Options{})
	if v := s.Void(sum); !strings.Contains(v, "2021-03-01") || !strings.Contains(v, "720h") {
		t.Errorf("five years: %q", v)
	}
	s, sum = look(t, write(t, slow...), accesslog.Options{})
	if s.Mean() != longest || s.Cut != 400 || !strings.Contains(strings.Join(s.Notes(sum, nil), "\n"), "400 requests took 720h0m0s or longer") {
		t.Errorf("%d of a year: mean %v, %q", s.Cut, s.Mean(), s.Notes(sum, nil))
	}
	o := Options{Policy: Policy(limit.Fixed(1000), time.Second), Slots: 1000, Seed: 1, Compare: []string{"reject"}}
	if _, _, err := s.Run(o); err != nil {
		t.Error(err)
	}
	s, _ = look(t, write(t, plain...), accesslog.Options{})
	o.Slots, o.Load = 1, 0.0000001
	if _, _, err := s.Run(o); err == nil || !strings.Contains(err.Error(), "at most 720h0m0s can be played") {
		t.Errorf("stretched: %v", err)
	}
}

// A line of the simulation is a line of the log: its class, its cost, its size, its
// work and its place in time.
func TestTraceIsTheLog(t *testing.T) {
	name := write(t,
		"t,ms,class,cost,size",
		"0,100,a,1,1",
		"1500,200,b,3,7",
		"2000,300,a,1,2",
	)
	s, _ := look(t, name, accesslog.Options{Columns: "arrival=1ms*t,service=1ms*ms,class=class,cost=cost,size=size"})
	tr := s.trace(0.5)
	var got []string
	for j := (sim.Job{}); tr.next(&j); {
		got = append(got, fmt.Sprintf("%v %s %v %d %d", j.At, s.classes[j.Class], j.Service, j.Cost, j.Size))
	}
	if err := tr.close(); err != nil {
		t.Fatal(err)
	}
	want := "[0s a 100ms 1 1 750ms b 200ms 3 7 1s a 300ms 1 2]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// The classes of the result count the requests of each, a seed changes the work that
// is drawn and nothing else, and sizes reach the estimate of the limiter.
func TestResultIsAboutTheLog(t *testing.T) {
	written := func(left int) string {
		lines := []string{"t,ms,class,size,status"}
		for i := range 3000 {
			class, ms, size, status := "small", "10", 1, 200
			if i%3 == 0 {
				class, ms, size = "large", "100", 10
			}
			if i%5 < left {
				ms, status = "", 499 // left without an answer: its work is drawn
			}
			lines = append(lines, fmt.Sprintf("%d,%s,%s,%d,%d", i*4, ms, class, size, status))
		}
		return write(t, lines...)
	}
	name := written(1)
	play := func(columns string, seed uint64) *sim.Result {
		s, _ := look(t, name, accesslog.Options{Columns: columns})
		r, _, err := s.Run(Options{Policy: Policy(limit.Fixed(20), 400*time.Millisecond), Slots: 20, Compare: []string{"goodput"}, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		return r[0]
	}
	const columns = "arrival=1ms*t,service=1ms*ms,class=class,status=status"
	r := play(columns, 1)
	if n := fmt.Sprint(r.Classes[0].Name, r.Classes[0].Requests, r.Classes[1].Name, r.Classes[1].Requests); n != "large1000small2000" {
		t.Errorf("classes: %s", n)
	}
	if other := play(columns, 2); other.Total.Work == r.Total.Work || other.Total.Requests != r.Total.Requests {
		t.Errorf("seed 2: work %v and %v, requests %d and %d", other.Total.Work, r.Total.Work, other.Total.Requests, r.Total.Requests)
	}
	if again := play(columns, 1); again.Total != r.Total {
		t.Error("the same seed, and another result")
	}
	// 10 ms a unit of size, whatever the class: without sizes, the p99 is that of the large.
	name = written(0)
	one, sized := play(columns, 1).Tiers[0].Stats.Derivation, play(columns+",size=size", 1).Tiers[0].Stats.Derivation
	if one.Service < 90*time.Millisecond || sized.Service > 60*time.Millisecond {
		t.Errorf("service p99 %v without sizes and %v with them, want 100ms and that of a request of mean size, 40ms", one.Service, sized.Service)
	}
}

// What is out of order or twice in the log is said.
func TestNotesSayWhatWasMended(t *testing.T) {
	line := func(second int, path string) string {
		return fmt.Sprintf(`192.0.2.1 - - [21/Jan/2019:08:00:%02d +0000] "GET /%s HTTP/1.1" 200 0 "-" "-" 0.100 0.100`, second, path)
	}
	s, sum := look(t, write(t, line(5, "a"), line(2, "b"), line(7, "c"), line(7, "c")), accesslog.Options{Spread: time.Second})
	notes := strings.Join(s.Notes(sum, nil), "\n")
	for _, want := range []string{"1 duplicate line was dropped", "1 line was out of order", "4 arrivals are spread"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
}
