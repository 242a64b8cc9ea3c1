package fleet

import (
	"cmp"
	"fmt"
	"strconv"
)

// A Claim is what a deployment asks of one resource: its own limits, however they were set.
type Claim struct {
	Resource  string // its name in sentences. Default "the resource"
	Units     int    // what it has, as the connections of a database: 1 to 2^20. Required
	Reserve   int    // of these, kept for others: 0, the default, to Units - 1
	Limit     int    // of each process: 0 to 2^20
	Instances int    // the most replicas that the autoscaler may run: 1 to 2^14. Required
	Surge     int    // how many more run in a rolling update: 0, the default, to 1024
	Workers   int    // processes of each instance with a limiter of their own: 1 to 1024. Default 1
}

// Validate returns one sentence about the first field that is out of range or contradicts
// another, or nil.
func (c Claim) Validate() error {
	if err := (Split{Budget: c.Units, Reserve: c.Reserve, Surge: c.Surge}).Validate(); err != nil {
		return err
	}
	if c.Limit < 0 || c.Limit > MaxBudget {
		return fmt.Errorf("a limit of %d for each process is out of range: 0 to %d", c.Limit, MaxBudget)
	}
	return Place{Count: c.Instances, Workers: c.Workers}.Validate()
}

// Check returns a sentence with its arithmetic for each way in which the limits of a
// deployment compose into an overload of what is behind them, or leave most of it unused;
// none if they fit. A Claim that is invalid is one sentence. They are warnings: what to do
// about them is in the sentence.
func Check(c Claim) []string {
	if err := c.Validate(); err != nil {
		return []string{err.Error()}
	}
	c.Workers = max(c.Workers, 1)
	units := c.Units - c.Reserve
	processes := (c.Instances + c.Surge) * c.Workers
	steady := c.Instances * c.Workers * c.Limit
	peak := processes * c.Limit
	each := units / processes
	switch {
	case each == 0:
		return []string{fmt.Sprintf("%s = %s processes > %s: not even 1 each, so run fewer or put a pooler between",
			c.factors(c.Surge > 0, false), number(processes), c.has())}
	case steady > units:
		return []string{fmt.Sprintf("%s = %s > %s: at most %s each",
			c.factors(c.Surge > 0, true), number(peak), c.has(), number(each))}
	case peak > units:
		return []string{fmt.Sprintf("%s = %s fit, but %s = %s in a rolling update > %s: at most %s each",
			c.factors(false, true), number(steady), c.factors(true, true), number(peak), c.has(), number(each))}
	case c.Limit == 0:
		return []string{fmt.Sprintf("a limit of 0 refuses everything: up to %s each fit %s", number(each), c.has())}
	case 2*peak <= units:
		// Half is a matter of taste: what a rolling update needs is in the peak already.
		return []string{fmt.Sprintf("%s = %s leave half of %s or more unused: up to %s each fit",
			c.factors(c.Surge > 0, true), number(peak), c.has(), number(each))}
	}
	return nil
}

// factors are the numbers that are multiplied.
func (c Claim) factors(surge, limit bool) string {
	s := number(c.Instances)
	if surge {
		s = fmt.Sprintf("(%s + %s)", s, number(c.Surge))
	}
	if s == "1" {
		s += " instance"
	} else {
		s += " instances"
	}
	if c.Workers > 1 {
		s += fmt.Sprintf(" x %s workers", number(c.Workers))
	}
	if limit {
		s += " x " + number(c.Limit)
	}
	return s
}

// has is what there is to share.
func (c Claim) has() string {
	name := cmp.Or(c.Resource, "the resource")
	if c.Reserve == 0 {
		return fmt.Sprintf("the %s of %s", number(c.Units), name)
	}
	return fmt.Sprintf("the %s of %s (%s less %s for others)", number(c.Units-c.Reserve), name, number(c.Units), number(c.Reserve))
}

// number writes n, which is not negative, with a comma between thousands.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
