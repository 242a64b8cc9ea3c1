package soak

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// wildTime bounds what one client that misbehaves does.
const wildTime = 2 * time.Second

// Requests that are cut anywhere. Each may be counted once.
var cut = []string{
	"GET " + pathPlain + " HTTP/1.1\r\nHost: h\r\nX-Tenant: wild\r\nWork-Us: 50000\r\n\r\n",
	"GET " + pathAuto + " HTTP/1.1\r\nHost: h\r\nWork-Us: 50000\r\nAnswer-Bytes: 100000\r\n\r\n",
	"POST " + pathPlain + " HTTP/1.1\r\nHost: h\r\nContent-Length: 3000\r\nWork-Us: 20000\r\n\r\n" + strings.Repeat("b", 3000),
	"POST " + pathAuto + " HTTP/1.1\r\nHost: h\r\nContent-Length: 300000\r\n\r\n" + strings.Repeat("b", 100_000),
	"POST " + pathPlain + " HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nhello\r\n0\r\n\r\n",
	"POST " + pathPlain + " HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5000000\r\n\r\n", // more than max_body
	"GET " + pathEcho + " HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: " + echoed + "\r\n\r\nhello\n",
	"GET " + pathEvents + " HTTP/1.1\r\nHost: h\r\nWork-Us: 1000000\r\n\r\n",
}

// burst has n clients misbehave within a second.
func (c *crowd) burst(rng *rand.Rand, n int) {
	for range n {
		one := rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))
		c.run(func() {
			time.Sleep(time.Duration(one.Int64N(int64(time.Second))))
			c.misbehave(one)
		})
	}
}

// misbehave is one client.
func (c *crowd) misbehave(rng *rand.Rand) {
	if rng.IntN(5) == 0 {
		if n := c.resetStreams(rng); n > 0 { // who could not connect has broken nothing off
			c.tally.wild(n)
		}
		return
	}
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		return
	}
	defer conn.Close()
	tcp := conn.(*net.TCPConn)
	_ = tcp.SetLinger(0) // Close sends a reset
	_ = conn.SetDeadline(time.Now().Add(wildTime))
	request := cut[rng.IntN(len(cut))]
	switch rng.IntN(8) {
	default: // in the middle of the request, or of its answer
		if rng.IntN(2) == 0 {
			request = request[:rng.IntN(len(request))]
		}
		_, _ = io.WriteString(conn, request)
		time.Sleep(time.Duration(rng.Int64N(int64(100 * time.Millisecond))))
		_, _ = io.CopyN(io.Discard, conn, rng.Int64N(50_000))
	case 4: // half a header, or half a body, and silence
		_, _ = io.WriteString(conn, request[:len(request)*3/4])
		_, _ = io.Copy(io.Discard, conn)
	case 5, 6: // takes a long answer slowly
		path := pathLong
		if rng.IntN(8) == 0 {
			path = pathLongToo // keeps a slot of others for 2 s: 3 a minute are 1 % of the slots
		}
		_ = tcp.SetReadBuffer(4 << 10)
		_, _ = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: h\r\n\r\n")
		some := make([]byte, 1<<10)
		for _, err := conn.Read(some); err == nil; _, err = conn.Read(some) {
			time.Sleep(20 * time.Millisecond)
		}
	case 7: // no HTTP, or until a certain point
		begin := []string{"", "GET ", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", "\x16\x03\x01"}
		b := make([]byte, 1+rng.IntN(4000))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		_, _ = io.WriteString(conn, begin[rng.IntN(len(begin))]+string(b))
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, 1<<20))
	}
	c.tally.wild(1)
}

// resetStreams opens a connection of HTTP/2 with ten requests, resets each stream at some
// instant and then the connection. It returns how many requests that were.
func (c *crowd) resetStreams(rng *rand.Rand) int {
	const n = 10
	clear := new(http.Protocols)
	clear.SetUnencryptedHTTP2(true)
	var conn net.Conn
	transport := &http.Transport{Protocols: clear, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		var err error
		if conn, err = new(net.Dialer).DialContext(ctx, network, addr); err == nil {
			err = conn.(*net.TCPConn).SetLinger(0)
		}
		return conn, err
	}}
	defer transport.CloseIdleConnections()
	one, err := transport.NewClientConn(context.Background(), "http", c.addr)
	if err != nil {
		return 0
	}
	defer one.Close()
	var all sync.WaitGroup
	for range n {
		stay := time.Duration(1 + rng.Int64N(int64(150*time.Millisecond)))
		a := draw(rng, rng.IntN(2))
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), stay)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.addr+a.path, nil)
			if err != nil {
				return
			}
			r.Header = a.header
			res, err := one.RoundTrip(r)
			if err != nil {
				return
			}
			_, _ = io.CopyN(io.Discard, res.Body, 500) // and no more
			res.Body.Close()
		})
	}
	if rng.IntN(2) == 0 { // some die with the connection
		time.Sleep(time.Duration(rng.Int64N(int64(100 * time.Millisecond))))
		_ = conn.Close()
	}
	all.Wait()
	return n
}
