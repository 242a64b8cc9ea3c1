package proxies

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput/bench/live"
)

// Roles of our own program beside that of the client.
const (
	roleBare    = "bare"    // an httputil.ReverseProxy
	roleFloor   = "floor"   // refuses everything, as cheaply as net/http can
	roleService = "service" // what is behind the proxies
)

// wordRoomy behind the bare proxy gives it the ballast that goodput serve has: 16 MiB that are
// never touched, so that the garbage is collected when as much has come together.
const (
	wordRoomy    = "roomy"
	roomyBallast = 16 << 20
)

// Headers of requests to the service.
const (
	workHeader   = "Work-Us"
	budgetHeader = "X-Envoy-Expected-Rq-Timeout-Ms"
)

// Play plays a role, whose name is the first of args, until the process is killed.
func Play(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("a role needs a name and an address")
	}
	handler, more := http.Handler(nil), args[2:]
	switch {
	case args[0] == roleBare && len(more) == 2 && more[1] == wordRoomy:
		ballast := make([]byte, roomyBallast)
		defer runtime.KeepAlive(ballast)
		fallthrough
	case args[0] == roleBare && len(more) == 1:
		handler = bareProxy(&url.URL{Scheme: "http", Host: more[0]})
	case args[0] == roleFloor && len(more) == 0:
		mux := http.NewServeMux()
		mux.HandleFunc("/", refuse)
		mux.Handle(pathHold, &holder{})
		handler = mux
	case args[0] == roleService && len(more) == 1:
		slots, err := strconv.Atoi(more[0])
		if err != nil {
			return err
		}
		handler = service(slots)
	default:
		return fmt.Errorf("%q is no role", strings.Join(args, " "))
	}
	both := new(http.Protocols)
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Addr: args[1], Handler: handler, Protocols: both,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1 << 12},
	}
	return server.ListenAndServe()
}

// bareProxy is what BenchmarkBare of the proxy is measured by: it keeps its connections
// and its buffers, and does nothing that a reverse proxy need not do.
func bareProxy(to *url.URL) http.Handler {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
			r.SetXForwarded()
		},
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 1 << 20, DisableCompression: true, Protocols: protocols,
		},
		BufferPool:   new(buffers),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }, // of clients that leave it would log a line each
	}
}

// buffers are of the 32 KiB that ReverseProxy copies with.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(p []byte) { b.pool.Put(&p) }

// refuse is a refusal with the headers of goodput's and nothing behind it.
func refuse(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h["Goodput-Rejected"] = []string{"queue_full"}
	h["Cache-Control"] = []string{"no-store"}
	h["Retry-After"] = []string{"1"}
	h["Content-Type"] = []string{"text/plain; charset=utf-8"}
	h["Content-Length"] = []string{strconv.Itoa(len(no))}
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, no) // who has left reads no answer
}

const no = "Overloaded: the request was not started. Try again later.\n"

// Paths of the service.
const (
	pathFast  = "/fast"  // 1 KiB at once
	pathWork  = "/work"  // as long as the header Work-Us says, in a slot
	pathHold  = "/hold"  // until the client leaves
	pathBooks = "/books" // what its slots did
)

// books is what a service tells of itself.
type books struct {
	Speed float64 `json:"speed"` // see live.Backend.Speed
	Held  int64   `json:"held"`  // requests of pathHold that are there
}

// service is what stands behind the proxies: a fast answer, and work in slots behind
// which a queue is that nobody sees.
func service(slots int) http.Handler {
	b := live.NewBackend(slots)
	var held holder
	kilobyte := []byte(strings.Repeat("x", 1<<10))
	mux := http.NewServeMux()
	mux.HandleFunc(pathFast, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{"text/plain"}
		_, _ = w.Write(kilobyte) // who has left reads no answer
	})
	mux.HandleFunc(pathWork, func(w http.ResponseWriter, r *http.Request) {
		us, err := strconv.ParseInt(r.Header.Get(workHeader), 10, 64)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = b.Do(r.Context(), time.Duration(us)*time.Microsecond) // who has left reads no answer
	})
	mux.Handle(pathHold, &held)
	mux.HandleFunc(pathBooks, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(books{b.Speed(), held.n.Load()}) // who has left reads no answer
	})
	return mux
}

// A holder holds each request until its client leaves.
type holder struct{ n atomic.Int64 }

func (h *holder) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body := make([]byte, max(0, r.ContentLength))
	_, _ = io.ReadFull(r.Body, body)   // while it is unread, nobody notices that the client leaves
	_, _ = io.Copy(io.Discard, r.Body) // nor does HTTP/2 forget its buffer before the end
	h.n.Add(1)
	defer h.n.Add(-1)
	<-r.Context().Done()
	runtime.KeepAlive(body) // as what waits in a proxy has to
}
