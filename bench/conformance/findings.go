package conformance

// A finding is a failure that was looked up in the source of the version that go.mod names.
type finding struct {
	who   string // the name of a contestant
	check string
	race  bool   // a run may miss it: it needs two things to happen at once
	what  string // what is seen, in a sentence
	where string // file:line in the module of the contestant, or in this repository
}

// nobodys is what five contestants have in common: a slot is a number, and whoever gives one
// back too often gives back somebody else's. It is a misuse, which a slot with an owner ends.
const nobodys = "With both slots of 2 held, giving one of them back twice frees both, and a third caller runs: "

var limiterFindings = []finding{
	{who: "channel", check: "double-release", what: nobodys + "what is taken out of the channel is not the caller's own.", where: "bench/conformance/limiters.go, channel"},
	{who: "channel", check: "cancelled-before", what: "Half of the calls with a context that is over get a free slot: a select takes one of two cases that are ready at random.", where: "bench/conformance/limiters.go, channel"},
	{who: "channel", check: "deadline-waiting", race: true, what: "A caller that comes to the select only after its deadline has passed, and finds the slot free by then, gets it every other time.", where: "bench/conformance/limiters.go, channel"},
	{who: "x/sync", check: "double-release", what: nobodys + "Release panics only if more is given back than all together hold, which the documentation does not promise.", where: "semaphore/semaphore.go:131"},
	{who: "bulkhead", check: "panic", what: "An executor with a limit of 3 runs nothing any more after three functions have panicked: the release is in PostExecute, which is called after the function and not deferred.", where: "policy/policyexecutor.go:56, bulkhead/bulkheadexecutor.go:43"},
	{who: "bulkhead", check: "double-release", what: nobodys + "ReleasePermit receives from a channel whose values are nobody's.", where: "bulkhead/bulkhead.go:174"},
	{who: "bulkhead", check: "cancelled-before", what: "Half of the calls with a context that is over get a free slot: a select takes one of two cases that are ready at random.", where: "bulkhead/bulkhead.go:127"},
	{who: "bulkhead", check: "deadline-waiting", race: true, what: "A caller that comes to the select only after its deadline has passed, and finds the slot free by then, gets it every other time.", where: "bulkhead/bulkhead.go:127"},
	{who: "adaptive", check: "panic", what: "An executor with a limit of 3 runs nothing any more after three functions have panicked: the end of the slot follows the call of the function and is not deferred.", where: "adaptivelimiter/adaptiveexecutor.go:64"},
	{who: "adaptive", check: "double-release", what: nobodys + "Record and Drop of a slot that has ended release again.", where: "adaptivelimiter/adaptivelimiter.go:745, 570"},
	{who: "adaptive", check: "cancelled-before", what: "Every call with a context that is over gets a free slot: the context is looked at only by those that wait.", where: "internal/util/semaphore.go:36"},
	{who: "adaptive", check: "deadline-waiting", race: true, what: "A caller whose deadline has passed gets the slot if it comes free before the goroutine has woken up: the error is dropped then.", where: "internal/util/semaphore.go:103"},
	{who: "go-zero", check: "double-release", what: nobodys + "Return says so only if more is given back than all together hold.", where: "core/syncx/limit.go:30"},
}

var handlerFindings = []finding{
	{who: "channel", check: "deadline-waiting", race: true, what: "A request that comes to the select only after its deadline has passed, and finds the slot free by then, is run every other time.", where: "bench/conformance/handlers.go, channelHTTP"},
	{who: "chi", check: "deadline-waiting", race: true, what: "A request whose deadline passes on its way to the place that came free is run: at the first try for a place the context is not asked, and later the select takes either.", where: "middleware/throttle.go:95, 116"},
	{who: "bulkhead", check: "panic", what: "With a limit of 4 nobody is let in any more after four handlers have panicked; net/http recovers such a panic, so the server goes on and refuses everything.", where: "policy/policyexecutor.go:56, bulkhead/bulkheadexecutor.go:43"},
	{who: "bulkhead", check: "deadline-waiting", what: "Requests whose context is over go on waiting and are run when a slot comes free: the executor is not given the context of the request.", where: "failsafehttp/server.go:29"},
	{who: "bulkhead", check: "client-abort", what: "A request whose client has left while it waited is run, for the same reason.", where: "failsafehttp/server.go:29"},
	{who: "adaptive", check: "panic", what: "With a limit of 4 nobody is let in any more after four handlers have panicked; net/http recovers such a panic, so the server goes on and refuses everything.", where: "adaptivelimiter/adaptiveexecutor.go:64"},
	{who: "adaptive", check: "deadline-waiting", what: "Requests whose context is over go on waiting and are run when a slot comes free: the executor is not given the context of the request.", where: "failsafehttp/server.go:29"},
	{who: "adaptive", check: "client-abort", what: "A request whose client has left while it waited is run, for the same reason.", where: "failsafehttp/server.go:29"},
}

// find returns the finding about one cell.
func find(all []finding, who, check string) (finding, bool) {
	for _, f := range all {
		if f.who == who && f.check == check {
			return f, true
		}
	}
	return finding{}, false
}
