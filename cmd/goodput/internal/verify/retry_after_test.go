package verify

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// A load keeps 32 different values of Retry-After, and counts what comes after them as the nearest.
// The longest is judged as it was all the same: a day among 1 to 32 s.
func TestRetryAfterBeyondThoseThatAreKept(t *testing.T) {
	said := func(last int) *load.Result {
		var n atomic.Int64
		var res *load.Result
		synctest.Test(t, func(t *testing.T) {
			g, err := load.New(load.Plan{Rate: 100, Duration: 330 * time.Millisecond, Constant: true, Deadline: time.Second}, func(context.Context) load.Answer {
				after := int(n.Add(1))
				if after == 33 {
					after = last
				}
				return load.Answer{Status: 503, Reason: "x", Marked: true, RetryAfter: strconv.Itoa(after)}
			})
			if err != nil {
				t.Fatal(err)
			}
			res = g.Run(t.Context())
		})
		return res
	}
	for last, met := range map[int]bool{86_400: false, 3601: false, 3600: true, 33: true} {
		r := good()
		stepOf(r, 3).Result.RetryAfter = said(last).RetryAfter
		f := judgeRetryAfter(evidenceOf(r))
		if f.met != met || !met && !strings.Contains(f.why, "is more than 1 h") {
			t.Errorf("1 to 32 and %d s: met %v, want %v: %s, %s", last, f.met, met, f.measured, f.why)
		}
	}
}
