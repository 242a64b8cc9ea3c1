package live

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goodput/goodput"
)

// RefusalGroup is the last refusals for one reason by one setting: an overload makes a value in
// each of its windows, whose sentences differ by little.
type RefusalGroup struct {
	Outcome      string  `json:"outcome"`
	Reason       string  `json:"reason"`
	Knob         string  `json:"knob"` // the setting, with what it was for the latest of them
	Count        uint64  `json:"count"`
	AgoSeconds   float64 `json:"ago_seconds"`   // since the latest value
	SinceSeconds float64 `json:"since_seconds"` // since the first of them
	Told         string  `json:"told"`          // what the client hears: whole seconds
	Text         string  `json:"text"`          // the sentence of the latest
}

// The measurements in a knob: "(17 of 201 may wait)", and the limit of a law that moves.
var measured = regexp.MustCompile(` \([^)]*\)|[0-9][0-9.]*[a-zµ]*`)

// knobs are those of the refusals, which is most of what a tick of an overload costs: each once.
func knobs(all []goodput.Refusal) (k []string) {
	for _, r := range all {
		k = append(k, Knob(r.Rejection))
	}
	return k
}

// groups returns the refusals, the latest first, by what decided; those that are most come first.
func groups(all []goodput.Refusal, knobs []string) []RefusalGroup {
	list := []RefusalGroup{}
	at := map[string]int{}
	for n, r := range all {
		knob := knobs[n]
		kind := r.Reason.String() + " " + measured.ReplaceAllString(knob, "")
		if r.Reason == goodput.OverQuota {
			kind = knob // another number is the quota of another tenant
		}
		i, is := at[kind]
		if !is {
			i, at[kind] = len(list), len(list)
			list = append(list, RefusalGroup{
				Outcome: r.Outcome.String(), Reason: r.Reason.String(), Knob: knob, AgoSeconds: r.Ago.Seconds(),
				Told: comeBack(r.Rejection), Text: sentence(r.Rejection),
			})
		}
		g := &list[i]
		g.Count += r.Count
		g.SinceSeconds = r.Ago.Seconds()
	}
	slices.SortStableFunc(list, func(a, b RefusalGroup) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

// sentence is that of r without when to come back, which is said as the client is told.
func sentence(r *goodput.Rejection) string {
	text, _, _ := strings.Cut(r.Error(), "; retry after ")
	return text
}

// comeBack is what the client is told: see goodput.Rejection.Jittered.
func comeBack(r *goodput.Rejection) string {
	if r.RetryAfter <= 0 {
		return "not told to come back: that would not help"
	}
	low := int64((r.RetryAfter-1)/time.Second) + 1
	if r.Reason == goodput.OverQuota {
		return fmt.Sprintf("told to come back in %d s", low)
	}
	return fmt.Sprintf("told to come back in %d to %d s", low, low+(low+1)/2)
}

// words is a group in a line or two.
func (g *RefusalGroup) words() string {
	when := ago(g.AgoSeconds) + " ago"
	switch {
	case g.AgoSeconds < 1 && g.SinceSeconds > g.AgoSeconds:
		when = "in the last " + ago(g.SinceSeconds)
	case g.SinceSeconds > g.AgoSeconds:
		when = fmt.Sprintf("from %s to %s ago", ago(g.SinceSeconds), ago(g.AgoSeconds))
	}
	return fmt.Sprintf("%s %s %s, decided by %s; %s", grouped(g.Count), g.Reason, when, g.Knob, g.Told)
}

// ago is a time to two figures or so: what a person compares with now.
func ago(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", seconds)
	}
	return d.Round(time.Second).String()
}

// grouped is a count with a comma after each three digits.
func grouped(n uint64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
