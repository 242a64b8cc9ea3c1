// Package bench measures what a limiter costs per request, beside the libraries
// that a Go service would use instead. It has only benchmarks. Package virtual plays the same
// libraries in virtual time, package live limits that find themselves over real HTTP, package
// proxies other proxies, and cmd/benchmarks all of that, with a document. The module is of its own,
// so that the rivals' dependencies stay here.
//
// Each contestant is set up as its documentation recommends, with room for 60 at
// once where it has a fixed limit. What they do for their price differs:
//
//	xsync              semaphore of x/sync: FIFO, unbounded queue, no clock
//	xsync-deadline     the same, with a context that has a deadline
//	channel            a buffered channel and a select on the context
//	failsafe-bulkhead  a channel behind failsafe-go's API
//	failsafe-adaptive  failsafe-go's adaptive limit, with its bounded queue
//	failsafe-priority  the same, shedding by priority
//	kratos-bbr         sheds on CPU use; its clock is read twice a request
//	gozero-shedder     sheds on CPU use; its clock is read twice a request
//	goodput            a Limiter with defaults: bounded queue, service times sampled
//	goodput-deadline   the same, with a context that has a deadline
//	goodput-work       the same, through AcquireWork with cost, bytes and priority
//	goodput-auto       a limit that finds itself, with the signals of package pressure
//
// The benchmarks:
//
//	AcquireRelease  one caller, a free slot
//	Parallel        as many callers as processors, a free slot each
//	Do              the form that runs a function and survives its panic
//	TryAcquire      the form that never waits
//	Refusal         the limit is reached, and where there is a queue it is full
//	HandOff         32 callers take turns on 2 slots and give up the processor
//	                while they hold one, so that nearly every turn waits
//
// A contestant is missing where it has no such form. A loop of n runs inside the
// contestant's own closure, so there is no call through a function value between
// two requests, except in Parallel and HandOff: there it costs everybody the
// same 2 ns.
//
// Run it with `make bench`; compare only within one run.
package bench
