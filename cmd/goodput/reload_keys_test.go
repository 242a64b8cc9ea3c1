package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// keyPair writes a certificate and its key.
func keyPair(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	rewrite(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	rewrite(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	return cert, key
}

// A reload is all or nothing: where the keys of a listener that is open cannot be read again,
// the rest of the file is not in force either.
func TestReloadWithoutKeysChangesNothing(t *testing.T) {
	upstream, _ := backend(t, hello)
	before, after := t.TempDir(), t.TempDir()
	policy := func(dir string, limit int) string {
		cert, key := keyPair(t, dir)
		return fmt.Sprintf("version: 1\nlisten: [{address: \"127.0.0.1:0\", tls: {cert: %q, key: %q}}]\nupstream: %s\nlimit: %d\nobjective: 1s\n",
			cert, key, upstream, limit)
	}
	path := policyFile(t, policy(before, 3))
	p := serveFile(t, path)
	rewrite(t, path, policy(after, 9))
	if err := os.RemoveAll(before); err != nil {
		t.Fatal(err)
	}
	if code, body := p.reload(); code != http.StatusBadRequest || !strings.Contains(body, "cert.pem") {
		t.Errorf("%d %s", code, body)
	}
	if got := p.metric(`goodput_concurrency_limit{limiter="default"}`); got != "3" {
		t.Errorf("the limit is %s", got)
	}
	if got := p.metric("goodput_config_last_reload_successful"); got != "0" {
		t.Errorf("last reload successful: %s", got)
	}
}
