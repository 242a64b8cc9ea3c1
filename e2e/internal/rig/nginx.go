//go:build linux

package rig

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A WebServer is a running nginx.
//
//	/small   1 KiB, as fast as it goes
//	/slow    96 KiB at 64 KiB/s: half a second, since the first 64 KiB are free
//	/work    passed on to the service, over connections that are kept
type WebServer struct {
	*Process
	Addr string
}

// URL returns where nginx is.
func (w *WebServer) URL() string { return "http://" + w.Addr }

// nginxConfig is Debian's with everything in the directory of the test. Kept
// connections end after 100 requests, so that a run meets that often.
const nginxConfig = `daemon off;
worker_processes 2;
pid %[1]s/pid;
error_log stderr warn;
events { worker_connections 1024; }
http {
	include /etc/nginx/mime.types;
	access_log off;
	sendfile on;
	keepalive_requests 100;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	upstream service { server %[3]s; keepalive 64; }
	server {
		listen %[2]s backlog=1024;
		root %[1]s/www;
		location = /slow { limit_rate 64k; }
		location /work {
			proxy_pass http://service;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
		}
	}
}
`

// edgeConfig is nginx as it stands in front of many a service: kept connections in both
// directions, and the headers that say who asks and since when.
const edgeConfig = `daemon off;
worker_processes 2;
pid %[1]s/pid;
error_log stderr warn;
events { worker_connections 1024; }
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	upstream goodput { server %[3]s; keepalive 64; }
	server {
		listen %[2]s backlog=1024;
		location / {
			proxy_pass http://goodput;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header Host $host;
			proxy_set_header X-Request-Id $request_id;
			proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
			proxy_set_header X-Forwarded-Proto $scheme;
			proxy_set_header X-Request-Start "t=${msec}";
		}
	}
}
`

// StartWebServer starts nginx in front of the service.
func StartWebServer(t testing.TB, service *Service) *WebServer {
	t.Helper()
	return startNginx(t, nginxConfig, service.Addr)
}

// StartEdge starts nginx in front of goodput.
func StartEdge(t testing.TB, p *Proxy) *WebServer {
	t.Helper()
	return startNginx(t, edgeConfig, p.Addr)
}

// startNginx starts nginx with a configuration into which its directory, its address and
// what it leads to are put.
func startNginx(t testing.TB, config, to string) *WebServer {
	t.Helper()
	nginx := Need(t, "nginx")
	dir, err := os.MkdirTemp("", "goodput-nginx-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) }) //nolint:errcheck // a temporary directory
	w := &WebServer{Addr: FreeAddr(t)}
	www := filepath.Join(dir, "www")
	files := map[string][]byte{
		filepath.Join(dir, "nginx.conf"): fmt.Appendf(nil, config, dir, w.Addr, to),
		filepath.Join(www, "small"):      bytes.Repeat([]byte("x"), 1<<10),
		filepath.Join(www, "slow"):       bytes.Repeat([]byte("x"), 96<<10),
	}
	// Its workers are not root and must get in.
	for _, d := range []string{dir, www} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w.Process = run(t, "nginx", exec.Command(nginx, "-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-e", "stderr"), syscall.SIGTERM)
	t.Cleanup(func() { w.terminate(5 * time.Second) }) // it ends its workers itself
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", w.Addr)
		if err == nil {
			c.Close() //nolint:errcheck // it answered, that is all
			return w
		}
		if !w.Running() || time.Now().After(deadline) {
			t.Fatalf("nginx is not up: %v", err)
		}
	}
}

// FreeAddr returns an address that was free a moment ago.
func FreeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was sent
	return l.Addr().String()
}
