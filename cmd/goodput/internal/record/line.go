package record

import (
	"strconv"
	"strings"

	"github.com/goodput/goodput"
)

// The first two lines of a file of a trace. All times are microseconds, arrivals since the
// instant of the first line, before which some may have come: a line is written when its
// request has ended. A value that is as usual is nothing: a cost of 1, no size, no tenant, no
// budget, the priority default, the outcome completed. Without held it did not start. In observe
// mode it did whatever the limiter decided: observed, or would_refuse of one that it would have
// refused at the door.
//
//	#goodput-trace 1 1796065760000000
//	arrival,class,held,cost,size,tenant,budget,priority,outcome,observe
//	1204311,default,49812,,,,400000,,,
//	1204320,default,,,,,400000,,rejected,
//	#dropped 12
//	#end
//
// #dropped says that so many requests are missing, because a buffer was full or the disk was;
// #end that a file is whole: without it the process was killed.
const (
	magic   = "#goodput-trace 1 "
	columns = "arrival,class,held,cost,size,tenant,budget,priority,outcome,observe\n"
	lost    = "#dropped "
	end     = "#end\n"

	// maxLine is more than any line has: four numbers of 20 digits and three of 10, words of up
	// to 16, and the name of a class.
	maxLine = 192 + maxClass

	// maxClass bounds the name of a class; config allows 63.
	maxClass = 128
)

// appendHeader begins a file.
func appendHeader(b []byte, base int64) []byte {
	b = append(b, magic...)
	b = strconv.AppendInt(b, base, 10)
	b = append(b, '\n')
	return append(b, columns...)
}

func appendLost(b []byte, n uint64) []byte {
	b = append(b, lost...)
	b = strconv.AppendUint(b, n, 10)
	return append(b, '\n')
}

// append writes the line of an entry in a file that began at base.
func (e *entry) append(b []byte, base int64) []byte {
	b = strconv.AppendInt(b, e.arrival-base, 10)
	b = append(b, ',')
	b = append(b, plain(e.class)...)
	b = append(b, ',')
	b = number(b, e.held, e.held >= 0)
	b = number(b, int64(e.cost), e.cost > 1)
	b = number(b, int64(e.size), e.size > 0 && e.size != max(e.cost, 1))
	if e.tenant != 0 {
		b = strconv.AppendUint(b, e.tenant, 36) // 48 bits are up to 10 digits
	}
	b = append(b, ',')
	b = number(b, e.budget, e.budget >= 0)
	if e.priority != 0 && e.priority != goodput.Default {
		b = append(b, e.priority.String()...)
	}
	b = append(b, ',')
	if e.outcome != goodput.Completed {
		b = append(b, e.outcome.String()...)
	}
	b = append(b, ',')
	switch {
	case e.would:
		b = append(b, "would_refuse"...)
	case e.observed:
		b = append(b, "observed"...)
	}
	return append(b, '\n')
}

func number(b []byte, n int64, said bool) []byte {
	if said {
		b = strconv.AppendInt(b, n, 10)
	}
	return append(b, ',')
}

// plain is a name that cannot be taken for more than one column. Those of a policy file are.
func plain(name string) string {
	odd := func(c rune) bool { return c < ' ' || c == ',' || c == '"' || c == '#' || c == 0x7f || c == 0xfffd }
	if len(name) <= maxClass && !strings.ContainsFunc(name, odd) {
		return name
	}
	name = name[:min(len(name), maxClass)]
	clean := func(c rune) rune {
		if odd(c) || c > 0x7e {
			return '_'
		}
		return c
	}
	return strings.Map(clean, name)
}
