package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/flags"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/internal/sim"
)

// A Criterion is what is expected of a policy, one line of expect:
//
//	POLICY[.SCOPE].METRIC OP VALUE
//	POLICY[.SCOPE].METRIC between VALUE and VALUE
//
// SCOPE is a class, a tier, a group or a tenant, in this order if they are called alike, METRIC a name of the table in metric.go, OP one of
// >=, <=, >, < and ==. The value has the unit of the metric.
type Criterion struct {
	Text   string // as written
	Policy string // the Name of a Compared
	Scope  string // the name of a class, a tier or a tenant; "" is all of it
	Metric string

	low, high float64 // both are allowed values; infinite where there is no bound
	strict    bool    // they are not
	read      func(*sim.Result) (v float64, ok bool)
	unit      unit
}

// A Verdict is whether a criterion held.
type Verdict struct {
	Criterion
	Holds bool
	Worst string // the value farthest off, over the runs, as a person writes it; "none" if there was none
	Seed  uint64 // of the run that had it
}

// String is the verdict in one line: "failed: goodput.p99 <= 400ms (612ms, seed 3)".
func (v Verdict) String() string {
	word := "failed"
	if v.Holds {
		word = "held"
	}
	return fmt.Sprintf("%s: %s (%s, seed %d)", word, v.Text, v.Worst, v.Seed)
}

// Judge says of each criterion whether it held in every run of its policy. A run
// belongs to the policy that Result.Policy names. A criterion whose policy was not
// run does not hold, nor does one about a number that there was none of, such as
// the median of nothing.
func (f *File) Judge(runs []*sim.Result) []Verdict {
	verdicts := make([]Verdict, len(f.Expect))
	for i, c := range f.Expect {
		verdicts[i] = c.judge(runs)
	}
	return verdicts
}

func (c Criterion) judge(runs []*sim.Result) Verdict {
	v := Verdict{Criterion: c, Worst: "none"}
	worst := math.Inf(-1)
	for _, r := range runs {
		if r.Policy != c.Policy {
			continue
		}
		value, ok := c.read(r)
		if !ok || math.IsNaN(value) {
			v.Holds, v.Worst, v.Seed = false, "none", r.Seed
			return v
		}
		// How far it is outside; negative inside. Of an infinite bound it is -Inf.
		if off := max(c.low-value, value-c.high); v.Worst == "none" || off > worst {
			worst, v.Worst, v.Seed = off, c.unit.format(value), r.Seed
		}
	}
	v.Holds = v.Worst != "none" && (worst < 0 || worst == 0 && !c.strict)
	return v
}

// criterion parses one line of expect.
func (r *reader) criterion(n strictyaml.Node) (c Criterion, ok bool) {
	text := n.Text(200)
	if text == "" {
		return c, false
	}
	words := strings.Fields(text)
	between := len(words) == 5 && words[1] == "between" && words[3] == "and"
	if !between && (len(words) != 3 || words[1] == "between") {
		n.Fail("expect %q is not understood: for example goodput.ratio >= 0.99, or fifo.in_time between 565 and 600", text)
		return c, false
	}
	c.Text = strings.Join(words, " ")
	if !r.subject(&c, n, words[0]) {
		return c, false
	}
	value, err := c.unit.parse(words[2])
	if err != nil {
		n.Fail("%s in %q: %v", c.Metric, text, err)
		return c, false
	}
	c.low, c.high = math.Inf(-1), math.Inf(1)
	switch op := words[1]; op {
	case ">=", ">":
		c.low, c.strict = value, op == ">"
	case "<=", "<":
		c.high, c.strict = value, op == "<"
	case "==":
		c.low, c.high = value, value
	case "between":
		c.low = value
		if c.high, err = c.unit.parse(words[4]); err != nil {
			n.Fail("%s in %q: %v", c.Metric, text, err)
			return c, false
		}
		if c.low > c.high {
			n.Fail("expect %q holds for nothing: %s is more than %s", text, words[2], words[4])
			return c, false
		}
	default:
		n.Fail("%q in %q is unknown: >=, <=, >, <, == or between ... and ...", op, text)
		return c, false
	}
	return c, true
}

// subject parses POLICY[.SCOPE].METRIC.
func (r *reader) subject(c *Criterion, n strictyaml.Node, text string) bool {
	parts := strings.Split(text, ".")
	if len(parts) < 2 || len(parts) > 3 {
		n.Fail("%q is not understood: a policy and a metric, such as goodput.ratio, or with a class or tier between them", text)
		return false
	}
	c.Policy, c.Metric = parts[0], parts[len(parts)-1]
	if len(parts) == 3 {
		c.Scope = parts[1]
	}
	if !r.isCompared(c.Policy) {
		n.Fail("policy %q is not compared%s", c.Policy, strictyaml.Unknown(c.Policy, r.labels()))
		return false
	}
	m, known := metrics[c.Metric]
	if !known {
		n.Fail("metric %q is unknown%s", c.Metric, strictyaml.Unknown(c.Metric, metricNames()))
		return false
	}
	c.unit = m.unit
	class, tier, group := r.classIndex(c.Scope), r.tierIndex(c.Scope), r.groupIndex(c.Scope)
	switch {
	case c.Scope == "" && m.all != nil:
		c.read = m.all
	case c.Scope == "" && m.tally != nil:
		c.read = func(r *sim.Result) (float64, bool) { return m.tally(&r.Total) }
	case c.Scope == "" && m.group != nil:
		c.read = m.mostUsed
	case c.Scope == "":
		c.read = func(r *sim.Result) (float64, bool) { return m.most(r.Tiers) }
	case class >= 0 && m.tally != nil:
		c.read = func(r *sim.Result) (float64, bool) { return m.tally(&r.Classes[class]) }
	case tier >= 0 && m.tier != nil:
		c.read = func(r *sim.Result) (float64, bool) { return m.tier(&r.Tiers[tier]), true }
	case group >= 0 && m.group != nil:
		c.read = func(r *sim.Result) (float64, bool) { return m.group(r, &r.Groups[group]) }
	case class < 0 && tier < 0 && group < 0 && !r.isTenant(c.Scope):
		n.Fail("%q in %q is neither a class nor a tier nor a group nor a tenant", c.Scope, text)
		return false
	case class < 0 && tier < 0 && group < 0 && m.tally != nil:
		scope := c.Scope
		c.read = func(r *sim.Result) (float64, bool) { return ofTenant(r, scope, m.tally) }
	default:
		n.Fail("%s is %s: %q is none", c.Metric, m.whose(), c.Scope)
		return false
	}
	return true
}

// A unit is how the values of a metric are written.
type unit uint8

const (
	count  unit = iota // requests
	share              // 0 to 1
	span               // in seconds, written as a duration
	size               // bytes
	rate               // per second
	factor             // of another number, 0 and more
)

func (u unit) parse(text string) (float64, error) {
	switch u {
	case span:
		d, err := strictyaml.ParseSpan(text, 0, month)
		return d.Seconds(), err
	case size:
		if text == "0" {
			return 0, nil
		}
		var s flags.Size
		err := s.UnmarshalText([]byte(text))
		return float64(s), err
	case rate:
		return strictyaml.ParseRate(text)
	case count:
		v, err := strconv.ParseUint(text, 10, 53) // exact in a float64
		if err != nil {
			return 0, fmt.Errorf("%q is not a whole number", text)
		}
		return float64(v), nil
	case factor:
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0 && v <= 1e9) {
			return 0, fmt.Errorf("%q is not a number, such as 1.1", text)
		}
		return v, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= 2) {
		return 0, fmt.Errorf("%q is not a share, such as 0.99", text)
	}
	return v, nil
}

func (u unit) format(v float64) string {
	switch u {
	case span:
		return strictyaml.Short(time.Duration(v * float64(time.Second)).Round(10 * time.Microsecond))
	case share, factor:
		return strconv.FormatFloat(v, 'f', 4, 64)
	case rate:
		return strconv.FormatFloat(v, 'f', 1, 64) + "/s"
	case size:
		return strconv.FormatFloat(v, 'f', 0, 64) + "B"
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}
