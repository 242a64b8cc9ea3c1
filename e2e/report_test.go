//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/goodput/goodput/e2e/internal/rig"
)

// A view is a screen that a report is read on.
type view struct {
	name          string
	width, height int64
	scheme        string // prefers-color-scheme
}

var (
	light = view{"light", 1280, 900, "light"}
	dark  = view{"dark", 1280, 900, "dark"}
	phone = view{"phone", 390, 844, "light"}
)

// reports writes the reports that the tests of the package make: of several
// policies, of several seeds, of one policy, and one whose names are scripts.
func reports(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "test", "-count=1", "-run", "^TestWritten$", "./internal/report")
	cmd.Dir = "../cmd/goodput"
	cmd.Env = append(os.Environ(), "REPORT_DIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("writing the reports: %v\n%s", err, out)
	}
	return dir
}

// chromium starts one browser for a test and all its views.
func chromium(t *testing.T) context.Context {
	t.Helper()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(rig.Need(t, "chromium")), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox,
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal("starting Chromium: ", err)
	}
	return ctx
}

// A tab is one report in one view, with what it said and asked for.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	said     []string // on the console, of any level above information
	asked    []string // addresses that it wanted
	dialogs  int
	original string
}

func open(t *testing.T, browser context.Context, path string, v view) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx, original: "file://" + path}
	if err := chromedp.Listen(ctx, p.heard); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.EmulateViewport(v.width, v.height), prefers(v.scheme), chromedp.Navigate(p.original))
	p.settle()
	return p
}

// heard keeps what the browser reports of the tab.
func (p *tab) heard(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		said := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			said += " " + x.Description
		}
		p.said = append(p.said, "exception: "+said)
	case *runtime.EventConsoleAPICalled:
		p.said = append(p.said, "console: "+string(e.Type))
	case *log.EventEntryAdded:
		p.said = append(p.said, "log: "+e.Entry.Text)
	case *network.EventRequestWillBeSent:
		p.asked = append(p.asked, e.Request.URL)
	case *page.EventJavascriptDialogOpening:
		p.dialogs++
	}
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 30*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// settle waits for two frames: observers of sizes have run, and charts are drawn.
func (p *tab) settle() {
	p.t.Helper()
	eval[bool](p, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(true)))))`)
}

func eval[T any](p *tab, js string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 30*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", js, err)
	}
	return v
}

func prefers(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// quiet checks that the page complained of nothing and loaded nothing but itself.
func (p *tab) quiet() {
	p.t.Helper()
	if own, asked := p.complaints(func(u string) bool { return u == p.original }); own != 1 {
		p.t.Errorf("the page was asked for %d times among %q: the count of requests is not to be trusted", own, asked)
	}
}

// complaints are an error each: what the page said, dialogs, and requests for what is not its
// own. It returns how many were for what is, and all that was asked for.
func (p *tab) complaints(isOwn func(url string) bool) (own int, asked []string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.said {
		p.t.Errorf("the page says: %s", s)
	}
	if p.dialogs > 0 {
		p.t.Errorf("%d dialogs: a name has run as a script", p.dialogs)
	}
	for _, u := range p.asked {
		switch {
		case isOwn(u):
			own++
		case !strings.HasPrefix(u, "data:"):
			p.t.Errorf("it asks for %s", u)
		}
	}
	return own, slices.Clone(p.asked)
}

// inked is the number of pixels that are drawn on, for each canvas.
const inked = `[...document.querySelectorAll("canvas")].map(c => {
	const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
	let n = 0;
	for (let i = 3; i < d.length; i += 4) if (d[i] > 0) n++;
	return n;
})`

// pictures are what is on each canvas.
const pictures = `[...document.querySelectorAll("canvas")].map(c => c.toDataURL())`

// drawn checks that each chart is there and has lines on it. A grid alone of six
// lines each way on 500 x 200 points has 4,000 pixels; axes with numbers and lines
// have more.
func (p *tab) drawn(charts int) {
	p.t.Helper()
	ink := eval[[]int](p, inked)
	if len(ink) != charts {
		p.t.Errorf("%d charts, want %d", len(ink), charts)
	}
	for i, n := range ink {
		if n < 3000 {
			p.t.Errorf("chart %d has %d pixels that are drawn on", i, n)
		}
	}
}

// shot keeps a picture of the whole page if REPORT_SHOTS names a folder.
func (p *tab) shot(name string) {
	p.t.Helper()
	dir := os.Getenv("REPORT_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		p.t.Error(err)
	}
}

// TestReportInBrowser opens each report as a file on each screen.
func TestReportInBrowser(t *testing.T) {
	rig.Need(t, "chromium")
	dir, browser := reports(t), chromium(t)
	for _, name := range []string{"one", "runs", "single", "hostile", "layers"} {
		for _, v := range []view{light, dark, phone} {
			t.Run(name+"/"+v.name, func(t *testing.T) {
				p := open(t, browser, filepath.Join(dir, name+".html"), v)
				p.shot(name + "-" + v.name)
				p.drawn(8)
				if wide := eval[int](p, `document.documentElement.scrollWidth`); int64(wide) > v.width {
					t.Errorf("the page is %d wide on a screen of %d", wide, v.width)
				}
				if n := eval[int](p, `document.querySelectorAll("script").length`); n != 2 {
					t.Errorf("%d scripts, want its data and its own", n)
				}
				tabled(p, filepath.Join(dir, name+".json"))
				p.quiet()
			})
		}
	}
}

// Each latency has a chart: 0, which has no place on a logarithmic axis; 96 ms, from
// which uPlot's steps along such an axis never arrive; and one that all have.
func TestReportOfAnyLatency(t *testing.T) {
	rig.Need(t, "chromium")
	dir, browser := reports(t), chromium(t)
	for _, name := range []string{"zero", "steps", "alike", "slow"} {
		t.Run(name, func(t *testing.T) {
			p := open(t, browser, filepath.Join(dir, name+".html"), light)
			p.shot(name)
			p.drawn(8)
			if at := eval[string](p, `[...document.querySelectorAll("figcaption")].map(c => c.textContent).find(c => c.startsWith("Latency"))`); strings.Contains(at, "10 µs") != (name == "zero" || name == "slow") {
				t.Errorf("the chart of latencies says %q", at)
			}
			p.quiet()
		})
	}
}

// Of several tiers the series are about the first, and each chart of them says so.
func TestReportNamesTheTier(t *testing.T) {
	rig.Need(t, "chromium")
	dir, browser := reports(t), chromium(t)
	p := open(t, browser, filepath.Join(dir, "layers.html"), light)
	said := strings.Join(eval[[]string](p, `[...document.querySelectorAll("figcaption")].map(c => c.textContent)`), "\n")
	for _, want := range []string{"longest in gateway, the first of 2 tiers", "Queue of gateway", "Queue age of gateway", "Limit of gateway"} {
		if !strings.Contains(said, want) {
			t.Errorf("no chart says %q:\n%s", want, said)
		}
	}
	p.quiet()
}

// tabled checks the figures of the table against those of the JSON file, to half
// of the last digit that is shown, and that the page carries the same JSON.
func tabled(p *tab, path string) {
	p.t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	if carried := eval[string](p, `document.getElementById("data").textContent`); carried != strings.TrimSpace(string(raw)) {
		p.t.Error("the page carries another JSON than the file")
	}
	var doc struct {
		Policies []struct {
			Name    string
			Figures map[string]*struct {
				Mean  float64
				Error *float64 `json:"standard_error"`
			}
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		p.t.Fatal(err)
	}
	type cell struct{ Policy, Key, Mean, Spread string }
	cells := eval[[]cell](p, `[...document.querySelectorAll("#figures td[data-key]")].map(td => ({
		policy: td.parentElement.querySelector("th").textContent, key: td.dataset.key,
		mean: td.firstChild.textContent, spread: td.querySelector(".spread")?.textContent ?? "",
	}))`)
	// After the name and the bar; which there are depends on what there is to say.
	columns := eval[int](p, `document.querySelectorAll("#figures thead th").length`) - 2
	if columns < 7 || len(cells) != columns*len(doc.Policies) {
		p.t.Fatalf("%d cells for %d policies, want %d each", len(cells), len(doc.Policies), columns)
	}
	for i, c := range cells {
		policy := doc.Policies[i/columns]
		f := policy.Figures[c.Key]
		if c.Policy != policy.Name {
			p.t.Errorf("row of %q, want %q", c.Policy, policy.Name)
		}
		if f == nil {
			if c.Mean != "–" {
				p.t.Errorf("%s of %s is %s, and there is none", c.Key, c.Policy, c.Mean)
			}
			continue
		}
		near(p, c.Key+" of "+c.Policy, c.Mean, f.Mean*scale(c.Key))
		if f.Error != nil {
			near(p, "spread of "+c.Key+" of "+c.Policy, strings.TrimPrefix(c.Spread, "±"), *f.Error*scale(c.Key))
		} else if c.Spread != "" {
			p.t.Errorf("%s of %s has %s, of one run", c.Key, c.Policy, c.Spread)
		}
	}
}

// scale is the unit of the table in that of the JSON: milliseconds and percent.
func scale(key string) float64 {
	switch {
	case strings.HasSuffix(key, "_seconds"):
		return 1000
	case strings.HasSuffix(key, "_ratio"):
		return 100
	}
	return 1
}

// near checks that shown is want, rounded to as many decimals as it has.
func near(p *tab, what, shown string, want float64) {
	p.t.Helper()
	x, err := strconv.ParseFloat(shown, 64)
	_, decimals, _ := strings.Cut(shown, ".")
	if half := 0.5 * math.Pow(10, -float64(len(decimals))); err != nil || math.Abs(x-want) > half*(1+1e-9) {
		p.t.Errorf("%s is shown as %q and is %v", what, shown, want)
	}
}

// A reader who changes the theme, hides a policy, reads a chart with the keyboard
// or wants its numbers gets them.
func TestReportAnswersItsReader(t *testing.T) {
	rig.Need(t, "chromium")
	dir, browser := reports(t), chromium(t)
	p := open(t, browser, filepath.Join(dir, "one.html"), light)

	before := eval[[]string](p, pictures)
	ground := eval[string](p, `getComputedStyle(document.body).backgroundColor`)
	p.do(prefers("dark"))
	p.settle()
	if now := eval[string](p, `getComputedStyle(document.body).backgroundColor`); now == ground {
		t.Errorf("the ground is %s in the dark too", now)
	}
	for i, now := range eval[[]string](p, pictures) {
		if now == before[i] {
			t.Errorf("chart %d is the same in the dark", i)
		}
	}
	p.do(prefers("light"))
	p.settle()

	eval[bool](p, `(document.querySelectorAll("#choose input")[1].click(), true)`)
	p.settle()
	for i, now := range eval[[]string](p, pictures) {
		if compared := i < 4; (now == before[i]) == compared {
			t.Errorf("without one policy chart %d changes: %v, want %v", i, now != before[i], compared)
		}
	}

	eval[bool](p, `(document.querySelector(".plot").focus(), true)`)
	p.do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.End))
	p.settle()
	said := eval[string](p, `document.getElementById("status").textContent`)
	if !strings.HasPrefix(said, "60 s: goodput ") || strings.Contains(said, " fifo ") {
		t.Errorf("the last point of the first chart reads %q", said)
	}

	rows := eval[int](p, `(() => {
		document.querySelector("details.data summary").click();
		return new Promise(done => setTimeout(() => done(document.querySelectorAll("details.data tbody tr").length), 100));
	})()`)
	if rows != 120 {
		t.Errorf("the table under the first chart has %d rows, want one for each of 120 points", rows)
	}

	eval[bool](p, `(document.querySelectorAll("details.policy > summary")[2].click(), true)`)
	p.settle()
	p.drawn(12)
	p.quiet()
}

// On paper the page is light, and nothing is lost at its edge.
func TestReportOnPaper(t *testing.T) {
	rig.Need(t, "chromium")
	dir, browser := reports(t), chromium(t)
	p := open(t, browser, filepath.Join(dir, "one.html"), dark)
	eval[bool](p, `(addEventListener("beforeprint", () => { window.paper = getComputedStyle(document.body).backgroundColor; }), true)`)
	pdf, err := chromedp.Run(p.ctx, func(ctx context.Context, target *chromedp.Target) ([]byte, error) {
		yes := true
		r, err := cdp.Call(ctx, target, page.PrintToPDF, page.PrintToPDFParams{PrintBackground: &yes})
		return r.Data, err
	})
	if err != nil || len(pdf) < 20_000 {
		t.Fatalf("%d bytes of PDF, %v", len(pdf), err)
	}
	if dir := os.Getenv("REPORT_SHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "paper.pdf"), pdf, 0o644); err != nil {
			t.Error(err)
		}
	}
	if paper := eval[string](p, `window.paper`); paper != "rgb(255, 255, 255)" {
		t.Errorf("the paper is %s", paper)
	}
	p.quiet()
}
