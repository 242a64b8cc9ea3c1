// Package plan is the arithmetic of a limit and its queue before anything runs:
// what a depth is good for, what it costs, and what an overload will do to it. It
// answers in numbers that carry their formula, and in sentences.
//
// # Where the numbers come from
//
// The derived depth is not computed here. An admission.Core is fed the quantiles
// of the service time and says in its Derivation what it would do in production:
// the same code, so a plan and a running limiter cannot disagree. The latencies
// under overload come from a short simulation of the same core (package sim), and
// what has a closed form from package theory. The rest is one multiplication each,
// and is written beside its result.
//
// # What it is not
//
// A plan believes what it is told about the service: its mean, its shape, its
// independence from load. Contention, garbage collection and a slow dependency are
// for simulate and for a load test. Every table of sensitivity says how far the
// answer moves when the service is not what was said.
package plan
