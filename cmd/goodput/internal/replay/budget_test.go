package replay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/accesslog"
	"github.com/goodput/goodput/limit"
)

// A trace says how long each caller waits, and that is what each is played with: here one of two
// waits half as long as its work takes, behind an idle slot. Those that say nothing have the
// deadline of the options.
func TestBudgetsArePlayed(t *testing.T) {
	lines := []string{"#goodput-trace 1 1796065760000000"}
	const n = 200
	for i := range n {
		lines = append(lines, fmt.Sprintf("%d,a,10000,,,,%s,,,", i*100_000, []string{"5000", ""}[i%2]))
	}
	s, notes := look(t, write(t, append(lines, "#end")...), accesslog.Options{})
	if s.Used != n || s.Budgets != n/2 {
		t.Fatalf("%d used, %d with a budget", s.Used, s.Budgets)
	}
	for deadline, want := range map[time.Duration]uint64{time.Second: n / 2, 5 * time.Millisecond: 0} {
		results, _, err := s.Run(Options{
			Policy: Policy(limit.Fixed(1), time.Second), Slots: 1, Deadline: deadline, Compare: []string{"goodput"}, Seed: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := results[0].Total.InTime; got != want {
			t.Errorf("deadline %v: %d are in time, want %d", deadline, got, want)
		}
	}
	if all := strings.Join(s.Notes(notes, nil), "\n"); !strings.Contains(all, "100 requests say how long their callers wait") {
		t.Error(all)
	}
}

// What goodput refused it refused without a look at how long it would take, so those that it
// served stand for the others however few they are. Of other logs nobody knows that.
func TestMostWereRefused(t *testing.T) {
	lines := []string{"#goodput-trace 1 1796065760000000"}
	for i := range 500 {
		lines = append(lines, fmt.Sprintf("%d,a,%s", i*1000, []string{"10000,,,,,,,", ",,,,,,rejected,", ",,,,,,rejected,", ",,,,,,expired,"}[i%4]))
	}
	s, sum := look(t, write(t, append(lines, "#end")...), accesslog.Options{})
	if why := s.Void(sum); why != "" || s.Drawn != 375 {
		t.Errorf("%d drawn: %s", s.Drawn, why)
	}
	sum.Files[0].Format = accesslog.CSV
	if s.Void(sum) == "" {
		t.Error("of another log that is an answer")
	}
}

// What is normal of our own traces is no matter to be alarmed about, and each line that is not
// played is told by what it is.
func TestOwnLinesAreTold(t *testing.T) {
	lines := []string{"#goodput-trace 1 1796065760000000", "arrival,class,held,cost,size,tenant,budget,priority,outcome,observe"}
	for i := range 40 {
		lines = append(lines, fmt.Sprintf("%d,%s,10000,,,,,,,%s", (40-i)*1000, []string{"a", "b"}[i%2], []string{"", "observed", "would_refuse", ""}[i/2%4]))
	}
	s, sum := look(t, write(t, append(lines, "#end")...), accesslog.Options{Only: "a"})
	all := strings.Join(s.Notes(sum, nil), "\n")
	for _, want := range []string{"20 requests are of another class", "3 lines are headers", "10 of 20 requests ran in observe mode"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if strings.Contains(all, "out of order") || strings.Contains(all, "another class, 20 lines") {
		t.Error(all)
	}
	sum.Files[0].Format = accesslog.CSV
	if all = strings.Join(s.Notes(sum, nil), "\n"); !strings.Contains(all, "19 lines were out of order") {
		t.Errorf("of another log that is one:\n%s", all)
	}
}
