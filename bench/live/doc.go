// Package live plays a load against limiters over real HTTP and says what became of
// the requests: goodput with limits that find themselves, beside libraries that do the
// same, in one run on one machine.
//
// The service is what a limiter has to guess at: a handler that sleeps, in slots whose
// number nobody tells the limiter and which may change while it runs. Client, limiter
// and service are one process, joined by HTTP/2 over the loopback interface, because
// 12,000 requests a second have to fit on two cores.
//
// What keeps the numbers honest:
//
//   - Open loop. When a request is due, and how much work it is, follows from the Plan
//     and its seed alone: every contestant gets the same requests at the same instants.
//   - Latency counts from the instant at which a request was due.
//   - A run in which the generator was late, could not send, lost connections, or in
//     which the sleeps of the service overran, is void and says so: see Result.Void.
//   - The model plays the same requests, with the same work, in simulated time.
//
// Contestants are set up as their documentation recommends; see Contestants. Two of
// them shed when the processors are busy: what else the machine does moves them, and
// while it is idle they admit everything.
package live
