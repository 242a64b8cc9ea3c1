package verify

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page is part of the program: a report needs no network
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strconv"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
	"github.com/goodput/goodput/cmd/goodput/internal/uplot"
)

// What the page is made of. The two scripts are one element, and so are the two style
// sheets: their hashes are what the page allows to run.
var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string
)

var (
	pageStyle  = uplot.CSS + "\n" + pageCSS
	pageScript = uplot.JS + "\n" + pageJS

	// contentPolicy keeps the page from loading anything at all and from running anything but
	// its own script.
	contentPolicy = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'",
		hashOf(pageScript), hashOf(pageStyle))

	pageTemplate = template.Must(template.New("page").Parse(pageHTML))
)

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// HTML writes r as one file that needs no network: the verdict, the tables and the bars are in
// it as they are read, charts are drawn by its script from the JSON that it carries.
func (r *Report) HTML(w io.Writer) error {
	// Marshal escapes <, > and &, so nothing in it can end the element.
	data, err := json.Marshal(r.document())
	if err != nil {
		return err
	}
	var b bytes.Buffer // a half page is worse than none
	if err := pageTemplate.Execute(&b, r.page(data)); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// A page is what the template shows. Its strings are clean.
type page struct {
	ContentPolicy string
	Style         template.CSS
	Script, Data  template.JS

	Title, Target  string
	Class          string // of the verdict: yes, no, void
	Mark, Verdict  string
	Reason, Advice string
	NotMet, Met    []Criterion
	Asked          int
	UnjudgedHead   string
	Unjudged       []Open
	Unseen         string // those about which nothing was seen

	Loads    []string
	Rows     []row
	Bars     []bar
	Ends     []end
	Legend   []string
	Calm     bool // some load is followed by another
	Capacity string
	Idle     string
	Heads    []string
	Probes   [][]string
	Seen     []string
	Notes    []string
	Settings string
	Run      string
	Command  string
}

// An end is what may become of a request.
type end struct {
	Class, Name string
	of          func(*load.Result) int64
}

var pageEnds = []end{
	{"intime", "in time", func(l *load.Result) int64 { return l.InTime }},
	{"late", "just late", lateOf},
	{"refused", "refused", func(l *load.Result) int64 { return l.Refused }},
	{"gaveup", "gave up", func(l *load.Result) int64 { return l.TimedOut }},
	{"failed", "failed, foreign, lost or not sent", func(l *load.Result) int64 { return l.Failed + l.Unlike + l.Errors + l.Dropped + l.Aborted }},
}

// A bar is a load, and what became of its requests as shares of it.
type bar struct {
	Load   string
	Text   string // for whoever does not see it
	Slices []slice
}

// A slice is a part of a bar, in percent from its left.
type slice struct{ End, From, Width, Label string }

func (r *Report) page(data []byte) *page {
	p := &page{
		ContentPolicy: contentPolicy, Style: template.CSS(pageStyle), Script: template.JS(pageScript), Data: template.JS(data),
		Target: short(r.Target), Class: "no", Mark: "✗", Verdict: r.Verdict(),
		Reason: clean(sentence(r.reason())), Advice: r.advice(), Asked: len(r.Criteria),
		Rows: r.rows(), Ends: pageEnds, Legend: r.legend(), Capacity: clean(r.capacity()), Idle: clean(r.idle()),
		Heads: probeHeads, Probes: r.probes(), Seen: cleaned(r.seen()), Notes: cleaned(r.Notes), Settings: clean(r.settings()),
		Run: clean(joined(r.when(), r.Program)), Command: clean(r.Command),
	}
	switch {
	case r.Certified():
		p.Class, p.Mark = "yes", "✓"
	case p.Verdict == "no answer":
		p.Class, p.Mark = "void", "?"
	}
	p.Title = p.Verdict + " · goodput verify"
	if p.Target != "" {
		p.Title = p.Verdict + ": " + p.Target + " · goodput verify"
	}
	said := map[string]bool{}
	for _, c := range r.Criteria {
		c = Criterion{Name: clean(c.Name), Text: clean(c.Text), Met: c.Met, Measured: clean(c.Measured), Why: clean(sentence(c.Why))}
		if c.Met {
			p.Met = append(p.Met, c)
			continue
		}
		if said[c.Why] { // one cause may be behind several
			c.Why = ""
		}
		said[c.Why] = true
		p.NotMet = append(p.NotMet, c)
	}
	p.unjudged(r)
	for _, s := range r.steps() {
		p.Loads = append(p.Loads, loadOf(s.Load))
		p.Bars = append(p.Bars, barOf(s))
		p.Calm = p.Calm || s.Calm != nil
	}
	return p
}

// unjudged fills in the criteria without a verdict.
func (p *page) unjudged(r *Report) {
	p.UnjudgedHead = r.unjudgedHead()
	p.Unjudged, p.Unseen = r.open()
	for i, c := range p.Unjudged {
		p.Unjudged[i] = Open{Name: clean(c.Name), Text: clean(c.Text), Measured: clean(c.Measured), Why: clean(c.Why)}
	}
}

func cleaned(all []string) (out []string) {
	for _, s := range all {
		out = append(out, clean(s))
	}
	return out
}

// barOf is a step as shares of what was offered.
func barOf(s Step) bar {
	b := bar{Load: loadOf(s.Load)}
	from := 0.0
	for _, e := range pageEnds {
		x := shareOf(e.of(s.Result), s.Result.Offered)
		if !x.there() || x.x <= 0 {
			continue
		}
		one := slice{End: e.Class, From: wide(from), Width: wide(min(x.x, 1-from))}
		if x.x >= 0.08 { // less has no room for its number
			one.Label = x.show(asPercent)
		}
		b.Slices = append(b.Slices, one)
		b.Text += x.show(asPercent) + " % " + e.Name + " "
		from = min(from+x.x, 1)
	}
	return b
}

// wide is a share as a length in a bar.
func wide(share float64) string {
	return strconv.FormatFloat(100*min(max(share, 0), 1), 'f', 2, 64) + "%"
}
