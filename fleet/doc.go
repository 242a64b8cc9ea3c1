// Package fleet splits the budget of one resource, as the 200 connections of a database,
// between the processes that use it, so that their limits never add up to more.
//
// Fifty instances that are each limited to 20 have 1,000 in flight before a database that is
// sized for 200: limits that are right for each process compose into an overload. [Check]
// says so in a sentence, from the numbers of the deployment.
//
// This package is the static split: each process computes its share from how many there
// are, and nobody asks anybody. There are three ways to use it, from the simplest:
//
//   - The number is known and fixed, as the most replicas that there may be plus those of a
//     rolling update: Config.Limit is limit.Fixed(split.Share(place)), and nothing else is
//     needed.
//   - The number changes, and the budget has room for those that come and go within a
//     minute: Split.Surge keeps that room free, and a [Share] follows the number.
//   - The number changes, and no room is to be kept free: a Share with no Surge shrinks at
//     once when somebody comes, and grows, or starts, only after Split.Settle.
//
// # What it wastes
//
// An instance cannot use what others leave. At 70 % load, 43 % of the requests find the 4
// connections of their instance taken, where 200 are split in 50; 13 % find 16 taken, and of
// one pool of 200 fewer than one in 100,000 (Erlang C). So put a queue before each share,
// which a goodput.Limiter is, balance the requests well, and run fewer and larger instances.
// With fewer than 8 units for each process a limiter has too few slots to keep its promises
// without tuning; then use something else: a lease by demand, where processes take units
// from a shared store (Redis) for as long as they need them, a pooler between (PgBouncer),
// or a limit that adapts and needs no number. Those find what is free; this one
// needs no network, has no store to fail, and is exact.
//
// The shares are of whole units of cost. What counts is the limit of each process; who
// waits there is served by its own queue and moves to no other.
package fleet
