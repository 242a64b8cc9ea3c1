package conformance

import (
	"fmt"
	"regexp"
	"strings"

	kit "github.com/goodput/goodput/conformance"
)

// A column is a contestant with its results, in the order of the checks.
type column struct {
	name, what, path string
	results          []kit.Result
}

// A table is what one kind of contestants has come to.
type table struct {
	columns  []column
	findings []finding
}

// judge returns what the run gives and the findings do not say, or the other way round.
func (t *table) judge() (bad []string) {
	seen := map[string]bool{}
	for _, c := range t.columns {
		for _, r := range c.results {
			f, known := find(t.findings, c.name, r.Check.Name)
			seen[c.name+" "+r.Check.Name] = true
			first, _, _ := strings.Cut(r.Detail, "\n")
			switch {
			case r.Verdict == kit.Failed && !known:
				bad = append(bad, fmt.Sprintf("%s fails %s, and there is no finding: %s", c.name, r.Check.Name, first))
			case r.Verdict != kit.Failed && known && !f.race:
				bad = append(bad, fmt.Sprintf("%s: %s is %s, and a finding says that it fails", c.name, r.Check.Name, r.Verdict))
			}
		}
	}
	for _, f := range t.findings {
		if !seen[f.who+" "+f.check] {
			bad = append(bad, fmt.Sprintf("a finding about %s and %s, which are not in the table", f.who, f.check))
		}
	}
	return bad
}

// write appends the table and its notes, which are numbered from first, and returns the next
// number.
func (t *table) write(b *strings.Builder, first int) int {
	b.WriteString("| check |")
	for _, c := range t.columns {
		fmt.Fprintf(b, " %s |", c.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(t.columns)) + "\n")
	number := map[string]int{}
	for i, f := range t.findings {
		number[f.who+" "+f.check] = first + i
	}
	for i, r := range t.columns[0].results {
		fmt.Fprintf(b, "| `%s` |", r.Check.Name)
		for _, c := range t.columns {
			b.WriteString(" " + cell(c.results[i], t.findings, number[c.name+" "+r.Check.Name], c.name) + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for i, f := range t.findings {
		fmt.Fprintf(b, "%d. **%s**, `%s`: %s Source: %s.\n", first+i, f.who, f.check, f.what, f.where)
	}
	return first + len(t.findings)
}

func cell(r kit.Result, all []finding, number int, who string) string {
	f, known := find(all, who, r.Check.Name)
	switch {
	case known && f.race:
		return fmt.Sprintf("**fails at times** (%d)", number)
	case known:
		return fmt.Sprintf("**fails** (%d)", number)
	case r.Verdict == kit.Skipped:
		return ""
	}
	return "passes"
}

// versions returns what go.mod requires, by path.
func versions(goMod string) map[string]string {
	all := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\s+(\S+) (v\S+)`).FindAllStringSubmatch(goMod, -1) {
		all[m[1]] = m[2]
	}
	return all
}

// page is docs/conformance.md.
func page(limiters, handlers *table, versions map[string]string) string {
	var b strings.Builder
	b.WriteString(head)
	b.WriteString("\n## Limiters\n\n")
	next := limiters.write(&b, 1)
	b.WriteString("\nThe contestants:\n\n")
	contestants(&b, limiters, versions)
	b.WriteString("\nWhat each check proves, and where others have met its failure:\n\n")
	checks(&b, kit.LimiterChecks())
	b.WriteString("\n## HTTP handlers\n\n")
	handlers.write(&b, next)
	b.WriteString("\nThe contestants:\n\n")
	contestants(&b, handlers, versions)
	b.WriteString("\nWhat each check proves, and where others have met its failure:\n\n")
	checks(&b, kit.HandlerChecks())
	b.WriteString(tail)
	return b.String()
}

func contestants(b *strings.Builder, t *table, versions map[string]string) {
	for _, c := range t.columns {
		fmt.Fprintf(b, "- **%s**: %s", c.name, c.what)
		if c.path != "" {
			fmt.Fprintf(b, " (%s %s)", c.path, versions[c.path])
		}
		b.WriteString(".\n")
	}
}

func checks(b *strings.Builder, all []kit.Check) {
	for _, c := range all {
		fmt.Fprintf(b, "- `%s`: %s", c.Name, c.Proves)
		if len(c.Seen) > 0 {
			fmt.Fprintf(b, " (%s)", strings.Join(c.Seen, ", "))
		}
		b.WriteString("\n")
	}
}

const head = `# Conformance

Package [conformance](../conformance/doc.go) is a test kit for limiters of concurrency, ours or
anybody's: a limiter is handed over by a few functions and is told what it does wrong. This is
what it says of goodput and of what a Go service would use instead.

<!-- Generated: cd bench && GOWORK=off go test ./conformance -rewrite. Do not edit. -->

Each contestant is used as its documentation shows, in the version that is named below. An empty
cell is a check that does not apply: the form that it is about is not there, or nobody can
misuse it that way. Every failure was looked up in the source of that version; the notes say
where. A check that passes has found nothing, which is no proof. "Fails at times" is a race that
was seen and is in the source: it is printed whether or not the last run has met it, and is
the only cell that does not depend on that run.

The run makes a quarter of the rounds that the lists below name: 1,000 bursts of lost-wakeup, 250
panics, 25,000 callers at once in many-cancelled.

    cd bench && GOWORK=off go test ./conformance

It fails if it does not give these tables.
`

const tail = `
## Who is not here

- The shedders of aegis (` + "`bbr`" + `) and go-zero (` + "`load`" + `) look at the processor and have no
  limit that could be set, so there is nothing that a check could hold them to.
- ` + "`syncx.TimeoutLimit`" + ` and ` + "`Limit.Borrow`" + ` of go-zero wait without a context.
- ` + "`netutil.LimitListener`" + ` limits connections, and an HTTP/2 connection has any number of
  requests.
- go-concurrency-limits, backpressure and goresilience could not be had when this was written.
`
