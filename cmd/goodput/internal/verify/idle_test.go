package verify

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// idleOf is the sample of a service of whose first n answers to 50 requests each is a, and whose
// others are 200.
func idleOf(n int, a load.Answer) *sample {
	s := &sample{Idle: Idle{Status: map[int]int{}}}
	for i := range 50 {
		if i >= n {
			a = load.Answer{Status: 200}
		}
		s.add(a, time.Millisecond)
	}
	s.sum()
	return s
}

// More than half of the idle answers that are none is a service with which something else is wrong.
// Half and less are told, and what comes of it is judged.
func TestMostOfTheIdleAnswersDecide(t *testing.T) {
	for name, c := range map[string]struct {
		answer load.Answer
		expect []int
		want   string
	}{
		"lost":          {load.Answer{Err: errors.New("connection reset")}, nil, "answers nothing while it is idle: 26 of 50 requests"},
		"no answer":     {load.Answer{Err: context.DeadlineExceeded}, nil, "does not answer while it is idle: 26 of 50 requests"},
		"fails":         {load.Answer{Status: 500}, nil, "fails while it is idle: 26 of 50 requests"},
		"another":       {load.Answer{Status: 404}, []int{200}, "the idle service answers 404, which is none of --expect 200"},
		"another of 2":  {load.Answer{Status: 404}, []int{200, 204}, "--expect 200,204"},
		"refuses (not)": {refusal, nil, ""}, // it is judged by what it refuses
	} {
		if got := idleOf(26, c.answer).void(c.expect); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s, 26 of 50: %q, want %q", name, got, c.want)
		}
		if got := idleOf(25, c.answer).void(c.expect); got != "" {
			t.Errorf("%s, 25 of 50: %q", name, got)
		}
	}
}

// A redirect is what is measured then, and seldom what was meant.
func TestNotesOfAnIdleService(t *testing.T) {
	for status, want := range map[int]string{
		200: "",
		302: "The idle service answers 302; a redirect is not followed.",
		404: "The idle service answers 404, and this is taken for what it is asked to do: is the URL the right one?",
	} {
		if got := strings.Join(idleOf(50, load.Answer{Status: status}).notes(time.Second), "\n"); got != want {
			t.Errorf("%d: %q, want %q", status, got, want)
		}
	}
}

// 50 requests take 2.5 s, for a body with the time in it to change, and a service that takes
// longer for each is asked for 10 s.
func TestAnIdleServiceIsAskedForAWhile(t *testing.T) {
	for each, want := range map[time.Duration]struct {
		requests int
		took     time.Duration
	}{
		time.Millisecond:       {50, 2500 * time.Millisecond},
		50 * time.Millisecond:  {50, 2500 * time.Millisecond},
		100 * time.Millisecond: {50, 5 * time.Second},
		3 * time.Second:        {4, 12 * time.Second}, // the fourth began after 9 s
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &run{cfg: Config{Settings: settings()}, send: func(context.Context) load.Answer { time.Sleep(each); return load.Answer{Status: 200} }}
			began := time.Now()
			s := r.ask(t.Context())
			if took := time.Since(began); s.Requests != want.requests || took != want.took {
				t.Errorf("%v each: %d requests in %v, want %d in %v", each, s.Requests, took, want.requests, want.took)
			}
		})
	}
}
