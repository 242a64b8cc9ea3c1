package report

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/internal/sim"
)

// Two thirds that get a no behind the first limiter have failed, and that is what is
// said and what has a column; 0.0 % with half of them told at once is said of nobody.
func TestWhatThereIsMostOfIsSaid(t *testing.T) {
	r := layered(1)
	const want = "goodput answers 1178/s in time, 98.2 % of what the slots can do; 67.2 % failed, refused or lost " +
		"behind the first limiter; 0.0 % are refused; of what got a slot p99 is 227 ms."
	if got := r.measured(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	text := show(t, r, Columns, false)
	for _, want := range []string{
		"refused failed", "\ngoodput          3593    1178    98.2     0.0   67.2", "failed: lost, or refused",
		"\np50 of what was answered in time, where it is another: goodput 55.9 ms.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	page := html(t, r)
	for _, want := range []string{`<td data-key="failed_ratio">67.2<`, `<td data-key="good_p50_seconds">55.9<`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if text := show(t, sample(2, 1), Columns, false); strings.Contains(text, "failed") || strings.Contains(text, "answered in time, where") {
		t.Errorf("nobody failed, and all who got a slot were in time, and yet it is in\n%s", text)
	}
}

// Who is told no by the client itself is neither refused nor failed: a part of its own,
// that is said only where there is one.
func TestKeptAtHomeIsSaid(t *testing.T) {
	r := sample(1, 1)
	run := r.Policies[0].Runs[0]
	before := r.Policies[0].Figures()
	run.Total.Refused -= run.Total.Requests / 4
	run.Total.Kept = run.Total.Requests / 4
	run.Tiers[0].Again, run.Tiers[0].Kept = 12_345, run.Total.Kept
	f := r.Policies[0].Figures()
	if f.Kept.Mean < 0.2499 || f.Kept.Mean > 0.25 || math.Abs(f.Refused.Mean-before.Refused.Mean+f.Kept.Mean) > 1e-9 {
		t.Errorf("%+v are kept, %+v refused, before %+v", f.Kept, f.Refused, before.Refused)
	}
	text, page := show(t, r, Columns, false), html(t, r)
	for _, want := range []string{"\nkept at home: goodput 25.0 %.\n", "25.0 % are kept at home by their clients; 42.2 % are refused,\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, want := range []string{
		`<td data-key="kept_ratio">25.0<`, `<rect class="kept" `, `<th scope="col">kept</th>`, `<th scope="col">sent again</th>`, "<td>12\u202f345</td>",
		`height="12" rx="2"/></svg>kept</li>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	text, page = show(t, sample(1, 1), Columns, false), html(t, sample(1, 1))
	for _, no := range []string{"kept", "sent again"} {
		if strings.Contains(text, no) || strings.Contains(page, ">"+no+"<") {
			t.Errorf("nobody was kept at home, and %q is said", no)
		}
	}
}

// How often clients try is said where they try again, of each class.
func TestAttemptsAreSaid(t *testing.T) {
	r := sample(2, 1)
	if text := show(t, r, Columns, false); strings.Contains(text, "attempts per request") {
		t.Errorf("nobody tries again, and yet\n%s", text)
	}
	run := r.Policies[1].Runs[0]
	run.Total.Attempts += run.Total.Requests / 4
	run.Classes[1].Attempts += run.Classes[1].Requests / 2
	if text := show(t, r, Columns, false); !strings.Contains(text, "\nattempts per request: fifo 1.25 (web 1.00, batch 1.50).\n") {
		t.Errorf("who tries how often is missing in\n%s", text)
	}
}

// Who gives up while waiting is told nothing by a policy that refuses nobody.
func TestNobodyIsToldWhereNobodyIsRefused(t *testing.T) {
	tally := sim.Tally{Requests: 10_000, InTime: 9_997, Refused: 3}
	tally.Told.Add(1470 * time.Millisecond)
	r := &Report{Policies: []Policy{{Name: "lifo", Runs: []*sim.Result{{Window: time.Second, Total: tally}}}}}
	if f := r.Policies[0].Figures(); f.Told.Runs != 0 {
		t.Errorf("told %+v", f.Told)
	}
	if got := show(t, r, Columns, false); strings.Contains(got, "1470") || strings.Contains(got, "  told") {
		t.Errorf("told in\n%s", got)
	}
	r.Policies[0].Runs[0].Total.Refused = 5 // 0.05 %, which is shown as 0.1
	if f := r.Policies[0].Figures(); f.Told.Runs != 1 {
		t.Errorf("told %+v", f.Told)
	}
}

// The ratio is of min(offered, capacity), and the sentence says which that is.
func TestOfWhatTheRatioIs(t *testing.T) {
	run := &sim.Result{Window: time.Second, Capacity: 1200, Total: sim.Tally{Requests: 1000, InTime: 990, Refused: 10}}
	r := &Report{Policies: []Policy{{Name: "goodput", Runs: []*sim.Result{run}}}}
	for capacity, want := range map[float64]string{
		1200: "goodput answers 990/s in time, 99.0 % of what was offered; 1.0 % are refused.",
		995:  "goodput answers 990/s in time, 99.5 % of what the slots can do; 1.0 % are refused.",
	} {
		run.Capacity = capacity
		if got := r.measured(); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}

// A result above its objective says so, with what the service alone takes; one that
// is above by what a histogram does not know, or of requests that arrive elsewhere,
// does not.
func TestObjectiveMissed(t *testing.T) {
	r := slow(430 * time.Millisecond)
	const want = " Objective missed: p99 of what got a slot is 494 ms, and not 400 ms or less; the service alone takes 430 ms at p99."
	if got := r.measured(); !strings.HasSuffix(got, " are refused, half of them within 0.14 ms."+want) {
		t.Errorf("%s\nwant it to end with\n%s", got, want)
	}
	if got := Verdict(r); !strings.Contains(got, "; objective missed; 1 of 2 criteria met") {
		t.Error(got)
	}
	run := r.Policies[0].Runs[0]
	run.Tiers[0].Stats.Derivation.Tight = true
	if got := r.measured(); !strings.HasSuffix(got, " at p99. With so few slots those with a deadline within the objective queue by their odds, and some that then take long end late.") {
		t.Errorf("tight: %s", got)
	}
	run.Tiers[0].Stats.Derivation.Tight = false
	for _, c := range []struct {
		what  string
		after func()
	}{
		{"p99 within 1 % of it", func() { run.Tiers[0].Stats.Derivation.Objective = 490 * time.Millisecond }},
		{"some arrive at another tier", func() {
			run.Tiers[0].Stats.Derivation.Objective = 400 * time.Millisecond
			run.Tiers[0].Arrivals = run.Total.Attempts - 1
		}},
		{"a baseline", func() { run.Tiers[0].Stats = nil }},
		{"no tier", func() { run.Tiers = nil }},
	} {
		c.after()
		if got := r.measured(); strings.Contains(got, "missed") || !strings.HasSuffix(got, "; of what got a slot p99 is 494 ms.") {
			t.Errorf("%s: %s", c.what, got)
		}
	}
	if got := sample(1, 1).measured(); strings.Contains(got, "missed") {
		t.Error(got)
	}
}

// A ceiling of 214 stands above "99 % of what the slots can do": the legend says how
// both are true, and a bar of 214 is longer than one of 100.
func TestCeilingsAreExplained(t *testing.T) {
	r := layered(1)
	if got := strings.Join(r.legend(), "\n"); !strings.Contains(got, "size-aware, clairvoyant: of 108k jobs, and jobs are counted, not work: ") || !strings.Contains(got, "so the lower one counts.") {
		t.Error(got)
	}
	p := r.page(nil)
	bars := map[string]string{}
	for _, b := range p.Bounds {
		bars[b.Name] = b.Bar
	}
	want := map[string]string{"capacity": "46.77%", "size-aware": "97.57%", "clairvoyant": "100.00%"}
	for name, bar := range want { // 1 / 2.138, 2.086 / 2.138
		if bars[name] != bar {
			t.Errorf("the bar of %s is %s long, want %s", name, bars[name], bar)
		}
	}
	if p.Whole != "46.77%" || p.Rows[0].Bar != "45.93%" { // 0.982 / 2.138
		t.Errorf("100 %% is at %s, the first bar %s", p.Whole, p.Rows[0].Bar)
	}
	if plain := sample(2, 1).page(nil); plain.Whole != "" || plain.Rows[0].Bar != "98.20%" {
		t.Errorf("without a ceiling above it 100 %% is at %q, the first bar %s", plain.Whole, plain.Rows[0].Bar)
	}
	r.Ceilings = sim.Ceilings{}
	if got := strings.Join(r.legend(), "\n"); strings.Contains(got, "clairvoyant") || strings.Contains(got, "no queue") {
		t.Errorf("there is no ceiling, and yet %s", got)
	}
}

// A peak above the depth that is shown looks like a bound that does not hold: the
// legend says since when it has another, and only then.
func TestPeakAboveTheDepthIsExplained(t *testing.T) {
	const want = "more than the depth that is shown waited while it was another"
	for _, c := range []struct {
		peak  int
		tight bool
		said  bool
	}{{389, false, true}, {202, false, true}, {201, false, false}, {389, true, false}} {
		r := sample(2, 1)
		at := &r.Policies[0].Runs[0].Tiers[0]
		at.PeakQueue, at.Stats.Derivation.Tight = c.peak, c.tight
		if got := strings.Join(r.legend(), "\n"); strings.Contains(got, want) != c.said {
			t.Errorf("peak %d, tight %v: %s", c.peak, c.tight, got)
		}
	}
}

func TestVerdictIsOneLine(t *testing.T) {
	r := sample(2, 1)
	if got, want := Verdict(r), "overload-3x: goodput answers 1178/s in time, 98.2 % of what the slots can do; 1 of 2 criteria met"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	r.Criteria, r.Scenario = nil, ""
	if got, want := Verdict(r), "goodput answers 1178/s in time, 98.2 % of what the slots can do"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := Verdict(evil()); strings.ContainsAny(got, "\n\x1b") {
		t.Errorf("%q", got)
	}
	if got := Verdict(&Report{}); got != "report: no policy was run, so there is nothing to show" {
		t.Error(got)
	}
}

// What is copied is what was said: joined at its backslashes a command is the same,
// whatever the width, and no line ends within quotes or between a flag and its value.
func TestCommandIsCopied(t *testing.T) {
	const columns = `--columns "arrival=1ms*ts, service=1ms*ms, class=path"`
	for _, c := range []struct {
		line  string
		width int
		want  []string
	}{
		{"goodput simulate a.yaml --seed 1", 80, []string{"again: goodput simulate a.yaml --seed 1"}},
		{"goodput replay z.csv --limit 10 " + columns + " --seed 7", 80, []string{
			`again: goodput replay z.csv --limit 10 \`, `       ` + columns + ` --seed 7`,
		}},
		{`goodput replay z.csv --class 'all=* --x,cost=2' --seed 7`, 40, []string{
			`again: goodput replay z.csv \`, `       --class 'all=* --x,cost=2' \`, `       --seed 7`,
		}},
		{`goodput simulate it\'s\ a.yaml --seed 7`, 40, []string{`again: goodput simulate it\'s\ a.yaml \`, `       --seed 7`}},
		{"goodput simulate " + strings.Repeat("x", 60) + " --seed 1", 40, []string{"again: goodput simulate " + strings.Repeat("x", 60) + ` \`, "       --seed 1"}},
		{"--flag", 40, []string{"again: --flag"}},
	} {
		if got := command("again: ", c.line, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%s\n%s\nwant\n%s", c.line, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		for width := range 100 {
			copied := strings.Join(command("again: ", c.line, width), "\n")
			copied = strings.ReplaceAll(strings.TrimPrefix(copied, "again: "), "\\\n       ", "")
			if copied != c.line {
				t.Fatalf("width %d: %s\nwant\n%s", width, copied, c.line)
			}
		}
	}
	r := sample(1, 1)
	r.Command = "goodput replay z.csv --limit 10 " + columns
	if got := show(t, r, Columns, false); !strings.HasSuffix(got, "\nagain: goodput replay z.csv --limit 10 \\\n       "+columns+"\n") {
		t.Error(got)
	}
}

func TestLengthOfARun(t *testing.T) {
	for d, want := range map[time.Duration]string{
		195842164568 * time.Nanosecond: "3m16s", 8997000001 * time.Nanosecond: "9s", 9876 * time.Millisecond: "9.88s",
		250_400 * time.Microsecond: "250ms", time.Minute: "1m0s",
	} {
		if got := lasted(d).String(); got != want {
			t.Errorf("%v is shown as %s, want %s", d, got, want)
		}
	}
}

// The counts that are requests are called so: beside a limit in units of cost they
// are another number where a request costs two.
func TestRunningIsNotALimit(t *testing.T) {
	var b bytes.Buffer
	if err := sample(1, 1).JSON(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"running":[`, `"peak_running":60`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(b.String(), "in_use") {
		t.Error("in use of what?")
	}
}
