package proxies

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Memory is what requests take in a proxy while they wait in its queue: what is resident
// with them, less what was without, less their bodies. In Go that has the garbage in it
// that was left on their way in.
type Memory struct {
	Contestant string  `json:"contestant"`
	Protocol   string  `json:"protocol"`
	Body       int     `json:"body_bytes"`
	Waiting    int     `json:"waiting"`
	Each       float64 `json:"bytes_per_request"`
}

const (
	// queueing is how long a Memory may take to have its requests wait.
	queueing = 30 * time.Second

	// pace is the time between two of them: 2,500 a second, twice what the service of the
	// overload can do. If all came at once, what they take on their way in would be there
	// for all of them at once, and it is another question.
	pace = 400 * time.Microsecond
)

// Memories measures what waiting requests take: n of them, over each protocol, with no body
// and with one of so many bytes, in goodput's queue and in handlers of net/http, which is
// the least that a proxy made of it can have.
func (ps Programs) Memories(ctx context.Context, n, body int, say func(string, ...any)) ([]*Memory, error) {
	var all []*Memory
	for _, protocol := range []string{HTTP1, H2C} {
		for _, bytes := range []int{0, body} {
			// A day of work that takes 1 s is a queue that is deep enough for all of them,
			// and it leaves nobody waiting too long.
			for _, c := range []Contestant{goodput(Goodput, "", "--limit", "1", "--service", "1s", "--objective", "24h", "--max-queue-bytes", "1GiB"), floor()} {
				say("%d requests in %s, over %s, with bodies of %d bytes", n, c.Name, protocol, bytes)
				m, err := ps.memory(ctx, c, protocol, n, bytes)
				if err != nil {
					return nil, fmt.Errorf("%d requests in %s over %s: %w", n, c.Name, protocol, err)
				}
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// memory has n requests wait behind one that runs until the client leaves.
func (ps Programs) memory(ctx context.Context, c Contestant, protocol string, n, body int) (*Memory, error) {
	upstream, stop, err := ps.service(1)
	if err != nil {
		return nil, err
	}
	defer stop()
	p, err := ps.Start(c, upstream, 0)
	if err != nil {
		return nil, err
	}
	defer p.Stop()
	ctx, cancel := context.WithTimeout(ctx, queueing)
	defer cancel()
	q := &queue{addr: p.H1, body: strings.Repeat("x", body), gone: make(chan error, n+1)}
	defer q.close()
	if c.Name == Goodput {
		if err := q.first(ctx, upstream); err != nil {
			return nil, err
		}
	}
	before, err := p.process.resident()
	if err != nil {
		return nil, err
	}
	if protocol == HTTP1 {
		err = q.overConnections(ctx, n)
	} else {
		err = q.overStreams(ctx, n)
	}
	if err != nil {
		return nil, err
	}
	after, err := q.settled(ctx, p.process)
	if err != nil {
		return nil, err
	}
	return &Memory{
		Contestant: c.Name, Protocol: protocol, Body: body, Waiting: n,
		Each: float64(after-before)/float64(n) - float64(body),
	}, nil
}

// A queue is requests that wait for their answer.
type queue struct {
	addr  string
	body  string
	conns []io.Closer
	gone  chan error // of a request that was answered, or whose connection ended
}

// first sends the request that takes the slot, and returns when it runs.
func (q *queue) first(ctx context.Context, upstream string) error {
	if err := q.connection(ctx, "", false); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if told, err := ask(upstream); err == nil && told.Held == 1 {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("the first request does not run: %w", ctx.Err())
}

// connection opens a connection and sends one request on it.
func (q *queue) connection(ctx context.Context, body string, watch bool) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", q.addr)
	if err != nil {
		return err
	}
	q.conns = append(q.conns, c)
	request := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: h\r\nUser-Agent: proxies\r\nContent-Length: %d\r\n\r\n%s", pathHold, len(body), body)
	if _, err := io.WriteString(c, request); err != nil {
		return err
	}
	if watch {
		go func() {
			var answer [64]byte
			n, err := c.Read(answer[:]) // ends with close
			q.gone <- fmt.Errorf("one was answered %q, %w", answer[:n], err)
		}()
	}
	return nil
}

func (q *queue) overConnections(ctx context.Context, n int) error {
	for start, i := time.Now(), 0; i < n; i++ {
		time.Sleep(time.Until(start.Add(time.Duration(i) * pace)))
		if err := q.connection(ctx, q.body, true); err != nil {
			return err
		}
	}
	return nil
}

// overStreams sends n requests over as few connections as the proxy allows.
func (q *queue) overStreams(ctx context.Context, n int) error {
	clear := new(http.Protocols)
	clear.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: clear, DisableCompression: true}
	q.conns = append(q.conns, closer(transport.CloseIdleConnections))
	for start, i := time.Now(), 0; i < n; i++ {
		time.Sleep(time.Until(start.Add(time.Duration(i) * pace)))
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+q.addr+pathHold, bytes.NewReader([]byte(q.body)))
		if err != nil {
			return err
		}
		go func() {
			res, err := transport.RoundTrip(r) // ends with ctx
			if err == nil {
				err = fmt.Errorf("one was answered %d", res.StatusCode)
				res.Body.Close()
			}
			q.gone <- err
		}()
	}
	return nil
}

type closer func()

func (c closer) Close() error { c(); return nil }

// settled waits until the memory of p has stopped growing, and returns it. The error is
// that of the first request that did not stay.
func (q *queue) settled(ctx context.Context, p *process) (int64, error) {
	last, same := int64(0), 0
	for same < 5 {
		select {
		case err := <-q.gone:
			return 0, err
		case <-ctx.Done():
			return 0, fmt.Errorf("the memory has not settled: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
		now, err := p.resident()
		if err != nil {
			return 0, err
		}
		if same++; now > last+last/200 { // 0.5 %: what else a Go program does
			last, same = now, 0
		}
	}
	return last, nil
}

func (q *queue) close() {
	for _, c := range q.conns {
		_ = c.Close()
	}
}
