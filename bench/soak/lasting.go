package soak

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

// last opens a stream of events, or an upgraded connection, for some seconds.
func (c *crowd) last(due time.Duration, rng *rand.Rand) {
	length := min(time.Duration(rng.ExpFloat64()*float64(lastingMean)), 5*lastingMean)
	c.mu.Lock()
	ctx := c.lasting
	c.mu.Unlock()
	whole, h2 := length+deadlineCap+patience, rng.IntN(2) == 0
	long, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	var e end
	if rng.IntN(2) == 0 {
		header := http.Header{workHeader: {strconv.FormatInt(length.Microseconds(), 10)}, "X-Tenant": {"t1"}}
		e, _ = c.send(long, ask{path: pathEvents, h2: h2, header: header})
	} else {
		e = c.echo(long, length)
	}
	switch {
	case e != lost:
	case ctx.Err() != nil:
		e = left
	case long.Err() != nil:
		e = hung
	}
	c.tally.add(seen{class: -1, due: due, end: e, took: time.Since(c.begin) - due})
}

// echo upgrades a connection and talks over it for so long.
func (c *crowd) echo(ctx context.Context, length time.Duration) end {
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		return lost
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, "GET "+pathEcho+" HTTP/1.1\r\nHost: "+c.addr+"\r\nConnection: Upgrade\r\nUpgrade: "+echoed+"\r\n\r\n"); err != nil {
		return lost
	}
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return lost
	}
	defer res.Body.Close()
	switch {
	case res.Header.Get("Goodput-Rejected") != "":
		return refused
	case res.StatusCode != http.StatusSwitchingProtocols:
		return failed
	}
	word := make([]byte, 5)
	for end := time.Now().Add(length); time.Now().Before(end); {
		if _, err := io.WriteString(conn, "hello"); err != nil {
			return lost
		}
		if _, err := io.ReadFull(in, word); err != nil {
			return lost
		}
		if !sleep(ctx, 300*time.Millisecond) {
			return lost
		}
	}
	return ok
}
