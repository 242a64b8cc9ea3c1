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
		cert, key, ca string
		err           string // from the line on
		warns         string
	}{
		{cert, key, cert, "", ""},
		{soon, soonKey, "", "", "is valid until 2026-03-07T00:00:00Z: then no client connects to :1 any more"},
		{cert, other, "", "5,6: cert " + cert + " and key " + other + ": private key does not match public key", ""},
		{"none", key, "", "5: cert none: no such file or directory, looked for from the working directory", ""},
		{cert, "/none", "", "6: key /none: no such file or directory", ""},
		{cert, key, "none", "7: client_ca none: no such file or directory, looked for from the working directory", ""},
		{cert, key, key, "7: client_ca " + key + " has no certificate in PEM", ""},
		{key, key, "", "5,6: cert " + key + " and key " + key + ": ", ""},
	} {
		src := head + "listen:\n  - {address: ':1', tls: {\n      cert: " + c.cert + ",\n      key: " + c.key
		if c.ca != "" {
			src += ",\n      client_ca: " + c.ca
		}
		cfg, warns, err := ReadAll("f", []byte(src+"}}\n  - ':9'\n"), now)
		if cfg == nil {
			t.Fatal(src, err)
		}
		got := sentences(t, err)
		if c.err == "" && len(got) > 0 || c.err != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.err)) {
			t.Errorf("%v says %v, want %q", c, got, c.err)
		}
		if c.warns == "" && len(warns) > 0 || c.warns != "" && (len(warns) != 1 || !strings.Contains(warns[0].Sentence, c.warns)) {
			t.Errorf("%v warns %v, want %q", c, warns, c.warns)
		}
	}
	if cfg, _, err := ReadAll("f", []byte("version: 2"), now); cfg != nil || err == nil {
		t.Errorf("%v, %v", cfg, err)
	}
}
