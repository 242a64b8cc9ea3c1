package limit_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

func TestFixedRange(t *testing.T) {
	for _, c := range []struct {
		law limit.Fixed
		ok  bool
	}{
		{math.MinInt, false},
		{-1, false},
		{0, true}, // paused
		{1, true},
		{60, true},
		{limit.Max, true},
		{limit.Max + 1, false},
		{math.MaxInt, false},
	} {
		n, err := c.law.Start()
		switch {
		case c.ok && (err != nil || n != int(c.law)):
			t.Errorf("%v starts at %d, %v", c.law, n, err)
		case !c.ok && err == nil:
			t.Errorf("%v starts at %d, want an error", c.law, n)
		case !c.ok:
			// The sentence has the value and both ends of the range.
			for _, want := range []string{fmt.Sprint(int(c.law)), "0 to 1048576"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		}
	}
}

func TestFixedStays(t *testing.T) {
	for _, w := range []limit.Window{
		{},
		{Length: time.Second, Samples: 1000, Mean: time.Hour},
		{Length: -1, Samples: -1, Mean: math.MaxInt64},
	} {
		if m := limit.Fixed(60).Begin(1).Next(7, &w); m != (limit.Move{Limit: 60}) {
			t.Errorf("Fixed(60) moved to %+v after %+v", m, w)
		}
	}
}

func ExampleFixed() {
	law := limit.Fixed(60)
	n, _ := law.Start()
	fmt.Println(law, "starts at", n)

	_, err := limit.Fixed(-1).Start()
	fmt.Println(err)
	// Output:
	// fixed(60) starts at 60
	// limit -1 is out of range: a fixed limit is 0 to 1048576 units of cost
}
