package goodput

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const ms = time.Millisecond

var errBoom = errors.New("boom")

// planned is what one call of a test does: it takes its time, stops early if its context
// ends unless it is deaf, and then fails or answers its index.
type planned struct {
	takes time.Duration
	err   error
	deaf  bool
}

func (p planned) run(ctx context.Context, i int) (int, error) {
	timer := time.NewTimer(p.takes)
	defer timer.Stop()
	done := ctx.Done()
	if p.deaf {
		done = nil
	}
	select {
	case <-timer.C:
	case <-done:
		return 0, ctx.Err()
	}
	if p.err != nil {
		return 0, p.err
	}
	return i, nil
}

func takes(ds ...time.Duration) (ps []planned) {
	for _, d := range ds {
		ps = append(ps, planned{takes: d})
	}
	return ps
}

// gather runs plans under a budget, 0 for none, and returns when it returned as well.
func gather(budget time.Duration, g Gathering[int], plans []planned) (*Gathered[int], time.Duration, error) {
	ctx := context.Background()
	if budget > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, budget)
		defer cancel()
	}
	start := time.Now()
	got, err := Gather(ctx, g, len(plans), func(ctx context.Context, i int) (int, error) { return plans[i].run(ctx, i) })
	return got, time.Since(start), err
}

// outcomes is what became of each call, in words: "1" for a result that came.
func outcomes(got *Gathered[int]) string {
	words := make([]string, len(got.Values))
	for i := range got.All() {
		words[i] = "came"
	}
	for _, m := range got.Missing {
		words[m.Index] = m.Outcome.String()
	}
	return strings.Join(words, " ")
}

// Every mode, each at its exact instant. The budget is 200 ms and its default margin 20 ms,
// so time is up at 180 ms.
func TestGatherModes(t *testing.T) {
	refused := &Rejection{Reason: QueueFull, Outcome: Rejected}
	for _, tt := range []struct {
		name  string
		g     Gathering[int]
		plans []planned
		want  string
		at    time.Duration
		short bool
		is    error // what the error matches
	}{
		{name: "all in time", g: Gathering[int]{Min: 3}, plans: takes(10*ms, 30*ms, 20*ms), want: "came came came", at: 30 * ms},
		{name: "what comes in time", plans: takes(10*ms, 300*ms, 179*ms), want: "came late came", at: 180 * ms},
		{name: "too few in time", g: Gathering[int]{Min: 3}, plans: takes(10*ms, 300*ms, 20*ms), want: "came late came", at: 180 * ms, short: true, is: context.DeadlineExceeded},
		{name: "a deaf one does not hold it", plans: []planned{{takes: 10 * ms}, {takes: time.Second, deaf: true}}, want: "came late", at: 180 * ms},
		{
			name: "all, one fails: over at once", g: Gathering[int]{Min: 3},
			plans: []planned{{takes: 10 * ms}, {takes: 20 * ms, err: errBoom}, {takes: 50 * ms}},
			want:  "came failed abandoned", at: 20 * ms, short: true, is: errBoom,
		},
		{
			name: "one fails and is not needed", g: Gathering[int]{Min: 2},
			plans: []planned{{takes: 10 * ms}, {takes: 20 * ms, err: errBoom}, {takes: 50 * ms}},
			want:  "came failed came", at: 50 * ms,
		},
		{name: "first", g: Gathering[int]{Enough: 1}, plans: takes(30*ms, 10*ms), want: "abandoned came", at: 10 * ms},
		{
			name: "first, after a failure", g: Gathering[int]{Enough: 1},
			plans: []planned{{takes: 10 * ms, err: errBoom}, {takes: 40 * ms}}, want: "failed came", at: 40 * ms,
		},
		{name: "quorum", g: Gathering[int]{Min: 2, Enough: 2}, plans: takes(30*ms, 10*ms, 40*ms), want: "came came abandoned", at: 30 * ms},
		{
			name: "quorum out of reach", g: Gathering[int]{Min: 2, Enough: 2},
			plans: []planned{{takes: 10 * ms, err: errBoom}, {takes: 40 * ms}, {takes: 20 * ms, err: refused}},
			want:  "failed abandoned rejected", at: 20 * ms, short: true, is: errBoom,
		},
		{name: "good enough, early", g: Gathering[int]{Min: 1, Enough: 2}, plans: takes(10*ms, 300*ms, 40*ms), want: "came abandoned came", at: 40 * ms},
		{name: "good enough, at the end", g: Gathering[int]{Min: 1, Enough: 2}, plans: takes(10*ms, 300*ms, 400*ms), want: "came late late", at: 180 * ms},
		{name: "more than enough is all", g: Gathering[int]{Enough: 9}, plans: takes(10*ms, 40*ms), want: "came came", at: 40 * ms},
		{name: "one after the other", g: Gathering[int]{Parallel: 1}, plans: takes(80*ms, 80*ms, 80*ms, 80*ms), want: "came came late expired", at: 180 * ms},
		{name: "one after the other, enough", g: Gathering[int]{Parallel: 1, Enough: 1}, plans: takes(80*ms, 80*ms), want: "came cancelled", at: 80 * ms},
		{name: "two at a time", g: Gathering[int]{Parallel: 2}, plans: takes(80*ms, 30*ms, 30*ms, 30*ms), want: "came came came came", at: 90 * ms},
		{name: "more are needed than there are", g: Gathering[int]{Min: 3}, plans: takes(10*ms, 10*ms), want: "cancelled cancelled", short: true, is: ErrUnneeded},
		{name: "of none, nothing is needed", plans: nil, want: ""},
		{name: "of none, one is needed", g: Gathering[int]{Min: 1}, want: "", short: true},
		{name: "of one", plans: takes(10 * ms), want: "came", at: 10 * ms},
		{name: "nobody answers", plans: takes(300*ms, 300*ms), want: "late late", at: 180 * ms, short: true, is: context.DeadlineExceeded},
		{name: "the margin is larger than the budget", g: Gathering[int]{Margin: time.Hour}, plans: takes(0, 0), want: "expired expired", short: true, is: context.DeadlineExceeded},
		{name: "a margin of its own", g: Gathering[int]{Margin: 150 * ms}, plans: takes(10*ms, 60*ms), want: "came late", at: 50 * ms},
		{name: "no margin", g: Gathering[int]{Margin: 1}, plans: takes(199*ms, 201*ms), want: "came late", at: 200*ms - 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, at, err := gather(200*ms, tt.g, tt.plans)
				if s := outcomes(got); s != tt.want || at != tt.at {
					t.Errorf("after %v: %s, want after %v: %s", at, s, tt.at, tt.want)
				}
				var short *Shortfall
				if errors.As(err, &short) != tt.short || (err != nil) != tt.short {
					t.Errorf("error %v, want a shortfall: %v", err, tt.short)
				}
				if tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("%v does not match %v", err, tt.is)
				}
				if errors.Is(err, ErrRejected) {
					t.Errorf("%v says that nothing was executed", err)
				}
				for i, v := range got.All() {
					if v != i {
						t.Errorf("result %d at index %d", v, i)
					}
				}
				synctest.Wait()
				if tt.name != "a deaf one does not hold it" && got.Left() != 0 {
					t.Errorf("%d calls left", got.Left())
				}
				if err := got.Wait(t.Context()); err != nil {
					t.Errorf("Wait: %v", err)
				}
			})
		})
	}
}

// The default margin is 20 ms, and a tenth of a budget below 200 ms.
func TestGatherMargin(t *testing.T) {
	for _, tt := range []struct{ budget, at time.Duration }{
		{time.Hour, time.Hour - 20*ms},
		{250 * ms, 230 * ms},
		{200 * ms, 180 * ms},
		{50 * ms, 45 * ms},
		{ms, 900 * time.Microsecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			var seen time.Duration
			ctx, cancel := context.WithTimeout(t.Context(), tt.budget)
			defer cancel()
			start := time.Now()
			_, err := Gather(ctx, Gathering[int]{}, 1, func(ctx context.Context, _ int) (int, error) {
				deadline, _ := ctx.Deadline()
				seen = deadline.Sub(start)
				<-ctx.Done()
				if context.Cause(ctx) != errTimeUp {
					t.Errorf("the cause is %v", context.Cause(ctx))
				}
				return 0, ctx.Err()
			})
			at := time.Since(start)
			synctest.Wait() // the call has ended as well
			if at != tt.at || seen != tt.at {
				t.Errorf("a budget of %v: returned after %v, the calls were told %v, want %v (%v)", tt.budget, at, seen, tt.at, err)
			}
			if ctx.Err() != nil {
				t.Error("the deadline of the caller has passed: there is no margin")
			}
		})
	}
}

// Without a deadline Gather waits for what it needs, and says no deadline to the calls.
func TestGatherWithoutDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, at, err := gather(0, Gathering[int]{Margin: time.Hour}, takes(10*ms, 48*time.Hour))
		if err != nil || got.Came() != 2 || at != 48*time.Hour {
			t.Errorf("%d came after %v: %v", got.Came(), at, err)
		}
	})
}

// The caller leaves: Gather returns at once, with what there is.
func TestGatherCallerLeaves(t *testing.T) {
	why := errors.New("the user closed the page")
	for _, need := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(50*ms, func() { cancel(why) })
			start := time.Now()
			plans := takes(10*ms, 80*ms, 80*ms)
			got, err := Gather(ctx, Gathering[int]{Min: need, Parallel: 2}, 3, func(ctx context.Context, i int) (int, error) {
				return plans[i].run(ctx, i)
			})
			if s := outcomes(got); s != "came abandoned abandoned" || time.Since(start) != 50*ms {
				t.Errorf("after %v: %s", time.Since(start), s)
			}
			if got.Missing[0].Err != why {
				t.Errorf("missing because of %v, want the cause of the caller", got.Missing[0].Err)
			}
			if (err != nil) != (need == 2) || err != nil && !errors.Is(err, why) {
				t.Errorf("needed %d: %v", need, err)
			}

			got, err = Gather(ctx, Gathering[int]{}, 2, func(context.Context, int) (int, error) {
				t.Error("a call was made for a caller that had left")
				return 0, nil
			})
			if s := outcomes(got); s != "cancelled cancelled" || !errors.Is(err, why) {
				t.Errorf("%s: %v", s, err)
			}
		})
	}
}

// Who is not needed any more is told why.
func TestGatherCauses(t *testing.T) {
	for _, tt := range []struct {
		first error
		g     Gathering[int]
		want  error
	}{
		{nil, Gathering[int]{Enough: 1}, errEnough},
		{errBoom, Gathering[int]{Min: 2}, errHopeless},
	} {
		synctest.Test(t, func(t *testing.T) {
			var cause error
			got, _ := Gather(t.Context(), tt.g, 2, func(ctx context.Context, i int) (int, error) {
				if i == 0 {
					time.Sleep(ms)
					return 0, tt.first
				}
				<-ctx.Done()
				cause = context.Cause(ctx)
				return 0, ctx.Err()
			})
			synctest.Wait()
			if cause != tt.want || !errors.Is(cause, ErrUnneeded) || got.Missing[len(got.Missing)-1].Err != tt.want {
				t.Errorf("the cause is %v, and %+v is missing, want %v", cause, got.Missing, tt.want)
			}
		})
	}
}

// What comes when it is over is dropped and given to Discard, and changes nothing that
// the caller has.
func TestGatherDiscards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type late struct {
			i, v int
			err  error
		}
		var told []late
		g := Gathering[int]{Discard: func(i, v int, err error) { told = append(told, late{i, v, err}) }}
		got, _, err := gather(200*ms, g, []planned{
			{takes: 10 * ms},
			{takes: 300 * ms, deaf: true},
			{takes: 400 * ms, deaf: true, err: errBoom},
		})
		if err != nil || got.Left() != 2 || outcomes(got) != "came late late" {
			t.Fatalf("%d left, %s: %v", got.Left(), outcomes(got), err)
		}
		values := slices.Clone(got.Values)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*ms, errBoom)
		defer cancel()
		if err := got.Wait(ctx); err != errBoom {
			t.Errorf("Wait returned %v before its context ended", err)
		}
		if err := got.Wait(t.Context()); err != nil || got.Left() != 0 {
			t.Errorf("Wait: %v with %d left", err, got.Left())
		}
		if want := []late{{1, 1, nil}, {2, 0, errBoom}}; !reflect.DeepEqual(told, want) {
			t.Errorf("Discard was told %v, want %v", told, want)
		}
		if !slices.Equal(got.Values, values) {
			t.Errorf("the values became %v", got.Values)
		}
	})
}

// A panic of a call goes on in the caller, with the stack of the call, once the others
// were cancelled; one that nobody waits for any more is for Discard and Wait.
func TestGatherPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		var dropped []int
		defer func() {
			synctest.Wait()
			p, ok := recover().(*Panic)
			if !ok || p.Index != 1 || p.Value != errBoom || !errors.Is(p, errBoom) {
				t.Fatalf("the caller panicked with %v", p)
			}
			if s := p.Error(); !strings.Contains(s, "call 1 of a gathering panicked: boom") || !strings.Contains(s, "explode") {
				t.Errorf("%s\nhas no stack of the call", s)
			}
			if cause != errBroken {
				t.Errorf("the other was told %v", cause)
			}
			if !slices.Equal(dropped, []int{0}) {
				t.Errorf("%v were discarded, want what had come", dropped)
			}
		}()
		g := Gathering[int]{Discard: func(i, _ int, err error) {
			if err == nil {
				dropped = append(dropped, i)
			}
		}}
		Gather(t.Context(), g, 3, func(ctx context.Context, i int) (int, error) { //nolint:errcheck // it panics
			switch i {
			case 0:
				return 7, nil
			case 1:
				time.Sleep(ms)
				explode()
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return 0, ctx.Err()
		})
	})
	synctest.Test(t, func(t *testing.T) {
		var told error
		got, err := Gather(t.Context(), Gathering[int]{Enough: 1, Discard: func(_, _ int, err error) { told = err }}, 2,
			func(_ context.Context, i int) (int, error) {
				time.Sleep(time.Duration(i+1) * ms)
				if i == 1 {
					explode()
				}
				return 0, nil
			})
		if err != nil {
			t.Error(err)
		}
		var p *Panic
		if err := got.Wait(t.Context()); !errors.As(err, &p) || p.Index != 1 || told != p {
			t.Errorf("Wait returned %v, Discard was told %v", err, told)
		}
	})
}

func explode() { panic(errBoom) }

// runtime.Goexit, as of t.FailNow, ends one call and not the gathering.
func TestGatherGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, err := Gather(t.Context(), Gathering[int]{Parallel: 1}, 3, func(_ context.Context, i int) (int, error) {
			if i == 0 {
				runtime.Goexit()
			}
			return i, nil
		})
		if s := outcomes(got); err != nil || s != "failed came came" {
			t.Errorf("%s: %v", s, err)
		}
	})
}

// A call that ends with its deadline a moment before the context says so was late: it did
// not fail. Which of two timers of one instant is first is a matter of chance, so it is
// tried 100 times.
func TestGatherClock(t *testing.T) {
	for range 100 {
		synctest.Test(t, gatherClock)
	}
}

func gatherClock(t *testing.T) {
	got, at, err := gather(200*ms, Gathering[int]{}, []planned{
		{takes: ms},
		{takes: 180 * ms, err: &net.OpError{Op: "dial", Err: errBoom}},
		{takes: 179 * ms, err: errBoom},
	})
	if s := outcomes(got); err != nil || s != "came late failed" || at != 180*ms {
		t.Errorf("after %v: %s, %v", at, s, err)
	}
}

// A *Rejection is found in a Shortfall only if nothing was executed.
func TestGatherRejections(t *testing.T) {
	refused := &Rejection{Reason: QueueFull, Outcome: Rejected, Limiter: "shard"}
	for _, tt := range []struct {
		need  int
		plans []planned
		found bool
	}{
		{1, []planned{{takes: ms, err: refused}, {takes: 2 * ms, err: fmt.Errorf("shard 2: %w", refused)}}, true},
		{2, []planned{{takes: 2 * ms, err: refused}, {takes: ms}}, false},
		{1, []planned{{takes: ms, err: refused}, {takes: 2 * ms, err: errBoom}}, false},
		{2, []planned{{takes: ms, err: refused}, {takes: time.Hour}}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, _, err := gather(0, Gathering[int]{Min: tt.need}, tt.plans)
			if found := errors.Is(err, ErrRejected); err == nil || found != tt.found {
				t.Errorf("%v: a rejection is found: %v", err, found)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		got, _, err := gather(0, Gathering[int]{Min: 2, Parallel: 1}, []planned{{err: refused}, {}})
		var r *Rejection
		if outcomes(got) != "rejected cancelled" || !errors.As(err, &r) || r != refused {
			t.Errorf("%s: %v", outcomes(got), err)
		}
	})
}

// No shape of a gathering loses or repeats a call.
func TestGatherSizes(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1023, 1024, 1025, 10_000} {
		for _, parallel := range []int{0, 1, 7, mostParallel} {
			synctest.Test(t, func(t *testing.T) {
				var now, most atomic.Int64
				got, err := Gather(t.Context(), Gathering[int]{Parallel: parallel}, n, func(_ context.Context, i int) (int, error) {
					most.Store(max(most.Load(), now.Add(1))) // exact: all start before the first ends
					time.Sleep(ms)
					now.Add(-1)
					return i, nil
				})
				want := min(n, parallel)
				if parallel == 0 {
					want = min(n, 1024)
				}
				if err != nil || got.Came() != n || int(most.Load()) > want {
					t.Errorf("%d of %d came, %d at once, want at most %d: %v", got.Came(), n, most.Load(), want, err)
				}
				for i, v := range got.All() {
					if i != v {
						t.Fatalf("%d at %d", v, i)
					}
				}
			})
		}
	}
}

// Both ends of each bound, with the sentence.
func TestGatheringBounds(t *testing.T) {
	for _, tt := range []struct {
		g    Gathering[int]
		says string
	}{
		{Gathering[int]{}, ""},
		{Gathering[int]{Min: MaxGather}, ""},
		{Gathering[int]{Min: -1}, "needs -1 results"},
		{Gathering[int]{Min: MaxGather + 1}, "needs 1048577 results: 1 to 1048576"},
		{Gathering[int]{Enough: MaxGather}, ""},
		{Gathering[int]{Enough: -1}, "-1 results are enough"},
		{Gathering[int]{Enough: MaxGather + 1}, "1048577 results are enough"},
		{Gathering[int]{Min: 3, Enough: 3}, ""},
		{Gathering[int]{Min: 3, Enough: 2}, "has enough with 2 results and needs 3"},
		{Gathering[int]{Margin: 1}, ""},
		{Gathering[int]{Margin: 24 * time.Hour}, ""},
		{Gathering[int]{Margin: -1}, "margin of a gathering is -1ns"},
		{Gathering[int]{Margin: 24*time.Hour + 1}, "1ns to 24h0m0s"},
		{Gathering[int]{Linger: 1}, ""},
		{Gathering[int]{Linger: 24 * time.Hour}, ""},
		{Gathering[int]{Linger: -1}, "lingers for -1ns"},
		{Gathering[int]{Linger: 24*time.Hour + 1}, "lingers for 24h0m0.000000001s: 1ns to 24h0m0s"},
		{Gathering[int]{Parallel: 1}, ""},
		{Gathering[int]{Parallel: 65536}, ""},
		{Gathering[int]{Parallel: -1}, "runs -1 calls at once"},
		{Gathering[int]{Parallel: 65537}, "runs 65537 calls at once: 1 to 65536"},
	} {
		err := tt.g.Validate()
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%+v: %v, want %q", tt.g, err, tt.says)
		}
	}
	for _, n := range []int{-1, MaxGather + 1} {
		func() {
			defer func() {
				if s, _ := recover().(string); !strings.Contains(s, "0 to 1048576") {
					t.Errorf("n = %d: %q", n, s)
				}
			}()
			Gather(t.Context(), Gathering[int]{}, n, func(context.Context, int) (int, error) { return 0, nil }) //nolint:errcheck // it panics
		}()
	}
}

// The sentence of a Shortfall has its numbers.
func TestShortfallSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, err := gather(200*ms, Gathering[int]{Min: 3}, []planned{
			{takes: ms},
			{takes: ms, err: errBoom},
			{takes: time.Second},
			{takes: ms},
			{takes: time.Second},
			{takes: 2 * ms, err: errors.New("second")},
		})
		want := "goodput: 2 of 6 results came and 3 are needed: 2 late, 2 failed; call 1: boom"
		if err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	})
}
