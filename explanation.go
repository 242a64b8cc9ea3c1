package goodput

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// An Explanation says what a limiter is doing now and why, each number with its arithmetic.
// Explain prints it, and it has no text of its own.
type Explanation struct {
	Limiter   string
	Condition Condition
	State     string    // the condition in words: see Stats.State
	Facts     []Fact    // in the order in which a person reads them
	Refused   []Refusal // what callers were told lately, the latest first: see Limiter.Refused
}

// A Fact is a thing that an Explanation says.
type Fact struct {
	Topic string // one word of at most 8 letters: limit, depth, queue, load, ...
	Text  string // a sentence or some, each a line
}

// Explanation returns what Explain prints, in parts.
func (l *Limiter) Explanation() Explanation {
	s := l.Stats()
	return l.ExplanationOf(&s, l.Tenants(explained), l.Refused())
}

// ExplanationOf returns what Explanation would have when Stats, Tenants and Refused returned these: for
// whoever shows them beside it, so that they are of one instant.
func (l *Limiter) ExplanationOf(s *Stats, tenants []TenantState, refused []Refusal) Explanation {
	cfg := l.settings.Load().cfg
	e := Explanation{Limiter: s.Name, Condition: s.Condition(), State: s.State(), Refused: refused}
	f := facts{}
	explainLimit(&f, s, cfg.Limit)
	explainAbsent(&f, s)
	explainDepth(&f, s)
	explainMeasured(&f, s)
	explainHeld(&f, s)
	explainQueue(&f, s)
	explainOrder(&f, s, cfg.Order)
	explainLoad(&f, s)
	explainPressure(&f, s)
	explainShares(&f, s, &cfg, tenants[:min(len(tenants), explained)])
	explainLatency(&f, s)
	explainEnds(&f, s)
	e.Facts = f
	return e
}

// Explain returns some lines, of at most 80 columns, about what the limiter is doing now and
// why: the state, the limit, the arithmetic of the depth, the queue and its order, the load,
// the five tenants that ask for most, who is shed, the latency against the objective,
// how requests ended, and the last refusals with the setting that decided each. It costs
// tens of microseconds: for a person who asks.
func (l *Limiter) Explain() string { return l.Explanation().String() }

// facts are those of an Explanation to be.
type facts []Fact

// add says something about a topic. What comes after each line break is a sentence of its own.
func (f *facts) add(topic, format string, of ...any) {
	*f = append(*f, Fact{topic, fmt.Sprintf(format, of...)})
}

// also says more about the topic of the last fact.
func (f *facts) also(format string, of ...any) {
	last := &(*f)[len(*f)-1]
	last.Text += "\n" + fmt.Sprintf(format, of...)
}

const (
	columns     = 80 // what a terminal has, and mail does not break
	topicColumn = 2
	textColumn  = 11 // 2, a topic of 8 letters, and a space
	shownLast   = 5  // kinds of refusals that Explain shows: a screen has 24 lines
)

// String returns what Explain does.
func (e Explanation) String() string {
	var b strings.Builder
	wrap(&b, "", e.Limiter+": "+e.State, topicColumn)
	for _, f := range e.Facts {
		for i, line := range strings.Split(f.Text, "\n") {
			head := strings.Repeat(" ", textColumn)
			if i == 0 {
				head = fmt.Sprintf("%*s%-*s", topicColumn, "", textColumn-topicColumn, f.Topic)
			}
			wrap(&b, head, line, textColumn)
		}
	}
	for i, text := range e.last() {
		head := "  last     "
		if i > 0 {
			head = strings.Repeat(" ", textColumn)
		}
		wrap(&b, head, text, textColumn)
	}
	return b.String()
}

// last says who was refused lately, in a line or two for those that follow one another with the same
// reason and knob: an overload makes a value in each window, which differ by little.
func (e *Explanation) last() (lines []string) {
	for i := 0; i < len(e.Refused) && len(lines) < shownLast; {
		r, knob := e.Refused[i], e.Refused[i].Knob()
		first := r.Ago
		for i++; i < len(e.Refused) && e.Refused[i].Reason == r.Reason && e.Refused[i].Knob() == knob; i++ {
			r.Count += e.Refused[i].Count
			first = e.Refused[i].Ago
		}
		lines = append(lines, r.brief(knob, first))
	}
	return lines
}

// brief is r in a line or two: Error has all of its numbers. first is how long ago the first of
// those like it was.
func (r *Refusal) brief(knob string, first time.Duration) string {
	text := fmt.Sprintf("%d x %v, %v ago", r.Count, r.Reason, brief(r.Ago))
	if first != r.Ago {
		text = fmt.Sprintf("%d x %v, from %v to %v ago", r.Count, r.Reason, brief(first), brief(r.Ago))
	}
	if r.Waited > 0 {
		text += fmt.Sprintf(" and after a wait of %v", short(r.Waited))
	}
	text += ": " + knob + fmt.Sprintf("; %d of %d in use, %d waiting", r.InUse, r.Limit, r.Waiting)
	if r.RetryAfter > 0 {
		text += fmt.Sprintf("; retry after %v", short(r.RetryAfter))
	}
	return text
}

// wrap writes text after head, in lines of at most columns where its words are short enough; those
// after the first are indented.
func wrap(b *strings.Builder, head, text string, indent int) {
	b.WriteString(head)
	at, begun := utf8.RuneCountInString(head), false
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case begun && at+1+n > columns:
			fmt.Fprintf(b, "\n%*s", indent, "")
			at = indent
		case begun:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at, begun = at+n, true
	}
	b.WriteByte('\n')
}
