//go:build linux

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput/e2e/internal/openloop"
	"github.com/goodput/goodput/e2e/internal/rig"
)

// Bodies that are not read in advance, because they are large, of unknown length
// or wait for a 100, need a slot to be read. One that trickles loses its slot
// within a time that the client cannot extend byte by byte, and the service is
// there for others again.
func TestSlowBodiesLoseTheirSlot_C095(t *testing.T) {
	// So long any slow body gets, and then it is behind the 16 KiB/s that an honest
	// client on a bad network sends. By default it is 10 s.
	const slow, within = 2 * time.Second, 7 * time.Second
	s := database(t).Serve(t, slots)
	p := rig.ProtectBy(t, fmt.Sprintf("version: 1\nlisten: %q\nupstream: %s\nlimit: %d\nobjective: 2s\nslow_client: %v\n",
		"127.0.0.1:0", s.URL(), slots, slow))
	base := p.Baseline(t)
	stop, trickling := make(chan struct{}), sync.WaitGroup{}
	for i := range slots {
		trickling.Go(func() {
			switch i % 3 {
			case 0:
				trickle(connect(t, p, post("/work", 8<<20, "")), false, stop)
			case 1:
				trickle(connect(t, p, "POST /work HTTP/1.1\r\nHost: e2e\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n"), false, stop)
			case 2:
				trickleHTTP2(t, p, stop)
			}
		})
	}
	eventually(t, p, 5*time.Second, "they hold every slot", func(l rig.Limiter) bool { return l.InUse == slots })
	took := eventually(t, p, within, "they have lost them", func(l rig.Limiter) bool { return l.InUse == 0 })
	if took < slow/2 {
		t.Errorf("they lost them after %v already", took)
	}
	figure(t, "slots back after", "%s, a slow client has %s", millis(took), slow)
	r := openloop.Run(context.Background(), openloop.Plan{
		URL: p.URL() + "/work?ms=1", Rate: 20, Duration: time.Second, Deadline: deadline, Seed: 5,
	})
	if ok := r.Count(openloop.OK); ok != len(r.Answers) {
		t.Errorf("others: %v", r)
	}
	close(stop)
	trickling.Wait()
	p.Rest(t, 5*time.Second)
	s.Kill()
	p.Leaks(t, base)
}

// trickleHTTP2 sends a body of unknown length, a byte every 100 ms.
func trickleHTTP2(t *testing.T, p *rig.Proxy, stop <-chan struct{}) {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: protocols}
	defer tr.CloseIdleConnections()
	body, w := io.Pipe()
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				w.CloseWithError(io.ErrUnexpectedEOF) //nolint:errcheck // never fails
				return
			case <-tick.C:
				if _, err := w.Write([]byte("x")); err != nil {
					return // it was answered
				}
			}
		}
	}()
	req, err := http.NewRequest(http.MethodPost, p.URL()+"/work", body)
	if err != nil {
		t.Error(err)
		return
	}
	if res, err := tr.RoundTrip(req); err == nil {
		res.Body.Close() //nolint:errcheck // it was answered
	}
}
