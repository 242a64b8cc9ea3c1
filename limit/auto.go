package limit

import "fmt"

// Auto is the law of a limit that finds itself: the default of most limiters, since nothing
// needs to be tuned. The zero value is right for a resource whose size nobody knows and that
// nobody else uses.
//
// # How
//
// It holds a belief, a probability of each capacity, and runs blocks of work at slightly different
// limits: if the mean time of a block rises in proportion to what was in flight, the capacity
// is below both, and if it does not, above. The limit is a quantile of that belief and, in
// turns and in random order, a limit a little above. So it needs no baseline: no shortest
// time ever seen, which a service time that varies makes far too low, and no mean of the past,
// which learns an overload. A dependency that becomes slower is told apart from a queue because
// the limit keeps moving. See belief.go for the arithmetic.
//
// What it is told are service times: without the queue in front of the limiter, without the time
// downstream, and not of what failed. It is asked once a window and acts once a block: at least 6
// admissions, a mean service time, and as many as the service varies (see auto_state.go).
// Where fewer than 30 % of what arrives has to wait the limit stays as it is: nothing says that
// it is wrong, and a burst after idle finds what was learnt before. What the resource refuses,
// callers that leave before they are served, and a process short of processors lower it.
//
// # What to expect
//
// From cold it begins at 20 and doubles about three times a second as long as the time does
// not rise: 60 slots of 50 ms are found within half a second. It settles 5 to 15 % above the
// capacity, and a slot or two above that of a few, because a limit that is too low loses goodput in
// proportion, and one that is too high costs that much of a service time. It deviates by 6
// to 10 % of its mean, by design; by more at 4 slots and fewer, where a step is a whole slot. A
// capacity that falls to a third is followed within a second or two, one that returns within
// one. It tells capacities up to 12,000. `goodput simulate --suite adaptive` shows it beside others.
//
// # When not
//
// Where the size of a resource is known and stays (connections of a database, workers of a
// pool) Fixed is better by a percent or so, and cannot be wrong. Where others use the resource
// too, say Shared: a limiter that does a fiftieth of the work cannot see its own effect, and
// without Shared 50 of them go ten times over what the resource can do. Better than either is a
// share of a known budget: package fleet.
//
// It is wrong where what it sees does not depend on what it does. Service times that alternate with
// a period of a second or two fall into step with its comparisons, and it loses a third of the goodput; where 1 or
// 2 % of the work takes 500 times as long as the rest, or 99 % of it is answered by a cache beside the slots, the mean
// says little, and the limit wanders or runs off. Give such kinds of work limiters of their own. A service
// that becomes five times slower in the middle of a cold start may be held for 30 s.
type Auto struct {
	// From is the limit before anything has been measured: 1 to Max, default 20, or 4 if
	// Shared. The first From requests are admitted at once, so a large one is felt: 1000 in
	// front of 60 slots of 50 ms take .8 s to be served.
	From int

	// Min and Max are what the limit stays within: 1 to limit.Max, defaults 1 and 10,000. Min
	// is what is admitted whatever happens, to find out when it is over.
	Min, Max int

	// Shared says that many others use the resource as well. The limit then rises slowly, and falls when
	// the shortest service times show a queue in the resource, as those of the others do: 50
	// instances over 200 slots keep 250 to 340 in flight between them, most of them between a half and two
	// and a half of a fair share. It is knowledge about the resource, and no tuning. With few
	// instances, or one, and service times that vary, the limit stays far below what there is.
	Shared bool
}

const (
	autoFrom   = 20
	sharedFrom = 4
	autoMax    = 10_000
)

func (a Auto) withDefaults() Auto {
	from := autoFrom
	if a.Shared {
		from = sharedFrom
	}
	if a.Min == 0 {
		a.Min = 1
	}
	if a.Max == 0 {
		a.Max = max(autoMax, a.Min, a.From)
	}
	if a.From == 0 {
		a.From = min(max(from, a.Min), a.Max)
	}
	return a
}

// Start returns the limit before anything has been measured.
func (a Auto) Start() (int, error) {
	for _, f := range []struct {
		name string
		n    int
	}{{"from", a.From}, {"min", a.Min}, {"max", a.Max}} {
		if f.n < 0 || f.n > Max {
			return 0, fmt.Errorf("%s %d of the auto limit is out of range: 1 to %d, or 0 for the default", f.name, f.n, Max)
		}
	}
	d := a.withDefaults()
	switch {
	case d.Min > d.Max:
		return 0, fmt.Errorf("min %d of the auto limit is above its max %d", d.Min, d.Max)
	case d.From < d.Min || d.From > d.Max:
		return 0, fmt.Errorf("from %d of the auto limit is not within its min and max, %d to %d", d.From, d.Min, d.Max)
	}
	return d.From, nil
}

// String returns "auto", and what was said to be other than the default.
func (a Auto) String() string {
	s := ""
	for _, f := range []struct {
		name string
		n    int
	}{{"from", a.From}, {"min", a.Min}, {"max", a.Max}} {
		if f.n != 0 {
			s += fmt.Sprintf(", %s %d", f.name, f.n)
		}
	}
	if a.Shared {
		s += ", shared"
	}
	if s == "" {
		return "auto"
	}
	return "auto(" + s[2:] + ")"
}
