package goodputhttp

import "net/http"

// Goodput-Rejected is the promise that a request was not executed, which a client may act
// on. On a success it is a lie, whoever tells it: header drops it there. A trailer comes
// after a body, and after the client has read the header that would have had the marker, so
// as a trailer it says nothing that is true either. A gRPC answer has its status in the
// trailers, and the marker may stand beside it.

// unmark drops the marker from the trailers of an answer that was written to the end. What
// is in the header by that name went out with it, unless it is declared as a trailer.
func (w *response) unmark() {
	if w.visit.grpc || w.detached || w.status == 0 {
		return
	}
	h := w.ResponseWriter.Header()
	delete(h, rejectedHeader)
	delete(h, http.TrailerPrefix+rejectedHeader)
}
