package figures

import (
	"fmt"
	"strings"

	"github.com/goodput/goodput/bench/figures/passes"
)

// A rival is who is measured, in words.
type rival struct {
	name   string
	module string // whose version is said
	setup  string
	why    string
}

const (
	modXSync    = "golang.org/x/sync"
	modFailsafe = "github.com/failsafe-go/failsafe-go"
	modAegis    = "github.com/go-kratos/aegis"
	modGoZero   = "github.com/zeromicro/go-zero"
)

// hotRivals are the contestants of the benchmarks in process.
var hotRivals = []rival{
	{"goodput", "", "Limit: limit.Fixed(60), Objective: 400ms", "the README's first example, every default"},
	{"goodput-deadline", "", "the same, the context has a deadline", "what a server hands on; it is always timed"},
	{"goodput-work", "", "the same, AcquireWork with cost, bytes and priority", "all that a request can say of itself"},
	{"goodput-auto", "", "Limit: limit.Auto{From: 60}, Pressure: pressure.Largest of Scheduler and CGroup", "as goodput serve has it by default"},
	{"xsync", modXSync, "semaphore.NewWeighted(60), Acquire", "as its example has it: FIFO, an unbounded queue, no clock"},
	{"xsync-deadline", modXSync, "the same, the context has a deadline", ""},
	{"channel", "", "make(chan struct{}, 60), a select on the context", "the semaphore of Effective Go"},
	{"failsafe-bulkhead", modFailsafe, "bulkhead.New(60)", "its fixed limit"},
	{"failsafe-adaptive", modFailsafe, "adaptivelimiter with WithQueueing", "recommended against refusals in bursts"},
	{"failsafe-priority", modFailsafe, "the same, with a prioritizer", "its way to shed by priority"},
	{"kratos-bbr", modAegis, "bbr.NewLimiter()", "its defaults: sheds above 80 % of the processors"},
	{"gozero-shedder", modGoZero, "load.NewAdaptiveShedder()", "its defaults: sheds above 90 %; logs are off, in its favour"},
}

// contestants writes who is measured.
func contestants(p *page, h *Head, all []rival) {
	p.head(4, "contestant", "set up as", "because", "version")
	for _, c := range all {
		v := "-"
		if c.module != "" {
			v = version(h, c.module)
		}
		p.row(c.name, "`"+c.setup+"`", c.why, v)
	}
	p.end()
}

// hotPath is what a request costs in process.
func hotPath(p *page, r *Run) {
	if r.Hot == nil {
		return
	}
	p.say("## In process: what a request costs")
	p.say("One caller and a free slot (acquire + release), as many callers as processors (parallel), a full limiter (refusal: of goodput one with a fixed limit whose queue is full), and 32 callers that take turns on two slots (hand-off); nanoseconds, medians of interleaved passes of %s each. In brackets is the ratio to x/sync and to failsafe-go's adaptive limiter within a pass. Allocations are those of acquire + release.", r.Hot.Data.Time)
	contestants(p, &r.Hot.Head, hotRivals)
	rows := r.Hot.Data.Rows
	p.head(1, "contestant", "acquire + release", "parallel, 2 processors", "refusal", "hand-off, 2 processors", "with Do", "B/op", "allocs/op")
	for _, c := range hotRivals {
		first := passes.Find(rows, "AcquireRelease", 1, c.name)
		if first == nil {
			continue
		}
		p.row(c.name, nanos(rows, "AcquireRelease", 1, c.name), nanos(rows, "Parallel", 2, c.name), nanos(rows, "Refusal", 1, c.name),
			nanos(rows, "HandOff", 2, c.name), nanos(rows, "Do", 1, c.name), number(first.Bytes), number(first.Allocs))
	}
	p.end()
	var lost []string
	for _, b := range []struct {
		name  string
		procs int
		words string
	}{{"AcquireRelease", 1, "admits and releases"}, {"Parallel", 2, "does it on two processors at once"}, {"Refusal", 1, "refuses"}, {"HandOff", 2, "hands a slot over"}} {
		ours := passes.Find(rows, b.name, b.procs, "goodput")
		best, ratio := "", 1.0
		for _, row := range rows {
			if row.Benchmark != b.name || row.Procs != b.procs || strings.HasPrefix(row.Contestant, "goodput") {
				continue
			}
			if v := row.Over(ours); len(v) > 0 && passes.Median(v) < ratio {
				best, ratio = row.Contestant, passes.Median(v)
			}
		}
		if best != "" && ratio < 0.95 {
			lost = append(lost, fmt.Sprintf("%s %s in %s of the time of goodput", best, b.words, number(ratio)))
		}
	}
	losses(p, lost, "What they leave out for it is what goodput is for: a bounded queue with an order, a measured service time, a reason and a time to retry with each refusal.")
}

// losses says where others do better.
func losses(p *page, lost []string, but string) {
	if len(lost) == 0 {
		p.say("Nobody does better in this table.")
		return
	}
	p.say("Where we lose: %s. %s", strings.Join(lost, "; "), but)
}

// nanos is the median of a row with its ratios to the two rivals of each column.
func nanos(rows []*passes.Row, benchmark string, procs int, contestant string) string {
	row := passes.Find(rows, benchmark, procs, contestant)
	if row == nil {
		return "-"
	}
	s := number(passes.Median(row.Nanos))
	var of []string
	for _, rival := range []string{"xsync", "failsafe-adaptive"} {
		if v := row.Over(passes.Find(rows, benchmark, procs, rival)); len(v) > 0 && rival != contestant {
			of = append(of, fmt.Sprintf("%.2f", passes.Median(v)))
		} else {
			of = append(of, "-")
		}
	}
	if of[0] == "-" && of[1] == "-" {
		return s
	}
	return s + " (" + strings.Join(of, ", ") + ")"
}
