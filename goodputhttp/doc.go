// Package goodputhttp puts a goodput.Limiter in front of an HTTP handler, and one in front
// of each service that is called over HTTP: see Client below.
//
//	http.Handle("/search", goodputhttp.Handler(lim, search))
//
// A request runs, waits within its deadline, or is refused with a status and a
// header that say whether sending it again can help. Most callers want Handler;
// Server has the settings: several classes, deadlines, priorities, 429.
//
//	srv := &http.Server{Handler: h, ConnContext: goodputhttp.ConnContext}
//
// # Deadlines
//
// A caller may say how long it waits, 400 ms for example:
//
//	grpc-timeout: 400m                     calls with content type application/grpc*
//	connect-timeout-ms: 400
//	x-envoy-expected-rq-timeout-ms: 400    0 is no deadline
//	Expect-Within: 0.4                     seconds
//
// and in those of Server.DeadlineHeaders, each in a format of its own. The earliest of all, of
// the deadline of the context and of Server.DeadlineCap is in force, so a header can shorten
// what the server allows and never extend it, unless Server.Extends says that its sender may.
// It is set on the context that the handler gets, and ForwardDeadline hands what is left of
// it to the next service: in the headers that came, or in that of Server.Forward. What cannot
// be read is ignored and counted.
//
// A request may have waited before it came here. A hop that Server.Trusted knows says since
// when, in X-Request-Start or X-Queue-Start: milliseconds since 1970, or with t= in front
// seconds (nginx), microseconds (Apache) or milliseconds. All of the above, but instants, then
// begin there, 10 s ago at most; so do waits, lateness and the order of the queue. With
// Server.ForwardStart the next hop is told too.
//
// # Retries
//
// From its second attempt on a client may say which one it is, as Transport does:
//
//	Goodput-Attempt: 2                 from 1
//	grpc-previous-rpc-attempts: 1      calls with content type application/grpc*
//
// Within a priority, and a tenant, those are shed before first attempts (goodput.Work.Attempt);
// a number from Server.Work wins. That needs no trust: who says nothing, or less, is a first
// attempt like any other, and who says more is shed earlier. retry.AttemptFrom has the number in the
// handler, and calls that it makes with its context count on.
//
// # Refusals
//
//	queue_full bytes_full shed displaced wait_bound   503 (or 429)  14 (8)  Retry-After
//	quota                                             429           8       Retry-After, exact
//	unavailable                                       503           14      Retry-After
//	no_budget doomed                                  503           14      none: a retry cannot win
//	replaced                                          503           14      none
//	too_costly                                        503           8       none
//	too_large                                         413           8       none
//	deadline                                          504           4       none
//	draining                                          503           14      none, Connection: close
//	client gone                                       nothing is sent
//
// The second number is the gRPC status: a call with content type
// application/grpc* gets trailers only, with grpc-retry-pushback-ms for
// Retry-After, -1 for none. Goodput-Rejected has the reason; it promises that
// the request was not executed. Server.Markers adds what Envoy and Finagle understand of
// that. The package adds slow_body (408) and bad_body (400), for bodies that it could not
// read before the request queued, and says too_large of those above Server.MaxBody. The answer
// is a line of text, or application/problem+json for those who accept that. A handler that
// is itself refused what it needs answers with Refuse: the same hints, without the promise.
//
// The Retry-After of a quota is the time until its tenant has enough for this request,
// rounded up to a second (a millisecond for gRPC). The others are spread, so that those
// who were refused together do not come back together.
//
// # Tenants
//
// Server.Tenant and Server.User say who sends a request and for whom it is; ByAddress
// goes by the network of the client. Work may say so too, and the priority. Nothing of
// this is read from headers, because a client may write into them what it likes. What a
// request costs is often known only once it is done: then its handler calls SetCost, and
// SetSize, with its context.
//
// # Slots
//
// A client can hold a slot too, by sending a body that was not read in advance a
// byte at a time, or by not reading the response. It may keep the handler waiting
// for Server.SlowClient in all, 10 s by default, and earns a second for each
// 16 KiB; then its connection is cut. A route for streams that clients feed
// slowly needs a Server with PatientClient. A deadline ends the reading of a body too,
// with context.DeadlineExceeded; a write it does not end, since the answer may be that it
// has passed.
//
// A slot is held until the handler returns, which is the end of the body; the
// service time that the limiter learns from ends at the response header. A
// handler that panics, is cut off (http.ErrAbortHandler) or answers with 500 or
// more has failed and gives no sample; the panic goes on. If the client has left
// by the end, the request is abandoned, unless it is a stream that had begun; if
// the deadline has passed, late. An
// answer that is itself a refusal of an overloaded service further down (it has
// Goodput-Rejected, or the marker of Envoy, Finagle or Skipper) is passed on as
// it is and counts as failed.
//
// An upgraded connection, by Hijack, 101 or a 2xx to CONNECT, gives its slot
// back at once and is counted by itself, up to Server.MaxUpgraded.
//
// What lasts as long as its client likes, event streams, streams of gRPC, long downloads,
// WebSockets, is for a Server with Stream: there a slot is a place among those that are
// open, held to the true end, upgraded or not, and no sample of anything. It is completed, or
// late, as of its beginning: that its client leaves is how it ends. Its limiter has a fixed
// limit and no queue.
//
// # Bodies, and clients that leave
//
// A request that waits leaves the queue when its client does, and the context of one that
// runs is cancelled. HTTP/2 reports that. HTTP/1 does so only once the body is read
// (golang/go#23262), so bodies of up to Server.MaxPreread are read before the request
// queues, and charged to the byte budget of the queue. That also keeps slow uploads out of
// the slots: a body that trickles in holds a connection and no more, for
// Server.PrereadTimeout at most. Larger bodies stay unread until the handler reads them;
// with ConnContext the connection is watched instead, every 200 ms, on Linux. A client that
// closes only its sending half counts as gone, as it does in net/http.
//
// A request with Expect: 100-continue waits unread and gets its 100 from the
// first Read of the handler. A body that is refused unread is dropped, up to
// 4 MiB and 2 s, so that the client gets to read the answer; then the
// connection is closed.
//
// # Probes
//
// Health probes are exempt: see Probe.
//
// # Client
//
// Transport is an http.RoundTripper for the calls that a service makes. A Dependency
// describes one service that is called: its limiter, its retries, its throttle. All of
// them are optional. A Dependency is made once and shared by all calls to that service: one
// made per request bounds nothing. ByHost makes one for each host.
//
// One attempt is
//
//	time      is anything left of the deadline, less the way there and back? else *Unsent
//	throttle  has the service been refusing nearly all? perhaps *Unsent
//	slot      of the limiter, at once or after a wait, or its *goodput.Rejection
//	Base      with the time that is left in a header, and the number of the attempt
//	body      the slot is held until the end of the body of the response
//
// and none of the first three costs the service anything. They are final: a limiter has a
// queue for those for whom it pays to wait, so another wait in front of it would only be
// a queue without an order.
//
// The body ends with EOF, an error or Close; a body that nobody reads or closes ends with
// the context of the request, at most 100 ms later. The outcome for the limiter is
//
//	failed     5xx, a status of gRPC that blames the server, a refusal, an error of Base,
//	           a broken body, an attempt beyond retry.Policy.PerAttempt
//	abandoned  the caller left, or a hedge was faster
//	late       the deadline has passed
//	completed  the rest, 4xx and bodies that were closed early included
//
// and the service sample ends at the header of the response. A refusal by the service or
// one behind it is a marker as above, 429, 503 with Retry-After, and UNAVAILABLE or
// RESOURCE_EXHAUSTED of gRPC without a message: it says that there is too much load and
// nothing of how long the work takes. An adaptive limit asks for less then, and likewise if
// there is no connection to be had; but not for a refusal of ours that is about the request
// alone: quota, too_costly, too_large, deadline, replaced, draining. It is a response like any other for the caller,
// with all its headers, so a proxy passes it on; ProxyError turns what was not sent into
// one. A handler that may have done something before answers what it was refused with
// Refuse, which promises nothing.
//
// Attempts after the first are a matter of package retry. The request has to be
// idempotent, or not executed as the service says (Goodput-Rejected), and its body has to
// be there again: http.Request.GetBody. The wait obeys Retry-After and pushback, within
// the deadline, and holds no slot, but for the rest of a response that is still being sent:
// up to 64 KiB within 100 ms are read and kept, and what is more is dropped. The deadline
// stays the same over all attempts. If there is no other attempt the last response is
// returned as it is, with its slot; one that was dropped, for an attempt that could not be
// sent then, is an error. From the second attempt on
// Goodput-Attempt has its number (for gRPC grpc-previous-rpc-attempts has that of those
// before it), by which Server sheds repeated requests first.
//
// An upload that is refused at the door may get its answer too late: a server that does
// not read the rest of it resets the connection, and the answer can be lost. Server reads
// on for a while. For others send Expect: 100-continue with large bodies and set
// http.Transport.ExpectContinueTimeout.
//
// The time in RoundTrip, waits for a slot and between attempts included, and that spent
// blocked in Read of the body is time of the dependency for the slot of the caller: see
// goodput.Downstream.
package goodputhttp
