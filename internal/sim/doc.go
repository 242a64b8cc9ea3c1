// Package sim plays a service under load in virtual time. It drives the
// admission core itself, not a model of it: what a simulation decides is what
// production decides, because it is the same code. Other people's disciplines, as
// baselines, stand in the same place and meet the same arrivals and the same work.
//
// # The model
//
// A Scenario has classes of clients and tiers. A request of a Class arrives at a
// Tier and meets the limiter of one of its instances, a Policy. Admitted, it holds
// its slot while the resource of the tier, which all instances share, does its
// work, and while the sub-requests that it then sends to another tier are under
// way. It ends in time, or late, or refused, or failed, and its client may send it again,
// as a tier may its sub-requests; or it was kept at home, and nobody was asked.
//
//	class -> [limiter of an instance] -> [resource: slots, speed, contention, faults] -> next tier
//
// Whether and when a call is sent again, or not sent at all, package attempts decides, as
// it does in package retry. What the core hears of a slot that waits for sub-requests is
// how long it was held, and how much of it was elsewhere: in something that limits what it
// takes. Where the next tier has no limiter, all of it is the slot's own.
//
// A class is one tenant, or many, of whom each request is one: evenly, by Zipf, or a new
// one each time, which is an attack. So it is with users, whose cohort the core is told,
// and with keys. What the core hears of the cost and the size of a request may be wrong,
// and is put right at the end. Baselines hear the same, and look at cost alone.
//
// Time is an integer number of nanoseconds since the start. Of what happens at the same
// instant, arrivals come first, then the rest in the order in which it was scheduled. All
// randomness comes from the seed: one stream for the arrivals of each class, one for their
// work, one for the faults of each tier, one for what clients do, so that two policies meet
// the same arrivals with the same work; sub-requests draw theirs in the order in which they
// are sent, which a policy does change. One seed gives one Result, bit by bit, on one GOARCH
// and Go version; on another the mathematics of package math may round otherwise.
//
// Memory does not grow with the number of requests, but with those that are in the
// system at once, and with the alarms and deadlines, not yet passed, of those that
// have left it. A baseline keeps whom it never takes out of its queue: newest first
// without a bound, as codel is, buries the oldest for ever, and an unbounded queue
// under an overload grows as it does in a service. Latencies are kept in histograms of
// eight buckets an octave (package hist): the count above the bound of a bucket is
// exact, a quantile is within 1 % where the distribution is smooth, and within a
// bucket, 9.1 %, whatever it is.
//
// # Use
//
// Run plays a Scenario; the zero value of each field is its stated default. Compare
// policies with Scenario.With and one seed; average over seeds before saying that one
// is better by a percent. Scenario.Ceilings says what was possible. Nothing here is
// kept between runs, so runs may go on at once, each with a trace of its own.
//
// # What it is not
//
// The work of a request is settled when it starts: contention looks at the
// concurrency of that instant, though a stall or a change of speed is felt by what is
// under way. The capacity is that of the resources; the slots of limiters that are
// kept during sub-requests may be the narrower bound. There is no CPU, no network and no scheduler. What a
// simulation says of a real service is as good as the service times put into it:
// take them from a log.
package sim
