// Package goodputhttp puts a goodput.Limiter in front of an HTTP handler.
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
// The earliest of those, of the deadline of the context and of
// Server.DeadlineCap is in force, so a header can shorten what the server allows and never extend it. It is set on the context
// that the handler gets, and ForwardDeadline hands what is left of it to the
// next service. What cannot be read is ignored and counted.
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
// the request was not executed. The package adds slow_body (408) and bad_body
// (400), for bodies that it could not read before the request queued. The answer
// is a line of text, or application/problem+json for those who accept that.
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
// slowly needs a Server with PatientClient.
//
// A slot is held until the handler returns, which is the end of the body; the
// service time that the limiter learns from ends at the response header. A
// handler that panics, is cut off (http.ErrAbortHandler) or answers with 500 or
// more has failed and gives no sample; the panic goes on. If the client has left
// by the end, the request is abandoned; if the deadline has passed, late. An
// answer that is itself a refusal of an overloaded service further down (it has
// Goodput-Rejected, or the marker of Envoy, Finagle or Skipper) is passed on as
// it is and counts as failed.
//
// An upgraded connection, by Hijack, 101 or a 2xx to CONNECT, gives its slot
// back at once and is counted by itself, up to Server.MaxUpgraded.
//
// # Bodies, and clients that leave
//
// A request that waits leaves the queue when its client does, and the context of
// one that runs is cancelled. HTTP/2 reports that. HTTP/1 does so only once the body is read (golang/go#23262), so bodies of
// up to Server.MaxPreread are read before the request queues, and charged to the
// byte budget of the queue. That also keeps slow uploads out of the slots: a body
// that trickles in holds a connection and no more, for Server.PrereadTimeout at
// most. Larger bodies stay unread until the handler reads them; with ConnContext
// the connection is watched instead, every 200 ms, on Linux. A client that
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
package goodputhttp
