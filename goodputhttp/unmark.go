package goodputhttp

import (
	"net/http"
	"strings"
)

// Goodput-Rejected is the promise that a request was not executed, which a client may act
// on. On a success it is a lie, whoever tells it: header drops it there. A trailer comes
// after a body, and after the client has read the header that would have had the marker, so
// as a trailer it says nothing that is true either. A gRPC answer has its status in the
// trailers, and the marker may stand beside it.

// unmark drops the marker from the trailers of an answer that was written to the end. What
// is in the header by that name went out with it, and stays for whoever looks at it
// afterwards, unless it is declared as a trailer.
func (w *response) unmark() {
	if w.visit.grpc || w.detached || w.status == 0 {
		return
	}
	h := w.ResponseWriter.Header()
	without(h, http.TrailerPrefix+rejectedHeader)
	for _, line := range h["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(name), rejectedHeader) {
				without(h, rejectedHeader)
			}
		}
	}
}

// without drops a name from a header, to which nothing is written if it is not there: somebody
// may still be reading it, see early.
func without(h http.Header, name string) {
	//lint:ignore S1033 deleting what is not there is a write as well
	if _, ok := h[name]; ok {
		delete(h, name)
	}
}
