package sim

// Ceilings are what no policy can exceed, beside a result. Each is a goodput
// ratio, in units of Result.Ratio, or 0 with the reason in Missing.
type Ceilings struct {
	// NoQueue is what refusing at once reaches with Poisson arrivals: 1 - B, by
	// Erlang's loss formula, as a ratio. It is a floor for anybody with a queue.
	NoQueue float64

	// SizeAware is the fluid bound: only the shortest requests are served, as many
	// as fit.
	SizeAware float64

	// Clairvoyant is the most that anybody who knew every arrival and its work
	// could serve in time, of the first Jobs arrivals, on one server as fast as all
	// slots together.
	Clairvoyant float64
	Jobs        int

	// Missing says why a ceiling is 0, in one sentence each.
	Missing []string
}
