package retry

import (
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// header makes a header of "name: value; name: value", where a comma is kept.
func header(s string) http.Header {
	h := http.Header{}
	for _, part := range strings.Split(s, "; ") {
		if name, value, ok := strings.Cut(part, ": "); ok {
			h.Add(name, value)
		}
	}
	return h
}

func quietLog() *log.Logger { return log.New(io.Discard, "", 0) }

// seeded returns a source whose seed a failure shows.
func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

var errTest = errors.New("boom")
