// Package openloop sends requests when they are due, whatever becomes of the
// ones before: what independent users do, and what a closed loop (wrk) cannot
// show, since it slows down with the service that it measures.
//
// Every request is followed to its end and kept, so that a test can compare what
// callers got with what goodput says it did, one by one.
package openloop

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// patience is how long a caller reads on after its deadline. It is there so that
// goodput, not the client, decides how a request ends.
const patience = 5 * time.Second

// A Plan says what arrives when.
type Plan struct {
	URL      string
	Rate     float64       // per second, Poisson
	Duration time.Duration // in which they arrive
	Deadline time.Duration // sent along; 0: none is sent
	Judged   time.Duration // in time is what ends within it; 0: Deadline
	Body     int           // bytes of a POST; 0: GET
	HTTP2    bool          // without TLS, by prior knowledge
	Seed     uint64
}

// An Answer is what became of one request.
type Answer struct {
	Due     time.Duration // since the start of the run
	Late    time.Duration // sent - due
	Latency time.Duration // end - due
	Status  int           // 0: no answer
	Reason  string        // Goodput-Rejected
	Header  http.Header
	Body    int64
	Err     error
}

// A Result has one Answer per arrival, in the order in which they were due.
type Result struct {
	Plan    Plan
	Start   time.Time
	Answers []Answer
}

// Run offers plan and returns when every request has ended. When ctx ends, no
// more arrive.
func Run(ctx context.Context, plan Plan) Result {
	var due []time.Duration
	rng := rand.New(rand.NewPCG(plan.Seed, 1))
	for at := 0.0; ; {
		at += rng.ExpFloat64() / plan.Rate
		if at >= plan.Duration.Seconds() {
			break
		}
		due = append(due, time.Duration(at*float64(time.Second)))
	}
	tr := transport(plan.HTTP2)
	defer tr.CloseIdleConnections()
	body := make([]byte, plan.Body)
	r := Result{Plan: plan, Start: time.Now(), Answers: make([]Answer, len(due))}
	var all sync.WaitGroup
	for i, at := range due {
		select {
		case <-time.After(time.Until(r.Start.Add(at))):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			r.Answers = r.Answers[:i]
			break
		}
		all.Go(func() { r.Answers[i] = plan.send(tr, r.Start, at, body) })
	}
	all.Wait()
	return r
}

// transport keeps every connection that the load needs again. Without a limit of
// its own it never queues.
func transport(http2 bool) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	return &http.Transport{
		Protocols:           protocols,
		DialContext:         (&net.Dialer{Timeout: patience}).DialContext,
		MaxIdleConnsPerHost: 1 << 16,
		IdleConnTimeout:     3 * time.Second,
		DisableCompression:  true,
	}
}

func (p Plan) send(tr *http.Transport, start time.Time, due time.Duration, body []byte) (a Answer) {
	a = Answer{Due: due, Late: time.Since(start) - due}
	defer func() { a.Latency = time.Since(start) - due }()
	ctx, cancel := context.WithDeadline(context.Background(), start.Add(due+max(p.Deadline, p.Judged)+patience))
	defer cancel()
	method, content := http.MethodGet, io.Reader(nil)
	if len(body) > 0 {
		method, content = http.MethodPost, bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.URL, content)
	if err != nil {
		a.Err = err
		return a
	}
	if p.Deadline > 0 {
		left := p.Deadline - a.Late
		req.Header.Set("X-Envoy-Expected-Rq-Timeout-Ms", strconv.FormatInt(max(1, left.Milliseconds()), 10))
	}
	res, err := tr.RoundTrip(req)
	if err != nil {
		a.Err = err
		return a
	}
	defer res.Body.Close()
	a.Status, a.Header, a.Reason = res.StatusCode, res.Header, res.Header.Get("Goodput-Rejected")
	a.Body, a.Err = io.Copy(io.Discard, res.Body)
	return a
}

// Offered returns how many requests arrived per second.
func (r Result) Offered() float64 { return float64(len(r.Answers)) / r.Plan.Duration.Seconds() }

// InTime reports whether a is a success that its caller still wanted.
func (r Result) InTime(a Answer) bool {
	judged := r.Plan.Judged
	if judged == 0 {
		judged = r.Plan.Deadline
	}
	return a.Err == nil && a.Status == http.StatusOK && a.Latency <= judged
}

// Count returns how many answers match.
func (r Result) Count(match func(Answer) bool) (n int) {
	for _, a := range r.Answers {
		if match(a) {
			n++
		}
	}
	return n
}

// Quantile returns the q-quantile of value over the answers that match; 0 if
// there are none.
func (r Result) Quantile(q float64, value func(Answer) time.Duration, match func(Answer) bool) time.Duration {
	var all []time.Duration
	for _, a := range r.Answers {
		if match(a) {
			all = append(all, value(a))
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(q*float64(len(all))))]
}

// Latency is for Quantile.
func Latency(a Answer) time.Duration { return a.Latency }

// Lateness is for Quantile.
func Lateness(a Answer) time.Duration { return a.Late }

// OK matches a success.
func OK(a Answer) bool { return a.Err == nil && a.Status == http.StatusOK }

// Refused matches what goodput did not let through.
func Refused(a Answer) bool { return a.Reason != "" }

// All matches everything.
func All(Answer) bool { return true }

// String tells how many ended in which way.
func (r Result) String() string {
	counts := map[string]int{}
	for _, a := range r.Answers {
		switch {
		case a.Err != nil:
			counts["error: "+cause(a.Err)]++
		case a.Reason != "":
			counts[fmt.Sprintf("%d %s", a.Status, a.Reason)]++
		default:
			counts[strconv.Itoa(a.Status)]++
		}
	}
	var lines []string
	for what, n := range counts {
		lines = append(lines, fmt.Sprintf("%s x %d", what, n))
	}
	slices.Sort(lines)
	return fmt.Sprintf("%d sent: %s", len(r.Answers), strings.Join(lines, ", "))
}

// cause shortens an error to what does not differ between connections.
func cause(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		return text[i+2:]
	}
	return text
}
