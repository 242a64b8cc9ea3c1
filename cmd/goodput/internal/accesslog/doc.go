// Package accesslog reads the access logs of proxies and servers, and traces,
// as arrivals with service times, in the order of the arrivals.
//
// What a replay needs of a line is when its request arrived, how long the
// service worked on it, and what became of it. Each format says that in its own
// way, and three differences ruin a replay silently:
//
//   - The stamp is the end of the request in some formats (nginx, CloudFront,
//     IIS) and its start in others (HAProxy, Envoy, Apache). Where it is the end,
//     arrival = stamp - duration: else the longest requests come last.
//   - The duration that everybody logs contains slow clients and connect waits.
//     Service is the time of the upstream where the format has one, and is absent,
//     not 0, where nothing was forwarded.
//   - The same field name is in microseconds, milliseconds or seconds, depending
//     on the server.
//
// So each format has one rule, printed as a sentence with the median that it
// leads to (see File.Rule), and what looks implausible is a warning.
//
// Most callers want Open, then Records, as often as there are policies to
// compare, then Close:
//
//	log, err := accesslog.Open(files, accesslog.Options{})
//	defer log.Close()
//	for r, err := range log.Records() { ... }
//
// Reading is one pass over the files, line by line, in bounded memory: records
// beyond Options.MaxPending are sorted into a temporary file, 80 bytes each,
// and merged by each walk over them. A damaged line costs one line. Equal
// arrivals are ordered by a hash of the line, so that a shuffled file gives the
// schedule of the sorted one, and ties of a log that is stamped to the second are
// not ordered by their length.
package accesslog
