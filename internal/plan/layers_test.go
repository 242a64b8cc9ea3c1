package plan

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func check(t *testing.T, top Topology) *Layers {
	t.Helper()
	if f := top.Faults(); len(f) > 0 {
		t.Fatalf("faults: %+v", f)
	}
	a, err := Check(top)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(a.Text()) {
		if n := utf8.RuneCountInString(line) - 1; n > width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	return a
}

// pods is the topology of C193.
func pods() Topology {
	return Topology{
		Deadline: 2 * time.Second,
		Layers: []Layer{
			{Name: "pod pool", Limit: 20, Replicas: Range{460, 460}, Wait: 800 * ms, Resource: "pooler"},
			{Name: "pooler", Wait: 800 * ms},
			{Name: "database", Wait: 800 * ms},
		},
		Resources: []Resource{{Name: "pooler", Limit: Range{6000, 6000}}},
	}
}

// C193: the waits of three layers do not fit the deadline, and the pods may ask for
// more connections than the pooler has. Both are errors, with the smallest change.
func TestThreeLayers_C193(t *testing.T) {
	a := check(t, pods())
	if OK(a.Findings) || len(a.Findings) != 2 {
		t.Fatalf("%+v", a.Findings)
	}
	near(t, "waits", a.Waits, 2.4, 1e-12)
	f := find(a.Findings, "waits_exceed_deadline")
	said(t, f.Text, "800ms + 800ms + 800ms = 2.4s", "deadline is 2s", "400ms late")
	said(t, f.Fix, "the wait in pod pool from 800ms to 400ms", "the deadline from 2s to 2.4s")
	f = find(a.Findings, "resource_overcommitted")
	said(t, f.Text, "460 x 20 = 9200", "6000", "1.53 times")
	said(t, f.Fix, "limit of pod pool from 20 to 13 (5980 in all)", "pooler to at least 9200")
	said(t, a.Text(), "9200", "of 6000: 460 x 20", "2.4s")

	// Each of the changes ends its finding.
	top := pods()
	top.Layers[0].Wait = 400 * ms
	top.Layers[0].Limit = 13
	if a := check(t, top); len(a.Findings) != 0 {
		t.Errorf("with both changes: %+v", a.Findings)
	}
	top.Deadline = 2*time.Second - ms
	if a := check(t, top); find(a.Findings, "waits_exceed_deadline") == nil {
		t.Error("a millisecond too many is not seen")
	}
	top = pods()
	top.Deadline, top.Resources[0].Limit = 2400*ms, Range{9200, 9200}
	if a := check(t, top); len(a.Findings) != 0 {
		t.Errorf("with the other two changes: %+v", a.Findings)
	}
	top.Resources[0].Limit = Range{9199, 9199}
	if a := check(t, top); find(a.Findings, "resource_overcommitted") == nil {
		t.Error("a connection too few is not seen")
	}
}

// C191: an autoscaled database has the connections of its smallest size.
func TestRangeOfAResource_C191(t *testing.T) {
	top := Topology{
		Deadline:  2 * time.Second,
		Layers:    []Layer{{Name: "api", Limit: 20, Replicas: Range{4, 10}, Resource: "database", Wait: 100 * ms}},
		Resources: []Resource{{Name: "database", Limit: Range{112, 900}}},
	}
	a := check(t, top)
	f := find(a.Findings, "resource_overcommitted")
	if f == nil {
		t.Fatalf("10 x 20 of 112: %+v", a.Findings)
	}
	said(t, f.Text, "10 x 20 = 200", "112 (the smallest of 112-900, to which it may be scaled in)")
	said(t, f.Fix, "limit of api from 20 to 11 (110 in all)")
	said(t, a.Text(), "of 112 (out of 112-900)")

	top.Resources[0].Largest = true
	if a := check(t, top); !OK(a.Findings) || a.Resources[0].Limit != 900 {
		t.Errorf("told to take the largest: %+v", a)
	}
	top.Resources[0].Limit = Range{112, 150}
	said(t, check(t, top).Findings[0].Text, "150 (the largest of 112-150, as the file says)")
}

// C124: a release runs old and new replicas at once, and scaling out adds more.
func TestSurge_C124(t *testing.T) {
	top := Topology{
		Deadline:  2 * time.Second,
		Layers:    []Layer{{Name: "api", Limit: 10, Replicas: Range{4, 6}, Surge: 4, Resource: "database", Wait: 100 * ms}},
		Resources: []Resource{{Name: "database", Limit: Range{100, 100}}},
	}
	if a := check(t, top); !OK(a.Findings) || a.Resources[0].Demand != 100 {
		t.Errorf("(6 + 4) x 10 of 100: %+v", a)
	}
	top.Layers[0].Replicas.Max = 7
	f := find(check(t, top).Findings, "resource_overcommitted")
	if f == nil {
		t.Fatal("(7 + 4) x 10 of 100 is not seen")
	}
	said(t, f.Text, "(7 + 4) x 10 = 110")
}

// C069: retries of layers multiply; budgets add a tenth each.
func TestRetriesMultiply_C069(t *testing.T) {
	top := Topology{Deadline: 2 * time.Second}
	for i := range 3 {
		top.Layers = append(top.Layers, Layer{Name: fmt.Sprint("layer ", i), Wait: 10 * ms, Attempts: 4})
	}
	a := check(t, top)
	if a.Calls != 64 {
		t.Errorf("3 layers of 4 attempts: %v", a.Calls)
	}
	f := find(a.Findings, "retries_multiply")
	if f == nil {
		t.Fatalf("%+v", a.Findings)
	}
	said(t, f.Text, "4 x 4 x 4 = 64")
	said(t, f.Fix, "in one layer only (4 calls in layer 0)", "(1.33 calls)")
	if strings.Contains(a.Text(), "without retry budgets") {
		t.Errorf("there are none:\n%s", a.Text())
	}
	for i := range top.Layers {
		top.Layers[i].RetryBudget = 0.1
	}
	a = check(t, top)
	if math.Abs(a.Calls-1.331) > 1e-9 || len(a.Findings) > 0 {
		t.Errorf("with budgets of 10 %%: %v %+v", a.Calls, a.Findings)
	}
	said(t, a.Text(), "1.331x", "1.1 x 1.1 x 1.1 calls", "without retry budgets 64")

	// The worst layer is named, and the rate that the bottom would get.
	top = Topology{Deadline: 2 * time.Second, Layers: []Layer{
		{Name: "edge", Wait: 10 * ms, Attempts: 2},
		{Name: "api", Wait: 10 * ms, Attempts: 5, RetryBudget: 0.5},
		{Name: "store", Wait: 10 * ms, Attempts: 4},
		{Name: "database", Limit: 60, Service: Service{Mean: 50 * ms}, Objective: 400 * ms},
	}}
	f = find(check(t, top).Findings, "retries_multiply")
	if f == nil {
		t.Fatal("2 x 1.5 x 4 is not seen")
	}
	said(t, f.Text, "2 x 1.5 x 4 = 12", "At the 1200/s that the whole does these are 14400/s.")
	said(t, f.Fix, "(4 calls in store)")
	top = Topology{Deadline: 2 * time.Second}
	for i := range 100 {
		top.Layers = append(top.Layers, Layer{Name: fmt.Sprint(i), Wait: ms, Attempts: 100, RetryBudget: 0.001})
	}
	if n := top.attempts(); n != 1e15 {
		t.Errorf("100^100 attempts are %d, want the most that is counted", n)
	}
}

// C123: a release that overlaps scaling, 2 to 6 replicas and 4 more: the share of each
// may be right for what runs most of the time. The changes are the smallest that do.
func TestRollout_C123(t *testing.T) {
	top := func(limit, surge, workers, resource int) Topology {
		return Topology{
			Deadline:  2 * time.Second,
			Layers:    []Layer{{Name: "api", Limit: limit, Replicas: Range{2, 6}, Surge: surge, Workers: workers, Resource: "database", Wait: 100 * ms}},
			Resources: []Resource{{Name: "database", Limit: Range{resource, resource}}},
		}
	}
	fits := func(limit, surge, workers, resource int) bool {
		return find(check(t, top(limit, surge, workers, resource)).Findings, "resource_overcommitted") == nil
	}
	f := find(check(t, top(11, 4, 0, 100)).Findings, "resource_overcommitted")
	if f == nil {
		t.Fatal("(6 + 4) x 11 of 100 is not seen")
	}
	said(t, f.Text, "(6 + 4) x 11 = 110 may be asked of it while a release rolls out; 66 at other times, and it has 100", "1.1 times")
	said(t, f.Fix, "the surge of api from 4 to 3 (99 in all), or the limit of api from 11 to 10 (100 in all), or database to at least 110")
	if !fits(11, 3, 0, 100) || !fits(10, 4, 0, 100) || !fits(11, 4, 0, 110) || fits(11, 4, 0, 109) {
		t.Error("a change does not end the finding, or is not the smallest")
	}
	// Processes of a replica multiply, and no surge is small enough.
	f = find(check(t, top(10, 4, 2, 100)).Findings, "resource_overcommitted")
	if f == nil {
		t.Fatal("(6 + 4) x 10 x 2 of 100 is not seen")
	}
	said(t, f.Text, "(6 + 4) x 10 x 2 workers = 200", "and it has 100")
	said(t, f.Fix, "change the limit of api from 10 to 5 (100 in all), or database to at least 200")
	if strings.Contains(f.Text, "rolls out") || strings.Contains(f.Fix, "surge") || !fits(5, 4, 2, 100) || fits(6, 4, 2, 100) {
		t.Errorf("120 without the surge are too many as well: %+v", f)
	}
	if !fits(10, 4, 0, 100) || fits(10, 5, 0, 100) {
		t.Error("(6 + 4) x 10 fits 100, and (6 + 5) x 10 does not")
	}
}

// C141: requests that hold one connection while they wait for another.
func TestHeldConnections_C141(t *testing.T) {
	top := func(parallel, holds, pool int) Topology {
		return Topology{
			Deadline:  2 * time.Second,
			Layers:    []Layer{{Name: "api", Limit: parallel, Holds: holds, Resource: "database", Wait: ms}},
			Resources: []Resource{{Name: "database", Limit: Range{pool, pool}}},
		}
	}
	f := find(check(t, top(2, 2, 2)).Findings, "held_slots_deadlock")
	if f == nil {
		t.Fatal("2 requests of 2 connections and a pool of 2: no deadlock is seen")
	}
	said(t, f.Text, "2 x (2 - 1) + 1 = 3")
	if a := check(t, top(2, 2, 3)); find(a.Findings, "held_slots_deadlock") != nil {
		t.Errorf("a pool of 3 is enough: %+v", a.Findings)
	}
	if f := find(check(t, top(10, 3, 20)).Findings, "held_slots_deadlock"); f == nil || !strings.Contains(f.Text, "10 x (3 - 1) + 1 = 21") {
		t.Errorf("10 requests of 3: %+v", f)
	}
}

// F24: what only all layers together show.
func TestLayers_F24(t *testing.T) {
	top := Topology{
		Deadline: 2 * time.Second,
		Layers: []Layer{
			{Name: "edge", Limit: 200, Replicas: Range{2, 6}, Workers: 8, Service: Service{Mean: 20 * ms}, Objective: 200 * ms, Attempts: 3, RetryInterval: 100 * ms, Loop: 10 * time.Second},
			{Name: "search", Limit: 60, Replicas: Range{10, 10}, Service: exp50, Objective: 400 * ms, FanOut: 100},
			{Name: "shard", Limit: 8, Replicas: Range{1000, 1000}, Service: Service{Mean: 4 * ms, Shape: Fixed}, Objective: 40 * ms},
		},
	}
	a := check(t, top)
	for _, c := range []struct {
		code string
		want []string
	}{
		{"limits_multiply", []string{"8 x 200 = 1600", "limit of 25 each"}},
		{"fan_out_tail", []string{"1 - 0.99^100 = 63.4 %", "p99.99 of one call"}},
		{"loop_slower_than_retries", []string{"every 10s", "after 100ms"}},
	} {
		f := find(a.Findings, c.code)
		if f == nil {
			t.Errorf("no %s in %+v", c.code, a.Findings)
			continue
		}
		said(t, f.Text+" "+f.Fix, c.want...)
	}
	// At the door, each slot held for what is further in: 2 x 8 x 200/74ms, 10 x
	// 60/54ms, 1000 x 8/4ms for 100 calls each.
	for i, want := range []float64{3200 / 0.074, 600 / 0.054, 20_000} {
		near(t, a.Layers[i].Name, a.Layers[i].Rate, want, 1e-9)
	}
	if a.Narrowest != "search" {
		t.Errorf("narrowest is %s", a.Narrowest)
	}
	near(t, "the whole", a.Rate, 600/0.054, 1e-6)
	// The wait of a layer that says none is that of its derived depth.
	l := a.Layers[1]
	near(t, "wait", l.Wait, float64(l.Limiter.Depth)*0.054/60, 1e-9)
	near(t, "services", a.Services, 0.074, 1e-9)
	top.Layers[0].Shared = true
	if a := check(t, top); find(a.Findings, "limits_multiply") != nil {
		t.Error("workers that share a limit multiply")
	}
	said(t, a.Markdown("goodput plan top.yaml"), "## search: each of its 10 limiters", "goodput plan top.yaml")
	said(t, a.GoComment("goodput plan top.yaml"), "// search:", "60 slots / 54ms mean = 1111/s", "rule of thumb 80: p99 would be 44ms")
}

// Each attempt waits again further in: three of 800 ms do not fit two seconds.
func TestAttemptsAgainstDeadline(t *testing.T) {
	top := Topology{Deadline: 2 * time.Second, Layers: []Layer{{Name: "api", Wait: ms, Attempts: 3}, {Name: "database", Wait: 800 * ms}}}
	f := find(check(t, top).Findings, "attempts_exceed_deadline")
	if f == nil {
		t.Fatal("3 x 800ms in 2s is not seen")
	}
	said(t, f.Text+f.Fix, "3 x 800ms = 2.4s", "at most 2 attempts")
	top.Layers[0].Attempts = 2
	if a := check(t, top); len(a.Findings) > 0 {
		t.Errorf("2 attempts: %+v", a.Findings)
	}
}

func TestFaults(t *testing.T) {
	with := func(f func(*Topology)) Topology { top := pods(); f(&top); return top }
	for _, c := range []struct {
		top  Topology
		path string
		want string
	}{
		{Topology{}, "deadline", "missing"},
		{Topology{Deadline: time.Second}, "layers", "0 layers"},
		{with(func(t *Topology) { t.Deadline = 25 * time.Hour }), "deadline", "25h"},
		{with(func(t *Topology) { t.Layers[1].Name = "pod pool" }), "layers[1].name", "pod pool"},
		{with(func(t *Topology) { t.Layers[0].Resource = "polar" }), "layers[0].resource", "polar"},
		{with(func(t *Topology) { t.Layers[0].Limit = 0 }), "layers[0].limit", "missing"},
		{with(func(t *Topology) { t.Layers[0].Limit = -1 }), "layers[0].limit", "-1"},
		{with(func(t *Topology) { t.Layers[0].Surge = -1 }), "layers[0].surge", "-1"},
		{with(func(t *Topology) { t.Layers[2].Attempts = 101 }), "layers[2].attempts", "1"},
		{with(func(t *Topology) { t.Layers[2].RetryBudget = math.NaN() }), "layers[2].retry_budget", "NaN"},
		{with(func(t *Topology) { t.Layers[2].Objective = ms }), "layers[2].objective", "service"},
		{with(func(t *Topology) { t.Layers[2].Depth = 5 }), "layers[2].depth", "service"},
		{with(func(t *Topology) { t.Layers[2].Service = exp50 }), "layers[2].limit", "missing"},
		{with(func(t *Topology) { t.Layers[0].Service = exp50; t.Layers[0].Percentile = 2 }), "layers[0]", "percentile 2"},
		{with(func(t *Topology) { t.Resources[0].Limit = Range{} }), "resources[0].limit", "1 to"},
		{with(func(t *Topology) { t.Resources[0].Limit = Range{9, 8} }), "resources[0].limit", "8"},
		{with(func(t *Topology) { t.Resources[0].Name = "" }), "resources[0].name", "name"},
	} {
		found := false
		for _, f := range c.top.Faults() {
			found = found || f.Path == c.path && strings.Contains(f.Text, c.want)
		}
		if !found {
			t.Errorf("no fault at %s that says %s: %+v", c.path, c.want, c.top.Faults())
		}
	}
	if f := pods().Faults(); len(f) > 0 {
		t.Errorf("%+v", f)
	}
}
