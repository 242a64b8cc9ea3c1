package limit

// A Bounded is a Law that knows what its limits stay within. A limit that stands at the lower
// bound while more is asked for is not adapting, and one at the upper bound may not be high
// enough: whoever watches a limiter wants both beside the limit. It is optional, since a law
// may have no bounds of its own.
type Bounded interface {
	Law

	// Bounds returns the least and the largest limit, in units of cost, of a law whose Start
	// has no error. Both are equal where the law never moves it.
	Bounds() (low, high int)
}

// Bounds returns what the limits of law stay within, in units of cost: what it says itself, or
// 1 to Max, as the core takes no law's limit to 0.
func Bounds(law Law) (low, high int) {
	if b, ok := law.(Bounded); ok {
		return b.Bounds()
	}
	return 1, Max
}

// Bounds returns the limit itself, twice.
func (f Fixed) Bounds() (low, high int) { return int(f), int(f) }

// Bounds returns Min and Max with their defaults.
func (a Auto) Bounds() (low, high int) { a = a.withDefaults(); return a.Min, a.Max }

// Bounds returns Min and Max with their defaults.
func (a AIMD) Bounds() (low, high int) { a = a.withDefaults(); return a.Min, a.Max }

// Bounds returns Min and Max with their defaults.
func (v Vegas) Bounds() (low, high int) { v = v.withDefaults(); return v.Min, v.Max }

// Bounds returns Min and Max with their defaults.
func (g Gradient2) Bounds() (low, high int) { g = g.withDefaults(); return g.Min, g.Max }
