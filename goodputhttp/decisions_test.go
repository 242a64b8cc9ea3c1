package goodputhttp

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// What a Server does with a deadline, and what it answers, row by row, over HTTP/1.1, h2c
// and h2 over TLS: the three give the same decision. Times are in thousands of seconds, so
// that those that a busy machine takes to get there (patience, 20 s) change nothing.

// A decision is what the handler behind a Server has seen.
type decision struct {
	Source  string
	Left    float64             // seconds; 0: no deadline
	Forward map[string][]string // headers of the next request that say something of time
}

// decide answers with its decision.
func decide(w http.ResponseWriter, r *http.Request) {
	b := BudgetFrom(r.Context())
	d := decision{Source: b.Source, Forward: map[string][]string{}}
	if !b.Deadline.IsZero() {
		d.Left = time.Until(b.Deadline).Seconds()
	}
	out := r.Header.Clone()
	ForwardDeadline(r.Context(), out)
	for name, v := range out {
		if known(name) || strings.HasPrefix(name, "X-") {
			d.Forward[name] = v
		}
	}
	_ = json.NewEncoder(w).Encode(d)
}

// about reports whether got is want seconds, less what a busy machine takes.
func about(got, want float64) bool { return got <= want && got > want-patience.Seconds() }

type decisionRow struct {
	name    string
	server  *Server // its settings; nil: none
	header  []string
	left    float64 // seconds; 0: no deadline
	source  string
	forward []string // "name: seconds as the header has them", of names that are not there nothing
	errors  map[string]uint64
	status  int // 0: 200
}

var envoyGRPC = "Content-Type: application/grpc"

func decisionRows() []decisionRow {
	epoch := func(d time.Duration) string { return strconv.FormatInt(time.Now().Add(d).UnixMilli(), 10) }
	nanos := func(d time.Duration) string { return strconv.FormatInt(time.Now().Add(d).UnixNano(), 10) }
	further := func(f DeadlineFormat) *Server {
		return &Server{DeadlineHeaders: []DeadlineHeader{{"x-mine", f}}}
	}
	trusted := func(s *Server) *Server {
		s.Trusted = func(*http.Request) bool { return true }
		return s
	}
	rows := []decisionRow{
		// Read.
		{name: "grpc-timeout", header: []string{envoyGRPC, "Grpc-Timeout: 4000S"}, left: 4000, source: "Grpc-Timeout", forward: []string{"Grpc-Timeout: 4000"}},
		{name: "grpc-timeout of what is no gRPC", header: []string{"Grpc-Timeout: 4000S"}, forward: []string{"Grpc-Timeout: 4000"}},
		{name: "connect-timeout-ms", header: []string{"Connect-Timeout-Ms: 4000000"}, left: 4000, source: "Connect-Timeout-Ms", forward: []string{"Connect-Timeout-Ms: 4000"}},
		{name: "Envoy", header: []string{"X-Envoy-Expected-Rq-Timeout-Ms: 4000000"}, left: 4000, source: "X-Envoy-Expected-Rq-Timeout-Ms", forward: []string{"X-Envoy-Expected-Rq-Timeout-Ms: 4000"}},
		{name: "Expect-Within", header: []string{"Expect-Within: 4000.5"}, left: 4000.5, source: "Expect-Within", forward: []string{"Expect-Within: 4000.5"}},
		{name: "further, ms", server: further(FormatMillis), header: []string{"X-Mine: 4000000"}, left: 4000, source: "X-Mine", forward: []string{"X-Mine: 4000"}},
		{name: "further, no format", server: further(""), header: []string{"X-Mine: 4000000"}, left: 4000, source: "X-Mine", forward: []string{"X-Mine: 4000"}},
		{name: "further, s", server: further(FormatSeconds), header: []string{"X-Mine: 4000"}, left: 4000, source: "X-Mine", forward: []string{"X-Mine: 4000"}},
		{name: "further, go", server: further(FormatGo), header: []string{"X-Mine: 1h6m40s"}, left: 4000, source: "X-Mine", forward: []string{"X-Mine: 4000"}},
		{name: "further, grpc", server: further(FormatGRPC), header: []string{"X-Mine: 4000S"}, left: 4000, source: "X-Mine", forward: []string{"X-Mine: 4000"}},
		{name: "further, epoch_ms", server: further(FormatEpochMillis), header: []string{"X-Mine: " + epoch(4000*time.Second)}, left: 4000, source: "X-Mine", forward: []string{"X-Mine: 4000"}},
		{name: "further, finagle", server: further(FormatFinagle), header: []string{"X-Mine: " + nanos(0) + " " + nanos(4000*time.Second)}, left: 4000, source: "X-Mine", forward: []string{"X-Mine: 4000"}},
		{
			name: "the earliest of all", server: further(FormatSeconds), header: []string{"Expect-Within: 5000", "X-Mine: 3000", "Connect-Timeout-Ms: 4000000"},
			left: 3000, source: "X-Mine", forward: []string{"Expect-Within: 3000", "X-Mine: 3000", "Connect-Timeout-Ms: 3000"},
		},
		{name: "the cap shortens", server: &Server{DeadlineCap: 2000 * time.Second}, header: []string{"Expect-Within: 4000"}, left: 2000, source: "cap", forward: []string{"Expect-Within: 2000"}},
		{
			name: "who may extends it", server: &Server{DeadlineCap: 2000 * time.Second, Extends: func(*http.Request) bool { return true }},
			header: []string{"Expect-Within: 4000"}, left: 4000, source: "Expect-Within", forward: []string{"Expect-Within: 4000"},
		},
		{
			name: "but not for ever", server: &Server{DeadlineCap: 2000 * time.Second, Extends: func(*http.Request) bool { return true }},
			header: []string{"X-Envoy-Expected-Rq-Timeout-Ms: 0"}, left: 2000, source: "cap", forward: []string{"X-Envoy-Expected-Rq-Timeout-Ms: 2000"},
		},
		{name: "the default", server: &Server{Deadline: 3000 * time.Second}, left: 3000, source: "default", forward: []string{"X-Envoy-Expected-Rq-Timeout-Ms: 3000"}},
		{name: "nothing"},
		{name: "a command to Envoy is not read", header: []string{"X-Envoy-Upstream-Rq-Timeout-Ms: 4000000"}, forward: []string{"X-Envoy-Upstream-Rq-Timeout-Ms: 4000"}},
		{name: "a stamp of somebody", header: []string{"X-Request-Start: " + epoch(-8*time.Second)}, server: &Server{Deadline: 3000 * time.Second}, left: 3000, source: "default", forward: []string{"X-Envoy-Expected-Rq-Timeout-Ms: 3000", "X-Request-Start: 0"}},
		{
			name: "a stamp of a trusted hop", header: []string{"X-Request-Start: " + epoch(-time.Hour/2), "Expect-Within: 40"}, server: trusted(&Server{}),
			left: 30, source: "Expect-Within", forward: []string{"Expect-Within: 30", "X-Request-Start: 0"},
		},
		// Zero.
		{name: "Envoy 0", header: []string{"X-Envoy-Expected-Rq-Timeout-Ms: 0"}, forward: []string{"X-Envoy-Expected-Rq-Timeout-Ms: 0"}},
		{
			name: "0 of another header of Envoy", server: &Server{DeadlineHeaders: []DeadlineHeader{{"X-Envoy-Upstream-Stream-Duration-Ms", FormatMillis}}},
			header: []string{"X-Envoy-Upstream-Stream-Duration-Ms: 0"}, forward: []string{"X-Envoy-Upstream-Stream-Duration-Ms: 0"},
		},
		{name: "grpc-timeout 0", header: []string{envoyGRPC, "Grpc-Timeout: 0n"}, status: http.StatusOK},
		{name: "Expect-Within 0", header: []string{"Expect-Within: 0"}, status: http.StatusGatewayTimeout},
		{name: "connect 0", header: []string{"Connect-Timeout-Ms: 0"}, status: http.StatusGatewayTimeout},
		{name: "further 0", server: further(FormatMillis), header: []string{"X-Mine: 0"}, status: http.StatusGatewayTimeout},
		{name: "further 0s", server: further(FormatGo), header: []string{"X-Mine: 0s"}, status: http.StatusGatewayTimeout},
		{name: "an instant that is over", server: further(FormatEpochMillis), header: []string{"X-Mine: " + epoch(-2*time.Second)}, status: http.StatusGatewayTimeout},
	}
	return slices.Concat(rows, forwardRows(further), malformedRows(further))
}

// forwardRows are about what the next hop is told.
func forwardRows(further func(DeadlineFormat) *Server) []decisionRow {
	only := func(d Dialect) *Server { return &Server{Forward: d, ForwardOnly: true} }
	const within = "Expect-Within: 4000"
	rows := []decisionRow{
		{name: "added to gRPC", server: &Server{Deadline: 3000 * time.Second}, header: []string{envoyGRPC}, left: 3000, source: "default", forward: []string{"Grpc-Timeout: 3000"}},
		{name: "added, connect", server: &Server{Deadline: 3000 * time.Second, Forward: DialectConnect}, left: 3000, source: "default", forward: []string{"Connect-Timeout-Ms: 3000"}},
		{name: "added, Expect-Within", server: &Server{Deadline: 3000 * time.Second, Forward: DialectSeconds}, left: 3000, source: "default", forward: []string{"Expect-Within: 3000"}},
		{name: "added, none", server: &Server{Deadline: 3000 * time.Second, Forward: DialectNone}, left: 3000, source: "default"},
		{name: "added to gRPC, connect", server: &Server{Deadline: 3000 * time.Second, Forward: DialectConnect}, header: []string{envoyGRPC}, left: 3000, source: "default", forward: []string{"Grpc-Timeout: 3000"}},
		{name: "added to gRPC, none", server: &Server{Deadline: 3000 * time.Second, Forward: DialectNone}, header: []string{envoyGRPC}, left: 3000, source: "default"},
		{name: "what came stays", server: &Server{Forward: DialectConnect}, header: []string{within}, left: 4000, source: "Expect-Within", forward: []string{within}},
		{name: "translated to Envoy", server: only(DialectEnvoy), header: []string{within}, left: 4000, source: "Expect-Within", forward: []string{"X-Envoy-Expected-Rq-Timeout-Ms: 4000"}},
		{name: "translated to connect", server: only(DialectConnect), header: []string{within, "X-Envoy-Expected-Rq-Timeout-Ms: 5000000"}, left: 4000, source: "Expect-Within", forward: []string{"Connect-Timeout-Ms: 4000"}},
		{name: "translated to itself", server: only(DialectSeconds), header: []string{within}, left: 4000, source: "Expect-Within", forward: []string{within}},
		{name: "translated to nothing", server: only(DialectNone), header: []string{within}, left: 4000, source: "Expect-Within"},
		{
			name: "gRPC translated", server: only(DialectEnvoy), header: []string{envoyGRPC, "Grpc-Timeout: 4000S"}, left: 4000, source: "Grpc-Timeout",
			forward: []string{"Grpc-Timeout: 4000", "X-Envoy-Expected-Rq-Timeout-Ms: 4000"},
		},
		{name: "gRPC translated to nothing", server: only(DialectNone), header: []string{envoyGRPC, "Grpc-Timeout: 4000S", within}, left: 4000, source: "Grpc-Timeout", forward: []string{"Grpc-Timeout: 4000"}},
		{name: "stamped", server: &Server{ForwardStart: true}, forward: []string{"X-Request-Start: 0"}},
	}
	mine := further(FormatGo)
	mine.Forward, mine.ForwardOnly = DialectGRPC, true
	return append(rows, decisionRow{
		name: "further translated", server: mine, header: []string{"X-Mine: 1h6m40s"}, left: 4000, source: "X-Mine", forward: []string{"Grpc-Timeout: 4000"},
	})
}

func malformedRows(further func(DeadlineFormat) *Server) []decisionRow {
	rows := []decisionRow{
		{
			name: "grpc-timeout is passed", header: []string{envoyGRPC, "Grpc-Timeout: 5s"}, server: &Server{Deadline: 3000 * time.Second},
			left: 3000, source: "default", forward: []string{"Grpc-Timeout: bad", "X-Envoy-Expected-Rq-Timeout-Ms: 3000"}, errors: map[string]uint64{"Grpc-Timeout": 1},
		},
		{
			name: "a bad stamp of a trusted hop", header: []string{"X-Queue-Start: t=soon"},
			server: &Server{Deadline: 3000 * time.Second, Trusted: func(*http.Request) bool { return true }},
			left:   3000, source: "default", forward: []string{"X-Envoy-Expected-Rq-Timeout-Ms: 3000", "X-Queue-Start: bad"}, errors: map[string]uint64{"X-Queue-Start": 1},
		},
	}
	for name, header := range map[string]string{"Connect-Timeout-Ms": "-1", "X-Envoy-Expected-Rq-Timeout-Ms": "1.5", "Expect-Within": "NaN"} {
		rows = append(rows, decisionRow{
			name: name, header: []string{name + ": " + header}, server: &Server{Deadline: 3000 * time.Second},
			left: 3000, source: "default", forward: []string{"X-Envoy-Expected-Rq-Timeout-Ms: 3000"}, errors: map[string]uint64{name: 1},
		})
	}
	for format, header := range map[DeadlineFormat]string{
		FormatMillis: "-1", FormatSeconds: "1e3", FormatGo: "-5s", FormatGRPC: "5s",
		FormatEpochMillis: "1764518400", // seconds
		FormatFinagle:     "1764518400000000000",
	} {
		s := further(format)
		s.Deadline = 3000 * time.Second
		rows = append(rows, decisionRow{
			name: "further, " + string(format), header: []string{"X-Mine: " + header}, server: s,
			left: 3000, source: "default", forward: []string{"X-Envoy-Expected-Rq-Timeout-Ms: 3000"}, errors: map[string]uint64{"X-Mine": 1},
		})
	}
	return rows
}

// seconds reads a header that was forwarded in whatever format the row has it.
func seconds(format DeadlineFormat, name, value string) string {
	f := further{name: name, format: format}
	switch name {
	case "Grpc-Timeout":
		f.format = FormatGRPC
	case "Expect-Within":
		f.format = FormatSeconds
	case "X-Request-Start":
		return "0"
	case "X-Mine":
	default:
		f.format = FormatMillis
	}
	left, ok := f.parse(value, time.Now())
	if !ok {
		return "bad"
	}
	if left == forever {
		left = 0
	}
	return fmt.Sprint(left.Seconds())
}

func TestDecisions(t *testing.T) {
	for _, row := range decisionRows() {
		t.Run(row.name, func(t *testing.T) {
			s := row.server
			if s == nil {
				s = &Server{}
			}
			s.Limiter, s.Next = one(limiter(8, goodput.Config{})), http.HandlerFunc(decide)
			n := uint64(0)
			for _, p := range overAll(t, s) {
				n++
				r, _ := http.NewRequest(http.MethodGet, p.url, nil)
				for _, h := range row.header {
					name, value, _ := strings.Cut(h, ": ")
					r.Header.Add(name, value)
				}
				res, err := p.client.Do(r)
				if err != nil {
					t.Fatal(p.name, err)
				}
				p.isTheirs(t, res)
				got := text(t, res)
				if row.status != 0 { // over on arrival
					code := res.Header.Get("Grpc-Status")
					if res.StatusCode != row.status || res.Header.Get("Goodput-Rejected") != "deadline" || row.status == http.StatusOK && code != "4" {
						t.Errorf("%s: %d %v", p.name, res.StatusCode, res.Header)
					}
					continue
				}
				row.check(t, p.name, res.StatusCode, got)
				for name, errors := range s.Stats().DeadlineErrors {
					if errors != n*row.errors[name] {
						t.Errorf("%s: %d errors of %s, want %d a request", p.name, errors, name, row.errors[name])
					}
				}
			}
		})
	}
}

func (row *decisionRow) check(t *testing.T, proto string, status int, body string) {
	t.Helper()
	var got decision
	if err := json.Unmarshal([]byte(body), &got); status != http.StatusOK || err != nil {
		t.Fatalf("%s: %d %q %v", proto, status, body, err)
	}
	if got.Source != row.source || (row.left == 0) != (got.Left == 0) || row.left != 0 && !about(got.Left, row.left) {
		t.Errorf("%s: %v s by %q, want %v by %q", proto, got.Left, got.Source, row.left, row.source)
	}
	want := map[string]string{}
	for _, h := range row.forward {
		name, value, _ := strings.Cut(h, ": ")
		want[name] = value
	}
	var format DeadlineFormat
	if row.server != nil && len(row.server.DeadlineHeaders) > 0 {
		format = row.server.DeadlineHeaders[0].Format
	}
	if !slices.Equal(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got.Forward))) {
		t.Errorf("%s: forwards %v, want %v", proto, got.Forward, row.forward)
	}
	for name, values := range got.Forward {
		is := seconds(format, name, values[0])
		left, errIs := strconv.ParseFloat(is, 64)
		most, errWant := strconv.ParseFloat(want[name], 64)
		switch same := is == want[name]; {
		case len(values) != 1:
			t.Errorf("%s: %s: %q", proto, name, values)
		case row.left == 0 || errIs != nil || errWant != nil || most == 0:
			if !same {
				t.Errorf("%s: %s: %q is %s, want %s", proto, name, values[0], is, want[name])
			}
		case !about(left, most-HopMargin.Seconds()):
			t.Errorf("%s: %s: %q is %v s, want %v less the margin", proto, name, values[0], left, most)
		}
	}
}
