// Package proxies puts goodput serve beside other reverse proxies, in one run on one
// machine: what a request costs in processor time, what a refusal costs, what is left of
// a service that is offered more than it can do, and what memory a request takes while
// it waits.
//
// The others are a bare httputil.ReverseProxy that is tuned, Caddy, haproxy and nginx,
// the last three as Debian packages them. Each is a process of its own on the loopback
// interface, between a client and a service that are processes of their own too. Access
// logs are off everywhere, every proxy keeps its connections to the service, which speaks
// HTTP/1.1, and every limit that would have made a rival close connections is lifted.
//
// What keeps the numbers honest:
//
//   - Only ratios between contestants of the same pass are judged. A pass runs every
//     contestant once, so whatever else the machine does hits all of them alike, and a
//     ratio is printed as the median over the passes with the smallest and the largest.
//   - Processor time is that of the proxy's processes alone, user and system, as Linux
//     counts it.
//   - The overload is an open loop: package live makes it, counts from the instant at
//     which a request was due, and says when it was itself too late.
package proxies
