package listen

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// issue writes a certificate for 127.0.0.1 that signs itself, and its key.
func issue(t *testing.T, dir, name string, serial int64) (files config.TLS, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	files = config.TLS{Cert: filepath.Join(dir, name+".pem"), Key: filepath.Join(dir, name+".key")}
	for path, block := range map[string]*pem.Block{
		files.Cert: {Type: "CERTIFICATE", Bytes: der}, files.Key: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if pair, err = tls.LoadX509KeyPair(files.Cert, files.Key); err != nil {
		t.Fatal(err)
	}
	return files, pair
}

// secure opens a listener with files and answers the protocol of each request on it.
func secure(t *testing.T, files config.TLS, change func(*config.Listener)) *Listener {
	t.Helper()
	l := open(t, func(c *config.Listener) {
		c.TLS = &files
		if change != nil {
			change(c)
		}
	})
	srv := &http.Server{
		Handler:  http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }),
		ErrorLog: log.New(io.Discard, "", 0),
	}
	go srv.Serve(l) // ends with Close
	t.Cleanup(func() { srv.Close() })
	return l
}

// ask sends one request over a new connection and returns the answer, and the serial number
// of the server's certificate.
func ask(t *testing.T, l *Listener, c *tls.Config) (body string, serial int64, err error) {
	t.Helper()
	c.InsecureSkipVerify = true // the test is about which certificate comes
	both := new(http.Protocols)
	both.SetHTTP1(true)
	both.SetHTTP2(true)
	tr := &http.Transport{TLSClientConfig: c, Protocols: both}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr, Timeout: patience}).Get("https://" + l.Addr().String())
	if err != nil {
		return "", 0, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), res.TLS.PeerCertificates[0].SerialNumber.Int64(), err
}

func TestProtocolsOverTLS(t *testing.T) {
	files, _ := issue(t, t.TempDir(), "a", 1)
	for _, c := range []struct {
		h1, h2 bool
		want   string
	}{{true, true, "HTTP/2.0"}, {false, true, "HTTP/2.0"}, {true, false, "HTTP/1.1"}} {
		l := secure(t, files, func(l *config.Listener) { l.HTTP1, l.HTTP2 = c.h1, c.h2 })
		if got, _, err := ask(t, l, &tls.Config{}); got != c.want || err != nil {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	l := secure(t, files, nil)
	if _, _, err := ask(t, l, &tls.Config{MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 was accepted")
	}
	if got, _, err := ask(t, l, &tls.Config{MaxVersion: tls.VersionTLS12}); got != "HTTP/2.0" {
		t.Errorf("TLS 1.2: %q, %v", got, err)
	}
	until(t, "all places are back", func() bool { return l.Stats().Open == 0 })
}

// A listener with a client CA lets in who has a certificate from it, and nobody else.
func TestClientCA(t *testing.T) {
	dir := t.TempDir()
	files, _ := issue(t, dir, "server", 1)
	ca, client := issue(t, dir, "client", 2)
	_, stranger := issue(t, dir, "stranger", 3)
	files.ClientCA = ca.Cert
	l := secure(t, files, nil)
	for _, c := range []struct {
		who  string
		cert []tls.Certificate
		in   bool
	}{{"client", []tls.Certificate{client}, true}, {"stranger", []tls.Certificate{stranger}, false}, {"nobody", nil, false}} {
		if _, _, err := ask(t, l, &tls.Config{Certificates: c.cert}); (err == nil) != c.in {
			t.Errorf("%s: %v", c.who, err)
		}
	}
	if err := os.WriteFile(ca.Cert, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.Reload(); err == nil || !strings.Contains(err.Error(), "no PEM certificate") {
		t.Error(err)
	}
	if _, _, err := ask(t, l, &tls.Config{Certificates: []tls.Certificate{client}}); err != nil {
		t.Errorf("after a reload that failed: %v", err)
	}
}

// A renewed certificate is in force after Reload; one that cannot be read leaves the old one.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	files, _ := issue(t, dir, "a", 1)
	l := secure(t, files, nil)
	serial := func() int64 {
		t.Helper()
		_, n, err := ask(t, l, &tls.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := serial(); n != 1 {
		t.Fatalf("certificate %d", n)
	}
	issue(t, dir, "a", 2)
	if n := serial(); n != 1 {
		t.Errorf("certificate %d before Reload", n)
	}
	if err := l.Reload(); err != nil || serial() != 2 {
		t.Errorf("certificate %d, %v", serial(), err)
	}
	if err := os.WriteFile(files.Key, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.Reload(); err == nil || strings.Contains(err.Error(), "\n") || serial() != 2 {
		t.Errorf("certificate %d, %v", serial(), err)
	}
	if err := open(t, nil).Reload(); err != nil {
		t.Errorf("without TLS: %v", err)
	}
}
