package load

import (
	"testing"
	"time"
)

// Who is between two attempts when its deadline comes, as it may be on a machine that woke it too
// late, has nothing on the wire: no answer is to come, and it is none of those that are left there.
func TestWhoWaitsToTryAgainIsNotFollowed(t *testing.T) {
	for _, paused := range []bool{true, false} {
		g, err := New(Plan{Rate: 1, Duration: time.Second, Deadline: time.Second, Follow: time.Second}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := &call{paused: paused}
		g.inFlight = 1
		got := g.follow(c)
		if got == paused || c.follow == paused || g.res.Followed.Asked != int64(g.asked) || (g.asked == 0) != paused || (g.inFlight == 1) != paused {
			t.Errorf("paused %v: followed %v, %d asked, %d in flight", paused, got, g.asked, g.inFlight)
		}
	}
}
