//go:build unix

package record

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A named pipe that somebody reads is a file like others; nobody waits for a reader that is not
// there, and a trace, of which older parts are kept, is none.
func TestNamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	log, _ := silent()
	if _, err := OpenAccess(path, false, nil, log); err == nil || !strings.Contains(err.Error(), "nobody reads") {
		t.Errorf("%v", err)
	}
	if _, err := OpenTrace(path, 1<<20, log); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("%v", err)
	}
	reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, err := OpenAccess(path, false, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	a.Add(httptest.NewRequest(http.MethodGet, "/", nil), ended(time.Now()), Where{Class: "c"})
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(reader); err != nil || !strings.HasSuffix(string(b), "}\n") {
		t.Errorf("%q, %v", b, err)
	}
}
