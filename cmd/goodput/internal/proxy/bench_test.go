package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/limit"
)

// The three ways of a request, over real connections: forwarded by a bare tuned
// ReverseProxy, forwarded after admission, and refused. cpu-ns/op is the CPU of
// all three parties (client, proxy, service); the client and the service cost
// the same in the first two.
//
//	go test -bench . -run '^$' ./internal/proxy
func BenchmarkBare(b *testing.B) {
	p := proxyBefore(b, backendOf(b), limit.Fixed(64))
	bare := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(p.Config().Upstreams[0].Servers[0].URL)
			r.Out.Host = r.In.Host
			r.SetXForwarded()
		},
		Transport:  &http.Transport{MaxIdleConnsPerHost: 1 << 20, DisableCompression: true},
		BufferPool: &buffers,
	}
	requests(b, &http.Server{Handler: bare}, http.StatusOK, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
}

func BenchmarkPass(b *testing.B) {
	p := proxyBefore(b, backendOf(b), limit.Fixed(64))
	requests(b, p.Server(config.DefaultListener()), http.StatusOK, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
}

func BenchmarkPassWithDeadline(b *testing.B) {
	p := proxyBefore(b, backendOf(b), limit.Fixed(64))
	requests(b, p.Server(config.DefaultListener()), http.StatusOK, "GET / HTTP/1.1\r\nHost: h\r\nX-Envoy-Expected-Rq-Timeout-Ms: 2000\r\n\r\n")
}

func BenchmarkRefuse(b *testing.B) {
	p := proxyBefore(b, backendOf(b), limit.Fixed(0))
	requests(b, p.Server(config.DefaultListener()), http.StatusServiceUnavailable, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
}

func backendOf(b *testing.B) string {
	body := bytes.Repeat([]byte("x"), 1024)
	return listen(b, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(body) })})
}

func proxyBefore(b *testing.B, addr string, law limit.Law) *Proxy {
	u, err := url.Parse("http://" + addr)
	if err != nil {
		b.Fatal(err)
	}
	cfg := config.One(u)
	lc := &cfg.Classes[0].Limiter
	if lc.Limit = law; law == limit.Fixed(0) {
		lc.Depth = goodput.NoQueue
	}
	p, err := New(cfg, Options{})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func listen(b *testing.B, srv *http.Server) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go srv.Serve(l) // ends with Close
	b.Cleanup(func() { srv.Close() })
	return l.Addr().String()
}

// requests sends b.N requests over 8 connections per processor.
func requests(b *testing.B, srv *http.Server, want int, request string) {
	addr := listen(b, srv)
	b.SetParallelism(8)
	b.ReportAllocs()
	before := cpu()
	b.RunParallel(func(pb *testing.PB) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			b.Error(err)
			return
		}
		defer c.Close()
		in := bufio.NewReader(c)
		for pb.Next() {
			io.WriteString(c, request) // the read fails then
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				b.Error(err)
				return
			}
			io.Copy(io.Discard, res.Body) // so does the next
			if res.StatusCode != want {
				b.Errorf("%s, want %d", res.Status, want)
				return
			}
		}
	})
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
