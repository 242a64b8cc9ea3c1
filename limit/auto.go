package limit

import "fmt"

// Auto is the law of a limit that finds itself. Nothing needs to be tuned; the zero value
// is right for a resource whose size nobody knows.
type Auto struct {
	// From is the limit before anything has been measured: 1 to Max, default 20.
	From int

	// Min and Max are what the limit stays within: 1 to Max, defaults 1 and 10,000.
	Min, Max int
}

const (
	autoFrom = 20
	autoMax  = 10_000
)

func (a Auto) withDefaults() Auto {
	if a.Min == 0 {
		a.Min = 1
	}
	if a.Max == 0 {
		a.Max = max(autoMax, a.Min, a.From)
	}
	if a.From == 0 {
		a.From = min(max(autoFrom, a.Min), a.Max)
	}
	return a
}

// Start returns the limit before anything has been measured.
func (a Auto) Start() (int, error) {
	for _, f := range []struct {
		name string
		n    int
	}{{"start", a.From}, {"min", a.Min}, {"max", a.Max}} {
		if f.n < 0 || f.n > Max {
			return 0, fmt.Errorf("%s %d of the auto limit is out of range: 1 to %d, or 0 for the default", f.name, f.n, Max)
		}
	}
	d := a.withDefaults()
	switch {
	case d.Min > d.Max:
		return 0, fmt.Errorf("min %d of the auto limit is above its max %d", d.Min, d.Max)
	case d.From < d.Min || d.From > d.Max:
		return 0, fmt.Errorf("start %d of the auto limit is not within its min and max, %d to %d", d.From, d.Min, d.Max)
	}
	return d.From, nil
}

// String returns "auto".
func (a Auto) String() string { return "auto" }
