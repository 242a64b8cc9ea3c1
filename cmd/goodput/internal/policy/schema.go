package policy

import (
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/cmd/goodput/internal/keys"
	"github.com/goodput/goodput/limit"
)

// Keys are the keys that Read and ReadDeadlines know, as a schema; what stands under a
// name of Definitions is referred to.
func Keys() []keys.Key {
	return []keys.Key{
		{Name: "limit", Value: keys.Default(keys.Ref("limit", "Units of cost that run at once: a number that you know, or auto, which finds it."), "auto")},
		{Name: "objective", Value: keys.Default(keys.Duration("Latency, from arrival to end, that the percentile of the admitted requests must meet. It sizes the queue and is no deadline.", shortest, longest), "1s")},
		{Name: "percentile", Value: keys.Default(keys.Number("What part of the admitted requests must meet the objective.", minPercentile, maxPercentile), 0.99)},
		{Name: "service", Value: keys.Duration("Mean service time, if known: it counts until there are samples, and measured times more than 25 % away from it are flagged. Without it a tenth of the objective is taken at first.", 1, longest)},
		{Name: "depth", Value: keys.Default(keys.Whole("Units of cost that may wait. Do not set it without a reason: a fixed depth is right for one service time.", 1, maxItems, "none", "derived"), "derived")},
		{Name: "max_waiting", Value: keys.Default(keys.Whole("Requests that may wait, whatever they cost.", 1, maxItems), admission.DefaultMaxItems)},
		{Name: "max_queue_bytes", Value: keys.Default(keys.Size("Request bodies held in memory by those that wait."), "64MiB")},
		{Name: "max_wait", Value: keys.Duration("Longest wait of a request without a deadline. Without it the objective.", shortest, longest)},
		{Name: "overflow", Value: keys.Default(keys.Word("What happens when the queue is full: displace what ranks lowest, refuse the newest, evict the oldest, block until there is room, or keep the latest per key.", overflows...), overflows[0])},
		{Name: "order", Value: keys.Default(keys.Word("Who is next: auto is first come first served, and newest first, or earliest deadline first, in a standing overload.", orders...), orders[0])},
		{Name: "durable", Value: keys.Bool("What was accepted is not dropped to make room: overflow is then block or refuse_newest.")},
		{Name: "allowance", Value: keys.Either("Cost per second that all requests together may have beside the limit: for somebody else's API that takes so many calls. none takes it back.", keys.Ref("quota", ""), keys.Word("", "none"))},
		{Name: "tenants", Value: keys.Ref("tenants", "Shares of those who send requests. none takes them back.")},
		{Name: "reserve", Value: keys.Either("Part of what is granted that is left to each priority while those above want all; together at most 1, and those below critical at most 32/33. none takes it back.", reserveSchema(), keys.Word("", "none"))},
		{Name: "exempt", Value: keys.Default(keys.Whole("Probes in flight that are neither limited nor counted; beyond that they are requests like others.", 1, maxExempt), admission.DefaultExempt)},
		{Name: "deadline", Value: keys.Duration("Deadline of a request that brings none. Without it deadline_cap, or none. Under defaults it is not for streams and connections.", shortest, longest, "none")},
		{Name: "deadline_cap", Value: keys.Duration("The longest deadline there is; a request that brings none has this one. Without it any. Under defaults it is not for streams and connections, which idle and total bound.", shortest, longest, "none")},
	}
}

// Definitions are the parts that several keys have.
func Definitions() map[string]*jsonschema.Schema {
	return map[string]*jsonschema.Schema{
		"limit": limitSchema(),
		"quota": keys.Either("A rate, or a rate with a burst.", keys.Rate(""), keys.Object("", 1,
			keys.Key{Name: "rate", Value: keys.Rate("Units of cost per second, 0.000001/s to 1000000000/s.")},
			keys.Key{Name: "burst", Value: keys.Number("Units of cost at once. Without it one second of the rate.", 1, maxRate)},
		)),
		"tenants": keys.Either("", keys.List("Those that are known by name.", maxRows, rowSchema()), keys.Word("", "none"), keys.Object("", 0,
			keys.Key{Name: "rows", Value: keys.List("Those that are known by name.", maxRows, rowSchema())},
			keys.Key{Name: "others", Value: keys.Object("What each of the others has.", 0, tenantKeys()...)},
			keys.Key{Name: "buckets", Value: keys.Default(keys.Whole("Queues of the others, who are hashed into them.", 1, maxBuckets), admission.DefaultBuckets)},
			keys.Key{Name: "hand", Value: keys.Default(keys.Whole("Buckets of which one of the others takes the shortest.", 1, maxHand), admission.DefaultHand)},
		)),
	}
}

func rowSchema() *jsonschema.Schema {
	return keys.Object("", 1, append([]keys.Key{{Name: "id", Value: keys.Text("Who it is, as the tenant of the class says it: at most 128 bytes.", "")}}, tenantKeys()...)...)
}

func tenantKeys() []keys.Key {
	return []keys.Key{
		{Name: "weight", Value: keys.Default(keys.Number("Share beside the weights of others, of which none is more than a million times another.", minWeight, maxWeight), 1)},
		{Name: "max_in_use", Value: keys.Whole("Most of the limit that one may have. Without it all of it.", 1, limit.Max)},
		{Name: "max_queue", Value: keys.Part("Most of the queue that one may have, 0.0001 or more. Without it all of it.")},
		{Name: "quota", Value: keys.Ref("quota", "Cost per second that one may have.")},
		{Name: "highest", Value: keys.Word("Highest priority that one may ask for; what is above counts as that.", priorities...)},
	}
}

func reserveSchema() *jsonschema.Schema {
	var all []keys.Key
	for _, p := range priorities {
		all = append(all, keys.Key{Name: p, Value: keys.Part("Part that is left to what is " + p + ".")})
	}
	return keys.Object("", 0, all...)
}

// limitSchema is a number, a law, or a law with its constants.
func limitSchema() *jsonschema.Schema {
	span := func(about string) *jsonschema.Schema { return keys.Duration(about, shortest, lawSpell) }
	window := func() keys.Key {
		return keys.Key{Name: "window", Value: keys.Default(keys.Duration("Between two moves.", lawWindow, lawSpell), "1s")}
	}
	law := func(name string, more ...keys.Key) *jsonschema.Schema {
		all := []keys.Key{
			{Name: "law", Value: keys.Word("", name)},
			{Name: "from", Value: keys.Whole("Where the limit begins.", 1, limit.Max)},
			{Name: "min", Value: keys.Whole("Lowest limit.", 1, limit.Max)},
			{Name: "max", Value: keys.Whole("Highest limit.", 1, limit.Max)},
		}
		return keys.Object("", 1, append(all, more...)...)
	}
	return keys.Either("A number, a law by its name, or a law with its constants.",
		keys.Whole("", 1, limit.Max), keys.Word("", LawNames()...),
		law("auto", keys.Key{Name: "shared", Value: keys.Bool("Others send to the service as well: begin low, rise slowly, fall when the fastest answers show a queue there.")}),
		law("aimd",
			keys.Key{Name: "backoff", Value: keys.Default(keys.Number("Factor of a fall.", 0.5, 0.99), 0.9)},
			keys.Key{Name: "timeout", Value: span("Service time that counts as a drop.")}, window()),
		law("vegas",
			keys.Key{Name: "alpha", Value: keys.Default(keys.Number("Decades of queue below which the limit rises.", 0.1, 100), 3)},
			keys.Key{Name: "beta", Value: keys.Default(keys.Number("Decades of queue above which it falls: alpha or more.", 0.1, 100), 6)},
			keys.Key{Name: "smoothing", Value: keys.Default(keys.Number("How much of a move is made.", 0.01, 1), 1)},
			keys.Key{Name: "probe", Value: keys.Default(keys.Whole("Seconds per unit of the limit after which the shortest time is measured anew.", 1, lawWhole), 30)}, window()),
		law("gradient2",
			keys.Key{Name: "queue", Value: keys.Default(keys.Whole("How much it adds.", 1, lawWhole), 4)},
			keys.Key{Name: "tolerance", Value: keys.Default(keys.Number("Rise of service times that is passed over.", 1, 100), 1.5)},
			keys.Key{Name: "smoothing", Value: keys.Default(keys.Number("How much of a move is made.", 0.01, 1), 0.2)},
			keys.Key{Name: "long", Value: keys.Default(keys.Whole("Samples of the long average.", 10, lawWhole), 600)},
			keys.Key{Name: "drift", Value: keys.Default(keys.Number("Factor of the long average while it is above twice the mean.", 0.1, 1), 0.95)}, window()),
	)
}
