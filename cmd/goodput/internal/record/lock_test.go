package record

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/accesslog"
)

// A second trace at the same path is refused while there is a first, and what the first has is
// as it was; a file that the other process closes, to begin another, is no moment to take it.
func TestTwoTraces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	log, said := silent()
	first, err := OpenTrace(path, 8*4096, log)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := OpenTrace(path, 8*4096, log); err == nil || err.Error() != "cannot write "+path+": "+errTaken.Error() {
		t.Errorf("%v, %v", second, err)
	}
	for i := range 1000 { // 48 bytes each: a dozen files
		first.Add(ended(time.UnixMicro(int64(i))))
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if all := files(t, path); len(all) != Files || first.Numbers().Lines != 1000 {
		t.Errorf("%d files, %+v; %s", len(all), first.Numbers(), said)
	}

	// Who comes between two files of another keeps it, and the other says that it cannot write.
	mine := newTrace(path, 1<<20, log, create)
	if err := mine.out.ready(); err != nil {
		t.Fatal(err)
	}
	mine.out.file.Close()
	mine.out.file = nil
	other, err := OpenTrace(path, 1<<20, log)
	if err != nil {
		t.Fatal(err)
	}
	mine.Add(ended(time.Now()))
	mine.flush(false)
	if n := mine.Numbers(); n.Dropped != 1 || !strings.Contains(said.String(), errTaken.Error()) {
		t.Errorf("%+v, %s", n, said)
	}
	if err := other.Close(); err != nil { // and is free again
		t.Fatal(err)
	}
	mine.Add(ended(time.Now()))
	mine.flush(true)
	if n := mine.Numbers(); n.Lines != 1 {
		t.Errorf("%+v, %s", n, said)
	}
}

// What a process that was killed has left of a line is a line of its own, to which nothing is added.
func TestAccessAfterAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	log, _ := silent()
	add := func() {
		t.Helper()
		a, err := OpenAccess(path, false, nil, log)
		if err != nil {
			t.Fatal(err)
		}
		a.Add(httptest.NewRequest(http.MethodGet, "/", nil), ended(time.Now()), Where{Class: "c"})
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	add()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut < len(b); cut += 7 {
		if err := os.WriteFile(path, b[:len(b)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		add()
		add()
		after, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Count(after, []byte{'\n'}); got != 3 || !bytes.Equal(after[:len(b)-cut], b[:len(b)-cut]) {
			t.Fatalf("%d lines:\n%s", got, after)
		}
		logged, err := accesslog.Open([]string{path}, accesslog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := int64(2)
		if cut == 1 { // the end of the line alone
			want = 3
		}
		if n := logged.Summary().Used; n != want {
			t.Errorf("%d requests are read, want %d", n, want)
		}
		logged.Close()
	}
}
