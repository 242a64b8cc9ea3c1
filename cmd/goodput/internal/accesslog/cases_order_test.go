package accesslog

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// A request is what the tests write logs of.
type request struct {
	arrival  time.Time
	duration time.Duration
}

func (r request) end() time.Time { return r.arrival.Add(r.duration) }

// writers write a request as a line of a format, and say how exact its stamp is.
var writers = map[Format]struct {
	exact  time.Duration // of the arrival
	header string
	line   func(r request) string
}{
	Nginx: {time.Second, "", func(r request) string {
		return fmt.Sprintf(`192.0.2.1 - - [%s] "GET / HTTP/1.1" 200 5 "-" "-" %.3f %.3f`,
			r.end().Format("02/Jan/2006:15:04:05 -0700"), r.duration.Seconds(), r.duration.Seconds())
	}},
	CloudFront: {time.Second, "#Fields: date time cs-uri-stem sc-status x-edge-result-type time-taken\n", func(r request) string {
		return r.end().Format("2006-01-02\t15:04:05") + fmt.Sprintf("\t/\t200\tMiss\t%.3f", r.duration.Seconds())
	}},
	IIS: {time.Second, "#Fields: date time cs-method cs-uri-stem sc-status time-taken\n", func(r request) string {
		return r.end().Format("2006-01-02 15:04:05") + fmt.Sprintf(" GET / 200 %d", r.duration.Milliseconds())
	}},
	ALB: {time.Microsecond, "", func(r request) string { // as before 2018: no creation time
		return fmt.Sprintf(`http %s lb 192.0.2.1:1 10.0.0.1:80 0.000 %.3f 0.000 200 200 1 1 "GET http://a:80/ HTTP/1.1" "-" - - arn "Root=1"`,
			r.end().Format("2006-01-02T15:04:05.000000Z"), r.duration.Seconds())
	}},
	HAProxy: {time.Millisecond, "", func(r request) string {
		return fmt.Sprintf(`192.0.2.1:1 [%s] fe be/s1 0/0/0/%d/%d 200 5 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1"`,
			r.arrival.Format("02/Jan/2006:15:04:05.000"), r.duration.Milliseconds(), r.duration.Milliseconds())
	}},
	Envoy: {time.Millisecond, "", func(r request) string {
		return fmt.Sprintf(`[%s] "GET / HTTP/2" 200 - 0 5 %d %d "-" "-" "id" "svc" "10.0.0.1:80"`,
			r.arrival.Format("2006-01-02T15:04:05.000Z"), r.duration.Milliseconds(), r.duration.Milliseconds())
	}},
	Apache: {time.Second, "", func(r request) string {
		return fmt.Sprintf(`192.0.2.1 - - [%s] "GET / HTTP/1.1" 200 5 "-" "-" %d`,
			r.arrival.Format("02/Jan/2006:15:04:05 -0700"), r.duration.Microseconds())
	}},
}

// TestEndStamp_C163: requests of 0.1 to 300 s arrive when they began, whether the
// stamp is their start or their end, and the report says which.
func TestEndStamp_C163(t *testing.T) {
	epoch := time.Date(2024, 2, 28, 23, 59, 0, 0, time.UTC) // over a leap day
	var reqs []request
	for i := range 200 {
		d := 100*time.Millisecond + time.Duration(i*i)*7497*time.Microsecond // to 297 s
		reqs = append(reqs, request{epoch.Add(time.Duration(i) * 1500 * time.Millisecond), d.Truncate(time.Millisecond)})
	}
	written := slices.Clone(reqs) // in the order of their ends, as logs are
	slices.SortFunc(written, func(a, b request) int { return a.end().Compare(b.end()) })
	for f, w := range writers {
		var b strings.Builder
		b.WriteString(w.header)
		for _, r := range written {
			b.WriteString(w.line(r) + "\n")
		}
		l := mustOpen(t, Options{}, b.String())
		file := l.Summary().Files[0]
		ended := f == Nginx || f == CloudFront || f == IIS || f == ALB
		if file.Format != f || strings.Contains(file.Rule, "the end of the request") != ended {
			t.Errorf("%s: detected %s, rule %q", f, file.Format, file.Rule)
		}
		got := records(t, l)
		if len(got) != len(reqs) {
			t.Fatalf("%s: %d records of %d", f, len(got), len(reqs))
		}
		for i, r := range got { // 1.5 s apart, so a stamp cut to the second keeps the order
			if off := time.Duration(reqs[i].arrival.UnixNano() - r.Arrival); off < 0 || off >= w.exact {
				t.Errorf("%s: request %d arrives %v early, its stamp is exact to %v", f, i, off, w.exact)
			}
			if d, ok := r.Sample(); !ok || d != reqs[i].duration {
				t.Errorf("%s: request %d takes %v, want %v", f, i, d, reqs[i].duration)
			}
		}
	}
}

// nginxLog is n different lines, many of them in the same second.
func nginxLog(rng *rand.Rand, n int) (lines []string) {
	at := time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		at = at.Add(time.Duration(rng.IntN(20)) * time.Millisecond)
		total := time.Duration(rng.IntN(5000)) * time.Millisecond
		lines = append(lines, fmt.Sprintf(`192.0.2.%d - - [%s] "GET /%d HTTP/1.1" 200 5 "-" "-" %.3f %.3f`,
			i%250, at.Format("02/Jan/2006:15:04:05 -0700"), i, total.Seconds(), total.Seconds()/2)+"\n")
	}
	return lines
}

func schedule(t *testing.T, o Options, texts ...string) ([]Record, *Summary) {
	t.Helper()
	l := mustOpen(t, o, texts...)
	return records(t, l), l.Summary()
}

// TestOrder_C165: a shuffled file, its parts in any order, with an overlap, with
// everything twice, in memory or in a temporary file: one schedule.
func TestOrder_C165(t *testing.T) {
	const seed = 165
	rng := rand.New(rand.NewPCG(seed, 0))
	lines := nginxLog(rng, 3000)
	all := strings.Join(lines, "")
	want, s := schedule(t, Options{}, all)
	if len(want) != 3000 || s.OutOfOrder != 0 || s.Duplicates != 0 {
		t.Fatalf("seed %d: %d records, %d out of order, %d duplicates", seed, len(want), s.OutOfOrder, s.Duplicates)
	}
	shuffled := slices.Clone(lines)
	rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	mixed := strings.Join(shuffled, "")

	for _, c := range []struct {
		name       string
		texts      []string
		duplicates int64
		ordered    bool
	}{
		{"shuffled", []string{mixed}, 0, false},
		{"two halves, the second first", []string{strings.Join(lines[1500:], ""), strings.Join(lines[:1500], "")}, 0, true},
		{"two files with an overlap", []string{strings.Join(lines[:2000], ""), strings.Join(lines[1000:], "")}, 1000, true},
		{"two shippers, two files", []string{all, mixed}, 3000, false},
		{"two shippers, one file", []string{all + mixed}, 3000, false},
		{"compressed", []string{gz(t, mixed)}, 0, false},
	} {
		for _, pending := range []int{0, 100} {
			got, s := schedule(t, Options{MaxPending: pending}, c.texts...)
			if !slices.Equal(got, want) {
				t.Errorf("seed %d: %s, %d pending: %d records, another schedule", seed, c.name, pending, len(got))
			}
			if s.Duplicates != c.duplicates || (s.OutOfOrder == 0) != c.ordered {
				t.Errorf("seed %d: %s: %d duplicates and %d out of order, want %d and ordered %t", seed, c.name, s.Duplicates, s.OutOfOrder, c.duplicates, c.ordered)
			}
			if c.duplicates > 0 && !strings.Contains(strings.Join(s.Warnings, "\n"), "identical to another") {
				t.Errorf("%s: no warning in %q", c.name, s.Warnings)
			}
		}
	}
	got, s := schedule(t, Options{KeepDuplicates: true}, all, mixed)
	if len(got) != 6000 || s.Duplicates != 0 {
		t.Errorf("%d records with duplicates kept, %d called duplicates", len(got), s.Duplicates)
	}
}

// TestOutOfOrderIsCounted: 2682 of 2797 records came late in the report that this
// is about; the count here is of what a dumb loop finds.
func TestOutOfOrderIsCounted(t *testing.T) {
	var b strings.Builder
	want, latest := int64(0), 0
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		second := rng.IntN(3600)
		fmt.Fprintf(&b, "[2024-03-07T08:%02d:%02d.000Z] \"GET /%d HTTP/2\" 200 - 0 5 1 1 \"-\" \"-\" \"id\" \"svc\" \"a:1\"\n", second/60, second%60, i)
		if second < latest {
			want++
		}
		latest = max(latest, second)
	}
	if _, s := schedule(t, Options{}, b.String()); s.OutOfOrder != want {
		t.Errorf("%d out of order, want %d", s.OutOfOrder, want)
	}
}

// TestTiesAreNotSortedByLength: in a log stamped to the second, hundreds tie. An
// order by length would be shortest-first, which nobody runs.
func TestTiesAreNotSortedByLength(t *testing.T) {
	var b strings.Builder
	const n = 1000
	for i := range n {
		fmt.Fprintf(&b, "192.0.2.1 - - [01/Mar/2024:00:00:00 +0000] \"GET /%d HTTP/1.1\" 200 5 \"-\" \"-\" %d\n", i, 1000+i)
	}
	got, _ := schedule(t, Options{}, b.String())
	rises := 0
	for i := 1; i < n; i++ {
		if got[i].Total > got[i-1].Total {
			rises++
		}
	}
	// Of a random order, rises are n/2 with variance n/12: 4 standard errors are 37.
	if rises < n/2-37 || rises > n/2+37 {
		t.Errorf("%d of %d neighbours rise", rises, n)
	}
}

// TestTraceRowsRepeat: rows of a table that are equal are requests of their own,
// and twice the same file is still once.
func TestTraceRowsRepeat(t *testing.T) {
	rows := "at,n\n1,5\n1,5\n1,5\n2,7\n"
	o := Options{Columns: "arrival=1s*at,service=1ms*n"}
	if got, s := schedule(t, o, rows); len(got) != 4 || s.Duplicates != 0 {
		t.Errorf("%d records, %d duplicates", len(got), s.Duplicates)
	}
	if got, s := schedule(t, o, rows, rows); len(got) != 4 || s.Duplicates != 4 {
		t.Errorf("of two files: %d records, %d duplicates", len(got), s.Duplicates)
	}
}

// gz compresses.
func gz(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGzipMembers_C177: all members are read, and what a truncated or damaged
// archive still holds is used and said.
func TestGzipMembers_C177(t *testing.T) {
	rng := rand.New(rand.NewPCG(177, 0))
	lines := nginxLog(rng, 900)
	part := func(i int) string { return strings.Join(lines[i*300:(i+1)*300], "") }
	want, _ := schedule(t, Options{}, strings.Join(lines, ""))
	members := gz(t, part(0)) + gz(t, part(1)) + gz(t, part(2))
	if got, s := schedule(t, Options{}, members); !slices.Equal(got, want) || len(s.Warnings) > 0 {
		t.Errorf("three members: %d records of %d, warnings %q", len(got), len(want), s.Warnings)
	}
	// A line across two members is one line.
	cut := len(lines[0]) / 2
	if got, _ := schedule(t, Options{}, gz(t, lines[0][:cut])+gz(t, lines[0][cut:]+part(1))); len(got) != 301 {
		t.Errorf("a line in two members: %d records", len(got))
	}
	for _, c := range []struct{ name, text string }{
		{"truncated", members[:len(members)-len(gz(t, part(2)))/2]},
		{"padded", gz(t, part(0)) + gz(t, part(1)) + "\x00\x00\x00\x00 rubbish"},
		{"damaged", gz(t, part(0)+part(1)) + damaged(gz(t, part(2)))},
	} {
		got, s := schedule(t, Options{}, c.text)
		if len(got) < 600 || len(got) >= 900 {
			t.Errorf("%s: %d records", c.name, len(got))
		}
		if w := strings.Join(s.Warnings, "\n"); !strings.Contains(w, "ends early after line") {
			t.Errorf("%s: warnings %q", c.name, w)
		}
	}
	alb, _ := schedule(t, Options{}, sample(t, "alb.log"))
	two, _ := schedule(t, Options{}, sample(t, "alb_two_members.log.gz"))
	if !slices.Equal(alb, two) {
		t.Errorf("alb_two_members.log.gz\n got  %+v\n want %+v", two, alb)
	}
}

// damaged flips bytes in the last third.
func damaged(s string) string {
	b := []byte(s)
	for i := len(b) * 2 / 3; i < len(b)*2/3+20; i++ {
		b[i] ^= 0x5a
	}
	return string(b)
}
