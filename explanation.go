package goodput

import "strings"

// An Explanation says what a limiter is doing now and why, each number with its arithmetic.
type Explanation struct {
	Limiter string
	State   string    // in words: see Stats.State
	Facts   []Fact    // in the order in which a person reads them
	Refused []Refusal // what callers were told lately, the latest first
}

// A Fact is a thing that an Explanation says.
type Fact struct {
	Topic string // one word: limit, depth, queue, load, ...
	Text  string // a sentence or some, in lines
}

// Explanation returns what Explain prints, in parts.
func (l *Limiter) Explanation() Explanation {
	s := l.Stats()
	e := Explanation{Limiter: s.Name, State: s.State(), Refused: l.Refused()}
	for _, line := range strings.Split(strings.TrimSpace(l.Explain()), "\n")[1:] {
		topic := strings.TrimSpace(line[:min(11, len(line))])
		text := strings.TrimSpace(line[min(11, len(line)):])
		if topic == "" && len(e.Facts) > 0 {
			e.Facts[len(e.Facts)-1].Text += "\n" + text
			continue
		}
		e.Facts = append(e.Facts, Fact{topic, text})
	}
	return e
}
