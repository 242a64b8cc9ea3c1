package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ReadAll is Read, and looks at the files that the policy names, relative to the working
// directory. One that cannot be used is an error at the key that names it, and then the Config
// is returned beside the error. To the Warnings of that it adds one for each certificate that has
// expired at now, or will within a week.
func ReadAll(name string, src []byte, now time.Time) (*Config, []Warning, error) {
	r, f, err := read(name, src)
	if err != nil {
		return nil, nil, err
	}
	warnings := r.cfg.Warnings()
	for i := range r.cfg.Listeners {
		l := &r.cfg.Listeners[i]
		if l.TLS == nil {
			continue
		}
		keys := r.listening[i].Get("tls").Map()
		until, wrong := l.TLS.look()
		for _, w := range wrong {
			at := keys.Get(w.keys[0])
			at.Fail("%s", w.sentence)
			for _, other := range w.keys[1:] {
				at.Clash(keys.Get(other), "%s", w.sentence)
			}
		}
		if !until.IsZero() && until.Before(now.Add(week)) {
			warnings = append(warnings, Warning{Sentence: fmt.Sprintf("cert %s is valid until %s: then no client connects to %s any more",
				l.TLS.Cert, until.UTC().Format(time.RFC3339), l.Address)})
		}
	}
	return r.cfg, warnings, f.Err()
}

// week is time enough for somebody to renew a certificate.
const week = 7 * 24 * time.Hour

// A fileFault is what is wrong with a file, and the keys that name it.
type fileFault struct {
	keys     []string
	sentence string
}

// look reads the files, and returns until when the certificate is valid, zero if it could not be
// read.
func (t *TLS) look() (until time.Time, wrong []fileFault) {
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	switch missing := (*fs.PathError)(nil); {
	case err == nil:
		until = pair.Leaf.NotAfter
	case errors.As(err, &missing) && missing.Path == t.Key && t.Key != t.Cert:
		wrong = append(wrong, fileFault{[]string{"key"}, unreadable("key", missing)})
	case errors.As(err, &missing):
		wrong = append(wrong, fileFault{[]string{"cert"}, unreadable("cert", missing)})
	default:
		wrong = append(wrong, fileFault{[]string{"cert", "key"}, fmt.Sprintf("cert %s and key %s: %s", t.Cert, t.Key, strings.TrimPrefix(err.Error(), "tls: "))})
	}
	if t.ClientCA == "" {
		return until, wrong
	}
	pem, err := os.ReadFile(t.ClientCA)
	switch missing := (*fs.PathError)(nil); {
	case errors.As(err, &missing):
		wrong = append(wrong, fileFault{[]string{"client_ca"}, unreadable("client_ca", missing)})
	case err != nil:
		wrong = append(wrong, fileFault{[]string{"client_ca"}, fmt.Sprintf("client_ca %s: %v", t.ClientCA, err)})
	case !x509.NewCertPool().AppendCertsFromPEM(pem):
		wrong = append(wrong, fileFault{[]string{"client_ca"}, fmt.Sprintf("client_ca %s has no certificate in PEM", t.ClientCA)})
	}
	return until, wrong
}

func unreadable(key string, why *fs.PathError) string {
	where := ""
	if errors.Is(why, fs.ErrNotExist) && !filepath.IsAbs(why.Path) {
		where = ", looked for from the working directory"
	}
	return fmt.Sprintf("%s %s: %v%s", key, why.Path, why.Err, where)
}
