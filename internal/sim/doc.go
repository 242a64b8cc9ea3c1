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
// way. It ends in time, or late, or refused, and its client may send it again.
//
//	class -> [limiter of an instance] -> [resource: slots, speed, contention] -> next tier
//
// Time is an integer number of nanoseconds since the start. Events of the same
// instant happen in the order in which they were scheduled. All randomness comes
// from the seed: one stream for the arrivals of each class, one for their work, one
// for what clients do, so that two policies meet the same arrivals with the same
// work. One seed gives one Result, bit by bit, on one GOARCH and Go version; on
// another the mathematics of package math may round otherwise.
//
// Memory is constant: it grows with what is in the system at once, not with the
// number of requests. Latencies are kept in histograms of eight buckets an octave,
// whose quantiles are within 2 % where the distribution is smooth.
//
// # What it is not
//
// The service time of a request is settled when it starts: contention looks at the
// concurrency of that instant. There is no CPU, no network and no scheduler. What a
// simulation says of a real service is as good as the service times put into it:
// take them from a log.
package sim
