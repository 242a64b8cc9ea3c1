//go:build linux

package e2e

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/goodput/goodput/e2e/internal/rig"
)

const hold = "/e2e.Speaker/Hold"

// said is what a call came to.
type said struct {
	text    string
	code    codes.Code
	err     error
	trailer metadata.MD
}

// call holds a slot until the service is told to release it.
func call(c *grpc.ClientConn, timeout time.Duration, name string) <-chan said {
	done := make(chan said, 1)
	go func() {
		ctx, cancel := context.Background(), func() {}
		if timeout > 0 {
			ctx, cancel = context.WithTimeout(ctx, timeout)
		}
		defer cancel()
		var out said
		out.err = c.Invoke(ctx, hold, &name, &out.text, grpc.Trailer(&out.trailer))
		out.code = status.Code(out.err)
		done <- out
	}()
	return done
}

// one starts goodput with one slot in front of the service, and takes the slot.
func one(t *testing.T, s *speaker, args ...string) (*rig.Proxy, *grpc.ClientConn, <-chan said) {
	t.Helper()
	p := rig.Protect(t, "h2c://"+s.addr, append([]string{"--limit", "1", "--objective", "20s"}, args...)...)
	c := dialGRPC(t, p.Addr, "", nil)
	held := call(c, 0, "first")
	<-s.entered
	return p, c, held
}

// The remaining time reaches the service, less what was spent in the queue.
func TestGRPCDeadlineIsForwarded(t *testing.T) {
	s := speak(t)
	p, c, held := one(t, s)
	const sent, queued = 10 * time.Second, 300 * time.Millisecond
	waiting := call(c, sent, "second")
	eventually(t, p, 2*time.Second, "one waits", func(l rig.Limiter) bool { return l.Waiting == 1 })
	time.Sleep(queued)
	s.release <- struct{}{}
	<-s.entered
	s.release <- struct{}{}
	if r := <-held; r.code != codes.OK || r.text != "none" {
		t.Errorf("without a deadline: %+v", r)
	}
	r := <-waiting
	left, err := time.ParseDuration(r.text)
	if r.code != codes.OK || err != nil || left > sent-queued || left < sent/2 {
		t.Errorf("of %v, after %v in the queue, the service saw %+v", sent, queued, r)
	}
	figure(t, "grpc-timeout", "%v sent, %v in the queue, %v at the service", sent, queued, left)
	p.Rest(t, 5*time.Second)
}

// A refusal is UNAVAILABLE with a pushback, for which the client of gRPC waits to the
// millisecond before it tries again by its own retry policy.
func TestGRPCPushbackIsObeyed(t *testing.T) {
	s := speak(t)
	p, c, held := one(t, s, "--max-waiting", "1", "--service", "200ms")
	waiting := call(c, 0, "second")
	eventually(t, p, 2*time.Second, "one waits", func(l rig.Limiter) bool { return l.Waiting == 1 })
	if r := <-call(c, 0, "no retry"); r.code != codes.Unavailable || r.trailer.Get("goodput-rejected")[0] != "queue_full" {
		t.Fatalf("a third: %+v", r)
	}
	// By itself it would be back after up to a minute.
	var tries attempts
	again := call(dialGRPC(t, p.Addr, `{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":2,"initialBackoff":"60s",
		"maxBackoff":"60s","backoffMultiplier":1,"retryableStatusCodes":["UNAVAILABLE"]}}]}`, &tries), 0, "retried")
	for all := tries.list(); len(all) == 0 || all[0].ended.IsZero(); all = tries.list() {
		time.Sleep(time.Millisecond)
	}
	for range 3 { // now there is room
		s.release <- struct{}{}
	}
	for name, r := range map[string]<-chan said{"held": held, "waiting": waiting, "again": again} {
		if got := <-r; got.code != codes.OK {
			t.Errorf("%s: %+v", name, got)
		}
	}
	all := tries.list()
	ms, err := strconv.Atoi(strings.Trim(all[0].pushback, "[]"))
	if err != nil || ms < 1 || len(all) != 2 {
		t.Fatalf("attempts: %+v", all)
	}
	pushback, waited := time.Duration(ms)*time.Millisecond, all[1].began.Sub(all[0].ended)
	// Half a second is what a busy machine may be late.
	if waited < pushback || waited > pushback+500*time.Millisecond {
		t.Errorf("pushback %v: tried again after %v", pushback, waited)
	}
	if served, before := s.served.Load(), s.attempts.Load(); served != 3 || before != 1 {
		t.Errorf("the service executed %d calls, %d of them second attempts", served, before)
	}
	figure(t, "pushback", "%v, tried again after %v (its own backoff would have been up to 60 s)", pushback, waited.Round(100*time.Microsecond))
	p.Rest(t, 5*time.Second)
}

// A call that cannot be in time is refused with a pushback of -1, and not tried again.
func TestGRPCHopelessIsNotRetried(t *testing.T) {
	s := speak(t)
	p, _, held := one(t, s, "--service", "2s")
	var tries attempts
	c := dialGRPC(t, p.Addr, `{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":5,"initialBackoff":"0.001s",
		"maxBackoff":"0.001s","backoffMultiplier":1,"retryableStatusCodes":["UNAVAILABLE"]}}]}`, &tries)
	r := <-call(c, time.Second, "hopeless")
	if r.code != codes.Unavailable || len(tries.list()) != 1 || r.trailer.Get("grpc-retry-pushback-ms")[0] != "-1" {
		t.Errorf("%+v after %d attempts", r, len(tries.list()))
	}
	s.release <- struct{}{}
	<-held
	p.Rest(t, 5*time.Second)
}

// Who waits until the time left is less than the work takes is told so, before its caller
// knows of any deadline; whose time is over on arrival is told DEADLINE_EXCEEDED. Neither
// was executed.
func TestGRPCExpires(t *testing.T) {
	s := speak(t)
	p := rig.Protect(t, "h2c://"+s.addr, "--limit", "1", "--objective", "20s", "--service", "1ms", "--deadline", "300ms")
	c := dialGRPC(t, p.Addr, "", nil)
	held := call(c, 20*time.Second, "first")
	<-s.entered
	r := <-call(c, 0, "waits in vain")
	if r.code != codes.Unavailable || r.trailer.Get("goodput-rejected")[0] != "doomed" || r.trailer.Get("grpc-retry-pushback-ms")[0] != "-1" {
		t.Errorf("in the queue until it is hopeless: %+v", r)
	}

	// No client of gRPC sends what is over: this is one whose last nanoseconds went by on
	// the way.
	req, err := http.NewRequest(http.MethodPost, p.URL()+hold, strings.NewReader("\x00\x00\x00\x00\x00"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "Grpc-Timeout": {"0n"}}
	tr := replayless(true)
	defer tr.CloseIdleConnections()
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close() //nolint:errcheck // trailers only
	if h := res.Header; h.Get("Grpc-Status") != strconv.Itoa(int(codes.DeadlineExceeded)) || h.Get("Goodput-Rejected") != "deadline" {
		t.Errorf("over on arrival: %s %v", res.Status, h)
	}
	s.release <- struct{}{}
	if r := <-held; r.code != codes.OK {
		t.Errorf("who ran meanwhile: %+v", r)
	}
	if l := p.Rest(t, 5*time.Second); l.Refused("deadline") != 1 || l.Refused("doomed") != 1 || s.served.Load() != 1 {
		t.Errorf("%v; the service executed %d", l, s.served.Load())
	}
}

// Who cancels while it waits leaves the queue at once.
func TestGRPCCancelInTheQueue_C085(t *testing.T) {
	s := speak(t)
	p, c, held := one(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		name, out := "leaves", ""
		done <- c.Invoke(ctx, hold, &name, &out)
	}()
	eventually(t, p, 2*time.Second, "one waits", func(l rig.Limiter) bool { return l.Waiting == 1 })
	cancel()
	if err := <-done; status.Code(err) != codes.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	took := eventually(t, p, 2*time.Second, "nobody waits", func(l rig.Limiter) bool { return l.Waiting == 0 })
	s.release <- struct{}{}
	<-held
	l := p.Rest(t, 5*time.Second)
	if l.Ended("cancelled") != 1 || s.served.Load() != 1 {
		t.Errorf("%v; the service executed %d", l, s.served.Load())
	}
	figure(t, "gRPC cancel", "out of the queue within %s", millis(took))
}

// With an overload status of 429 a refusal is RESOURCE_EXHAUSTED, as clients expect that
// know the limits of others.
func TestGRPCResourceExhausted(t *testing.T) {
	s := speak(t)
	p := rig.ProtectBy(t, `version: 1
listen: "127.0.0.1:0"
upstream: h2c://`+s.addr+`
limit: 1
objective: 20s
max_waiting: 1
overload_status: 429
`)
	c := dialGRPC(t, p.Addr, "", nil)
	held := call(c, 0, "first")
	<-s.entered
	waiting := call(c, 0, "second")
	eventually(t, p, 2*time.Second, "one waits", func(l rig.Limiter) bool { return l.Waiting == 1 })
	if r := <-call(c, 0, "third"); r.code != codes.ResourceExhausted || len(r.trailer.Get("grpc-retry-pushback-ms")) != 1 {
		t.Errorf("%+v", r)
	}
	s.release <- struct{}{}
	s.release <- struct{}{}
	if a, b := <-held, <-waiting; a.code != codes.OK || b.code != codes.OK {
		t.Errorf("%+v, %+v", a, b)
	}
	p.Rest(t, 5*time.Second)
}

// A client of gRPC with a connection that it keeps notices nothing of a restart: all calls
// during the delay are served, those which cross the GOAWAY as well, since they are sent
// again on another connection.
func TestGRPCDuringTheDelay_C090(t *testing.T) {
	const (
		delay = 1600 * time.Millisecond // GOAWAY is sent in its last quarter, from 1,200 ms on
		ends  = 1350 * time.Millisecond // of the calls, with as much of it left as a busy machine may stand still
	)
	s := speak(t)
	for range cap(s.release) { // nobody is held
		s.release <- struct{}{}
	}
	p := rig.Protect(t, "h2c://"+s.addr, "--limit", "8", "--drain-delay", delay.String())
	c := dialGRPC(t, p.Addr, "", nil)
	var callers sync.WaitGroup
	var served atomic.Int64
	began := time.Now()
	p.Signal(t, syscall.SIGTERM)
	for range 8 {
		callers.Go(func() {
			for time.Since(began) < ends {
				if r := <-call(c, 5*time.Second, "x"); r.code != codes.OK {
					t.Errorf("%v after SIGTERM: %+v", time.Since(began), r)
					return
				}
				<-s.entered
				s.release <- struct{}{}
				served.Add(1)
				time.Sleep(time.Millisecond)
			}
		})
	}
	callers.Wait()
	if code := p.Exit(t, 5*time.Second); code != 0 || served.Load() == 0 {
		t.Errorf("exit code %d, %d served", code, served.Load())
	}
	figure(t, "gRPC while leaving", "%d calls in %s of delay, all served", served.Load(), millis(delay))
}

// Streams pass in both directions, with their trailers, and hold their slot to the end.
func TestGRPCStreams(t *testing.T) {
	s := speak(t)
	p := rig.Protect(t, "h2c://"+s.addr, "--limit", "2")
	c := dialGRPC(t, p.Addr, "", nil)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	const length = 1000
	down, err := c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/e2e.Speaker/Count")
	if err != nil {
		t.Fatal(err)
	}
	many := strconv.Itoa(length)
	if err := errors.Join(down.SendMsg(&many), down.CloseSend()); err != nil {
		t.Fatal(err)
	}
	for i := range length {
		var got string
		if err := down.RecvMsg(&got); err != nil || got != strconv.Itoa(i) {
			t.Fatalf("message %d: %q, %v", i, got, err)
		}
	}
	if err := down.RecvMsg(new(string)); err != io.EOF || down.Trailer().Get("counted")[0] != many {
		t.Errorf("at the end: %v, %v", err, down.Trailer())
	}

	both, err := c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/e2e.Speaker/Chat")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		text, got := "hello "+strconv.Itoa(i), ""
		if err := errors.Join(both.SendMsg(&text), both.RecvMsg(&got)); err != nil || got != strings.ToUpper(text) {
			t.Fatalf("%q came back as %q, %v", text, got, err)
		}
	}
	if l := p.Limiter(t); l.InUse != 1 {
		t.Errorf("a stream that is open holds %d slots", l.InUse)
	}
	if err := errors.Join(both.CloseSend(), func() error {
		if err := both.RecvMsg(new(string)); err != io.EOF {
			return err
		}
		return nil
	}()); err != nil {
		t.Error(err)
	}
	if l := p.Rest(t, 5*time.Second); l.Ended("completed") != 2 {
		t.Errorf("%v", l)
	}
}

// 200 calls at once at 4 slots: each is answered by the service or told UNAVAILABLE with a
// pushback, and what was told so was not executed.
func TestGRPCBurst(t *testing.T) {
	s := speak(t)
	p := rig.Protect(t, "h2c://"+s.addr, "--limit", "4", "--service", "20ms", "--objective", "200ms")
	c := dialGRPC(t, p.Addr, "", nil)
	stop := make(chan struct{})
	var releasing sync.WaitGroup
	releasing.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-s.entered:
				time.Sleep(5 * time.Millisecond)
				s.release <- struct{}{}
			}
		}
	})
	var all []<-chan said
	for i := range 200 {
		all = append(all, call(c, 0, strconv.Itoa(i)))
	}
	ok, refused := 0, 0
	for _, r := range all {
		switch got := <-r; {
		case got.code == codes.OK:
			ok++
		case got.code == codes.Unavailable && len(got.trailer.Get("grpc-retry-pushback-ms")) == 1:
			refused++
		default:
			t.Errorf("%+v", got)
		}
	}
	close(stop)
	releasing.Wait()
	l := p.Rest(t, 5*time.Second)
	if int64(ok) != s.served.Load() || ok == 0 || refused == 0 || l.Counts.Arrivals != uint64(len(all)) {
		t.Errorf("%d served, %d refused; the service executed %d; %v", ok, refused, s.served.Load(), l)
	}
	figure(t, "gRPC burst", "%d calls at 4 slots: %d served, %d UNAVAILABLE with pushback", len(all), ok, refused)
}
