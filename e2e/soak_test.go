//go:build linux

package e2e

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/goodput/goodput/e2e/internal/openloop"
	"github.com/goodput/goodput/e2e/internal/rig"
)

// Three times the capacity with 100 KB bodies: what waits in memory stays within
// --max-queue-bytes at every scrape, and so does the process.
func TestLargeBodiesStayWithinTheirMemory(t *testing.T) {
	length := 10 * time.Second
	if os.Getenv("E2E_LONG") != "" {
		length = time.Minute
	}
	const (
		body     = 100_000
		maxBytes = 1 << 20 // ten bodies

		// A slow service, so that two cores can move the bodies: 20 slots / 100 ms
		// = 200/s, and 3 x 200/s x 100 KB = 60 MB/s arrive.
		ms       = 100
		capacity = slots * 1000 / ms

		// Beside what waits there are the bodies of the requests that run or are
		// just being refused, in the buffers of the connections: a few hundred at
		// most, of 100 KB each; and Go collects at twice what is in use.
		maxRSS = 128 << 20
	)
	s := database(t).Serve(t, slots)
	p := protect(t, s.URL(), "--max-queue-bytes", strconv.Itoa(maxBytes))
	base := warm(t, p)
	before := p.Limiter(t)
	if before.WaitingBytesLimit != maxBytes {
		t.Fatalf("the limit is %d bytes", before.WaitingBytesLimit)
	}
	type seen struct {
		most    int64
		scrapes int
		err     error
	}
	stop, watched := make(chan struct{}), make(chan seen, 1)
	go func() {
		most, scrapes, err := p.MostWaitingBytes(stop)
		watched <- seen{most, scrapes, err}
	}()
	r := openloop.Run(context.Background(), openloop.Plan{
		URL: p.URL() + "/work?ms=" + strconv.Itoa(ms), Rate: 3 * capacity, Duration: length,
		Deadline: deadline, Body: body, Seed: 3,
	})
	close(stop)
	w := <-watched
	if w.err != nil {
		t.Fatal(w.err)
	}
	after := p.Rest(t, 5*time.Second)
	agree(t, r, before, after)
	if w.most > maxBytes {
		t.Errorf("%d bytes waited, allowed are %d", w.most, maxBytes)
	}
	if w.most == 0 {
		t.Error("no byte ever waited, so this test shows nothing")
	}
	served := r.Count(openloop.OK)
	// Of what is cut off at its deadline the service may have read a part.
	got, want := s.Counts(t).Bodies, int64(served)*body
	if cut := int64(r.Count(outOfTime)); got < want || got > want+cut*body {
		t.Errorf("the service read %d bytes; %d requests of %d bytes were served, %d were cut off", got, served, body, cut)
	}
	for _, a := range r.Answers {
		if openloop.OK(a) && a.Header.Get("Body-Bytes") != strconv.Itoa(body) {
			t.Errorf("a body arrived with %s bytes", a.Header.Get("Body-Bytes"))
			break
		}
	}
	v := p.Vitals(t)
	if v.PeakRSS > maxRSS {
		t.Errorf("goodput took %d MiB, allowed are %d", v.PeakRSS>>20, maxRSS>>20)
	}
	full := r.Count(func(a openloop.Answer) bool { return a.Reason == "bytes_full" })
	figure(t, "100 KB bodies", "%s at %.0f/s: %.0f/s served, at most %d of %d bytes waited in %d scrapes, %d x bytes_full, RSS at most %d MiB (idle %d)",
		length, r.Offered(), float64(served)/length.Seconds(), w.most, maxBytes, w.scrapes, full, v.PeakRSS>>20, base.RSS>>20)
	t.Log(after)
	s.Kill()
	p.Leaks(t, base)
}

// A body larger than all that may wait in memory waits with its rest unsent, and
// arrives whole.
func TestBodyLargerThanTheQueueMayHold(t *testing.T) {
	const body, maxBytes = 1_000_000, 10_000
	s := database(t).Serve(t, slots)
	p := protect(t, s.URL(), "--objective", "20s", "--max-queue-bytes", strconv.Itoa(maxBytes))
	for range slots {
		connect(t, p, get("/work?ms=1000"))
	}
	eventually(t, p, 5*time.Second, "every slot is taken", func(l rig.Limiter) bool { return l.InUse == slots })
	done := make(chan openloop.Result, 1)
	go func() {
		done <- openloop.Run(context.Background(), openloop.Plan{
			URL: p.URL() + "/work", Rate: 100, Duration: 100 * time.Millisecond, Judged: 20 * time.Second, Body: body, Seed: 4,
		})
	}()
	eventually(t, p, 2*time.Second, "somebody waits", func(l rig.Limiter) bool {
		if l.WaitingBytes > maxBytes {
			t.Errorf("%d bytes wait, allowed are %d", l.WaitingBytes, maxBytes)
		}
		return l.Waiting > 0
	})
	r := <-done
	for _, a := range r.Answers {
		if !openloop.OK(a) || a.Header.Get("Body-Bytes") != strconv.Itoa(body) {
			t.Errorf("%d, %v, %s bytes arrived", a.Status, a.Err, a.Header.Get("Body-Bytes"))
		}
	}
	if len(r.Answers) == 0 {
		t.Error("nothing was sent")
	}
	p.Rest(t, 5*time.Second)
}
