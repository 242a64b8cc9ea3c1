package goodputhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// What a handler was refused further down, and what it answers: never the marker.
func TestRefuse(t *testing.T) {
	rejection := func(r goodput.Reason) error {
		return &goodput.Rejection{Reason: r, Outcome: r.Outcome(), RetryAfter: 2 * time.Second}
	}
	short := func(came int, errs ...error) error {
		s := &goodput.Shortfall{Min: 9, Of: 9, Came: came}
		for i, err := range errs {
			o := goodput.Failed
			if errors.Is(err, goodput.ErrRejected) {
				o = goodput.Rejected
			}
			s.Missing = append(s.Missing, goodput.Missing{Index: i, Outcome: o, Err: err})
		}
		return s
	}
	late := short(0)
	late.(*goodput.Shortfall).Missing = []goodput.Missing{{Outcome: goodput.Late, Err: context.DeadlineExceeded}}
	for name, c := range map[string]struct {
		err    error
		status int // 0: it is no refusal
		hint   bool
	}{
		"nil":                      {nil, 0, false},
		"unknown":                  {errNet, 0, false},
		"a deadline":               {context.DeadlineExceeded, 0, false},
		"cancelled":                {rejection(goodput.Client), 0, false},
		"parent":                   {rejection(goodput.Parent), 0, false},
		"queue":                    {rejection(goodput.QueueFull), 503, true},
		"wrapped":                  {fmt.Errorf("charge: %w", rejection(goodput.Shed)), 503, true},
		"quota":                    {rejection(goodput.OverQuota), 503, true},
		"no budget":                {rejection(goodput.NoBudget), 503, false},
		"too large":                {rejection(goodput.TooLarge), 503, false},
		"draining":                 {rejection(goodput.Draining), 503, false},
		"too late":                 {rejection(goodput.Deadline), 504, false},
		"throttled":                {refusing(t).Err(), 503, true},
		"unsent":                   {&url.Error{Op: "Post", Err: &Unsent{Reason: goodput.Unavailable, Err: refusing(t).Err()}}, 503, true},
		"unsent for time":          {&Unsent{Reason: goodput.NoBudget}, 503, false},
		"unsent for its deadline":  {&Unsent{Reason: goodput.Deadline}, 504, false},
		"executed, then refused":   {do(t, retry.Executed(rejection(goodput.QueueFull))), 503, true},
		"another error of retry":   {do(t, errNet), 0, false},
		"a part refused":           {short(2, rejection(goodput.QueueFull)), 503, true},
		"a part refused, one down": {short(2, rejection(goodput.QueueFull), errNet), 0, false},
		"a part throttled":         {short(2, refusing(t).Err()), 503, true},
		"nothing refused":          {late, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			w.Header().Set("Goodput-Rejected", "queue_full") // of an answer that it wanted to pass on
			w.Header().Set("Etag", "x")
			if ok := Refuse(w, request(), c.err); ok != (c.status != 0) {
				t.Fatalf("%v: %v", c.err, ok)
			}
			h := w.Header()
			if c.status == 0 {
				if w.Body.Len() > 0 || len(h) != 2 {
					t.Errorf("writes %v %q", h, w.Body)
				}
				return
			}
			after, _ := strconv.Atoi(h.Get("Retry-After"))
			if w.Code != c.status || (after > 0) != c.hint || h.Get("Goodput-Rejected") != "" ||
				h.Get("Etag") != "" || h.Get("Cache-Control") != "no-store" || !strings.Contains(w.Body.String(), "may have been done") {
				t.Errorf("%d %v %q", w.Code, h, w.Body)
			}
			w = httptest.NewRecorder()
			Refuse(w, request(grpcKind), c.err)
			code, pushback := map[int]string{503: "14", 504: "4"}[c.status], w.Header().Get("Grpc-Retry-Pushback-Ms")
			if w.Code != 200 || w.Header().Get("Grpc-Status") != code || (pushback != "" && pushback != "-1") != c.hint ||
				w.Header().Get("Goodput-Rejected") != "" {
				t.Errorf("gRPC: %d %v", w.Code, w.Header())
			}
		})
	}
	ctx, cancel := context.WithDeadline(background, time.Now().Add(-time.Second))
	defer cancel()
	w := httptest.NewRecorder()
	if !Refuse(w, request().WithContext(ctx), rejection(goodput.QueueFull)) || w.Code != 504 || w.Header().Get("Retry-After") != "" {
		t.Errorf("after the deadline: %d %v", w.Code, w.Header())
	}
}

// do returns the error of a call whose attempts end with err.
func do(t *testing.T, err error) error {
	p := &retry.Policy{Attempts: 1}
	return p.Do(t.Context(), func(context.Context, int) error { return err })
}

// A handler writes an order and is refused further down. With the marker the client would
// write the order three times; after Refuse it is written once, and the limiter in front
// has a failure that teaches it nothing.
func TestRefuseIsNotRepeated(t *testing.T) {
	stock := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	hold(t, stock, 1)
	for name, answer := range map[string]struct {
		with   func(w http.ResponseWriter, r *http.Request, err error)
		orders int32
		post   string
	}{
		"Refuse":                 {func(w http.ResponseWriter, r *http.Request, err error) { Refuse(w, r, err) }, 1, http.MethodPost},
		"Refuse, idempotent":     {func(w http.ResponseWriter, r *http.Request, err error) { Refuse(w, r, err) }, 2, http.MethodPut},
		"ProxyError, which lies": {ProxyError, 2, http.MethodPost},
	} {
		for proto, b := range bases(t) {
			t.Run(name+" "+proto, func(t *testing.T) {
				t.Parallel() // a second is waited for a hint
				var orders atomic.Int32
				front := limiter(4, goodput.Config{})
				srv := start(t, &Server{Limiter: one(front), OverloadStatus: 429, Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					orders.Add(1)
					_, err := stock.Acquire(r.Context())
					answer.with(w, r, err)
				})})
				dep := &Dependency{Retry: &retry.Policy{Attempts: 2, Backoff: time.Millisecond}}
				r, err := http.NewRequest(answer.post, srv.URL, strings.NewReader("an order"))
				if err != nil {
					t.Fatal(err)
				}
				res, err := to(dep, b).RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				text(t, res)
				if n := orders.Load(); n != answer.orders {
					t.Errorf("%d orders, want %d", n, answer.orders)
				}
				outcomes(t, front, map[goodput.Outcome]uint64{goodput.Failed: uint64(answer.orders)})
				unsampled(t, front)
				if n := dep.Stats().Shed; n != uint64(answer.orders) {
					t.Errorf("%d heard as refusals, want %d", n, answer.orders)
				}
			})
		}
	}
}
