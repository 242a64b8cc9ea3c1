package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// C097: requests about whose end two parsers could disagree. Each is refused
// with 400 and the connection closed, or it reaches the service as exactly one
// request; the one that is hidden behind it never does.
func TestNobodyIsSmuggledIn_C097(t *testing.T) {
	var mu sync.Mutex
	var paths []string
	addr := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // whatever came
		mu.Lock()
		paths = append(paths, r.URL.Path)
		mu.Unlock()
	}))
	w := start(t, addr, nil)
	const hidden = "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n"
	for name, request := range map[string]string{
		"CL then TE":                "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"TE then CL":                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 39\r\n\r\n0\r\n\r\n" + hidden,
		"two CL":                    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nContent-Length: 34\r\n\r\n" + hidden,
		"two CL in one":             "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0, 34\r\n\r\n" + hidden,
		"TE with a tab":             "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\t\r\nContent-Length: 39\r\n\r\n0\r\n\r\n" + hidden,
		"TE identity":               "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\nContent-Length: 0\r\n\r\n" + hidden,
		"two TE":                    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + hidden,
		"TE in HTTP/1.0":            "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"space before colon":        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length : 34\r\n\r\n" + hidden,
		"CL with a plus":            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +34\r\n\r\n" + hidden,
		"CL negative":               "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n" + hidden,
		"CL that overflows":         "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n" + hidden,
		"chunk size that overflows": "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n" + hidden,
		"bare CR":                   "POST / HTTP/1.1\r\nHost: h\r\nX: a\rContent-Length: 34\r\n\r\n" + hidden,
		"NUL in a header":           "POST / HTTP/1.1\r\nHost: h\r\nX: a\x00b\r\n\r\n" + hidden,
		"two hosts":                 "GET / HTTP/1.1\r\nHost: h\r\nHost: evil\r\n\r\n" + hidden,
		"no host":                   "GET / HTTP/1.1\r\n\r\n" + hidden,
	} {
		mu.Lock()
		paths = nil
		mu.Unlock()
		c := w.raw(request + "GET /end HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		var statuses []int
		in := bufio.NewReader(c)
		for {
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				break
			}
			io.Copy(io.Discard, res.Body) // only the status counts
			statuses = append(statuses, res.StatusCode)
		}
		w.settle("idle", idle)
		mu.Lock()
		refused := len(statuses) == 1 && (statuses[0] == 400 || statuses[0] == 501) && len(paths) == 0
		once := len(paths) <= 1 && !strings.Contains(strings.Join(paths, " "), "/hidden")
		if !refused && !once {
			t.Errorf("%s: answers %v, and the service saw %v", name, statuses, paths)
		}
		mu.Unlock()
	}
}

// Where Go's parser takes a form that others refuse, what goes on to the
// service is written anew and has one meaning.
func TestLenientFormsAreNormalized_C097(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	wire := make(chan string, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				var seen strings.Builder
				req, err := http.ReadRequest(bufio.NewReader(io.TeeReader(c, &seen)))
				if err != nil {
					return
				}
				io.Copy(io.Discard, req.Body) // to its end
				wire <- seen.String()
				io.WriteString(c, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
			}()
		}
	}()
	w := start(t, l.Addr().String(), nil)
	for name, request := range map[string]string{
		"bare LF":             "POST / HTTP/1.1\nHost: h\nContent-Length: 5\n\nhello",
		"DELETE with chunked": "DELETE / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"same CL twice":       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
		"chunk extension":     "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n",
	} {
		res, _ := w.answer(w.raw(request))
		if res.StatusCode == http.StatusBadRequest {
			continue
		}
		select {
		case got := <-wire:
			head, _, _ := strings.Cut(got, "\r\n\r\n")
			lengths := strings.Count(head, "\r\nContent-Length: ") + strings.Count(head, "\r\nTransfer-Encoding: chunked")
			if res.StatusCode != 204 || lengths != 1 || strings.Contains(strings.ReplaceAll(got, "\r\n", ""), "\n") {
				t.Errorf("%s: %s; the service was sent\n%q", name, res.Status, got)
			}
		case <-time.After(patience):
			t.Errorf("%s: %s, but the service got nothing", name, res.Status)
		}
	}
	w.settle("idle", func(s goodput.Stats) bool { return idle(s) })
}
