// Package virtual plays a load against limiters in one process and in virtual time: the
// real code of ours and of the libraries that a Go service would use instead, inside a
// bubble of testing/synctest, where a sleep of 50 ms takes 50 ms exactly and costs
// nothing. So its ratios are those of the code and not of the machine or of what else runs
// on it; what a request costs is measured in package bench, and what a network does in
// package live.
//
// # The model
//
// Requests arrive by themselves, whatever became of those before. Each asks the limiter of
// a Contestant, with a context that ends at the deadline of its caller. Whoever is admitted
// works in a slot of a live.Backend, which has a queue of its own that no limiter sees,
// and works to the end even if its caller has left: most handlers do not look. Requests
// are those of a live.Plan: what arrives when, and how long it works, follows from the
// Scene and the seed alone, so all contestants of a scene meet the same.
//
// The shedders that look at the processor, of go-zero and aegis, are not here: they have
// goroutines that never end, which a bubble waits for, and in virtual time no processor is
// busy. Package live plays them.
//
// # How exact it is
//
// Two runs of one scene, contestant and seed on one processor give the same Result, byte by
// byte, but for two: the law of goodput/auto throws dice that nobody can fix from outside,
// and so does the queue of failsafe/adaptive-queue. On several processors either of two
// goroutines that are woken at one instant may be first; then goodput counts a service time
// in the next window, and refuses others: seen were ratios 0.7 points apart, which is chance
// as it is with another seed. The 24,000 exponential services of a run add up to within
// 0.65 %: a ratio of 1.01 or of 0.99 is one of 1. A queue that is full at the end of the
// window is served after it, which makes 1.02 of 480 places. Figures.Even is free of both.
//
// The simulator, which drives the core of goodput on a clock of its own, meets the same
// requests in a test and answers as many.
//
// # The table
//
//	go test ./virtual -run TestTable -timeout 40m -table out.json -seeds 3
//
// plays Scenes with everybody that each of them is for, in five to ten minutes of one
// processor, and writes a Table: a JSON object with the fields of that type, one row a
// line. Those who read it need the types of this package and no more: Row has the median
// of the seeds of each number; what goodput promises of them is judged in package figures.
// Times are in milliseconds where the name ends in _ms, in seconds where it ends in _s;
// shares and ratios are of 1.
package virtual
