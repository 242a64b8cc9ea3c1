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

// StartWebServer starts nginx in front of the service.
func StartWebServer(t testing.TB, service *Service) *WebServer {
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
		filepath.Join(dir, "nginx.conf"): fmt.Appendf(nil, nginxConfig, dir, w.Addr, service.Addr),
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
