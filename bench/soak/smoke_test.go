package soak

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The clients against the server, with somebody in between who refuses one in three and cuts one in
// ten, for a second: each request ends in one way, and what was refused and cut is seen as that.
func TestClientsTellWhatBecameOfThem(t *testing.T) {
	const rejected = 3
	var n, refusals, cuts atomic.Int64
	server := newServer()
	proxy := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch i := n.Add(1); {
		case i%rejected == 0:
			refusals.Add(1)
			w.Header().Set("Goodput-Rejected", "queue_full")
			w.WriteHeader(http.StatusServiceUnavailable)
		case i%10 == 1:
			cuts.Add(1)
			panic(http.ErrAbortHandler)
		default:
			server.ServeHTTP(w, r)
		}
	}))
	proxy.Config.Protocols = new(http.Protocols)
	proxy.Config.Protocols.SetHTTP1(true)
	proxy.Config.Protocols.SetUnencryptedHTTP2(true)
	proxy.Start()
	defer proxy.Close()

	// wall clock: it is real connections, of an open loop
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	seed := rand.Uint64()
	tally := newTally(time.Minute)
	c := newCrowd(proxy.Listener.Addr().String(), time.Now(), tally)
	var all sync.WaitGroup
	all.Go(func() {
		c.offer(ctx, rand.New(rand.NewPCG(seed, 0)), 100, func(due time.Duration, rng *rand.Rand) { c.request(due, rng, 0) })
	})
	all.Wait()
	for end := time.Now().Add(deadlineCap + patience); c.inFlight() > 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	told := tally.sum()
	t.Logf("seed %d: %+v; %d refused, %d cut", seed, told, refusals.Load(), cuts.Load())
	if told.Sent != told.OK+told.Refused+told.Failed+told.Left+told.Lost || told.OK == 0 || told.Failed != 0 || told.Hung != 0 {
		t.Errorf("seed %d: %+v", seed, told)
	}
	// A client that leaves may not see what it was told. One that is cut before its answer
	// may be sent again by net/http, if nothing has come back over that connection.
	if got, most := int64(told.Refused), refusals.Load(); got > most || got < most-int64(told.Left) {
		t.Errorf("seed %d: %d were refused, %d say so, %d left", seed, most, got, told.Left)
	}
	if int64(told.Lost) > cuts.Load() {
		t.Errorf("seed %d: %d were cut, %d say so", seed, cuts.Load(), told.Lost)
	}
}
