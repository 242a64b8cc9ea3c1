//go:build linux

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/goodput/goodput/e2e/internal/rig"
)

// small is the narrowest phone that a report is read on.
var small = view{"small", 360, 740, "dark"}

// verdicts writes the reports that the tests of package verify make by hand.
func verdicts(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "test", "-count=1", "-run", "^TestWritten$", "./internal/verify")
	cmd.Dir = "../cmd/goodput"
	cmd.Env = append(os.Environ(), "VERIFY_DIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("writing the reports: %v\n%s", err, out)
	}
	return dir
}

// faint are texts whose contrast to what is behind them is less than 4.5, which WCAG 2.2 asks
// for in 1.4.3, and lines and bars that have less than 3 (1.4.11).
const faint = `(() => {
	const lum = (c) => {
		const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const ratio = (a, b) => { const [x, y] = [lum(a), lum(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
	const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
	const rgb = (css) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
	const ground = (e) => {
		for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c.slice(0, 3); }
		return [255, 255, 255];
	};
	const out = [];
	const walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
	for (let n = walk.nextNode(); n; n = walk.nextNode()) {
		const e = n.parentElement;
		if (!n.textContent.trim() || e.closest("svg, noscript") || !e.checkVisibility()) continue;
		const r = ratio(rgb(getComputedStyle(e).color).slice(0, 3), ground(e));
		if (r < 4.5) out.push(n.textContent.trim().slice(0, 40) + " " + r.toFixed(2));
	}
	const style = getComputedStyle(document.documentElement);
	const named = (name) => rgb(style.getPropertyValue(name)).slice(0, 3);
	for (const name of ["--intime", "--late", "--refused", "--gaveup", "--failed"]) {
		const r = ratio(named("--on-bar"), named(name));
		if (r < 4.5) out.push("number on " + name + " " + r.toFixed(2));
	}
	for (const name of ["--intime", "--late", "--refused", "--gaveup", "--failed", "--p50", "--p99", "--p999", "--refusal", "--muted"]) {
		const r = ratio(named(name), named("--ground"));
		if (r < 3) out.push("line " + name + " " + r.toFixed(2));
	}
	return out;
})()`

// TestVerdictInBrowser opens each report as a file on each screen: its charts are there, it
// fits, everything on it can be read, and it complains of nothing and asks for nothing.
func TestVerdictInBrowser(t *testing.T) {
	rig.Need(t, "chromium")
	dir, browser := verdicts(t), chromium(t)
	for name, charts := range map[string]int{"certified": 9, "collapsed": 9, "void": 9, "hostile": 9, "dead": 0, "nothing": 0} {
		for _, v := range []view{light, dark, small} {
			t.Run(name+"/"+v.name, func(t *testing.T) {
				p := open(t, browser, filepath.Join(dir, name+".html"), v)
				p.shot("verify-" + name + "-" + v.name)
				p.drawn(charts)
				if wide := eval[int](p, `document.documentElement.scrollWidth`); int64(wide) > v.width {
					t.Errorf("the page is %d wide on a screen of %d", wide, v.width)
				}
				for _, s := range eval[[]string](p, faint) {
					t.Errorf("too little contrast: %s", s)
				}
				carriesIts(p, filepath.Join(dir, name+".json"))
				p.quiet()
			})
		}
	}
}

// carriesIts checks that the page has the JSON of the file, and a row for each of its figures
// that says the same.
func carriesIts(p *tab, path string) {
	p.t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	var file, page any
	if err := json.Unmarshal(raw, &file); err != nil {
		p.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(eval[string](p, `document.getElementById("data").textContent`)), &page); err != nil {
		p.t.Fatal(err)
	}
	if !reflect.DeepEqual(file, page) {
		p.t.Error("the page carries another JSON than the file")
	}
	wrong := eval[[]string](p, `(() => {
		const doc = JSON.parse(document.getElementById("data").textContent), scale = { "/s": 1, "%": 100, "ms": 1000, "s": 1, "": 1 };
		return [...document.querySelectorAll("#figures tr[data-key]")].flatMap((tr) => {
			const unit = tr.cells[1].textContent;
			return doc.steps.flatMap((s, i) => {
				const x = s.figures[tr.dataset.key], shown = tr.cells[2 + i].textContent.replace("≥", "");
				if (x === undefined) return [];
				const half = 0.5001 * 10 ** -(shown.split(".")[1] || "").length;
				return (x === null ? shown === "–" : Math.abs(x * scale[unit] - Number(shown)) <= half) ? [] : [tr.dataset.key + " is " + shown + " and was " + x];
			});
		});
	})()`)
	for _, w := range wrong {
		p.t.Error(w)
	}
}

// What the table says the charts show, for the eye and for whoever reads them with the keyboard.
func TestVerdictAnswersItsReader(t *testing.T) {
	rig.Need(t, "chromium")
	dir, browser := verdicts(t), chromium(t)
	p := open(t, browser, filepath.Join(dir, "collapsed.html"), light)

	before := eval[[]string](p, pictures)
	p.do(prefers("dark"))
	p.settle()
	for i, now := range eval[[]string](p, pictures) {
		if now == before[i] {
			t.Errorf("chart %d is the same in the dark", i)
		}
	}
	p.do(prefers("light"))
	p.settle()

	eval[bool](p, `(document.querySelector(".plot").focus(), true)`)
	p.do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.End))
	p.settle()
	if said := eval[string](p, `document.getElementById("status").textContent`); said != "10x: in time 0/s, ideal 400/s" {
		t.Errorf("the last point of the first chart reads %q", said)
	}
	label := eval[string](p, `[...document.querySelectorAll("#bystep .plot")].at(-1).getAttribute("aria-label")`)
	if !strings.HasPrefix(label, "Load 10x, ") || !strings.Contains(label, "not recovered") || !strings.Contains(label, "in time: from 0/s to 0/s") {
		t.Errorf("the last chart is called %q", label)
	}
	rows := eval[int](p, `(() => {
		const d = [...document.querySelectorAll("#bystep details.data")].at(-1);
		d.querySelector("summary").click();
		return new Promise(done => setTimeout(() => done(d.querySelectorAll("tbody tr").length), 100));
	})()`)
	if rows != 150 {
		t.Errorf("the table under the last chart has %d rows, want one for each of 150 bins of a load of 10 s and 5 s after it", rows)
	}
	p.quiet()
}

// Without its script the page still has the answer and the figures, and no empty charts.
func TestVerdictWithoutScript(t *testing.T) {
	rig.Need(t, "chromium")
	dir, browser := verdicts(t), chromium(t)
	path := filepath.Join(dir, "collapsed.html")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	from := strings.LastIndex(page, "<script>")
	page = page[:from] + page[from+strings.Index(page[from:], "</script>"):]
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	p := open(t, browser, path, light)
	p.shot("verify-without-script")
	said := eval[string](p, `document.body.innerText`)
	for _, want := range []string{"Not certified", "4 of 11 criteria are not met", "no-hanging", "≥2000", "The search, in its order"} {
		if !strings.Contains(said, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(said, "Over time") {
		t.Error("there is a place for charts that are not drawn")
	}
	p.quiet()
}
