package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// How an idle service is asked: 50 requests, at least 50 ms apart, are 2.5 s, in which a
// body that has the time in it changes. A service that takes long is asked less often, until
// idleWithin is over, but always once.
const (
	idleRequests = 50
	idleGap      = 50 * time.Millisecond
	idleWithin   = 10 * time.Second

	// leastAlike is how many answers must be the same before all must be: a body that
	// differs once in ten answers is seen among 20 with probability 1 - 0.9^20 = 88 %.
	leastAlike = 20
)

// A sample is what the answers of the idle service were.
type sample struct {
	answers []load.Answer   // of the service: neither refused nor failed
	took    []time.Duration // of answers
	refused int
	failed  int   // 5xx that are no refusals
	lost    int   // no answer
	err     error // of the first that was lost
	Idle
}

// ask sends requests one after another.
func (r *run) ask(ctx context.Context) *sample {
	s := &sample{Idle: Idle{Status: map[int]int{}}}
	began := time.Now()
	for i := range idleRequests {
		if i > 0 && (ctx.Err() != nil || time.Since(began) > idleWithin) {
			break
		}
		due := time.Now()
		one, cancel := context.WithTimeout(ctx, idleWithin)
		s.add(r.send(one), time.Since(due))
		cancel()
		pause(ctx, time.Until(due.Add(r.gap(idleGap))))
	}
	s.sum()
	return s
}

// gap is how long after a request the next of those that are sent one after another comes:
// --max-rate holds for them too.
func (r *run) gap(least time.Duration) time.Duration { return max(least, lasting(1/r.cfg.MaxRate)) }

func (s *sample) add(a load.Answer, took time.Duration) {
	s.Requests++
	if a.Err != nil {
		if s.lost++; s.err == nil {
			s.err = a.Err
		}
		return
	}
	s.Status[a.Status]++
	switch {
	case a.Refused():
		s.refused++
	case a.Failed():
		s.failed++
	default:
		s.answers, s.took = append(s.answers, a), append(s.took, took)
	}
}

// sum fills in what is said of all of them.
func (s *sample) sum() {
	if n := len(s.took); n > 0 {
		sorted := slices.Sorted(slices.Values(s.took))
		s.P50, s.Max = sorted[n/2], sorted[n-1]
	}
	s.Content = s.words()
}

// words says what the answers have in common.
func (s *sample) words() string {
	if len(s.answers) == 0 {
		return ""
	}
	statuses := slices.Sorted(maps.Keys(s.statuses()))
	var b strings.Builder
	for i, status := range statuses {
		if i > 0 {
			b.WriteString(" or ")
		}
		fmt.Fprint(&b, status)
	}
	lo, hi := s.sizes()
	switch {
	case s.same():
		fmt.Fprintf(&b, ", %s bytes%s, always the same", grouped(float64(lo)), of(s.answers[0]))
	case lo == hi:
		fmt.Fprintf(&b, ", %s bytes%s", grouped(float64(lo)), of(s.answers[0]))
	default:
		fmt.Fprintf(&b, ", %s to %s bytes%s", grouped(float64(lo)), grouped(float64(hi)), of(s.answers[0]))
	}
	if n := len(s.types()); n > 1 {
		fmt.Fprintf(&b, " and %d more media types", n-1)
	}
	return b.String()
}

func of(a load.Answer) string {
	if a.Content.Type == "" {
		return ""
	}
	return " of " + a.Content.Type
}

func (s *sample) statuses() map[int]bool {
	all := map[int]bool{}
	for _, a := range s.answers {
		all[a.Status] = true
	}
	return all
}

func (s *sample) types() map[string]bool {
	all := map[string]bool{}
	for _, a := range s.answers {
		all[a.Content.Type] = true
	}
	return all
}

// same reports whether there are enough answers, and all of them alike.
func (s *sample) same() bool {
	for _, a := range s.answers {
		if a.Content != s.answers[0].Content {
			return false
		}
	}
	return len(s.answers) >= leastAlike
}

func (s *sample) sizes() (lo, hi int64) {
	lo = s.answers[0].Content.Size
	for _, a := range s.answers {
		lo, hi = min(lo, a.Content.Size), max(hi, a.Content.Size)
	}
	return lo, hi
}

// like returns what tells an answer of the service from another one: its status is one of
// expect, or of the idle service if that is nil, and its body is like those of the idle one.
// Where these were always the same, it must be the same; else it must be of one of their
// media types, and have from a tenth of the size of the smallest to ten times that of the largest:
// 50 of sizes that are spread over a range leave its 50th part unseen at either end. With
// anyBody the media type is all that is asked of it.
func (s *sample) like(expect []int, anyBody bool) func(load.Answer) bool {
	statuses := s.statuses()
	if expect != nil {
		statuses = map[int]bool{}
		for _, status := range expect {
			statuses[status] = true
		}
	}
	if len(s.answers) == 0 { // nothing to compare with
		return func(a load.Answer) bool { return expect == nil || statuses[a.Status] }
	}
	types := s.types()
	if anyBody {
		return func(a load.Answer) bool { return statuses[a.Status] && types[a.Content.Type] }
	}
	if s.same() {
		content := s.answers[0].Content
		return func(a load.Answer) bool { return statuses[a.Status] && a.Content == content }
	}
	lo, hi := s.sizes()
	return func(a load.Answer) bool {
		c := a.Content
		return statuses[a.Status] && types[c.Type] && 10*c.Size >= lo && c.Size <= 10*hi
	}
}

// void returns one sentence about why nothing can be measured, or "".
func (s *sample) void(expect []int) string {
	half := s.Requests / 2
	foreign := 0
	for _, a := range s.answers {
		if expect != nil && !slices.Contains(expect, a.Status) {
			foreign++
		}
	}
	switch {
	case errors.Is(s.err, errFull):
		return fmt.Sprintf("--max-requests has no room for the %d requests to the idle service, with which a run begins: raise it", s.Requests)
	case s.lost > half && errors.Is(s.err, context.DeadlineExceeded):
		return fmt.Sprintf("the target takes requests and does not answer while it is idle: %s had no answer within %s. "+
			"If it was under load just now it may still be busy with that", ofThem(s.lost, s.Requests), span(idleWithin))
	case s.lost > half:
		return fmt.Sprintf("the target answers nothing while it is idle: %s had no answer: %v", ofThem(s.lost, s.Requests), s.err)
	case s.failed > half:
		return fmt.Sprintf("the service fails while it is idle: %s had the answer %s. An overload would show nothing: look at one request, "+
			"with the --method, --header and --body that it needs", ofThem(s.failed, s.Requests), s.most(500, 999))
	case foreign > half:
		return fmt.Sprintf("the idle service answers %s, which is none of --expect %s", s.most(200, 499), strings.Trim(strings.ReplaceAll(fmt.Sprint(expect), " ", ","), "[]"))
	}
	return ""
}

// ofThem is how many of the requests to the idle service, in words.
func ofThem(n, of int) string {
	if of == 1 {
		return "one request"
	}
	return fmt.Sprintf("%d of %d requests, one after another,", n, of)
}

// most returns the status between lo and hi that came most often.
func (s *sample) most(lo, hi int) string {
	best := 0
	for _, status := range slices.Sorted(maps.Keys(s.Status)) {
		if status >= lo && status <= hi && s.Status[status] > s.Status[best] {
			best = status
		}
	}
	return fmt.Sprint(best)
}

// notes returns what to be careful with.
func (s *sample) notes(deadline time.Duration) (all []string) {
	if some := s.lost + s.failed + s.refused; some > 0 && len(s.answers) > 0 {
		all = append(all, fmt.Sprintf("Of %d requests to the idle service, one after another, %d were refused, %d failed and %d had no answer.",
			s.Requests, s.refused, s.failed, s.lost))
	}
	for _, status := range slices.Sorted(maps.Keys(s.statuses())) {
		switch {
		case status >= 400:
			all = append(all, fmt.Sprintf("The idle service answers %d, and this is taken for what it is asked to do: is the URL the right one?", status))
		case status >= 300:
			all = append(all, fmt.Sprintf("The idle service answers %d; a redirect is not followed.", status))
		}
	}
	if s.P50 > deadline/2 && len(s.answers) > 0 {
		all = append(all, fmt.Sprintf("The idle service takes %v for half of its answers, and callers leave after %v.", s.P50.Round(time.Millisecond), deadline))
	}
	return all
}

// pause waits for d or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
