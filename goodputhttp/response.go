package goodputhttp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/goodput/goodput"
)

// A response is one request that runs: its slot, and the writer that its
// handler gets. The slot is held until the handler returns, which is the end of
// the body; the service sample ends at the header of the response, because the
// length of a download says nothing about the load of the service.
type response struct {
	http.ResponseWriter // as it came
	visit               *visit
	slot                goodput.Slot
	holds               holds
	reading, writing    pace // how long it has waited for its client
	written             int64
	began               time.Duration // since its slot, for Server.Ended; 0 before that
	status              int           // of the final header; 0 before it
	detached            bool          // upgraded: the slot is back
	upgraded            bool          // of a Stream: the slot is held on
	shed                bool          // the answer is a refusal by somebody further down
	open                bool          // of a Stream: it began while its client was there

	http1 http1Writer // see writer
	http2 http2Writer
}

// Why a slot ended as failed.
var (
	errPanicked = errors.New("goodputhttp: the handler panicked")
	errAborted  = errors.New("goodputhttp: the response was cut off")
	errShed     = errors.New("goodputhttp: refused further down")
	errLarge    = errors.New("goodputhttp: the body is longer than Server.MaxBody")
)

// failedStatus is the error of a response with a status of 500 or more, or of a
// gRPC status that says that the server failed.
type failedStatus string

func (e failedStatus) Error() string { return "goodputhttp: answered " + string(e) }

// serve runs the handler and ends the slot, once, however the handler ends.
func (w *response) serve(ctx context.Context) {
	v := w.visit
	r := v.r.WithContext(w.slot.Context(ctx)) // what it says to be Downstream is not its own time
	v.run = w
	w.holds.held, w.holds.slot = &v.server.books().held, &w.slot
	if v.server.Stream {
		w.holds.write((*goodput.Slot).Unsampled)
	}
	w.paces()
	if v.body != nil {
		r.Body = v.body
	}
	r.Body = w.paced(ctx, r.Body)
	returned := false
	defer func() {
		w.reading.expire(ctx)
		w.stopPaces()
		if returned {
			w.unmark()
			w.end(ctx)
			return
		}
		// A panic, or runtime.Goexit. Panicking again from here keeps the
		// frames of the first panic in the stack that net/http prints.
		p := recover()
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			w.endAborted(ctx)
		} else {
			w.fail(errPanicked)
		}
		if p != nil {
			panic(p)
		}
	}()
	v.server.Next.ServeHTTP(w.writer(), r)
	returned = true
}

// end judges a handler that returned.
func (w *response) end(ctx context.Context) {
	switch {
	case w.detached:
	case w.upgraded:
		w.release()
	case w.visit.left(ctx):
		w.endLeft()
	case w.visit.body != nil && w.visit.body.cut.Load():
		if w.status == 0 {
			w.visit.write(cutBody, 0)
		}
		w.fail(errLarge)
	case w.shed, w.holds.isDropped():
		w.fail(errShed)
	case ctx.Err() != nil:
		// The deadline passed. Whatever was answered then, an error above all,
		// is late rather than failed: the time it took is a sample, without
		// which the estimate would never learn of a service that became slow.
		w.release()
	case w.status >= 500:
		w.fail(failedStatus(strconv.Itoa(w.status)))
	case w.visit.grpc && w.grpcFailed():
		w.fail(failedStatus("a gRPC error"))
	default:
		w.release()
	}
}

// endAborted judges a handler that gave up in the middle of its response.
func (w *response) endAborted(ctx context.Context) {
	switch {
	case w.detached:
	case w.upgraded:
		w.release()
	case w.visit.left(ctx), w.open && w.holds.isCut():
		w.endLeft()
	case ctx.Err() != nil:
		w.release()
	default:
		w.fail(errAborted)
	}
}

// endLeft judges a request whose client has left. That is how a stream ends, as is a limit of
// its handler's; one that began with an error was none.
func (w *response) endLeft() {
	switch {
	case !w.open:
		w.abandon()
	case w.shed:
		w.fail(errShed)
	case w.status >= 500:
		w.fail(failedStatus(strconv.Itoa(w.status)))
	default:
		w.release()
	}
}

func (w *response) fail(err error) {
	if !w.detached {
		w.holds.end(err)
	}
}

func (w *response) release() { w.holds.end(nil) }

func (w *response) abandon() { w.holds.end(context.Canceled) }

// left reports whether the client is gone. net/http cancels the context of a
// request when it notices, by a read or by a failed write, and our watch cancels
// ctx, which is below it; a deadline ends either in another way, unless it has ended the
// reading of a body as well. A client that closes its sending half counts as gone, as everywhere
// in net/http.
func (v *visit) left(ctx context.Context) bool {
	if ctx.Err() == context.Canceled {
		return true
	}
	return v.r.Context().Err() == context.Canceled && (v.run == nil || !v.run.reading.isLate())
}

// grpcFailed reports whether the trailers have a status that blames the server
// rather than the call: DEADLINE_EXCEEDED 4, UNKNOWN 2, RESOURCE_EXHAUSTED 8,
// INTERNAL 13, UNAVAILABLE 14, DATA_LOSS 15.
func (w *response) grpcFailed() bool {
	return blamesServer(grpcStatus(w.ResponseWriter.Header()))
}

// grpcStatus is the status that trailers have, or a header without a body; "" if there is none.
func grpcStatus(h http.Header) string {
	for _, name := range [...]string{"Grpc-Status", http.TrailerPrefix + "Grpc-Status"} {
		if v := h[name]; len(v) > 0 {
			return v[0]
		}
	}
	return ""
}

// blamesServer reports whether a status of gRPC says that the server failed.
func blamesServer(code string) bool {
	switch code {
	case "2", "4", "8", "13", "14", "15":
		return true
	}
	return false
}

// header runs before the status goes out, at most once with a final one.
func (w *response) header(status int) {
	if w.status != 0 || (status < 200 && status != http.StatusSwitchingProtocols) {
		return
	}
	w.status = status
	v := w.visit
	if status < 400 && !v.grpc {
		without(w.ResponseWriter.Header(), rejectedHeader)
	}
	if status == http.StatusSwitchingProtocols || (v.r.Method == http.MethodConnect && status < 300) {
		v.place.enter(v.server.maxUpgraded()) // reserved at the door
		w.upgrade()
		return
	}
	if v.server.ServerTiming {
		timing(w.ResponseWriter.Header(), w.slot.Waited())
	}
	if h := w.ResponseWriter.Header(); (status >= 400 || v.grpc && w.grpcFailed()) && isShed(h) {
		w.shed = true
		v.server.books().upstreamShed.Add(1)
		if aboutLoad(h) {
			w.holds.drop()
		}
	}
	w.begun()
}

// begun says that the response has begun.
func (w *response) begun() {
	if v := w.visit; v.server.Stream {
		w.holds.write((*goodput.Slot).Answered) // it is in time or not as of now
		w.open = !v.left(context.Background()) && !v.watch.hasLeft()
	} else {
		w.holds.write((*goodput.Slot).Served)
	}
	w.began = w.holds.began(&w.slot)
}

// upgrade says that the connection is the handler's now, half-closed or not, and may be
// silent for hours. The slot is given back, or held to its end by a Stream.
func (w *response) upgrade() {
	if w.detached || w.upgraded {
		return
	}
	w.stopPaces()
	w.visit.watch.stop()
	if w.visit.server.Stream {
		w.upgraded = true
		w.begun()
		return
	}
	w.detached = true
	w.holds.none()
	w.began = w.holds.began(&w.slot)
	w.slot.Detach()
	w.holds.gone(&w.slot)
}

// isShed reports whether h belongs to a refusal of an overloaded service, by
// the markers in use: ours, Envoy's, Finagle's and Skipper's. It is passed on
// as it is, and the slot ends as failed: 1 ms for a refusal is no service time. If it is about
// the load, the law of the limit hears of a drop.
//
// A plain 503 or 429 has none: it is the handler's own answer, and may mean that something
// is broken, or that a caller has used up what its plan allows.
func isShed(h http.Header) bool {
	return len(h[rejectedHeader]) > 0 || len(h[envoyOverloaded]) > 0 ||
		len(h[finagleNack]) > 0 || len(h[finagleNever]) > 0 || len(h[skipperShed]) > 0
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Header is declared because the types below have one too, by embedding.
func (w *response) Header() http.Header { return w.ResponseWriter.Header() }

func (w *response) WriteHeader(status int) {
	w.header(status)
	if status < 200 && w.visit.r.ProtoMajor == 2 {
		early(w.ResponseWriter, status)
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	w.header(http.StatusOK)
	return w.write(p)
}

func (w *response) WriteString(s string) (int, error) {
	w.header(http.StatusOK)
	if w.writing.allowed > 0 && w.written+int64(len(s)) > unpaced {
		return w.write([]byte(s))
	}
	w.written += int64(len(s))
	return io.WriteString(w.ResponseWriter, s)
}

// What follows is advertised only if the writer as it came has it: see writer.
// The types share the memory of a response and add one method each.
type (
	flusher    response
	hijacker   response
	readerFrom response
)

func (f *flusher) Flush() { _ = f.FlushError() }

func (f *flusher) FlushError() error {
	w := (*response)(f)
	w.header(http.StatusOK)
	if w.writing.allowed > 0 { // what was written before may be all in buffers: it is here that it waits
		w.writing.begin(0)
		defer w.writing.end(0)
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w := (*response)(h)
	place := &w.visit.place
	if !place.enter(w.visit.server.maxUpgraded()) {
		return nil, nil, errUpgradesFull
	}
	conn, buf, err := w.ResponseWriter.(http.Hijacker).Hijack()
	if err != nil {
		return conn, buf, err // the place is left when ServeHTTP returns
	}
	w.upgrade()
	if w.reading.isLate() { // perhaps since net/http has lifted all deadlines of what it hands out
		_ = conn.SetReadDeadline(time.Time{})
	}
	if place.state.CompareAndSwap(placeOpen, placeHijacked) {
		gone := place.close
		if w.upgraded && w.holds.add() {
			release := sync.OnceFunc(w.holds.done)
			gone = func() { place.close(); release() }
		}
		conn = counted(conn, gone)
	}
	return conn, buf, nil
}
