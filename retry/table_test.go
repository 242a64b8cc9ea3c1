package retry

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// What a row allows, of a call that is idempotent, not executed, unsent, with a hint,
// and none of it.
type allowed struct{ plain, idempotent, notExecuted, unsent, hint Verdict }

var (
	anAnswer   = allowed{VerdictAnswer, VerdictAnswer, VerdictRetry, VerdictAnswer, VerdictAnswer}
	noMore     = allowed{VerdictFinal, VerdictFinal, VerdictRetry, VerdictFinal, VerdictFinal}
	never      = allowed{VerdictFinal, VerdictFinal, VerdictFinal, VerdictFinal, VerdictFinal}
	ifSafe     = allowed{VerdictFinal, VerdictRetry, VerdictRetry, VerdictRetry, VerdictFinal}
	anyMethod  = allowed{VerdictRetry, VerdictRetry, VerdictRetry, VerdictRetry, VerdictRetry}
	ifHintSaid = allowed{VerdictFinal, VerdictFinal, VerdictRetry, VerdictFinal, VerdictFinal}
)

func verify(t *testing.T, name string, f Fault, want allowed) {
	t.Helper()
	got := allowed{plain: f.Verdict()}
	g := f
	g.Idempotent = true
	got.idempotent = g.Verdict()
	g = f
	g.NotExecuted = true
	got.notExecuted = g.Verdict()
	g = f
	g.Unsent = true
	got.unsent = g.Verdict()
	g = f
	g.Hint = Hint{After: time.Second, Said: true}
	got.hint = g.Verdict()
	if got != want {
		t.Errorf("%s: %v, want %v", name, got, want)
	}
	g = f
	g.Hint.Never, g.NotExecuted, g.Idempotent = true, true, true
	if want := VerdictFinal; f.Status >= 400 || f.Code > 0 || f.Err != nil {
		if got := g.Verdict(); got != want {
			t.Errorf("%s, and the server says never: %v, want %v", name, got, want)
		}
	}
}

// C072: what may have been executed is repeated only if it is marked.
func TestC072StatusTable(t *testing.T) {
	want := map[int]allowed{
		408: ifSafe, 425: anyMethod, 429: ifSafe, 500: noMore, 501: noMore, 502: ifSafe,
		503: ifSafe, 504: ifSafe, 505: noMore, 511: noMore,
	}
	for status := range statuses {
		if _, ok := want[status]; !ok {
			t.Errorf("%d is in the table and not in its test", status)
		}
	}
	for status := 200; status < 600; status++ {
		w, ok := want[status]
		switch {
		case ok:
		case status < 400:
			w = allowed{} // not even a marker makes a fault of it
		case status < 500:
			w = anAnswer
		default:
			w = noMore
		}
		verify(t, fmt.Sprint(status), Fault{Status: status}, w)
	}
}

func TestC072CodeTable(t *testing.T) {
	want := [...]allowed{
		{},
		noMore, noMore, anAnswer, noMore, anAnswer, anAnswer, anAnswer, ifHintSaid,
		anAnswer, noMore, anAnswer, noMore, noMore, ifSafe, noMore, anAnswer, noMore, noMore,
	}
	for code, w := range want {
		verify(t, Code(code).String(), Fault{Code: Code(code)}, w)
	}
	quota := Fault{Code: 8, Idempotent: true, Hint: GRPCHint("200")}
	if got := quota.Verdict(); got != VerdictRetry {
		t.Errorf("RESOURCE_EXHAUSTED with pushback, idempotent: %v, want retryable", got)
	}
	own := Fault{Code: 4, OwnTime: true}
	verify(t, "DEADLINE_EXCEEDED of the attempt alone", own, ifSafe)
	if Code(14).String() != "UNAVAILABLE" || Code(99).String() != "code 99" {
		t.Errorf("names: %v, %v", Code(14), Code(99))
	}
}

func TestC072ErrorTable(t *testing.T) {
	op := func(op string, err error) error {
		return &url.Error{Op: "Post", URL: "http://x/", Err: &net.OpError{Op: op, Net: "tcp", Err: err}}
	}
	for _, row := range []struct {
		name string
		err  error
		want allowed
	}{
		{"kept at home", &Throttled{}, never},
		{"cancelled", fmt.Errorf("get: %w", context.Canceled), never},
		{"deadline", context.DeadlineExceeded, never},
		{"no such host", op("dial", &net.DNSError{Err: "no such host", IsNotFound: true}), never},
		{"DNS is away", op("dial", &net.DNSError{Err: "server misbehaving", IsTemporary: true}), anyMethod},
		{"DNS is slow", op("dial", &net.DNSError{Err: "i/o timeout", IsTimeout: true}), anyMethod},
		{"no address", op("dial", &net.AddrError{Err: "missing port", Addr: "x"}), never},
		{"no network", op("dial", net.UnknownNetworkError("tcp9")), never},
		{"refused", op("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED)), anyMethod},
		{"dial timeout", dialTimeout(t), anyMethod},
		{"proxy away", op("proxyconnect", syscall.ECONNREFUSED), anyMethod},
		{"certificate", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, never},
		{"unknown authority", x509.UnknownAuthorityError{}, never},
		{"wrong name", x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"}, never},
		{"expired certificate", x509.CertificateInvalidError{Reason: x509.Expired}, never},
		{"alert", op("remote error", tls.AlertError(40)), never},
		{"no TLS", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, never},
		{"handshake timeout", errors.New("net/http: TLS handshake timeout"), anyMethod},
		{"reset", op("read", os.NewSyscallError("read", syscall.ECONNRESET)), ifSafe},
		{"broken pipe", op("write", os.NewSyscallError("write", syscall.EPIPE)), ifSafe},
		{"end", io.EOF, ifSafe},
		{"cut off", fmt.Errorf("body: %w", io.ErrUnexpectedEOF), ifSafe},
		{"closed", op("read", net.ErrClosed), ifSafe},
		{"read timeout", op("read", os.ErrDeadlineExceeded), ifSafe},
		{"what nobody knows", errors.New("boom"), ifSafe},
	} {
		verify(t, row.name, Fault{Err: row.err}, row.want)
	}
	own := fmt.Errorf("get: %w", context.DeadlineExceeded)
	verify(t, "the time of the attempt alone", Fault{Err: own, OwnTime: true}, ifSafe)
}

// dialTimeout returns what net says if a connection takes too long: it claims to be
// context.DeadlineExceeded, and is no deadline of the call.
func dialTimeout(t *testing.T) error {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	_, err := new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:1")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("net says %v", err)
	}
	return err
}

// What net/http says of a server that is not there, that hangs up, and that is not
// trusted.
func TestErrorsOfNetHTTP(t *testing.T) {
	post := func(c *http.Client, url string) error {
		res, err := c.Post(url, "text/plain", strings.NewReader("x"))
		if err == nil {
			_ = res.Body.Close()
		}
		return err
	}
	away := httptest.NewServer(nil)
	away.Close()
	verify(t, "not there", Fault{Err: post(http.DefaultClient, away.URL)}, anyMethod)

	rude := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer rude.Close()
	verify(t, "hangs up", Fault{Err: post(rude.Client(), rude.URL)}, ifSafe)

	secret := httptest.NewUnstartedServer(nil)
	secret.Config.ErrorLog = quietLog()
	secret.StartTLS()
	defer secret.Close()
	verify(t, "not trusted", Fault{Err: post(http.DefaultClient, secret.URL)}, never)

	enough := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-enough }))
	defer slow.Close()
	defer close(enough)
	impatient := &http.Client{Transport: &http.Transport{ResponseHeaderTimeout: time.Millisecond}}
	err := post(impatient, slow.URL)
	impatient.CloseIdleConnections()
	verify(t, "no header in time", Fault{Err: err, OwnTime: true}, ifSafe)
}

// What net/http says of HTTP/2 streams that were not processed.
func TestErrorsOfHTTP2(t *testing.T) {
	const (
		rst, goAway = 3, 7
		headers     = 1
	)
	for _, row := range []struct {
		name   string
		frames []byte
		want   allowed
	}{
		{"REFUSED_STREAM", frame(rst, 0, 1, 0, 0, 0, 7), anyMethod},
		{"REFUSED_STREAM in the body", append(frame(headers, 4, 1, 0x88), frame(rst, 0, 1, 0, 0, 0, 7)...), anyMethod},
		{"INTERNAL_ERROR", frame(rst, 0, 1, 0, 0, 0, 2), ifSafe},
		{"GOAWAY before it", frame(goAway, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), anyMethod},
		{"GOAWAY after it", append(frame(goAway, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0), frame(255, 0, 0)...), ifSafe},
	} {
		var protocols http.Protocols
		protocols.SetUnencryptedHTTP2(true)
		tr := &http.Transport{Protocols: &protocols}
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+rawHTTP2(t, row.frames), io.LimitReader(strings.NewReader("x"), 1))
		if err != nil {
			t.Fatal(err)
		}
		res, err := tr.RoundTrip(req)
		if err == nil {
			_, err = io.ReadAll(res.Body)
			_ = res.Body.Close()
		}
		t.Logf("%s: %v", row.name, err)
		if err == nil {
			t.Fatalf("%s: no error", row.name)
		}
		verify(t, row.name, Fault{Err: err}, row.want)
		tr.CloseIdleConnections()
	}
}

func frame(kind, flags, stream byte, payload ...byte) []byte {
	return append([]byte{0, 0, byte(len(payload)), kind, flags, 0, 0, 0, stream}, payload...)
}

// rawHTTP2 is a server that answers the first request with frames and hangs up.
func rawHTTP2(t *testing.T, frames []byte) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		r := bufio.NewReader(c)
		_, _ = r.Discard(24) // the preface
		_, _ = c.Write(frame(4, 0, 0))
		for {
			var h [9]byte
			if _, err := io.ReadFull(r, h[:]); err != nil {
				return
			}
			_, _ = r.Discard(int(h[0])<<16 | int(h[1])<<8 | int(h[2]))
			switch {
			case h[3] == 4 && h[4] == 0:
				_, _ = c.Write(frame(4, 1, 0))
			case h[3] <= 1 && h[4]&1 != 0: // the end of the request
				_, _ = c.Write(frames)
				if frames[len(frames)-6] == 255 {
					return
				}
			}
		}
	}()
	return l.Addr().String()
}

// A refusal by a limiter in this process: not executed, and when to come back.
func TestRejection(t *testing.T) {
	for _, row := range []struct {
		rej  goodput.Rejection
		want Verdict
		hint Hint
	}{
		{goodput.Rejection{Reason: goodput.QueueFull, RetryAfter: 3 * time.Second}, VerdictRetry, Hint{After: 3 * time.Second, Said: true}},
		{goodput.Rejection{Reason: goodput.OverQuota, RetryAfter: 123456}, VerdictRetry, Hint{After: 123456, Said: true, Exact: true}},
		{goodput.Rejection{Reason: goodput.Doomed}, VerdictFinal, Hint{Never: true}},
		{goodput.Rejection{Reason: goodput.Draining}, VerdictRetry, Hint{}}, // by another, if there is one
		{goodput.Rejection{Reason: goodput.Client, Outcome: goodput.Cancelled}, VerdictFinal, Hint{Never: true}},
	} {
		f := Fault{Err: fmt.Errorf("charge: %w", &row.rej)}
		if got := f.Verdict(); got != row.want {
			t.Errorf("%v: %v, want %v", row.rej.Reason, got, row.want)
		}
		if got := f.filled(); got.Hint != row.hint || !got.NotExecuted || !got.Shed {
			t.Errorf("%v: %+v, want hint %+v, not executed and shed", row.rej.Reason, got, row.hint)
		}
	}
}

// Markers in responses: which promise that nothing was executed, and which say never.
func TestC072Markers(t *testing.T) {
	for _, row := range []struct {
		name                     string
		status                   int
		header                   string // name: value, separated by ;
		notExecuted, shed, never bool
		want                     Verdict
	}{
		{"ours", 503, "Goodput-Rejected: queue_full; Retry-After: 2", true, true, false, VerdictRetry},
		{"ours, 429", 429, "Goodput-Rejected: quota; Retry-After: 2", true, true, false, VerdictRetry},
		{"ours, hopeless", 503, "Goodput-Rejected: doomed", true, true, true, VerdictFinal},
		{"ours, too large", 413, "Goodput-Rejected: too_large", true, true, true, VerdictFinal},
		{"ours, draining", 503, "Goodput-Rejected: draining", true, true, false, VerdictRetry},
		{"ours, gRPC", 200, "Goodput-Rejected: shed; Grpc-Status: 14; Grpc-Retry-Pushback-Ms: 1500", true, true, false, VerdictRetry},
		{"ours, gRPC hopeless", 200, "Goodput-Rejected: doomed; Grpc-Status: 14; Grpc-Retry-Pushback-Ms: -1", true, true, true, VerdictFinal},
		{"Envoy", 503, "X-Envoy-Overloaded: true", false, true, false, VerdictFinal},
		{"Skipper", 503, "Admission-Control: true", false, true, false, VerdictFinal},
		{"Finagle", 503, "Finagle-Http-Nack: true; Retry-After: 0", true, true, false, VerdictRetry},
		{"Finagle, never", 503, "Finagle-Http-Nonretryable-Nack: true", true, true, true, VerdictFinal},
		{"none", 503, "", false, false, false, VerdictFinal},
		{"a hint", 503, "Retry-After: 1", false, true, false, VerdictFinal},
		{"429", 429, "", false, true, false, VerdictFinal},
		{"502 with a hint", 502, "Retry-After: 1", false, false, false, VerdictFinal},
		{"gRPC", 200, "Grpc-Status: 14", false, true, false, VerdictFinal},
		{"gRPC, used up", 200, "Grpc-Status: 8", false, true, false, VerdictFinal},
		{"gRPC, a defect", 200, "Grpc-Status: 13", false, false, false, VerdictFinal},
		{"gRPC, pushed back", 200, "Grpc-Status: 14; Grpc-Retry-Pushback-Ms: x", false, true, true, VerdictFinal},
		{"gRPC, a status that is none", 200, "Grpc-Status: 999", false, false, false, VerdictFinal},
		{"no refusal", 200, "Goodput-Rejected: queue_full", false, false, false, VerdictAnswer},
	} {
		f := HTTPFault(row.status, header(row.header), time.Now())
		if f.NotExecuted != row.notExecuted || f.Shed != row.shed || f.Hint.Never != row.never || f.Verdict() != row.want {
			t.Errorf("%s: %+v is %v, want not executed %v, shed %v, never %v and %v",
				row.name, f, f.Verdict(), row.notExecuted, row.shed, row.never, row.want)
		}
		// Ours are spread where they are made.
		if ours := strings.HasPrefix(row.name, "ours"); f.Hint.Exact != (ours && f.Hint.Said) {
			t.Errorf("%s: %+v, exact only if it is ours", row.name, f.Hint)
		}
	}
}

// FuzzHTTPFault: whatever a server sends is some fault, and never is never.
func FuzzHTTPFault(f *testing.F) {
	f.Add(503, "queue_full", "2", "", "true", "")
	f.Add(200, "doomed", "", "14", "", "-1")
	f.Fuzz(func(t *testing.T, status int, rejected, after, code, nack, pushback string) {
		h := http.Header{}
		for name, value := range map[string]string{
			"Goodput-Rejected": rejected, "Retry-After": after, "Grpc-Status": code,
			"Finagle-Http-Nack": nack, "Grpc-Retry-Pushback-Ms": pushback,
		} {
			if value != "" {
				h[name] = []string{value}
			}
		}
		f := HTTPFault(status, h, clientTime)
		f.Idempotent = true
		v := f.Verdict()
		refusal := f.Status >= 400 || f.Code != 0
		if f.Hint.After < 0 || f.Hint.After > longest || f.Hint.Never && refusal && v != VerdictFinal ||
			!refusal && v != VerdictAnswer || refusal && f.NotExecuted && !f.Hint.Never && v != VerdictRetry {
			t.Fatalf("%d %v: %+v is %v", status, h, f, v)
		}
	})
}
