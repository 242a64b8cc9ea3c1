package listen

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// keys are what a listener has for TLS: a certificate that is read again with each reload,
// so that a renewed one needs no restart.
//
// A listener with a client CA requires a certificate from it. One that named a CA and then
// let in whoever has none would look protected and not be; who wants both opens two
// listeners.
type keys struct {
	cfg    config.Listener
	server *tls.Config // asks for now at each handshake
	now    atomic.Pointer[tls.Config]
}

func newKeys(cfg config.Listener) (*keys, error) {
	k := &keys{cfg: cfg}
	k.server = k.base()
	k.server.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return k.now.Load(), nil }
	return k, k.read()
}

// base is what no file says: TLS 1.2 at least (RFC 8996 has ended what is older), and the
// protocols in the order in which we prefer them.
func (k *keys) base() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if k.cfg.HTTP2 {
		c.NextProtos = append(c.NextProtos, "h2")
	}
	if k.cfg.HTTP1 {
		c.NextProtos = append(c.NextProtos, "http/1.1")
	}
	return c
}

// read reads the files and puts them in force, all or none.
func (k *keys) read() error {
	files := k.cfg.TLS
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return fmt.Errorf("cannot use the certificate %s with the key %s: %w", files.Cert, files.Key, err)
	}
	c := k.base()
	c.Certificates = []tls.Certificate{pair}
	if files.ClientCA != "" {
		pem, err := os.ReadFile(files.ClientCA)
		if err != nil {
			return fmt.Errorf("cannot read the CA of the clients: %w", err)
		}
		c.ClientCAs = x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("cannot use %s as the CA of the clients: there is no PEM certificate in it", files.ClientCA)
		}
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	k.now.Store(c)
	return nil
}
