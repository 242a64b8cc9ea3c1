package limit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

func TestAIMD(t *testing.T) {
	why := script(t, limit.AIMD{Min: 2},
		second{what: "all in use", mean: 50 * msec, want: 21},
		second{what: "less than half", mean: 50 * msec, peak: 10, want: 21},
		second{what: "just more than half", mean: 50 * msec, peak: 11, want: 22},
		second{what: "slow is no matter", mean: 4 * time.Second, want: 23},
		second{what: "slower than the timeout", mean: 6 * time.Second, want: 20}, // int(20.7)
		second{what: "one dropped", mean: 50 * msec, dropped: 1, want: 18},
		second{what: "all dropped", samples: -1, dropped: 40, want: 16},
		second{what: "nine dropped, no more", samples: -1, dropped: 9, want: 16},
		second{what: "nothing", samples: -1, want: 16},
	)
	if want := "aimd: 18 -> 16: 40 of 40 dropped, x 0.9"; why != want {
		t.Errorf("why: %q, want %q", why, want)
	}
	// One less at least, and no less than Min.
	drop := second{mean: 50 * msec, dropped: 1}
	for from, want := range map[int]int{5: 4, 4: 3, 3: 2, 2: 2} {
		drop.want = want
		script(t, limit.AIMD{From: from, Min: 2}, drop)
	}
}

// Its failure: nothing drops, so it climbs to the end, whatever the times are.
func TestAIMDDoesNotSeeAQueue(t *testing.T) {
	law := limit.AIMD{}
	now, _ := law.Start()
	state := law.Begin(1)
	for i := range 300 {
		now = play(state, now, second{mean: time.Duration(50+10*i) * msec, samples: 100, peak: now})
	}
	if now != 200 {
		t.Errorf("limit %d, want the most, 200", now)
	}
}

func ExampleAIMD() {
	law := limit.AIMD{From: 40, Max: 100}
	now, _ := law.Start()
	state := law.Begin(1)

	// A second in which the database refused 3 of 500 connections.
	now = state.Next(now, &limit.Window{
		Length: time.Second, Peak: 40, Ended: 500, Dropped: 3, Samples: 497, Own: 60 * time.Millisecond,
	}).Limit
	fmt.Println(now)
	fmt.Println(state.Why())
	// Output:
	// 36
	// aimd: 40 -> 36: 3 of 500 dropped, x 0.9
}
