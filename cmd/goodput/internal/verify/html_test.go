package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	stdhtml "html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goodput/goodput/cmd/goodput/internal/uplot"
)

func htmlOf(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.HTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestWritten writes reports into a folder for the tests in a browser, which are in a module
// of their own, and for whoever wants to look at them.
func TestWritten(t *testing.T) {
	dir := os.Getenv("VERIFY_DIR")
	if dir == "" {
		t.Skip("VERIFY_DIR is not set")
	}
	for name, r := range samples() {
		for ext, b := range map[string][]byte{".html": []byte(htmlOf(t, r)), ".json": jsonOf(t, r)} {
			if err := os.WriteFile(filepath.Join(dir, name+ext), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The only scripts are the data and the one whose hash the page allows; whatever a stranger
// said, there is no third. A browser would not run what has another hash, so a hash that is
// wrong is a page without charts.
func TestPageRunsItsOwnScriptAlone(t *testing.T) {
	for name, r := range samples() {
		got := htmlOf(t, r)
		if n := strings.Count(strings.ToLower(got), "<script"); n != 2 {
			t.Errorf("%s: %d scripts, want 2", name, n)
		}
		policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(got)
		if policy == nil {
			t.Fatal("no policy of content security")
		}
		allowed := stdhtml.UnescapeString(policy[1])
		for directive, pattern := range map[string]string{"script-src": `(?s)<script>(.*?)</script>`, "style-src": `(?s)<style>(.*?)</style>`} {
			sum := sha256.Sum256([]byte(regexp.MustCompile(pattern).FindStringSubmatch(got)[1]))
			if want := fmt.Sprintf("%s 'sha256-%s';", directive, base64.StdEncoding.EncodeToString(sum[:])); !strings.Contains(allowed, want) {
				t.Errorf("%s is not in %s", want, allowed)
			}
		}
		if !strings.HasPrefix(allowed, "default-src 'none'; ") {
			t.Errorf("%s allows what it does not name", allowed)
		}
	}
}

// Nothing in the page is an address that a browser would fetch, and no attribute is a style or
// a handler, which the policy would refuse.
func TestPageIsSelfContained(t *testing.T) {
	got := htmlOf(t, collapsedReport())
	shell := got[:strings.Index(got, "<style>")] + got[strings.Index(got, "</style>"):strings.Index(got, "<script")]
	if m := regexp.MustCompile(`(?i)(src|href|srcset|action)="([^"]*)"`).FindAllStringSubmatch(shell, -1); len(m) != 1 || m[0][2] != "data:," {
		t.Errorf("addresses %q, want the empty icon alone", m)
	}
	if m := regexp.MustCompile(`(?i)\s(style|on\w+)="`).FindString(shell); m != "" {
		t.Errorf("there is the attribute %s", m)
	}
	if regexp.MustCompile(`(?i)@import|url\(`).MatchString(pageStyle) {
		t.Error("the style sheet loads something")
	}
}

func TestPageShowsWhatStrangersSaid(t *testing.T) {
	got := htmlOf(t, hostileReport())
	if strings.Contains(got, "<script>alert") {
		t.Error("what somebody said is a script")
	}
	if n := strings.Count(got, "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;"); n < 20 {
		t.Errorf("it is shown %d times", n)
	}
	shell := got[:strings.Index(got, "<script type")]
	for _, c := range "\x1b\u202e" {
		if strings.ContainsRune(shell, c) {
			t.Errorf("%U reaches the page", c)
		}
	}
	if strings.Contains(got, strings.Repeat("9", 2*maxWords)) {
		t.Error("a header of 10 kB is shown in full")
	}
}

// Without its script the page has the verdict and every cell of the table.
func TestPageHasTheTableOfTheText(t *testing.T) {
	for _, r := range []*Report{certifiedReport(), collapsedReport(), voidReport()} {
		got := htmlOf(t, r)
		if !strings.Contains(got, `<span class="word">`+r.Verdict()+"<") {
			t.Errorf("no verdict %q", r.Verdict())
		}
		table := got[strings.Index(got, `id="figures"`):]
		table = table[:strings.Index(table, "</table>")]
		for _, row := range r.rows() {
			want := row.Name + `</th><td class="unit">` + row.Unit + "</td>"
			for _, cell := range row.Cells {
				want += "<td>" + cell + "</td>"
			}
			if !strings.Contains(table, want) {
				t.Errorf("the table has no %s", want)
			}
		}
		for _, c := range r.Criteria {
			if !strings.Contains(got, "<b>"+c.Name+"</b>") {
				t.Errorf("no criterion %s", c.Name)
			}
		}
	}
}

func TestPageIsTheSameEachTime(t *testing.T) {
	first := htmlOf(t, hostileReport())
	if again := htmlOf(t, hostileReport()); again != first {
		t.Error("two pages of one report differ")
	}
}

// Each load has a bar, with a part for each end that it has, as it is read by who does not see it.
func TestPageHasABarForEachLoad(t *testing.T) {
	for name, r := range samples() {
		got := htmlOf(t, r)
		steps := r.steps()
		if n := strings.Count(got, `<svg width="100%" height="22" role="img"`); n != len(steps) && len(r.rows()) > 0 {
			t.Errorf("%s: %d bars, want %d", name, n, len(steps))
		}
		for _, s := range steps {
			b := barOf(s)
			want := "<div><dt>" + stdhtml.EscapeString(b.Load) + `</dt><dd><svg width="100%" height="22" role="img" aria-label="` + b.Text + `">`
			for _, part := range b.Slices {
				want += `<rect class="` + part.End + `" x="` + part.From + `" width="` + part.Width + `" height="22"/>`
				if part.Label != "" {
					want += `<svg x="` + part.From + `" width="` + part.Width + `" height="22" overflow="visible"><text class="on-` + part.End +
						`" x="50%" y="15.5" text-anchor="middle">` + part.Label + `</text></svg>`
				}
			}
			if !strings.Contains(got, want+"</svg></dd></div>") {
				t.Errorf("%s: the page has no %s", name, want)
			}
		}
	}
}

// The script is the library of the charts and what draws them, after it, and the same holds of
// the style: without one of the two a page has no charts, and nobody is told.
func TestPageHasBothOfItsScripts(t *testing.T) {
	got := htmlOf(t, certifiedReport())
	if !strings.Contains(got, "<script>"+uplot.JS+"\n"+pageJS+"</script>") {
		t.Error("the script is not the charts' library and the page's own")
	}
	if !strings.Contains(got, "<style>"+uplot.CSS+"\n"+pageCSS+"</style>") {
		t.Error("the style is not that of the charts and the page's own")
	}
	for _, id := range []string{"data", "byload", "bystep", "byprobe", "status"} {
		if strings.Count(got, ` id="`+id+`"`) != 1 || !strings.Contains(pageJS, `"`+id+`"`) {
			t.Errorf("the page and its script do not agree on %q", id)
		}
	}
}

// What is on the page beside the table: whatever the report says of the rest is there.
func TestPageSaysWhatTheTextSays(t *testing.T) {
	for name, r := range samples() {
		shell, _, _ := strings.Cut(htmlOf(t, r), "<script type")
		text := stdhtml.UnescapeString(shell)
		p := r.page(nil)
		want := append([]string{p.Reason, p.Advice, p.Capacity, p.Idle, p.Settings, p.Run, p.Command}, p.Seen...)
		want = append(want, p.Notes...)
		for _, c := range append(p.Met, p.NotMet...) {
			want = append(want, c.Text, c.Measured, c.Why)
		}
		for _, c := range p.Unjudged {
			want = append(want, c.Text, c.Measured, c.Why)
		}
		want = append(want, p.Unseen)
		for _, probe := range p.Probes {
			want = append(want, ">"+strings.Join(probe[1:], "</td><td>")+"<")
		}
		if len(p.Rows) > 0 && len(p.Loads) > 0 {
			want = append(want, p.Legend...)
		}
		for _, s := range want {
			if !strings.Contains(text, s) {
				t.Errorf("%s: the page does not say %q", name, s)
			}
		}
	}
}

// A bar is full, to a rounding of each of its ends.
func TestBarsAreFull(t *testing.T) {
	for _, s := range append(certifiedReport().Steps, collapsedReport().Steps...) {
		sum := 0.0
		for _, part := range barOf(s).Slices {
			var x float64
			if _, err := fmt.Sscanf(part.Width, "%f%%", &x); err != nil {
				t.Fatal(err)
			}
			sum += x
		}
		if sum < 99.9 || sum > 100.1 {
			t.Errorf("the bar of %vx is %.2f %% long", s.Load, sum)
		}
	}
}

// Up to six loads stand side by side on a phone; of more the page says that they are there.
func TestPageOfManyLoadsSaysSo(t *testing.T) {
	const few, hint = `<div class="scroll few" role="group" aria-labelledby="loads"`, "Scroll the table sideways: it has "
	for loads, want := range map[int]string{1: few, 5: few, 6: few, 7: hint + "7 loads.", 10: hint + "10 loads."} {
		r := certifiedReport()
		r.Steps = append(r.Steps, r.Steps...)[:loads]
		got := htmlOf(t, r)
		if strings.Contains(got, few) != (want == few) || !strings.Contains(got, want) || strings.Contains(got, hint) != (want != few) {
			t.Errorf("%d loads: no %q", loads, want)
		}
	}
}
