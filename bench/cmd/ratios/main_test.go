package main

import (
	"strings"
	"testing"
)

const output = `goos: linux
BenchmarkDo/xsync        100  10.0 ns/op  0 B/op  0 allocs/op
BenchmarkDo/goodput      100  12.0 ns/op  0 B/op  0 allocs/op
BenchmarkDo/goodput-2    100  50.0 ns/op  0 B/op  0 allocs/op
BenchmarkDo/xsync        100  20.0 ns/op  0 B/op  0 allocs/op
BenchmarkDo/goodput      100  26.0 ns/op  8 B/op  1 allocs/op
BenchmarkDo/goodput-2    100  70.0 ns/op  0 B/op  0 allocs/op
BenchmarkDo/xsync        100  10.0 ns/op  0 B/op  0 allocs/op
BenchmarkDo/goodput      100  40.0 ns/op  0 B/op  0 allocs/op
BenchmarkDo/goodput-2    100  60.0 ns/op  0 B/op  0 allocs/op
PASS
`

func TestRatiosWithinPasses(t *testing.T) {
	tab, err := parse(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := tab.print(&b); err != nil {
		t.Fatal(err)
	}
	// 12/10, 26/20, 40/10: the median pass is 1.3, while 26/10 compares two
	// moods of the machine. The worst allocation counts.
	want := []string{
		"Do, GOMAXPROCS 1 ns/op spread B/op allocs/op x xsync x failsafe-adaptive",
		"xsync 10 100 % 0 0 1.00 -",
		"goodput 26 108 % 8 1 1.30 -",
		"",
		"Do, GOMAXPROCS 2 ns/op spread B/op allocs/op x xsync x failsafe-adaptive",
		"goodput 60 33 % 0 0 - -",
	}
	for i, line := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		if got := strings.Join(strings.Fields(line), " "); i >= len(want) || got != want[i] {
			t.Errorf("line %d: %q, want %q", i, got, want[min(i, len(want)-1)])
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, in := range []string{
		"",
		"PASS\n",
		output + "--- FAIL: BenchmarkDo/goodput\n",
		output + "FAIL\tgithub.com/goodput/goodput/bench\t1s\n",
		"BenchmarkDo/xsync 100 ten ns/op\n",
	} {
		if _, err := parse(strings.NewReader(in)); err == nil {
			t.Errorf("%q: no error", in)
		}
	}
}
