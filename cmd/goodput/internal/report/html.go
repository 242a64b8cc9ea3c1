package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/uplot"
	"github.com/goodput/goodput/internal/sim"
)

// What the page is made of. The two scripts are one element, and so are the two
// style sheets: their hashes are what the page allows to run.
var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string
)

var (
	style  = uplot.CSS + "\n" + pageCSS
	script = uplot.JS + "\n" + pageJS

	// contentPolicy keeps the page from loading anything at all and from running
	// anything but its own script. A hash and not a nonce: a nonce in a file is the
	// same for whoever reads it, and a file is the same each time it is written.
	contentPolicy = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'",
		hash(script), hash(style))

	tmpl = template.Must(template.New("page").Parse(pageHTML))
)

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// HTML writes r as one file that needs no network: tables and bars are in it as they
// are read, charts are drawn by its script from the JSON that it carries.
func (r *Report) HTML(w io.Writer) error {
	if err := r.check(); err != nil {
		return err
	}
	// Marshal escapes <, > and &, so no name in it can end the element.
	data, err := json.Marshal(r.document())
	if err != nil {
		return err
	}
	var b bytes.Buffer // a half page is worse than none
	if err := tmpl.Execute(&b, r.page(data)); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// A page is what the template shows.
type page struct {
	*Report
	Title         string
	ContentPolicy string
	Style         template.CSS
	Script, Data  template.JS

	SaidMeasured string
	Met          int // of the criteria
	Seeds        string
	Heads        []column
	Legend       []string
	Users        string
	After        int // columns to the right of a ceiling's
	Rows         []row
	Whole        string // where 100 % is in a bar, in percent of the longest; "" at its end
	Bounds       []bound
	Ends         []end
	Derivations  []derived
	Details      []detail
}

// A row is a policy in the table that compares them.
type row struct {
	Place  int // of its colour
	Name   string
	Bar    string // width in percent of the longest
	Cells  []cell
	Shares []slice // of its requests, by end
}

type cell struct{ Key, Mean, Spread string }

type bound struct{ Name, Rate, Ratio, Bar string }

// A slice is a part of a bar, in percent from the left.
type slice struct{ End, From, Width, Label string }

// An end is one of the five that a request has.
type end struct{ Class, Name, About string }

var ends = []end{
	{"intime", "in time", "answered before the deadline"},
	{"late", "late", "answered after it, or given up"},
	{"refused", "refused", "told no"},
	{"failed", "failed", "lost"},
	{"kept", "kept", "told no by its own client, without a call"},
}

// A detail is the chapter on one policy. Its counts are of the first run.
type detail struct {
	Row     row
	Goodput string
	Seed    uint64
	Depths  []derived
	Counts  []counted // of the total, then of each class if there are several
	Reasons []pair
	Tenants []tenancy
	Tiers   []sim.TierResult
	Again   bool // some tier was sent calls again, or calls to it were kept at home
	Kept    bool // clients kept requests at home
}

// A tenancy is a tenant in the table of a policy.
type tenancy struct {
	Name                                          string
	Asked, Entitled, Granted, Ratio, Refused, P99 string
	Reasons                                       []pair // of the first run
}

type counted struct {
	Name                                                                     string
	Requests, InTime, Share, Late, Refused, Failed, Kept, Attempts, P50, P99 string
}

type pair struct{ Name, Value string }

func (r *Report) page(data []byte) *page {
	p := &page{
		Report: r, Title: "goodput report", ContentPolicy: contentPolicy,
		Style: template.CSS(style), Script: template.JS(script), Data: template.JS(data),
		SaidMeasured: r.measured(), Met: r.met(), Seeds: r.seeds(), Heads: r.columns(), Legend: r.legend(), Users: r.users(),
		Ends: ends, Derivations: r.derivations(),
	}
	p.After = len(p.Heads) - 3 // offered, goodput, goodput %
	if r.Scenario != "" {
		p.Title = r.Scenario + " · " + p.Title
	}
	longest := r.longest()
	if !r.keeps() {
		p.Ends = ends[:len(ends)-1]
	}
	if longest > 1 {
		p.Whole = width(1 / longest)
	}
	for i, one := range r.Policies {
		at := r.rowOf(i, one, longest)
		p.Rows = append(p.Rows, at)
		p.Details = append(p.Details, detailOf(one, at))
	}
	for _, c := range r.ceilings() {
		p.Bounds = append(p.Bounds, bound{c.Name, rate.show(c.Rate), percent.show(c.Ratio), width(c.Ratio / longest)})
	}
	return p
}

// longest is the goodput ratio that the longest bar stands for: 1, or more where a
// ceiling is. All bars have one scale, or 100 would look like 214.
func (r *Report) longest() float64 {
	x := 1.0
	for _, p := range r.Policies {
		x = max(x, p.Figures().Ratio.Mean)
	}
	for _, c := range r.ceilings() {
		x = max(x, c.Ratio)
	}
	return x
}

// palette is the number of colours in page.css; further policies take them again,
// with other dashes.
const palette = 8

func (r *Report) rowOf(i int, p Policy, longest float64) row {
	f := p.Figures()
	out := row{Place: i % palette, Name: p.Name, Bar: width(f.Ratio.Mean / longest)}
	for _, c := range r.columns() {
		x := c.figure(&f)
		out.Cells = append(out.Cells, cell{c.Key, x.plain(c.unit), x.spread(c.unit)})
	}
	in := Figure{Mean: 1 - f.Late.Mean - f.Refused.Mean - f.Failed.Mean - f.Kept.Mean}
	from := 0.0
	for k, x := range []Figure{in, f.Late, f.Refused, f.Failed, f.Kept} {
		s := slice{End: ends[k].Class, From: width(from), Width: width(x.Mean)}
		if x.Mean >= 0.08 { // less has no room for its number
			s.Label = percent.show(x.Mean)
		}
		if f.Offered.Mean > 0 && x.Mean > 0 {
			out.Shares = append(out.Shares, s)
		}
		from += x.Mean
	}
	return out
}

// width is a share as the length of a bar.
func width(share float64) string {
	return strconv.FormatFloat(100*min(max(share, 0), 1), 'f', 2, 64) + "%"
}

func detailOf(p Policy, at row) detail {
	run := p.Runs[0]
	d := detail{
		Row: at, Goodput: p.Figures().Ratio.plain(percent), Seed: run.Seed,
		Depths: (&Report{Policies: []Policy{p}}).derivations(), Tiers: run.Tiers,
		Counts: []counted{countedOf("all", &run.Total)},
	}
	if len(run.Classes) > 1 {
		for k := range run.Classes {
			d.Counts = append(d.Counts, countedOf(run.Classes[k].Name, &run.Classes[k]))
		}
	}
	d.Reasons, d.Kept = reasonsOf(&run.Total), run.Total.Kept > 0
	for k := range run.Tiers {
		d.Again = d.Again || run.Tiers[k].Again > 0 || run.Tiers[k].Kept > 0
	}
	for k, t := range p.tenants() {
		d.Tenants = append(d.Tenants, tenancy{
			Name: t.Name, Asked: t.Asked.plain(rate), Entitled: t.Entitled.plain(rate), Granted: t.Granted.plain(rate),
			Ratio: t.Ratio.plain(percent), Refused: t.Refused.plain(percent), P99: t.P99.plain(millis),
			Reasons: reasonsOf(&run.Tenants[k].Tally),
		})
	}
	return d
}

func countedOf(name string, t *sim.Tally) counted {
	show := func(q float64) string {
		d, ok := t.Latency.Quantile(q)
		if !ok {
			return "–"
		}
		return millis.show(d.Seconds())
	}
	share := "–"
	if t.Requests > 0 {
		share = percent.show(float64(t.InTime) / float64(t.Requests))
	}
	return counted{
		Name: name, Requests: thousands(t.Requests), InTime: thousands(t.InTime), Share: share, Late: thousands(t.Late),
		Refused: thousands(t.Refused), Failed: thousands(t.Failed), Kept: thousands(t.Kept), Attempts: thousands(t.Attempts),
		P50: show(0.50), P99: show(0.99),
	}
}

// thousands is n with a blank that does not break between groups of three digits.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteRune('\u202f')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// Millis is d in milliseconds, for the template.
func (d detail) Millis(x time.Duration) string { return millis.show(x.Seconds()) }

// Bytes is n in the unit that leaves it above one, for the template.
func (d detail) Bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	x, k := float64(n), 0
	for x >= 1024 && k < len(units)-1 {
		x, k = x/1024, k+1
	}
	return count.show(x) + " " + units[k]
}

// Thousands is n in groups of three digits, for the template.
func (d detail) Thousands(n int) string { return thousands(uint64(max(n, 0))) }

// AboutTenants explains the table of tenants, for the template.
func (p *page) AboutTenants() string { return aboutTenants }

// Count is Thousands for what is never negative.
func (d detail) Count(n uint64) string { return thousands(n) }
