package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pair writes a certificate that is valid until then, and its key.
func pair(t *testing.T, until time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: until.Add(-time.Hour), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	return write("tls.crt", "CERTIFICATE", der), write("tls.key", "EC PRIVATE KEY", secret)
}

// Files that a listener names are there, belong together and are not about to expire.
func TestFiles(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	cert, key := pair(t, now.Add(8*24*time.Hour))
	soon, soonKey := pair(t, now.Add(6*24*time.Hour))
	_, other := pair(t, now)
	for _, c := range []struct {
		tls   TLS
		err   string
		warns string
	}{
		{TLS{cert, key, cert}, "", ""},
		{TLS{soon, soonKey, ""}, "", "is valid until 2026-03-07T00:00:00Z: then no client connects to :1 any more"},
		{TLS{cert, other, ""}, "private key does not match public key", ""},
		{TLS{"none", key, ""}, "listen :1: cert none and key " + key + ": open none: no such file or directory", ""},
		{TLS{cert, key, "none"}, "listen :1: client_ca: open none", ""},
		{TLS{cert, key, key}, "has no certificate in PEM", ""},
	} {
		cfg := &Config{Listeners: []Listener{{Address: ":9"}, {Address: ":1", TLS: &c.tls}}}
		errs, warns := cfg.Files(now)
		if c.err == "" && len(errs) > 0 || c.err != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), c.err)) {
			t.Errorf("%v says %v, want %q", c.tls, errs, c.err)
		}
		if c.warns == "" && len(warns) > 0 || c.warns != "" && (len(warns) != 1 || !strings.Contains(warns[0].Sentence, c.warns)) {
			t.Errorf("%v warns %v, want %q", c.tls, warns, c.warns)
		}
	}
}
