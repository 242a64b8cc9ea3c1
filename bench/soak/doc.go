// Package soak runs goodput serve for an hour at 1.2 times of what is behind it, while
// everything happens to it that happens to a proxy: its policy is changed, its clients
// reset, leave, dawdle and talk nonsense, the servers behind it are killed and started
// again. A Report says what was seen, and Judge whether it was as it must be: memory that
// does not grow, nothing left when nobody asks, counters that add up.
//
// Three kinds of processes on the loopback interface: goodput as it is built for users, two
// servers, which are this program in another role, and this program, which is the clients,
// whoever changes the policy, and the operator who reads /metrics.
//
// What keeps the verdict honest:
//
//   - Load is an open loop: when a request is due does not depend on the answers.
//   - All that is random, instants of the chaos too, follows from a seed that is printed.
//   - What the server counts is compared with three others that count apart: with itself (the
//     identity of docs/metrics.md, at each scrape), with its access log, line by line, and
//     with what the clients were told.
//   - A run without chaos certifies nothing: that it happened is a criterion of its own.
package soak
