//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/goodput/goodput/e2e/internal/rig"
)

// Three instances behind HAProxy are restarted, one after the other, under more load than
// they can serve: over HTTP/1.1 and over HTTP/2 no request loses its connection, and every
// answer is the service's or a refusal of ours. What was not refused was executed once.
//
// The arithmetic: an instance has 8 slots of 8 ms, 1,000/s, and two are there at the
// least. 64 callers, each of which waits 16 ms after a refusal, offer more than that.
func TestRollingRestart_C090(t *testing.T) {
	const (
		instances = 3
		each      = 8 // slots
		work      = 8 * time.Millisecond
		callers   = 32 // for each version of HTTP

		// Longer than HAProxy needs to notice, or it sends requests to nobody.
		delay = rig.Notice + 400*time.Millisecond
	)
	enough := int64(15_000)
	if os.Getenv("E2E_LONG") != "" {
		enough = 100_000
	}
	s := &counted{work: work}
	upstream := "http://" + rig.Handle(t, s)
	start := func(listen, admin string) *rig.Proxy {
		return rig.Protect(t, upstream, "--listen", listen, "--admin", admin,
			"--limit", fmt.Sprint(each), "--objective", "25ms", "--drain-delay", delay.String())
	}
	all := make([]*rig.Proxy, instances)
	for i := range all {
		all[i] = start(rig.FreeAddr(t), rig.FreeAddr(t))
	}
	b := rig.Balance(t, all...)
	for i := range all {
		b.Await(t, i, "UP", 5*time.Second)
	}

	ctx, stop := context.WithCancel(context.Background())
	var got tallied
	var load sync.WaitGroup
	for _, http2 := range []bool{false, true} {
		tr := replayless(http2)
		defer tr.CloseIdleConnections()
		url := map[bool]string{false: "http://" + b.Addr, true: "http://" + b.H2}[http2]
		for range callers {
			load.Go(func() {
				for ctx.Err() == nil {
					got.one(tr, url+"/work", http2, 2*work)
				}
			})
		}
	}
	restarts := 0
	began := time.Now()
	for restarts < instances || got.sent.Load() < enough {
		if time.Since(began) > 5*time.Minute {
			t.Errorf("%d of %d requests after %v", got.sent.Load(), enough, time.Since(began))
			break
		}
		i := restarts % instances
		restart(t, b, all, i, delay, start)
		restarts++
	}
	stop()
	load.Wait()

	if got.broken.Load() > 0 {
		t.Errorf("%d requests of %d lost their connection or got a status of nobody, such as %v",
			got.broken.Load(), got.sent.Load(), *got.example.Load())
	}
	if ran := s.served.Load(); ran != got.ok[0].Load()+got.ok[1].Load() {
		t.Errorf("the service executed %d requests, %d callers heard of it", ran, got.ok[0].Load()+got.ok[1].Load())
	}
	if got.refused.Load() == 0 {
		t.Error("nothing was refused, so this test does not show that refusals come through")
	}
	retried := 0
	for _, backend := range []string{"one", "two"} {
		if n := b.Count(t, backend, "BACKEND", "eresp"); n > 0 {
			t.Errorf("haproxy counts %d answers that broke off in backend %s", n, backend)
		}
		retried += b.Count(t, backend, "BACKEND", "wretr") + b.Count(t, backend, "BACKEND", "wredis")
	}
	figure(t, "rolling restart", "%d requests and %d restarts in %s: %d served over HTTP/1.1, %d over HTTP/2, %d refused, %d connections lost or foreign answers; haproxy retried %d connects",
		got.sent.Load(), restarts, millis(time.Since(began)), got.ok[0].Load(), got.ok[1].Load(), got.refused.Load(), got.broken.Load(), retried)
}

// restart ends one instance as a rollout does and starts it where it was.
func restart(t *testing.T, b *rig.Balancer, all []*rig.Proxy, i int, delay time.Duration, start func(listen, admin string) *rig.Proxy) {
	t.Helper()
	p := all[i]
	p.Signal(t, syscall.SIGTERM)
	if code := p.Exit(t, delay+5*time.Second); code != 0 {
		t.Errorf("instance %d: exit code %d\n%s", i, code, p.Log())
	}
	b.Await(t, i, "DOWN", time.Second) // it was at the end of the delay, at the latest
	all[i] = start(p.Addr, p.Admin)
	b.Await(t, i, "UP", 5*time.Second)
}

// counted is a service whose work takes the same time for everybody.
type counted struct {
	work   time.Duration
	served atomic.Int64
}

func (s *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) //nolint:errcheck // what counts is what its sender hears
	time.Sleep(s.work)
	s.served.Add(1)
	w.Header().Set("Of-Service", "yes")
	io.WriteString(w, "done\n") //nolint:errcheck // the same
}

// replayless is a transport that hides no lost connection: net/http sends a GET again
// whose kept connection was closed, and a POST only if nothing of it was sent.
func replayless(http2 bool) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	return &http.Transport{
		Protocols: protocols, MaxIdleConnsPerHost: 1000,
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
	}
}

// tallied is what callers got.
type tallied struct {
	sent, refused, broken atomic.Int64
	ok                    [2]atomic.Int64 // by version of HTTP
	example               atomic.Pointer[error]
}

// one sends one request. Who is refused waits before it asks again.
func (c *tallied) one(tr *http.Transport, url string, http2 bool, pause time.Duration) {
	c.sent.Add(1)
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader("a body"))
	if err != nil {
		panic(err)
	}
	req.GetBody = nil
	res, err := tr.RoundTrip(req)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close() //nolint:errcheck // it was read
	}
	switch {
	case err != nil:
	case res.StatusCode == http.StatusOK && res.Header.Get("Of-Service") == "yes":
		i := 0
		if http2 {
			i = 1
		}
		c.ok[i].Add(1)
		return
	case res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Goodput-Rejected") != "":
		c.refused.Add(1)
		time.Sleep(pause)
		return
	default:
		err = errors.New(res.Status + " of nobody")
	}
	c.broken.Add(1)
	c.example.CompareAndSwap(nil, &err)
	time.Sleep(pause)
}
