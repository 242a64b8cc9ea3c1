package record

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputhttp"
)

// What the documents and the help of serve promise in numbers.
func TestPromises(t *testing.T) {
	if Files != 8 { // FILE, and FILE.1 to FILE.7
		t.Errorf("a record has %d files, want 8", Files)
	}
	// A crash loses less than a second: what waits for the tick, and as long again for the write.
	if flushEvery > 500*time.Millisecond || flushEvery < 50*time.Millisecond {
		t.Errorf("written each %v", flushEvery)
	}
}

// Addresses and names of tenants are not for everybody: nobody but the owner and the group may read
// what we make.
func TestFilesAreNotForEverybody(t *testing.T) {
	old := syscall.Umask(0) // which would hide what we ask for
	defer syscall.Umask(old)
	log, _ := silent()
	dir := t.TempDir()
	a, err := OpenAccess(filepath.Join(dir, "access"), false, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := OpenTrace(filepath.Join(dir, "trace"), 1<<20, log)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"access", "trace"} {
		info, err := os.Stat(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o640 {
			t.Errorf("%s has mode %v, want -rw-r-----", f, got)
		}
	}
	if a.Close() != nil || tr.Close() != nil {
		t.Error("not closed")
	}
}

// A line has 2 KiB of a path, and 256 bytes of a host, to the end of a letter.
func TestALineIsBounded(t *testing.T) {
	r := httptest.NewRequest("GET", "/"+strings.Repeat("p", 5000), nil)
	r.Host = strings.Repeat("h", 300)
	e := ended(time.Unix(1000, 0))
	e.Work.Tenant = strings.Repeat("ä", 200) // two bytes each
	_, l := written(t, false, r, e, Where{})
	if len(l.Path) != 2048 || len(l.Host) != 256 || l.Tenant != strings.Repeat("ä", 128) {
		t.Errorf("%d bytes of the path, %d of the host, %d of the tenant", len(l.Path), len(l.Host), len(l.Tenant))
	}
}

// A stripe that is half full is written at once, and not when it is time: else what comes until then
// is lost.
func TestHalfFullIsWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, _ := silent()
		tr, err := OpenTrace(filepath.Join(t.TempDir(), "trace"), 1<<26, log)
		if err != nil {
			t.Fatal(err)
		}
		lim := goodput.New(goodput.Config{Name: "a"})
		e := goodputhttp.Ended{Limiter: lim, Offered: true, Arrival: time.Now(), Outcome: goodput.Completed, Held: time.Millisecond}
		began := time.Now()
		const rounds = 24
		for range rounds { // each fills about an eighth of each stripe: without a write the ninth has no room
			for range len(tr.stripes) * lineBuffer / 8 {
				tr.Add(&e)
			}
			synctest.Wait() // for the writer, while the clock stands
		}
		if n := tr.Numbers(); n.Dropped != 0 || n.Lines < uint64((rounds-5)*len(tr.stripes)*lineBuffer/8) || time.Since(began) != 0 {
			t.Errorf("%+v after %v", n, time.Since(began))
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
}
