package scenario

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/sim"
)

// expecting is a file with two classes, one tier more than one, and one criterion.
func expecting(t *testing.T, criterion string) *File {
	t.Helper()
	f, err := Load("x.yaml", []byte(`version: 1
name: x
length: 10s
tiers:
  - {name: front, service: 50ms fixed, slots: 60, policy: {limit: 60}}
  - {name: back, service: 50ms fixed, slots: 60, policy: {limit: 60}}
groups: [{name: alone, units: 9, members: [{tier: front}]}, {name: other, units: 60, members: [{tier: back}]}]
classes:
  - {name: web, load: 1x, tenant: acme}
  - {name: batch, load: 1x, tenant: crowd, tenants: 1000}
compare: [goodput, fifo]
expect: ["`+criterion+`"]
`))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// result is a run with a different number everywhere.
func result(policy string, seed uint64) *sim.Result {
	r := &sim.Result{
		Policy: policy, Seed: seed, Window: 10 * time.Second, Ended: 11 * time.Second, Capacity: 1200,
		Classes: make([]sim.Tally, 2),
		Tiers: []sim.TierResult{
			{Name: "front", PeakQueue: 480, PeakBytes: 3 << 20, PeakInUse: 60, PeakBehind: 5, PeakAge: 400 * time.Millisecond, Restarts: 1, Arrivals: 500, Again: 100},
			{Name: "back", PeakQueue: 90, PeakBytes: 4 << 20, PeakInUse: 61, PeakBehind: 4, PeakAge: 300 * time.Millisecond, Restarts: 2, Arrivals: 6400, Again: 6300},
		},
	}
	r.Groups = []sim.GroupResult{{Name: "alone"}, {Name: "other", Units: 60, PeakInUse: 59, Used: 60 * 10 * 0.875}}
	r.Total = sim.Tally{
		Requests: 36_000, InTime: 11_400, Late: 600, Refused: 22_100, Failed: 1000, Kept: 900, Attempts: 40_000, Served: 12_000,
		Work: 100 * time.Second, Wasted: 5 * time.Second, Parts: 11_400 * 0.75, Asked: 72_000, Granted: 24_000,
	}
	r.Classes[0] = sim.Tally{Requests: 1000, InTime: 900, Refused: 100}
	r.Classes[1] = sim.Tally{Requests: 500, InTime: 100, Refused: 400}
	r.Total.Reasons[admission.OverQuota], r.Total.Reasons[admission.Replaced] = 17, 4
	// A quarter of the requests come from users that are always served, an eighth from
	// those that never are.
	r.Total.Cohorts = &[admission.Cohorts]sim.Cohort{{Requests: 9000, InTime: 9000}, {Requests: 4500}, {Requests: 22_500, InTime: 2400}}
	r.Tenants = []sim.TenantResult{{Tally: sim.Tally{Name: "acme", Requests: 70, InTime: 7, Asked: 140, Granted: 35}}, {Tally: sim.Tally{Name: "crowd-*", Requests: 3}}}
	for i := range 100 {
		at := time.Duration(i+1) * time.Millisecond
		r.Total.Latency.Add(10 * at)
		r.Total.Good.Add(5 * at)
		r.Total.Wait.Add(2 * at)
		r.Total.Told.Add(at / 10)
		r.Classes[0].Latency.Add(100 * at)
	}
	return r
}

// Each metric reads its own number, of the whole, of a class and of a tier.
func TestCriteria(t *testing.T) {
	for _, c := range []struct {
		text  string
		holds bool
		worst string
	}{
		{"goodput.requests == 36000", true, "36000"},
		{"goodput.in_time >= 11400", true, "11400"},
		{"goodput.in_time > 11400", false, "11400"},
		{"goodput.in_time < 11400", false, "11400"},
		{"goodput.in_time <= 11400", true, "11400"},
		{"goodput.in_time > 11399", true, "11400"},
		{"goodput.late == 600", true, "600"},
		{"goodput.refused between 22000 and 22100", true, "22100"},
		{"goodput.refused between 22101 and 24000", false, "22100"},
		{"goodput.failed == 1000", true, "1000"},
		{"goodput.attempts == 40000", true, "40000"},
		{"goodput.served == 12000", true, "12000"},
		{"goodput.kept == 900", true, "900"},
		{"goodput.kept_share == 0.025", true, "0.0250"},
		{"goodput.attempts_per_request < 1.12", true, "1.1111"},
		{"goodput.front.arrivals == 500", true, "500"},
		{"goodput.front.extra_load == 0.25", true, "0.2500"},
		{"goodput.extra_load == 63", true, "63.0000"}, // of the tier that has most
		// 11,400 in 10 s against 1,200/s.
		{"goodput.ratio == 0.95", true, "0.9500"},
		{"goodput.ratio >= 0.96", false, "0.9500"},
		{"goodput.in_time_share < 0.32", true, "0.3167"},
		{"goodput.refused_share between 0.61 and 0.62", true, "0.6139"},
		{"goodput.wasted_share == 0.05", true, "0.0500"},
		{"goodput.parts_share == 0.75", true, "0.7500"},
		{"goodput.capacity == 1200/s", true, "1200.0/s"},
		{"goodput.ended == 11s", true, "11s"},
		// Quantiles of a histogram are within a bucket, 9.1 %, of 500 and 990 ms and so on.
		{"goodput.p50 between 455ms and 546ms", true, ""},
		{"goodput.p99 between 900ms and 1081ms", true, ""},
		{"goodput.good_p50 between 227ms and 273ms", true, ""},
		{"goodput.good_p99 between 450ms and 541ms", true, ""},
		{"goodput.wait_p50 between 91ms and 110ms", true, ""},
		{"goodput.wait_p99 between 180ms and 217ms", true, ""},
		{"goodput.told_p50 between 4.5ms and 5.5ms", true, ""},
		{"goodput.told_p99 between 9ms and 10.9ms", true, ""},
		{"goodput.peak_queue == 480", true, "480"},
		{"goodput.peak_bytes == 4MiB", true, "4194304B"},
		{"goodput.peak_in_use == 61", true, "61"},
		{"goodput.peak_behind == 5", true, "5"},
		{"goodput.peak_age <= 400ms", true, "400ms"},
		{"goodput.restarts == 2", true, "2"},

		{"goodput.asked == 72000", true, "72000"},
		{"goodput.granted == 24000", true, "24000"},
		{"goodput.quota == 17", true, "17"},
		{"goodput.replaced == 4", true, "4"},
		{"goodput.queue_full == 0", true, "0"},
		{"goodput.steady_share == 0.375", true, "0.3750"},
		{"goodput.web.steady_share >= 0", false, "none"}, // it has no users

		{"goodput.acme.granted == 35", true, "35"},
		{"goodput.acme.in_time_share == 0.1", true, "0.1000"},
		{"goodput.crowd-*.requests == 3", true, "3"},
		{"goodput.crowd-1.requests >= 0", false, "none"}, // no run has a row for it

		{"goodput.web.in_time == 900", true, "900"},
		{"goodput.batch.in_time_share == 0.2", true, "0.2000"},
		{"goodput.web.p50 between 4.55s and 5.46s", true, ""},
		{"goodput.batch.p50 < 1h", false, "none"}, // nobody of them was served
		{"goodput.back.peak_queue == 90", true, "90"},
		{"goodput.front.restarts == 1", true, "1"},
		{"goodput.peak_used == 59", true, "59"},
		{"goodput.other.peak_used == 59", true, "59"},
		{"goodput.other.used_share == 0.875", true, "0.8750"},
		{"goodput.alone.used_share >= 0", false, "none"}, // it was no group

		{"fifo.in_time >= 0", false, "none"}, // was not run
	} {
		f := expecting(t, c.text)
		v := f.Judge([]*sim.Result{result("goodput", 7)})[0]
		if v.Holds != c.holds || c.worst != "" && v.Worst != c.worst {
			t.Errorf("%s: %v with %s, want %v with %s", c.text, v.Holds, v.Worst, c.holds, c.worst)
		}
		if v.Text != c.text {
			t.Errorf("%s is called %s", c.text, v.Text)
		}
	}
}

// Every metric has a case above.
func TestEveryMetric(t *testing.T) {
	for _, name := range metricNames() {
		f := expecting(t, fmt.Sprintf("goodput.%s %s", name, map[unit]string{
			count: ">= 0", share: ">= 0", span: ">= 0s", size: ">= 0", rate: ">= 0/s", factor: ">= 0",
		}[metrics[name].unit]))
		if v := f.Judge([]*sim.Result{result("goodput", 1)})[0]; !v.Holds {
			t.Errorf("%s has no value: %v", name, v)
		}
	}
}

// A criterion holds if it holds in each run; what is shown is the worst of them.
func TestJudgeRuns(t *testing.T) {
	runs := []*sim.Result{result("goodput", 1), result("fifo", 1), result("goodput", 2), result("goodput", 3)}
	runs[1].Total.InTime = 1 // another policy
	runs[2].Total.InTime = 11_000
	runs[3].Total.InTime = 12_000
	for text, want := range map[string]string{
		"goodput.in_time >= 11000":                "held: goodput.in_time >= 11000 (11000, seed 2)",
		"goodput.in_time >= 11001":                "failed: goodput.in_time >= 11001 (11000, seed 2)",
		"goodput.in_time <= 11999":                "failed: goodput.in_time <= 11999 (12000, seed 3)",
		"goodput.in_time between 10900 and 13000": "held: goodput.in_time between 10900 and 13000 (11000, seed 2)",
		"goodput.in_time between 11100 and 11950": "failed: goodput.in_time between 11100 and 11950 (11000, seed 2)",
		"fifo.in_time == 1":                       "held: fifo.in_time == 1 (1, seed 1)",
	} {
		f := expecting(t, text)
		if got := f.Judge(runs)[0].String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	// One run in which there is no such number is enough to fail.
	runs = append(runs, &sim.Result{Policy: "goodput", Seed: 9, Window: time.Second, Tiers: make([]sim.TierResult, 2), Classes: make([]sim.Tally, 2)})
	if v := expecting(t, "goodput.ratio >= 0").Judge(runs)[0]; v.Holds || v.Worst != "none" || v.Seed != 9 {
		t.Errorf("without requests: %v", v)
	}
}

// A metric of the documentation is one of the table.
func TestUnitsInText(t *testing.T) {
	for text, says := range map[string]string{
		"goodput.p99 <= 400":       `"400" has no unit: write 400ms or 400s`,
		"goodput.ratio >= 99%":     `"99%" is not a share, such as 0.99`,
		"goodput.in_time >= 1e3":   `"1e3" is not a whole number`,
		"goodput.in_time >= -1":    `"-1" is not a whole number`,
		"goodput.capacity >= 12":   `"12" is not a rate`,
		"goodput.peak_bytes <= 5s": `"5s" is not a size`,
		"goodput.ratio = 1":        `"=" in "goodput.ratio = 1" is unknown: >=, <=, >, <, == or between`,
	} {
		src := "version: 1\nname: x\nlength: 1s\npolicy: {limit: 1}\nservice: 1ms fixed\nload: 1x\nexpect: ['" + text + "']\n"
		if _, err := Load("f", []byte(src)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s says %v, want %s", text, err, says)
		}
	}
}

// A file, played by the simulator with each of its policies, is judged as it says:
// our core meets the objective at three times the load, the rule of thumb does not.
func TestPlayAndJudge(t *testing.T) {
	f := load(t, "overload.yaml")
	f.Sim.Length = 20 * time.Second
	var runs []*sim.Result
	for i, c := range f.Compare {
		for _, seed := range f.Seeds() {
			r, err := sim.Run(f.Play(i), seed)
			if err != nil {
				t.Fatal(err)
			}
			if r.Policy != c.Name || r.Scenario != f.Name {
				t.Errorf("the run of %s is called %s, of %s", c.Name, r.Policy, r.Scenario)
			}
			runs = append(runs, r)
		}
	}
	for _, v := range f.Judge(runs) {
		if t.Log(v); !v.Holds {
			t.Error(v)
		}
	}
}
