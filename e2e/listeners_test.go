//go:build linux

package e2e

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/e2e/internal/rig"
)

// curl over each kind of listener of one policy: TCP in both versions, TLS in both by
// negotiation, TLS that asks for a certificate, a unix socket. The service hears which it was.
func TestCurlOverEveryListener(t *testing.T) {
	said := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%s %s %d %v", r.Method, r.Header.Get("X-Forwarded-Proto"), n, err) //nolint:errcheck // whoever asked has left
	})
	cert, key := certificate(t)
	socket := filepath.Join(t.TempDir(), "goodput.sock")
	p := rig.ProtectBy(t, fmt.Sprintf(`version: 1
listen:
  - address: "127.0.0.1:0"
  - address: "%[5]s"
    tls: {cert: %[1]s, key: %[2]s}
  - address: "%[6]s"
    tls: {cert: %[1]s, key: %[2]s, client_ca: %[1]s}
  - address: "unix:%[3]s"
upstream: http://%[4]s
limit: 4
`, cert, key, socket, rig.Handle(t, said), rig.FreeAddr(t), rig.FreeAddr(t)))
	at := strings.Fields(p.Addr)
	if len(at) != 4 {
		t.Fatalf("listening on %q", p.Addr)
	}
	const body = 100_000
	file := "@" + rig.File(t, "body", strings.Repeat("x", body))
	for _, c := range []struct {
		args    []string
		url     string
		version string
		proto   string
	}{
		{[]string{"--http1.1"}, "http://" + at[0], "1.1", "http"},
		{[]string{"--http2-prior-knowledge"}, "http://" + at[0], "2", "http"},
		{[]string{"--cacert", cert, "--http1.1"}, "https://" + at[1], "1.1", "https"},
		{[]string{"--cacert", cert}, "https://" + at[1], "2", "https"},
		{[]string{"--cacert", cert, "--cert", cert, "--key", key}, "https://" + at[2], "2", "https"},
		{[]string{"--unix-socket", socket}, "http://localhost", "1.1", "http"},
	} {
		for what, length := range map[string]int{"GET": 0, "POST": body} {
			args := append([]string{"-w", " %{http_version} %{http_code}"}, c.args...)
			if length > 0 {
				args = append(args, "--data-binary", file)
			}
			want := fmt.Sprintf("%s %s %d <nil> %s 200", what, c.proto, length, c.version)
			if got := curl(t, append(args, c.url+"/")...); got != want {
				t.Errorf("curl %q: %q, want %q", c.args, got, want)
			}
		}
	}
	// Without a certificate there is no answer: 35, 55 and 56 are what curl has for a
	// handshake that fails, which in TLS 1.3 the client learns when it sends or reads.
	err := exec.Command(rig.Need(t, "curl"), "--silent", "--max-time", "10", "--cacert", cert, "https://"+at[2]+"/").Run()
	if exit, ok := err.(*exec.ExitError); !ok || !slices.Contains([]int{35, 55, 56}, exit.ExitCode()) {
		t.Errorf("without a certificate: %v", err)
	}
	if l := p.Rest(t, 5*time.Second); l.Ended("completed") != 12 || l.Counts.Arrivals != 12 {
		t.Errorf("%v", l)
	}
}

// certificate writes a certificate for 127.0.0.1, its own authority, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "e2e"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return rig.File(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		rig.File(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}

// Server-sent events reach curl as they are sent, over both versions, not in lumps and not
// at the end; the stream holds no slot of the class beside it.
func TestEventsArriveOneByOne_C082(t *testing.T) {
	const events, pause = 6, 100 * time.Millisecond
	mux := http.NewServeMux()
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range events {
			fmt.Fprintf(w, "data: %d\n\n", time.Now().UnixNano()) //nolint:errcheck // seen by the client
			http.NewResponseController(w).Flush()                 //nolint:errcheck // the same
			time.Sleep(pause)
		}
	})
	mux.Handle("/", &counted{})
	p := rig.ProtectBy(t, `version: 1
listen: "127.0.0.1:0"
upstream: http://`+rig.Handle(t, mux)+`
classes:
  - {name: events, match: {path: /events}, mode: stream, limit: 10}
  - {name: rest, limit: 1, depth: none}
`)
	for _, version := range []string{"--http1.1", "--http2-prior-knowledge"} {
		cmd := exec.Command(rig.Need(t, "curl"), "--silent", "--no-buffer", "--max-time", "10", version, p.URL()+"/events")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var seen []time.Time
		var slowest time.Duration
		for lines := bufio.NewScanner(out); lines.Scan(); {
			sent, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			ns, err := strconv.ParseInt(sent, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, time.Now())
			slowest = max(slowest, time.Since(time.Unix(0, ns)))
			if out := curl(t, "-o", "/dev/null", "-w", "%{http_code}", p.URL()+"/"); out != "200" {
				t.Errorf("beside the stream a request is answered %s", out)
			}
		}
		if err := cmd.Wait(); err != nil || len(seen) != events {
			t.Fatalf("%s: %d events, %v", version, len(seen), err)
		}
		// In a lump they would come together; half the time is for a busy machine.
		if spread := seen[events-1].Sub(seen[0]); spread < (events-1)*pause/2 {
			t.Errorf("%s: %d events within %v", version, events, spread)
		}
		figure(t, "events "+version, "%d, the slowest after %.1f ms", events, slowest.Seconds()*1e3)
	}
}
