package record

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/limit"
)

var lim = goodput.New(goodput.Config{Name: "search", Limit: limit.Fixed(1)})

// ended is a request that was served at an instant.
func ended(at time.Time) *goodputhttp.Ended {
	return &goodputhttp.Ended{
		Limiter: lim, Offered: true, Outcome: goodput.Completed, Arrival: at, Deadline: at.Add(400 * time.Millisecond),
		Service: 40 * time.Millisecond, Held: 49812 * time.Microsecond, Total: 50 * time.Millisecond,
	}
}

func silent() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, nil)), &b
}

// files returns the lines of each file of a trace, the newest first.
func files(t *testing.T, path string) (all [][]string) {
	t.Helper()
	f := rotated{state: state{path: path}}
	for i := range Files + 1 {
		b, err := os.ReadFile(f.name(i))
		if os.IsNotExist(err) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Split(strings.TrimSuffix(string(b), "\n"), "\n"))
	}
	return all
}

// What a line says, and that it says nothing of what is as usual.
func TestLine(t *testing.T) {
	for want, e := range map[string]entry{
		"5,a,49812,,,,400000,,,\n":             {arrival: 105, class: "a", held: 49812, budget: 400000, outcome: goodput.Completed, priority: goodput.Default},
		"-5,a,,,,,,,rejected,\n":               {arrival: 95, class: "a", held: -1, budget: -1, outcome: goodput.Rejected, priority: goodput.Default},
		"0,a_b_c,0,8,900,z,0,critical,late,\n": {arrival: 100, class: "a,b\nc", cost: 8, size: 900, tenant: 35, outcome: goodput.Late, priority: goodput.Critical},
		"0,a,1,8,,,,,,\n":                      {arrival: 100, class: "a", held: 1, budget: -1, cost: 8, size: 8, outcome: goodput.Completed},
		"0,a,1,,,,,,,observed\n":               {arrival: 100, class: "a", held: 1, budget: -1, outcome: goodput.Completed, observed: true},
		"0,a,1,,,,,,failed,would_refuse\n":     {arrival: 100, class: "a", held: 1, budget: -1, outcome: goodput.Failed, observed: true, would: true},
	} {
		if got := string(e.append(nil, 100)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	long := entry{
		arrival: -1 << 62, class: strings.Repeat("ä", 300), held: 1 << 62, budget: 1 << 62, tenant: 1<<48 - 1, cost: maxCount, size: 1,
		outcome: goodput.Abandoned, priority: goodput.Background, would: true,
	}
	if n := len(long.append(nil, 1<<61)); n > maxLine {
		t.Errorf("%d bytes, want at most %d", n, maxLine)
	}
}

// All that is added is in the files, in one of them each, whatever the number of those who
// add; one tenant has one number, and its name is nowhere.
func TestTraceHasAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	log, said := silent()
	tr, err := OpenTrace(path, 64<<20, log)
	if err != nil {
		t.Fatal(err)
	}
	const each, adders = 3000, 8
	var work sync.WaitGroup
	for i := range adders {
		work.Go(func() {
			for j := range each {
				e := ended(time.UnixMicro(int64(1_000_000*i + j)))
				e.Work.Tenant = fmt.Sprintf("tenant-%d", j%3)
				tr.Add(e)
				if j%500 == 0 {
					tr.hurry()
				}
			}
		})
	}
	tr.Add(&goodputhttp.Ended{Limiter: lim, Reason: "slow_body"}) // was not offered
	probe := ended(time.Now())
	probe.Exempt = true
	tr.Add(probe)
	work.Wait()
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	n := tr.Numbers()
	if n.Lines != each*adders || n.Dropped != 0 || said.Len() != 0 {
		t.Errorf("%+v, want %d lines; %s", n, each*adders, said)
	}
	all := files(t, path)
	if len(all) != 1 {
		t.Fatalf("%d files", len(all))
	}
	lines := all[0]
	if !strings.HasPrefix(lines[0], magic) || lines[1]+"\n" != columns || lines[len(lines)-1]+"\n" != end {
		t.Errorf("%q, %q ... %q", lines[0], lines[1], lines[len(lines)-1])
	}
	tenants, whens := map[string]int{}, map[string]bool{}
	for _, l := range lines[2 : len(lines)-1] {
		cells := strings.Split(l, ",")
		tenants[cells[5]]++
		whens[cells[0]] = true
	}
	if len(tenants) != 3 || len(whens) != each*adders {
		t.Errorf("tenants %v, %d arrivals", tenants, len(whens))
	}
	for name, n := range tenants {
		if n != each*adders/3 || strings.Contains(name, "tenant") {
			t.Errorf("%q has %d lines", name, n)
		}
	}
}

// The files are never more than what was allowed, each is whole and can be read by itself,
// and what is missing is the oldest.
func TestTraceRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(path, []byte("of yesterday\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	log, _ := silent()
	const size = 8 * 4096
	tr, err := OpenTrace(path, size, log)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path + ".1"); string(b) != "of yesterday\n" {
		t.Errorf("what was there is not kept: %q", b)
	}
	const n = 5000
	for i := range n {
		tr.Add(ended(time.UnixMicro(int64(i))))
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	all := files(t, path)
	if len(all) != Files {
		t.Fatalf("%d files, want %d", len(all), Files)
	}
	total, kept := 0, 0
	for i, lines := range all {
		bytes := len(strings.Join(lines, "\n")) + 1
		total += bytes
		if bytes > size/Files {
			t.Errorf("file %d has %d bytes, more than %d", i, bytes, size/Files)
		}
		if !strings.HasPrefix(lines[0], magic) || lines[len(lines)-1]+"\n" != end {
			t.Errorf("file %d begins with %q and ends with %q", i, lines[0], lines[len(lines)-1])
		}
		kept += len(lines) - 3
	}
	// A line has 48 bytes (its arrival is in 1970), so at least as many are in seven full files.
	if total > size || kept < 7*(size/Files-maxLine-200)/48 {
		t.Errorf("%d bytes of %d, %d lines", total, size, kept)
	}
	if got := tr.Numbers(); got.Lines != n || got.Dropped != 0 {
		t.Errorf("%+v", got)
	}
}

// A sick disk takes some of what is written, or nothing.
type sick struct {
	bytes.Buffer
	fails   bool
	partial int  // bytes that it takes before it fails
	stuck   bool // and does not give back
}

var errFull = errors.New("no space left on device")

func (s *sick) Write(p []byte) (int, error) {
	if s.fails {
		n, _ := s.Buffer.Write(p[:min(s.partial, len(p))])
		return n, errFull
	}
	return s.Buffer.Write(p)
}

func (s *sick) Truncate(n int64) error {
	if s.stuck {
		return errFull
	}
	s.Buffer.Truncate(int(n))
	return nil
}

func (s *sick) Close() error { return nil }

// When the disk is full requests go on: what it does not take is counted, in the file as soon
// as it takes something again, and the log has two lines. No line is damaged, or one is.
func TestTraceOnAFullDisk(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		disk := &sick{stuck: stuck, partial: 17}
		log, said := silent()
		tr := newTrace(filepath.Join(t.TempDir(), "trace"), 1<<30, log, func(string) (handle, error) { return disk, nil })
		add := func(n int) {
			for i := range n {
				tr.Add(ended(time.UnixMicro(int64(i))))
			}
			tr.flush(false)
		}
		add(10)
		disk.fails = true
		add(7)
		add(5)
		disk.fails = false
		add(0)
		add(3)
		tr.flush(true)
		if n := tr.Numbers(); n.Lines != 13 || n.Dropped != 12 {
			t.Errorf("%+v, want 13 and 12", n)
		}
		if got := strings.Count(said.String(), "\n"); got != 2 || !strings.Contains(said.String(), errFull.Error()) || !strings.Contains(said.String(), "written again") {
			t.Errorf("%d lines in the log:\n%s", got, said)
		}
		lines := strings.Split(disk.String(), "\n")
		whole, missing := 0, 0
		for _, l := range lines {
			var n int
			if _, err := fmt.Sscanf(l, "#dropped %d", &n); err == nil {
				missing += n
			} else if strings.Count(l, ",") == 9 && strings.HasPrefix(l, "-") { // arrivals are long before the file
				whole++
			}
		}
		if whole != 13 || missing != 12 {
			t.Errorf("stuck %v: %d lines, %d missing:\n%s", stuck, whole, missing, disk)
		}
	}
}

// A directory that goes away and comes back: the same.
func TestTraceWithoutAFile(t *testing.T) {
	log, said := silent()
	var disk sick
	away := true
	tr := newTrace("trace", 1<<30, log, func(string) (handle, error) {
		if away {
			return nil, errors.New("no such file or directory")
		}
		return &disk, nil
	})
	tr.Add(ended(time.Now()))
	tr.flush(false)
	tr.Add(ended(time.Now()))
	tr.flush(false)
	away = false
	tr.Add(ended(time.Now()))
	tr.flush(true)
	if n := tr.Numbers(); n.Lines != 1 || n.Dropped != 2 || !strings.Contains(disk.String(), "#dropped 2\n") {
		t.Errorf("%+v\n%s", n, disk.String())
	}
	if got := strings.Count(said.String(), "\n"); got != 2 {
		t.Errorf("%d lines in the log:\n%s", got, said)
	}
}

// Beyond the buffer requests are dropped and counted, and nobody waits.
func TestTraceIsBounded(t *testing.T) {
	log, said := silent()
	var disk sick
	tr := newTrace("trace", 1<<30, log, func(string) (handle, error) { return &disk, nil })
	room := len(tr.stripes) * lineBuffer
	// Drawn at random, a stripe is full when the others are not yet: with 2 x room all are, as
	// the least of up to eight gets 2 x lineBuffer on average, and 1 x is 90 standard errors below.
	for range 2 * room {
		tr.Add(ended(time.UnixMicro(1)))
	}
	tr.flush(true)
	if n := tr.Numbers(); n.Lines != uint64(room) || n.Dropped != uint64(room) {
		t.Errorf("%+v, want %d twice", n, room)
	}
	if !strings.Contains(disk.String(), fmt.Sprintf("#dropped %d\n", room)) {
		t.Error("the trace does not say how many are missing")
	}
	if got := said.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, fmt.Sprintf("dropped=%d", room)) {
		t.Errorf("the log has\n%s", got)
	}
}

// A file that can be made and not be written, as on a full disk, costs one of the older ones
// and not all of them, one with each try.
func TestTraceKeepsWhatItHasOnAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	for i := range Files {
		name := path
		if i > 0 {
			name += "." + strconv.Itoa(i)
		}
		if err := os.WriteFile(name, []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log, _ := silent()
	tr := newTrace(path, 1<<30, log, func(name string) (handle, error) {
		f, err := create(name)
		if err != nil {
			return nil, err
		}
		return full{f}, nil
	})
	for range 20 {
		tr.Add(ended(time.UnixMicro(1)))
		tr.flush(false)
	}
	kept := 0
	for i := range Files {
		if b, _ := os.ReadFile(tr.out.name(i)); string(b) == "kept" {
			kept++
		}
	}
	if kept != Files-1 {
		t.Errorf("%d of %d files are left", kept, Files)
	}
}

// Starts that fail cost nothing of what is there: each leaves a file without a request.
func TestTraceOfStartsThatFail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	log, _ := silent()
	first, err := OpenTrace(path, 1<<20, log)
	if err != nil {
		t.Fatal(err)
	}
	first.Add(ended(time.UnixMicro(1)))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * Files {
		tr, err := OpenTrace(path, 1<<20, log)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 { // else as if it had been killed
			if err := tr.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		tr.out.file.Close()
	}
	if is, err := os.ReadFile(path + ".1"); err != nil || string(is) != string(was) {
		t.Errorf("the first one is %q, %v", is, err)
	}
}

// full is a file on a disk that is full.
type full struct{ handle }

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestTraceCannotBe(t *testing.T) {
	dir := t.TempDir()
	log, _ := silent()
	for path, want := range map[string]string{
		dir:                                 "is not a regular file",
		filepath.Join(dir, "none", "trace"): "no such file or directory",
	} {
		if tr, err := OpenTrace(path, 1<<20, log); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v", path, tr, err)
		}
	}
}

// Adding costs no allocation.
func TestTraceAllocatesNothing(t *testing.T) {
	log, _ := silent()
	tr := newTrace("trace", 1<<30, log, nil)
	e := ended(time.Now())
	e.Work.Tenant = "acme"
	if n := testing.AllocsPerRun(1000, func() { tr.Add(e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkRecord is what a request pays for its line (ns/record): on all cores at once, handed
// over to the writer, which takes all of them. It writes in between, off the clock, as it does
// beside the requests where there are fewer than fill its buffers.
func BenchmarkRecord(b *testing.B) {
	log, _ := silent()
	tr := newTrace(filepath.Join(b.TempDir(), "trace"), 64<<20, log, create)
	adders := runtime.GOMAXPROCS(0)
	spent := make([]time.Duration, adders)
	b.ReportAllocs()
	for done := 0; done < b.N; {
		n := min(lineBuffer/2, b.N-done) // so that no stripe is full, whichever they choose
		var work sync.WaitGroup
		for i := range adders {
			e := ended(time.Now())
			e.Work.Tenant = fmt.Sprintf("tenant-%d", i)
			share := (n + i) / adders
			work.Go(func() {
				begun := time.Now()
				for range share {
					tr.Add(e)
				}
				spent[i] += time.Since(begun)
			})
		}
		work.Wait()
		done += n
		b.StopTimer()
		tr.flush(false)
		b.StartTimer()
	}
	b.StopTimer()
	var all time.Duration
	for _, d := range spent {
		all += d
	}
	b.ReportMetric(float64(all)/float64(b.N), "ns/record")
	if n := tr.Numbers(); n.Dropped > 0 || n.Lines != uint64(b.N) {
		b.Fatalf("%+v of %d", n, b.N)
	}
}

// BenchmarkRecordFlood is that with a writer at work beside it and more than it can take: most
// of it is dropped, which is what a disk that does not follow costs.
func BenchmarkRecordFlood(b *testing.B) {
	log, _ := silent()
	tr, err := OpenTrace(filepath.Join(b.TempDir(), "trace"), 64<<20, log)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		e := ended(time.Now())
		e.Work.Tenant = "acme"
		for pb.Next() {
			tr.Add(e)
		}
	})
	b.StopTimer()
	if err := tr.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(tr.Numbers().Dropped)/float64(b.N), "dropped/op")
}
