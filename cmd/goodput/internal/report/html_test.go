package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func html(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.HTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// evil is a report in which every string is hostile.
func evil() *Report {
	r := withTenants(sample(3, 1), 2)
	r.Scenario, r.About, r.Rule, r.Measured, r.Why = hostile, hostile, hostile, hostile, hostile
	r.Program, r.Command, r.Notes = hostile, hostile, []string{hostile}
	r.Ceilings.Missing = []string{hostile}
	for i := range r.Policies {
		r.Policies[i].Name = hostile
		r.Policies[i].Runs[0].Tiers[0].Name = hostile
		r.Policies[i].Runs[0].Classes[1].Name = hostile
		r.Policies[i].Runs[0].Tenants[0].Name = hostile
	}
	r.Criteria[0].Text, r.Criteria[0].Measured = hostile, hostile
	return r
}

// TestWritten writes reports into a folder for the tests in a browser, which are in
// a module of their own, and for whoever wants to look at them.
func TestWritten(t *testing.T) {
	dir := os.Getenv("REPORT_DIR")
	if dir == "" {
		t.Skip("REPORT_DIR is not set")
	}
	for name, r := range map[string]*Report{
		"one": sample(len(shapes), 1), "runs": sample(4, 3), "single": sample(1, 1), "hostile": evil(),
		"layers": layered(1), "tenants": withTenants(sample(2, 3), 9), "zero": answeredIn(0, 20*time.Millisecond), "steps": answeredIn(96*time.Millisecond, 120*time.Millisecond),
		"alike": answeredIn(500*time.Millisecond, 500*time.Millisecond), "slow": slow(430 * time.Millisecond),
	} {
		var page, doc bytes.Buffer
		if err := r.HTML(&page); err != nil {
			t.Fatal(err)
		}
		if err := r.JSON(&doc); err != nil {
			t.Fatal(err)
		}
		for ext, b := range map[string]*bytes.Buffer{".html": &page, ".json": &doc} {
			if err := os.WriteFile(filepath.Join(dir, name+ext), b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The only scripts are the data and the one whose hash the page allows; whatever a
// name holds, there is no third. A browser would not run what has another hash, so
// a hash that is wrong is a page without charts.
func TestPageRunsItsOwnScriptAlone(t *testing.T) {
	for _, r := range []*Report{sample(2, 1), evil()} {
		got := html(t, r)
		if n := strings.Count(strings.ToLower(got), "<script"); n != 2 {
			t.Errorf("%d scripts, want 2", n)
		}
		if n := strings.Count(strings.ToLower(got), "<style"); n != 1 {
			t.Errorf("%d styles, want 1", n)
		}
		policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(got)
		if policy == nil {
			t.Fatal("no policy of content security")
		}
		allowed := strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(policy[1])
		for directive, pattern := range map[string]string{
			"script-src": `(?s)<script>(.*?)</script>`, "style-src": `(?s)<style>(.*?)</style>`,
		} {
			sum := sha256.Sum256([]byte(regexp.MustCompile(pattern).FindStringSubmatch(got)[1]))
			want := fmt.Sprintf("%s 'sha256-%s';", directive, base64.StdEncoding.EncodeToString(sum[:]))
			if !strings.Contains(allowed, want) {
				t.Errorf("%s is not in %s", want, allowed)
			}
		}
		if !strings.HasPrefix(allowed, "default-src 'none'; ") {
			t.Errorf("%s allows what it does not name", allowed)
		}
	}
}

// Nothing in the page is an address that a browser would fetch, and no attribute
// is a style or a handler, which the policy would refuse.
func TestPageIsSelfContained(t *testing.T) {
	got := html(t, sample(3, 2))
	shell := got[:strings.Index(got, "<style>")] + got[strings.Index(got, "</style>"):strings.Index(got, "<script")]
	if m := regexp.MustCompile(`(?i)(src|href|srcset|action)="([^"]*)"`).FindAllStringSubmatch(shell, -1); len(m) != 1 || m[0][2] != "data:," {
		t.Errorf("addresses %q, want the empty icon alone", m)
	}
	if m := regexp.MustCompile(`(?i)\s(style|on\w+)="`).FindString(shell); m != "" {
		t.Errorf("there is the attribute %s", m)
	}
	if regexp.MustCompile(`(?i)@import|url\(`).MatchString(style) {
		t.Error("the style sheet loads something")
	}
}

func TestNamesAreShownAsTheyAre(t *testing.T) {
	got := html(t, evil())
	if strings.Contains(got, "<script>alert") {
		t.Error("a name is a script")
	}
	if n := strings.Count(got, "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;"); n < 20 {
		t.Errorf("the names are shown %d times", n)
	}
}

func TestPageIsTheSameEachTime(t *testing.T) {
	first := html(t, sample(3, 2))
	if again := html(t, sample(3, 2)); again != first {
		t.Error("two pages of one report differ")
	}
}

func TestPageHasTheFiguresOfTheText(t *testing.T) {
	r := sample(3, 2)
	page, table := html(t, r), show(t, r, Columns, false)
	for _, p := range r.Policies {
		f := p.Figures()
		for _, c := range r.columns() {
			x := c.figure(&f)
			want := fmt.Sprintf(`<td data-key="%s">%s<`, c.Key, x.plain(c.unit))
			if !strings.Contains(page, want) {
				t.Errorf("the page has no %s", want)
			}
			if !strings.Contains(table, x.plain(c.unit)) || !strings.Contains(table, x.spread(c.unit)) {
				t.Errorf("the text has no %s %s", x.plain(c.unit), x.spread(c.unit))
			}
		}
	}
}

// The parts of a bar follow each other and fill it.
func TestBarsAreFull(t *testing.T) {
	for i, p := range sample(len(shapes), 1).Policies {
		at := 0.0
		for _, s := range (&Report{Policies: []Policy{p}}).rowOf(i, p, 1).Shares {
			var from, width float64
			if _, err := fmt.Sscanf(s.From+" "+s.Width, "%f%% %f%%", &from, &width); err != nil {
				t.Fatal(err)
			}
			if math.Abs(from-at) > 0.02 { // two roundings to 0.01
				t.Errorf("%s of %s begins at %v, and what is before it ends at %v", s.End, p.Name, from, at)
			}
			at = from + width
		}
		if math.Abs(at-100) > 0.02 {
			t.Errorf("the bar of %s ends at %v %%", p.Name, at)
		}
	}
}

// A part of the page that is not known is left out, not shown empty.
func TestPageOfLittle(t *testing.T) {
	r := sample(1, 1)
	r.Scenario, r.About, r.Rule, r.Why, r.Program, r.Command = "", "", "", "", "", ""
	r.Criteria, r.Notes, r.Policies[0].Runs[0].Series, r.Policies[0].Runs[0].Tiers = nil, nil, nil, nil
	got := html(t, r)
	for _, not := range []string{"Asked for", "Rule of thumb</dt>", "Why</dt>", "Depth of", "Again:", "Note:"} {
		if strings.Contains(got, not) {
			t.Errorf("it has %q and nothing to say there", not)
		}
	}
}
