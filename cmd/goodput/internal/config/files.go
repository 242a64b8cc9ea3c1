package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"time"
)

// Files reads the files that c names, and returns one sentence for each that cannot be used,
// and one for each certificate that has expired at now or will within a week.
func (c *Config) Files(now time.Time) (errs []error, warnings []Warning) {
	for i := range c.Listeners {
		l := &c.Listeners[i]
		if l.TLS == nil {
			continue
		}
		pair, err := tls.LoadX509KeyPair(l.TLS.Cert, l.TLS.Key)
		if err != nil {
			errs = append(errs, fmt.Errorf("listen %s: cert %s and key %s: %s", l.Address, l.TLS.Cert, l.TLS.Key, strings.TrimPrefix(err.Error(), "tls: ")))
		} else if until := pair.Leaf.NotAfter; until.Before(now.Add(week)) {
			warnings = append(warnings, Warning{Sentence: fmt.Sprintf("cert %s is valid until %s: then no client connects to %s any more",
				l.TLS.Cert, until.UTC().Format(time.RFC3339), l.Address)})
		}
		if l.TLS.ClientCA == "" {
			continue
		}
		pem, err := os.ReadFile(l.TLS.ClientCA)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("listen %s: client_ca: %w", l.Address, err))
		case !x509.NewCertPool().AppendCertsFromPEM(pem):
			errs = append(errs, fmt.Errorf("listen %s: client_ca %s has no certificate in PEM", l.Address, l.TLS.ClientCA))
		}
	}
	return errs, warnings
}

// week is time enough for somebody to renew a certificate.
const week = 7 * 24 * time.Hour
