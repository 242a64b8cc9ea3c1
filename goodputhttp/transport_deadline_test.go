package goodputhttp

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// told returns the headers that a request with these has when it is sent after wait in
// the queue, with a deadline of left; none without one.
func told(t *testing.T, dep *Dependency, left, wait time.Duration, header ...string) (sent map[string]string, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := background, context.CancelFunc(func() {})
		if left != 0 {
			ctx, cancel = context.WithTimeout(ctx, left)
		}
		defer cancel()
		if dep.Limiter = limiter(1, goodput.Config{Service: time.Millisecond}); wait > 0 {
			release := hold(t, dep.Limiter, 1)
			time.AfterFunc(wait, release)
		}
		_, err = to(dep, base(func(r *http.Request) (*http.Response, error) {
			sent = map[string]string{}
			for i := range dialects {
				if v := r.Header[dialects[i].header]; len(v) > 0 {
					sent[dialects[i].header] = v[0]
				}
			}
			return respond(200, ""), nil
		})).RoundTrip(get(ctx, header...))
	})
	return sent, err
}

func TestTransportForwardsWhatIsLeft(t *testing.T) {
	const grpc, connect, envoy, within = "Grpc-Timeout", "Connect-Timeout-Ms", "X-Envoy-Expected-Rq-Timeout-Ms", "Expect-Within"
	type h = map[string]string
	for _, c := range []struct {
		name       string
		dialect    Dialect
		left, wait time.Duration
		header     []string
		want       h
	}{
		{"nobody said", DialectOfCaller, 0, 0, nil, h{}},
		{"the default", DialectOfCaller, time.Second, 0, nil, h{envoy: "995"}},
		{"after a wait", DialectOfCaller, time.Second, 300 * time.Millisecond, nil, h{envoy: "695"}},
		{"the header that is there", DialectOfCaller, time.Second, 0, []string{"Connect-Timeout-Ms: 5000"}, h{connect: "995"}},
		{"it is shorter", DialectOfCaller, time.Second, 0, []string{"Connect-Timeout-Ms: 400"}, h{connect: "400"}},
		{"it runs on while we wait", DialectOfCaller, time.Second, 300 * time.Millisecond, []string{"Connect-Timeout-Ms: 400"}, h{connect: "100"}},
		{"it alone", DialectOfCaller, 0, 300 * time.Millisecond, []string{"Expect-Within: 1"}, h{within: "0.700"}},
		{"Envoy's for ever", DialectOfCaller, time.Second, 0, []string{"X-Envoy-Expected-Rq-Timeout-Ms: 0"}, h{envoy: "995"}},
		{"gRPC", DialectOfCaller, time.Second, 0, []string{"Content-Type: application/grpc"}, h{grpc: "995000u"}},
		{"gRPC asked for", DialectGRPC, time.Second, 0, []string{"Content-Type: application/grpc"}, h{grpc: "995000u"}},
		{"connect", DialectConnect, time.Second, 0, nil, h{connect: "995"}},
		{"Envoy", DialectEnvoy, time.Second, 0, nil, h{envoy: "995"}},
		{"seconds", DialectSeconds, time.Second, 0, nil, h{within: "0.995"}},
		{"none", DialectNone, time.Second, 0, nil, h{}},
		{"none, but it has one", DialectNone, time.Second, 0, []string{"Connect-Timeout-Ms: 5000"}, h{connect: "995"}},
		{"two that agree", DialectSeconds, time.Second, 0, []string{"Connect-Timeout-Ms: 5000"}, h{connect: "995", within: "0.995"}},
		{"malformed", DialectOfCaller, time.Second, 0, []string{"Connect-Timeout-Ms: soon"}, h{envoy: "995"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := told(t, &Dependency{Deadline: c.dialect}, c.left, c.wait, c.header...)
			if err != nil || !maps.Equal(got, c.want) {
				t.Errorf("%v %v, want %v", got, err, c.want)
			}
		})
	}
	if got, _ := told(t, &Dependency{HopMargin: 100 * time.Millisecond}, time.Second, 0); got[envoy] != "900" {
		t.Errorf("with a margin of 100 ms: %v", got)
	}
}

// The caller's request came with a header of its own: a request made for it says so too.
func TestTransportSpeaksAsItsCaller(t *testing.T) {
	var sent http.Header
	tr := to(&Dependency{}, base(func(r *http.Request) (*http.Response, error) {
		sent = r.Header
		return respond(200, ""), nil
	}))
	h := Handler(limiter(1, goodput.Config{}), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = tr.RoundTrip(get(r.Context()))
	}))
	status(h, request("Expect-Within: 100"))
	if sent.Get("Expect-Within") == "" || len(sent) != 1 {
		t.Errorf("%v", sent)
	}
	// One that the server was told to read is among them.
	mine := &Server{Limiter: one(limiter(1, goodput.Config{})), DeadlineHeaders: []DeadlineHeader{{"X-Mine", FormatGo}}}
	mine.Next = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = tr.RoundTrip(get(r.Context()))
	})
	status(mine, request("X-Mine: 100s"))
	if left, err := time.ParseDuration(sent.Get("X-Mine")); err != nil || left > 100*time.Second-HopMargin || len(sent) != 1 {
		t.Errorf("%v", sent)
	}
	// The headers of gRPC are for gRPC, and the others are not.
	kind := ""
	h = Handler(limiter(1, goodput.Config{}), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = tr.RoundTrip(get(r.Context(), "Content-Type: "+kind))
	}))
	kind = "application/grpc"
	if status(h, request("Expect-Within: 100")); sent.Get("Expect-Within") != "" || sent.Get("Grpc-Timeout") == "" {
		t.Errorf("gRPC for a request that is none: %v", sent)
	}
	kind = "text/plain"
	if status(h, request(grpcKind, "Grpc-Timeout: 100S")); sent.Get("Grpc-Timeout") != "" || sent.Get("X-Envoy-Expected-Rq-Timeout-Ms") == "" {
		t.Errorf("no gRPC for a request that is: %v", sent)
	}
}

// Without time there is no call, whoever said so, before the queue and after it.
func TestTransportDoesNotSendTooLate(t *testing.T) {
	for _, c := range []struct {
		name       string
		left, wait time.Duration
		header     []string
		reason     goodput.Reason
	}{
		{"the way takes all", HopMargin, 0, nil, goodput.NoBudget},
		{"less than 1 ms after the way", HopMargin + time.Millisecond - 1, 0, nil, goodput.NoBudget},
		{"over", -time.Second, 0, nil, goodput.Deadline},
		{"used up in the queue", time.Second, time.Second - HopMargin, nil, goodput.NoBudget},
		{"the header says 0", time.Second, 0, []string{"Connect-Timeout-Ms: 0"}, goodput.NoBudget},
		{"the header ran out in the queue", time.Minute, time.Second, []string{"Connect-Timeout-Ms: 1000"}, goodput.NoBudget},
	} {
		t.Run(c.name, func(t *testing.T) {
			dep := &Dependency{}
			sent, err := told(t, dep, c.left, c.wait, c.header...)
			var u *Unsent
			if sent != nil || !errors.As(err, &u) || u.Reason != c.reason || !errors.Is(err, context.DeadlineExceeded) ||
				!errors.Is(err, goodput.ErrRejected) || !u.Timeout() {
				t.Errorf("%v %v", sent, err)
			}
			if st := dep.Stats(); st.OutOfTime != 1 || st.Attempts != 0 {
				t.Errorf("%+v", st)
			}
			if n := dep.Limiter.Stats().Outcomes[goodput.Abandoned]; (n == 1) != (c.wait > 0) {
				t.Errorf("%d slots were given back unused", n)
			}
		})
	}
	if sent, err := told(t, &Dependency{}, HopMargin+time.Millisecond, 0); err != nil || sent["X-Envoy-Expected-Rq-Timeout-Ms"] != "1" {
		t.Errorf("1 ms: %v %v", sent, err)
	}
}

// Each attempt is told what is left then.
func TestTransportRecomputesForEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(background, 10*time.Second)
		defer cancel()
		s := &script{answers: []*http.Response{
			respond(200, "", "Grpc-Status: 14", "Grpc-Retry-Pushback-Ms: 2000", "Goodput-Rejected: shed"),
		}}
		r := get(ctx, "Content-Type: application/grpc", "Grpc-Timeout: 5S")
		if _, err := to(&Dependency{Retry: &retry.Policy{}}, s).RoundTrip(r); err != nil {
			t.Fatal(err)
		}
		got := []string{s.sent[0].Get("Grpc-Timeout"), s.sent[1].Get("Grpc-Timeout")}
		if want := []string{"5000000u", "3000000u"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// Whatever headers a request has and however long it waits, what is sent is never longer
// than what it said, nor than the context, and never anything that cannot be read.
func FuzzTransportNeverLengthens(f *testing.F) {
	f.Add("400", "5S", "0.4", "0", true, uint8(0), int64(time.Second), int64(time.Millisecond))
	f.Add("99999999999", "1H", ".5", "18446744073709551615", false, uint8(4), int64(0), int64(0))
	f.Add("1", "1000000u", "0.0014", "7", true, uint8(5), int64(3*time.Millisecond), int64(0))
	f.Fuzz(func(t *testing.T, connect, grpc, within, envoy string, isGRPC bool, dialect uint8, left, waited int64) {
		now := time.Now()
		r := get(background)
		r.Header = http.Header{"Connect-Timeout-Ms": {connect}, "Grpc-Timeout": {grpc}, "Expect-Within": {within}, "X-Envoy-Expected-Rq-Timeout-Ms": {envoy}}
		if isGRPC {
			r.Header.Set("Content-Type", "application/grpc")
		}
		c := call{dep: &Dependency{Deadline: Dialect(dialect) % numChoices}, req: r, grpc: isGRPC}
		c.readDeadline(now)
		left, waited = max(left, 0), max(waited, 0)%int64(time.Hour)
		deadline := now.Add(time.Duration(left))
		b := c.budget(deadline, left > 0)
		later := now.Add(time.Duration(waited))
		if tooLate(&b, later) {
			return
		}
		sent := c.header(&attempt{}, &b, later, 1)
		for i := range dialects {
			d := &dialects[i]
			if i == grpcTimeout && !isGRPC {
				continue
			}
			v := sent[d.header]
			if len(v) == 0 {
				continue
			}
			got, ok := d.parse(v[0])
			was, valid := d.parse(r.Header[d.header][0])
			if !ok {
				if v[0] != r.Header[d.header][0] {
					t.Fatalf("%s: %q cannot be read", d.header, v[0])
				}
				continue
			}
			if valid && got > was {
				t.Fatalf("%s: %q became %q", d.header, r.Header[d.header][0], v[0])
			}
			if left > 0 && got > deadline.Sub(later) && v[0] != r.Header[d.header][0] {
				t.Fatalf("%s: %q is beyond the deadline in %v", d.header, v[0], deadline.Sub(later))
			}
		}
	})
}

// The numbers that are cut out of one string are those of strconv.
func TestFormatMillis(t *testing.T) {
	for n := range int64(20_001) {
		if got, want := formatMillis(time.Duration(n)*time.Millisecond), strconv.FormatInt(max(n, 1), 10); got != want {
			t.Fatalf("%d ms is %q", n, got)
		}
	}
}
