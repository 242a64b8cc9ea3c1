package figures

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goodput/goodput/bench/virtual"
)

// shownScenes are the tables of the in-process comparison, each a row of scenes.
var shownScenes = []struct {
	words string
	names []string
}{
	{"60 slots of 50 ms, exponential, callers that leave after 2 s", scenesAt("exponential %gx", 0.5, 1, 1.5, 3, 10)},
	{"The same for three minutes, which limits that move may need", scenesAt("180s %gx", 1.5, 3)},
	{"60 slots of 50 ms, exponential, callers that leave after 400 ms, which is the objective", scenesAt("deadline 400ms %gx", 1, 1.5, 3, 10)},
	{"Fixed work of 50 ms, callers that leave after 2 s", scenesAt("fixed %gx", 1, 1.5, 3)},
	{"Lognormal work of 50 ms, callers that leave after 2 s", scenesAt("lognormal %gx", 1, 1.5, 3)},
}

func scenesAt(name string, loads ...float64) (names []string) {
	for _, load := range loads {
		names = append(names, fmt.Sprintf(name, load))
	}
	return names
}

// edges are the scenes whose work takes as long as the objective leaves it.
var edges = []struct {
	words string
	name  string
}{
	{"fixed, 180 ms", virtual.Edge("fixed", 180*time.Millisecond)},
	{"fixed, 190 ms", virtual.Edge("fixed", 190*time.Millisecond)},
	{"fixed, 200 ms", virtual.Edge("fixed", 200*time.Millisecond)},
	{"exponential, 43 ms", virtual.Edge("exponential", 43*time.Millisecond)},
	{"lognormal, CV 1.4, 31 ms", virtual.Edge("lognormal", 31*time.Millisecond)},
}

// edge is the table of them.
func edge(p *page, r *Run) {
	if r.row(edges[0].name, told) == nil {
		return
	}
	p.say("### Work that takes as long as the objective leaves it")
	p.say("8 slots at 1.5x for 200 s, callers that leave after 2 s, an objective of 400 ms, of which the slowest percent of the work takes half. Latencies are exact.")
	p.head(2, "work", "contestant", "goodput", "p50 ms", "p99 ms", "p99.9 ms", "told no after ms (p50)")
	var missed []string
	for _, e := range edges {
		for _, row := range r.Virtual.Data.Rows {
			if row.Scene == e.name {
				if row.Contestant == auto && (row.Even < 0.99 || row.P99 > 400) {
					missed = append(missed, fmt.Sprintf("%s: goodput %s, p99 %.0f ms", e.words, share(row.Even), row.P99))
				}
				p.row(e.words, row.Contestant, share(row.Even), fmt.Sprintf("%.0f", row.P50), fmt.Sprintf("%.0f", row.P99), fmt.Sprintf("%.0f", row.P999), fmt.Sprintf("%.1f", row.No50))
			}
		}
	}
	p.end()
	if len(missed) > 0 {
		p.say("A limit that finds itself, from cold, does not keep the objective or the goodput here (%s); why has not been found.", strings.Join(missed, "; "))
	}
}

// Changing scenes of package virtual.
var steps = []string{"step 60-20-60", "step 60-30-60"}

const stall = "stall"

// Scenes are the names, or what names contain, of the scenes of package virtual that are shown,
// to be played one after the other or at once: in virtual time they do not disturb one
// another.
func Scenes() []string {
	names := []string{"step", stall, "180s", "deadline 400ms", "edge"}
	for _, s := range shownScenes {
		for _, name := range s.names {
			if !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(name, n) }) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Join returns one table of several of the same seeds, in the order in which their scenes are
// shown.
func Join(tables []virtual.Table) virtual.Table {
	var all virtual.Table
	for i, t := range tables {
		if i == 0 {
			all = t
			continue
		}
		all.Scenes = append(all.Scenes, t.Scenes...)
		all.Ceilings = append(all.Ceilings, t.Ceilings...)
		all.Rows = append(all.Rows, t.Rows...)
	}
	return all
}

// inVirtualTime is the comparison in process.
func inVirtualTime(p *page, r *Run) {
	if r.Virtual == nil {
		return
	}
	t := &r.Virtual.Data
	p.say("## In process, in virtual time: what is left of the goodput")
	p.say("The code of the libraries themselves, in a bubble of `testing/synctest`: a sleep of 50 ms takes exactly that, so a ratio is that of the code. Work sleeps in slots; nobody is told how long it will take. Medians over the seeds (%s); 24,000 services of a run add up to within 0.65 %%, so 1.01 and 0.99 are 1. *Ceiling* is what refusing at once reaches by Erlang's loss formula (a floor for who has a queue), and what the optimum of one server as fast as all slots reaches that knows every arrival and its work beforehand: nobody can. Who does not know the work cannot exceed 1.", list(t.Seeds))
	p.head(4, "contestant", "set up as", "because", "version")
	for _, c := range t.Contestants {
		module := map[string]string{"xsync": modXSync, "failsafe": modFailsafe}[before(c.Name, "/")]
		v := "-"
		if module != "" {
			v = version(&r.Virtual.Head, module)
		}
		p.row(c.Name, c.Setup, c.Why, v)
	}
	p.end()
	for _, s := range shownScenes {
		steady(p, r, s.words, s.names)
	}
	edge(p, r)
	moved(p, r)
	p.say("go-zero's and aegis' shedders are not here: they look at the processor, which is idle in virtual time. They play over real HTTP, below.")
}

func before(s, sep string) string {
	first, _, _ := strings.Cut(s, sep)
	return first
}

func list[T any](v []T) string {
	words := make([]string, len(v))
	for i, x := range v {
		words[i] = fmt.Sprint(x)
	}
	return strings.Join(words, ", ")
}

// steady is a table of goodput by load, and of latency at the heaviest of at most 3x.
func steady(p *page, r *Run, words string, names []string) {
	t := &r.Virtual.Data
	var scenes []*virtual.Scene
	for _, name := range names {
		for i := range t.Scenes {
			if t.Scenes[i].Name == name {
				scenes = append(scenes, &t.Scenes[i])
			}
		}
	}
	if len(scenes) == 0 {
		return
	}
	three := scenes[0]
	columns := []string{"contestant"}
	for _, s := range scenes {
		columns = append(columns, fmt.Sprintf("%gx", s.Load))
		if s.Load <= 3 {
			three = s
		}
	}
	at := fmt.Sprintf("at %gx: ", three.Load)
	p.say("### %s", words)
	p.head(1, append(columns, at+"within 400 ms", "p50 ms", "p99 ms", "told no after ms (p50)", "most waiting", "refused at 1x %")...)
	for _, c := range t.Contestants {
		row := r.row(three.Name, c.Name)
		if row == nil {
			continue
		}
		cells := []string{c.Name}
		for _, s := range scenes {
			cells = append(cells, ratioOf(r.row(s.Name, c.Name)))
		}
		refused := "-"
		for _, s := range scenes {
			if one := r.row(s.Name, c.Name); s.Load == 1 && one != nil {
				refused = fmt.Sprintf("%.1f", 100*one.Refused)
			}
		}
		no := "-"
		if row.Refused > 0.001 {
			no = fmt.Sprintf("%.1f", row.No50)
		}
		p.row(append(cells, share(quickly(row)), fmt.Sprintf("%.0f", row.P50), fmt.Sprintf("%.0f", row.P99), no, number(row.Waiting), refused)...)
	}
	for _, c := range []struct {
		name string
		of   func(virtual.Ceiling) float64
	}{{"*ceiling: no queue*", func(c virtual.Ceiling) float64 { return c.NoQueue }}, {"*ceiling: clairvoyant*", func(c virtual.Ceiling) float64 { return c.Clairvoyant }}} {
		cells := []string{c.name}
		for _, s := range scenes {
			cells = append(cells, ceiling(t, s.Name, c.of))
		}
		p.row(append(cells, "", "", "", "", "", "")...)
	}
	p.end()
	steadyLosses(p, r, scenes)
}

// steadyLosses says which rival has more goodput than ours in a scene.
func steadyLosses(p *page, r *Run, scenes []*virtual.Scene) {
	var lost []string
	for _, s := range scenes {
		best, by := "", 0.0
		ours := r.row(s.Name, told)
		for _, row := range r.Virtual.Data.Rows {
			if row.Scene == s.Name && ours != nil && !strings.HasPrefix(row.Contestant, "goodput/") && row.Even-ours.Even > by {
				best, by = row.Contestant, row.Even-ours.Even
			}
		}
		if by > noise {
			lost = append(lost, fmt.Sprintf("at %gx %s has %.3f more", s.Load, best, by))
		}
	}
	if len(lost) == 0 {
		p.say("Nobody has half a percent more goodput than goodput/fixed in this table; less is left out, since the seeds make as much of it.")
		return
	}
	losses(p, lost, "Less than half a percent is left out: the seeds make as much of it.")
}

// noise is what the ratio of a median of three runs of 24,000 services varies by: 0.65 % over the
// square root of three, and a bit.
const noise = 0.005

// quickly is the goodput within 400 ms.
func quickly(row *virtual.Row) float64 { return row.Even * row.Quick / max(row.Ratio, 1e-9) }

func ratioOf(row *virtual.Row) string {
	if row == nil {
		return "-"
	}
	return share(row.Even)
}

func ceiling(t *virtual.Table, scene string, of func(virtual.Ceiling) float64) string {
	for _, c := range t.Ceilings {
		if v := of(c); c.Scene == scene && v > 0 {
			return fmt.Sprintf("%.3f", v)
		}
	}
	return "-"
}

// moved is the table of slots that change, and of the stall.
func moved(p *page, r *Run) {
	t := &r.Virtual.Data
	for _, scene := range steps {
		if r.row(scene, told) == nil {
			continue
		}
		p.say("### Slots that change: %s, at 1.5x, 15 s each", strings.TrimPrefix(scene, "step "))
		p.say("*95 %% after* is the start of the first 2 s with 95 %% of what can be in time; later ones may have less.")
		p.head(1, "contestant", "first", "fewer", "its first 10 s", "restored", "95 % after s", "limit: first, fewer, restored")
		for _, row := range t.Rows {
			if row.Scene != scene || len(row.Phases) != 3 {
				continue
			}
			a, b, c := row.Phases[0], row.Phases[1], row.Phases[2]
			limits := "-"
			if a.Limit > 0 {
				limits = fmt.Sprintf("%.0f, %.0f, %.0f", a.Limit, b.Limit, c.Limit)
			}
			p.row(row.Contestant, fmt.Sprintf("%.3f", a.Ratio), fmt.Sprintf("%.3f", b.Ratio), fmt.Sprintf("%.3f", b.First), fmt.Sprintf("%.3f", c.Ratio), after(c.Settle), limits)
		}
		p.end()
	}
	if r.row(stall, told) == nil {
		return
	}
	p.say("### A stall of 5 s at 0.9x, callers that ask three times")
	p.head(1, "contestant", "goodput", "back after s", "most waiting")
	for _, row := range t.Rows {
		if row.Scene == stall {
			p.row(row.Contestant, fmt.Sprintf("%.3f", row.Ratio), after(row.Recovered), number(row.Waiting))
		}
	}
	p.end()
}

// after formats when something was so.
func after(s *float64) string {
	if s == nil {
		return "never"
	}
	return fmt.Sprintf("%.1f", *s)
}

// spanOf formats milliseconds.
func spanOf(ms float64) string { return time.Duration(ms * 1e6).String() }
