package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/bench/soak"
)

func TestFlagsOutOfRange(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"-length 30s", "whole minutes"},
		{"-length 25h", "1m to 24h"},
		{"-length 90s", "whole minutes"},
		{"-rest 10s", "1m or more"},
		{"-warm 3m", "0 to 2m0s"},
		{"-warm -1s", "0 to 2m0s"},
		{"-length 2m", "at most half of the length"},
		{"more", "is no flag"},
	} {
		if _, err := parse(strings.Fields(c.args)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want one that says %q", c.args, err, c.says)
		}
	}
	s, err := parse([]string{"-seed", "7"})
	if err != nil || s.run.Length != time.Hour || s.run.Seed != 7 || !strings.HasSuffix(s.command, "-seed 7") {
		t.Errorf("%+v, %v", s, err)
	}
}

// What was not measured is no success either; what is judged apart decides nothing.
func TestTheVerdict(t *testing.T) {
	met, missed, unknown := soak.Criterion{Met: true, Known: true}, soak.Criterion{Known: true}, soak.Criterion{}
	apart := soak.Criterion{Known: true, Apart: true}
	for _, c := range []struct {
		cs   []soak.Criterion
		want error
	}{
		{[]soak.Criterion{met, met}, nil},
		{[]soak.Criterion{met, apart}, nil},
		{[]soak.Criterion{met, missed}, errMissed},
		{[]soak.Criterion{met, unknown}, errMissed},
	} {
		if err := verdict(c.cs); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.cs, err, c.want)
		}
	}
}

// A run that is read is judged as one that was played, and a miss is not the end with 0.
func TestAMissIsAnError(t *testing.T) {
	dir := t.TempDir()
	file, page := filepath.Join(dir, "soak.json"), filepath.Join(dir, "soak.md")
	data, err := json.Marshal(soak.Report{Broken: "goodput has ended"})
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := run(context.Background(), []string{"-from", file, "-page", page}); !errors.Is(err, errMissed) {
		t.Errorf("%v, want %v", err, errMissed)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "| ran-to-the-end | **not met** | goodput has ended |") {
		t.Errorf("%v: %s", err, text)
	}
}
