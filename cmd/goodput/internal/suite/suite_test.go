package suite

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// play runs a suite or fails.
func play(t *testing.T, o Options) *Suite {
	t.Helper()
	s, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The quick suite is small: what it simulates is bounded, whatever machine it runs on. At
// about a million requests a second and core, 20 million are 20 s on one core, and the 240 million
// of all of it 120 s on two.
func TestQuickIsSmall(t *testing.T) {
	total := 0.0
	for _, c := range cases(true) {
		total += requests(&c) * float64(c.Repeat)
	}
	if all := total * float64(len(Laws)); all > 20e6 {
		t.Errorf("the quick suite simulates %.1f million requests, at most 20", all/1e6)
	}
	total = 0
	for _, c := range cases(false) {
		total += requests(&c) * float64(c.Repeat)
	}
	if all := total * float64(len(Laws)); all > 240e6 {
		t.Errorf("the suite simulates %.0f million requests, at most 240", all/1e6)
	}
}

// requests is what the arrivals of a run of c are, on average, without retries.
func requests(c *Case) float64 {
	n := 0.0
	for _, class := range c.Scene.Classes {
		rate, last := class.Arrivals.Rate, time.Duration(0)
		for _, change := range class.Arrivals.Changes {
			n += rate * (change.At - last).Seconds()
			rate, last = change.Rate, change.At
		}
		n += rate * (c.Scene.Length - last).Seconds()
	}
	return n
}

// Every scenario of the issue is there once, with a reason, and its oracle is one.
func TestCases(t *testing.T) {
	for _, quick := range []bool{false, true} {
		var names []string
		for _, c := range cases(quick) {
			if slices.Contains(names, c.Name) {
				t.Errorf("two scenarios are called %s", c.Name)
			}
			names = append(names, c.Name)
			if c.Why == "" || len(c.Name) >= nameWidth || c.Repeat < 1 {
				t.Errorf("%s: reason %q, %d seeds: it takes a reason, a seed, and a name of less than %d letters", c.Name, c.Why, c.Repeat, nameWidth)
			}
			for _, law := range append(slices.Clone(Laws), broken) {
				for door := range Doors {
					s, err := c.with(law, Door(door))
					if err == nil {
						err = s.Validate()
					}
					rival := law != Fixed && law != Auto
					if alone := s.Tiers[0].Policy.Baseline != nil; alone != (rival && Door(door) == Reject) {
						t.Errorf("%s, law %s before %s: refuses at once: %v", c.Name, law, Doors[door], alone)
					}
					if err != nil {
						t.Errorf("%s, law %s before %s: %v", c.Name, law, Doors[door], err)
					}
				}
			}
		}
		all := Names(false)
		for _, name := range names {
			if !slices.Contains(all, name) {
				t.Errorf("%s is in the quick suite alone", name)
			}
		}
	}
}

// few are scenarios that are cheap and of each kind: steady, a step, a fleet is not.
var few = []string{"load-0.5x", "slots-4", "step-60-20-60"}

// Two runs say the same, byte for byte, however many run at once.
func TestSameAgain(t *testing.T) {
	var said []string
	for _, workers := range []int{1, 4} {
		s := play(t, Options{Quick: true, Only: few, Repeat: 1, Workers: workers})
		var b bytes.Buffer
		if err := s.JSON(&b, "program", "command"); err != nil {
			t.Fatal(err)
		}
		if err := s.Text(&b, 80, []string{"vegas"}); err != nil {
			t.Fatal(err)
		}
		said = append(said, b.String())
	}
	if said[0] != said[1] {
		t.Errorf("one at a time it says\n%s\nand four at a time\n%s", said[0], said[1])
	}
	one := Options{Quick: true, Only: few[:1], Laws: []string{Auto}}
	other := one
	if other.Seed = 7; play(t, one).Row(0, 0).Goodput == play(t, other).Row(0, 0).Goodput {
		t.Errorf("another seed says the same")
	}
}

// A limit of 5 in the place of Auto is found out, by every criterion that it misses: 5 of 60
// slots are 0.083 of the oracle.
func TestBrokenLaw(t *testing.T) {
	o := Options{Quick: true, Only: []string{"over-3x", "step-60-20-60", "load-0.5x"}, Laws: []string{"envoy"}}
	s, err := o.choose()
	if err != nil {
		t.Fatal(err)
	}
	runs := make([][]outcome, len(s.Cases)*len(s.Laws))
	for i := range runs {
		runs[i] = make([]outcome, 1)
	}
	s.Laws = slices.Clone(s.Laws)
	s.Laws[1] = broken
	if err := s.play(&o, runs); err != nil {
		t.Fatal(err)
	}
	s.Laws[1] = Auto
	for i := range runs {
		s.Rows = append(s.Rows, s.Cases[i/len(s.Laws)].row(s.Laws[i%len(s.Laws)], together(runs[i]), together(runs[i/len(s.Laws)*len(s.Laws)])))
	}
	// 1 / 12 = 0.083, and 0.997 of that in time: of 5 slots the queue is short.
	if r := s.Row(0, 1).Ratio; math.Abs(r-0.083) > 0.01 {
		t.Errorf("5 slots of 60 have %.3f of the goodput, want 0.083", r)
	}
	if r := s.Row(0, 1); r.Limit != 5 || r.Deviation != 0 || !math.IsNaN(r.Settle) {
		t.Errorf("the limit is %v +- %v, settled after %v: want 5, 0 and never", r.Limit, r.Deviation, r.Settle)
	}
	missed := map[string]bool{}
	for _, c := range s.Judge() {
		if !c.Met {
			missed[c.Text] = true
		}
	}
	for _, text := range []string{
		"goodput is at least 0.97 of the oracle's in every scenario",
		"and 0.99 of it in the mean of all scenarios",
		"the worst scenario of envoy is 0.01 below that of auto",
		"in the first 10 s after capacity falls, at least 0.97 of the new one",
		"95 % is in time within at most 4 s of its restoration",
		"from a cold start 95 % is in time within at most 5 s",
		"at most 0.001 of the requests are refused below capacity",
	} {
		if !missed[text] {
			t.Errorf("a limit of 5 does not miss %q, but %v", text, missed)
		}
	}
}

// The oracle meets what is asked of Auto wherever it is asked for more than a ratio to itself:
// what it cannot reach nobody can.
func TestOracleMeetsIt(t *testing.T) {
	s := play(t, Options{Laws: []string{Auto}, Only: []string{"load-0.5x", "over-3x", "step-60-20-60", "step-60-30-60", "halved", "slower-as-many", "slots-4"}, Repeat: 2})
	for i := range s.Cases {
		r, c := s.Row(i, 0), &s.Cases[i]
		if r.Ratio != 1 || r.RatioObjective != 1 || r.Settle != 0 {
			t.Errorf("%s: the oracle over itself is %v, %v, settled after %v", c.Name, r.Ratio, r.RatioObjective, r.Settle)
		}
		if c.Down > 0 && !(r.FirstTen >= firstTen) {
			t.Errorf("%s: the oracle has %.3f of the new capacity in the first 10 s", c.Name, r.FirstTen)
		}
		if c.Up > 0 && !(r.Restored <= restored) {
			t.Errorf("%s: the oracle needs %v s after it is restored", c.Name, r.Restored)
		}
		if c.About.is(Below) && r.Refused > refusedMax {
			t.Errorf("%s: the oracle refuses %v", c.Name, r.Refused)
		}
		if c.About.is(Steady) && r.Deviation != 0 {
			t.Errorf("%s: the limit of the oracle deviates by %v", c.Name, r.Deviation)
		}
	}
}

// The oracle follows the slots within a window.
func TestOracleFollows(t *testing.T) {
	for _, c := range cases(false) {
		if c.Name != "step-60-20-60" {
			continue
		}
		law := c.oracle(0)
		if n, err := law.Start(); n != 60 || err != nil {
			t.Errorf("it starts at %d, %v", n, err)
		}
		state := law.Begin(1)
		for i, w := 0, (limit.Window{Length: 50 * time.Millisecond}); i < 50*20; i++ {
			now, want := time.Duration(i+1)*w.Length, 60
			if now >= 15*time.Second && now < 30*time.Second {
				want = 20
			}
			if m := state.Next(1, &w); m.Limit != want {
				t.Fatalf("at %v the limit is %d, want %d", now, m.Limit, want)
			}
		}
	}
}

// What is left out or unknown is said in a sentence.
func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Laws: []string{"bbq"}}, `law "bbq" is unknown: one of [fixed auto aimd`},
		{Options{Only: []string{"over-4x"}}, `scenario "over-4x" is unknown: one of [load-0.5x load-1x`},
		{Options{Only: []string{"load-1x"}, Quick: true}, `scenario "load-1x" is unknown: one of [load-0.5x over-1.5x`},
	} {
		if _, err := Run(c.o); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: says %v, want %s", c.o, err, c.want)
		}
	}
	o := Options{Laws: []string{"vegas", "auto"}, Only: []string{"load-0.5x"}, Repeat: 3}
	n, err := o.Jobs()
	if s, _ := o.choose(); err != nil || n != 9 || !slices.Equal(s.Laws, []string{Fixed, Auto, "vegas"}) {
		t.Errorf("%d runs of %v, %v: want 9 of fixed, auto and vegas", n, s.Laws, err)
	}
}

// Every key is there in every row, and a row for each scenario and law.
func TestJSON(t *testing.T) {
	s := play(t, Options{Quick: true, Only: few, Laws: []string{"vegas"}, Door: Reject})
	var b bytes.Buffer
	if err := s.JSON(&b, "goodput dev", "goodput simulate"); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Version   int
		Suite     string
		Quick     bool
		Door      string
		Requests  int `json:"requests_simulated"`
		Scenarios []map[string]any
		Rows      []map[string]any
		Criteria  []Criterion
	}
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if d.Version != 1 || d.Suite != "adaptive" || !d.Quick || d.Door != "reject" || d.Requests < 1000 || len(d.Scenarios) != 3 || len(d.Criteria) < 6 {
		t.Errorf("the document is %s", b.String())
	}
	if len(d.Rows) != 9 {
		t.Fatalf("%d rows, want 3 scenarios x 3 laws", len(d.Rows))
	}
	keys := []string{
		"first_10_seconds_ratio", "goodput_per_second", "in_flight_mean", "in_flight_peak", "law", "least_share", "limit_deviation",
		"limit_mean", "most_share", "offered_per_second", "oracle_per_second", "p99_seconds", "ratio", "ratio_within_objective",
		"refused_ratio", "restored_seconds", "scenario", "seeds", "settle_seconds",
	}
	for i, row := range d.Rows {
		var has []string
		for k := range row {
			has = append(has, k)
		}
		slices.Sort(has)
		if !slices.Equal(has, keys) {
			t.Errorf("row %d has the keys %v, want %v", i, has, keys)
		}
		if want := []string{"fixed", "auto", "vegas"}[i%3]; row["law"] != want || row["scenario"] != few[i/3] {
			t.Errorf("row %d is %v in %v, want %s in %s", i, row["law"], row["scenario"], want, few[i/3])
		}
		if step := few[i/3] == "step-60-20-60"; (row["first_10_seconds_ratio"] != nil) != step || row["in_flight_mean"] != nil {
			t.Errorf("row %d: %v and %v", i, row["first_10_seconds_ratio"], row["in_flight_mean"])
		}
	}
}

// No line is wider than the terminal, at any width that there is.
func TestText(t *testing.T) {
	s := play(t, Options{Quick: true, Only: few, Repeat: 1})
	for _, width := range []int{80, 120} {
		var b bytes.Buffer
		if err := s.Text(&b, width, Laws); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if len(line) > width {
				t.Errorf("%d columns of %d: %s", len(line), width, line)
			}
		}
		if n := strings.Count(b.String(), "\nauto  "); n != 1 {
			t.Errorf("the details of auto are there %d times", n)
		}
		for _, want := range []string{"Suite adaptive, quick", "failsafe", "\nworst ", "\nmean ", "of the new capacity", "what is asked of it"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%q is missing in\n%s", want, b.String())
			}
		}
	}
}
