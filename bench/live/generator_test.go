package live

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestOfferCountsFromDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Cold(0.5, 60, 50*time.Millisecond, second, 1)
		begun := 100 * time.Millisecond // the generator wakes up when the first are overdue
		y := offer(t.Context(), p, time.Now().Add(-begun), func(_ context.Context, work time.Duration) answer {
			time.Sleep(350 * time.Millisecond)
			return answer{status: http.StatusOK}
		})
		overdue := 0
		for r := range p.Requests() {
			if r.Due < begun-50*time.Millisecond {
				overdue++ // took more than 400 ms
			}
		}
		if overdue == 0 || y.good != y.offered || y.good-y.quick != overdue {
			t.Errorf("%d of %d good, %d not quick, want %d", y.good, y.offered, y.good-y.quick, overdue)
		}
		if late := quantile(y.lateness, 1); late <= 50*time.Millisecond || late > begun {
			t.Errorf("at most %v late, want nearly %v", late, begun)
		}
	})
}

func TestOfferGivesUpAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Cold(0.1, 60, 50*time.Millisecond, second, 2)
		begin := time.Now()
		y := offer(t.Context(), p, begin, func(ctx context.Context, _ time.Duration) answer {
			<-ctx.Done()
			return answer{err: ctx.Err()}
		})
		if y.late != y.offered || y.offered == 0 || y.failed != 0 {
			t.Errorf("%d late and %d failed of %d", y.late, y.failed, y.offered)
		}
		if d := time.Since(begin); d > 3*second {
			t.Errorf("ended after %v: the last was due within 1 s and had 2", d)
		}
	})
}

func TestOfferDropsWhatDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Cold(1000, 60, time.Millisecond, second/1000, 3) // 60,000 at once
		p.Rate = 6e7
		y := offer(t.Context(), p, time.Now(), func(ctx context.Context, _ time.Duration) answer {
			<-ctx.Done()
			return answer{err: ctx.Err()}
		})
		if y.dropped == 0 || y.late != maxInFlight || y.late+y.dropped != y.offered || y.void(1) == "" {
			t.Errorf("%d dropped and %d late of %d, void %q", y.dropped, y.late, y.offered, y.void(1))
		}
	})
}

func TestOfferIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), second/2)
		defer cancel()
		p := Cold(0.5, 60, 50*time.Millisecond, time.Hour, 4)
		y := offer(ctx, p, time.Now(), func(ctx context.Context, _ time.Duration) answer {
			return answer{err: errors.New("no route to host")}
		})
		if !y.interrupted || y.failed == 0 || y.failed != y.offered || y.firstError == nil {
			t.Errorf("%+v", y)
		}
	})
}

// Who is refused, or left without an answer, asks again, and no more than it may.
func TestAttempts(t *testing.T) {
	refusal, answered, lost := answer{status: 503}, answer{status: 200}, answer{err: context.Canceled}
	for _, c := range []struct {
		name     string
		attempts int
		says     []answer
		asked    int
		want     int
	}{
		{"once", 1, []answer{refusal, answered}, 1, 503},
		{"a refusal", 3, []answer{refusal, answered}, 2, 200},
		{"all of them", 3, []answer{refusal, refusal, {status: 429}, answered}, 3, 429},
		{"an error is none", 3, []answer{lost, answered}, 1, 0},
		{"nor is another status", 3, []answer{{status: 500}, answered}, 1, 500},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			g := &generator{plan: Plan{Attempts: c.attempts, Deadline: second}, send: func(context.Context, time.Duration) answer {
				asked++
				return c.says[asked-1]
			}}
			if a := g.attempts(due{ctx: t.Context()}); a.status != c.want || asked != c.asked {
				t.Errorf("%s: %+v after %d, want %d after %d", c.name, a, asked, c.want, c.asked)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // three deadlines, and two pauses
		begin := time.Now()
		g := &generator{plan: Plan{Attempts: 3, Deadline: second}, send: func(ctx context.Context, _ time.Duration) answer {
			<-ctx.Done()
			return answer{err: ctx.Err()}
		}}
		if a := g.attempts(due{ctx: t.Context()}); a.status != gaveUp || time.Since(begin) != g.plan.patience() || g.plan.patience() != 3200*time.Millisecond {
			t.Errorf("%+v after %v, want it after %v", a, time.Since(begin), g.plan.patience())
		}
	})
}
