package accesslog

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// goodputLine is one of serve's access log, with more fields.
func goodputLine(more string) string {
	return `{"time":"2026-11-30T08:08:00.746123Z","limiter":"search","method":"GET","host":"a","path":"/x","status":200,"bytes":5,` +
		`"queue_seconds":0.001,"service_seconds":0.04,"held_seconds":0.0498,"duration_seconds":0.051,"outcome":"completed"` + more + `}`
}

// Each line of a trace, and of an access log, by what it is.
func TestOwnFormats(t *testing.T) {
	const trace = `#goodput-trace 1 1796065760000000
arrival,class,held,cost,size,tenant,budget,priority,outcome,observe
10,search,49812,,,,400000,,,
-5,search,1000,8,900,3k2j,,background,late,
20,search,,,,,0,,rejected,
21,search,,,,,,,expired,
22,search,,,,,,,cancelled,
23,search,700,,,,,,abandoned,
24,other,700,,,,,critical,failed,observed
24,other,700,,,,,critical,failed,would_refuse
#dropped 12
#dropped 3
#end
`
	l, err := open(t, Options{}, trace)
	if err != nil {
		t.Fatal(err)
	}
	const base = 1796065760_000000_000
	us := time.Microsecond
	type want struct {
		at     int64
		held   time.Duration
		budget time.Duration
		class  string
		o      Outcome
	}
	var got []want
	for r, err := range l.Records() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, want{(r.Arrival - base) / 1000, r.Service, r.Budget, r.Class, r.Outcome})
		if r.Outcome == Cancelled && (r.Service >= 0) != r.ServiceAtLeast {
			t.Errorf("%+v: what was cut off is a lower bound", r)
		}
		if r.Arrival == base-5000 && (r.Cost != 8 || r.Size != 900 || r.Tenant != "3k2j" || r.Priority != "background") {
			t.Errorf("%+v", r)
		}
	}
	if all := []want{
		{-5, 1000 * us, Absent, "search", Served},
		{10, 49812 * us, 400 * time.Millisecond, "search", Served},
		{20, Absent, 0, "search", Rejected},
		{21, Absent, Absent, "search", ExpiredInQueue},
		{22, Absent, Absent, "search", Cancelled},
		{23, 700 * us, Absent, "search", Cancelled},
		{24, 700 * us, Absent, "other", Failed},
		{24, 700 * us, Absent, "other", Failed},
	}; !slices.Equal(got, all) {
		t.Errorf("got\n%v\nwant\n%v", got, all)
	}
	f := l.Summary().Files[0]
	if f.Format != Trace || f.Lost != 15 || f.Observed != 2 || len(l.Summary().Warnings) != 2 || !strings.Contains(l.Summary().Warnings[1], "2 of 8 requests ran in observe mode") || !strings.Contains(l.Summary().Warnings[0], "15 requests are missing") {
		t.Errorf("%s, %d lost, %q", f.Format, f.Lost, l.Summary().Warnings)
	}

	// Without its end it was cut; a class alone is read alone.
	if l, err = open(t, Options{Only: "other"}, strings.TrimSuffix(trace, "#end\n")); err != nil {
		t.Fatal(err)
	}
	if w := fmt.Sprint(l.Summary().Warnings); l.Summary().Used != 2 || l.Summary().Files[0].OtherClass != 6 || len(l.Summary().Files[0].Notes) != 0 || !strings.Contains(w, "no last line") {
		t.Errorf("%d used, %s", l.Summary().Used, w)
	}
	if _, err = open(t, Options{}, "#goodput-trace 2 17\n1,a,1,,,,,,\n"); err == nil || !strings.Contains(err.Error(), "version") {
		t.Errorf("a newer version: %v", err)
	}
}

func TestOwnAccessLog(t *testing.T) {
	lines := []string{
		goodputLine(`,"budget_seconds":0.4,"tenant":"acme \u00e4","cost":2,"size":7,"priority":"critical","observed":true,"would_refuse":true,"grpc_status":0`),
		strings.NewReplacer(`completed`, `rejected","reason":"queue_full`, `"held_seconds":0.0498,`, ``, `746123`, `746124`).Replace(goodputLine("")),
		strings.NewReplacer(`completed`, `rejected","reason":"slow_body`, `"held_seconds":0.0498,`, ``, `746123`, `746125`).Replace(goodputLine("")),
		strings.NewReplacer(`,"outcome":"completed"`, ``, `746123`, `746126`).Replace(goodputLine("")),
		strings.NewReplacer(`"outcome":"completed"`, `"reason":"too_large"`, `"held_seconds":0.0498,`, ``, `746123`, `746128`).Replace(goodputLine("")),
		strings.NewReplacer(`"outcome":"completed"`, `"reason":"unavailable"`, `"held_seconds":0.0498,`, ``, `746123`, `746129`).Replace(goodputLine(`,"tenant":"\u009b\u202ea"`)),
		strings.NewReplacer(`746123`, `746127`).Replace(goodputLine(`,"exempt":true`)),
		strings.NewReplacer(`search`, ``, `completed`, ``).Replace(goodputLine(`,"reason":"connect"`)),
	}
	l, err := open(t, Options{}, strings.Join(lines, "\n")+"\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := range l.Records() {
		got = append(got, fmt.Sprintf("%d %v %v %v %v %q %d %d %s %s", r.Arrival%1e9, r.Service, r.Queue, r.Total, r.Budget, r.Tenant, r.Cost, r.Size, r.Priority, r.Outcome))
	}
	if want := []string{
		`746123000 49.8ms 1ms 51ms 400ms "acme ä" 2 7 critical served`,
		`746124000 -1ns 1ms 51ms -1ns "" 1 0  rejected`,
		`746125000 -1ns 1ms 51ms -1ns "" 1 0  failed`,
		`746126000 -1ns 1ms 51ms -1ns "" 1 0  stream`,
		`746128000 -1ns 1ms 51ms -1ns "" 1 0  failed`,
		`746129000 -1ns 1ms 51ms -1ns "\u009b\u202ea" 1 0  rejected`,
	}; !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if f := l.Summary().Files[0]; f.Format != Goodput || f.Verdicts[Skip] != 2 || f.Probes != 1 || f.OtherClass != 1 || len(f.Notes) != 2 || f.Observed != 1 {
		t.Errorf("%s, %v", f.Format, f.Verdicts)
	}
}
