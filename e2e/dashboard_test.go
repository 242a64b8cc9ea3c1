//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/goodput/goodput/e2e/internal/openloop"
	"github.com/goodput/goodput/e2e/internal/rig"
)

// narrow is the smallest phone that the page is for.
var narrow = view{"phone", 360, 760, "light"}

// watched is a policy of two classes, of which the tests overload the first: 4 slots of 20 ms
// are 200/s.
const watched = `version: 1
listen: 127.0.0.1:0
upstream: http://%s
trusted_proxies: [127.0.0.1/32]
classes:
  - name: search
    tenant: {header: X-Tenant}
    tenants:
      rows:
        - {id: %q}
        - {id: %q}
        - {id: %q}
        - {id: %q}
    match: {path: /search}
    limit: 4
    objective: 300ms
    service: 20ms
  - name: rest
    limit: 20
    objective: 1s
`

// strangers are tenants whose names are attacks: on a page that takes them for markup, on one
// that breaks lines at blanks alone, and on one that is read from left to right. They have rows
// in the policy, since all others share one.
var strangers = []any{`<img src=x onerror=alert(1)>`, `</td><script>alert(2)</script>`, strings.Repeat("w", 120), "مرحبا evil"}

// A dashboard is goodput serve at a fixed admin address, so that it can come back there.
type dashboard struct {
	*rig.Proxy
	policy, admin string
}

func serveWatched(t *testing.T) *dashboard {
	t.Helper()
	upstream := rig.Handle(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(20 * time.Millisecond)
		io.WriteString(w, "ok") //nolint:errcheck // whoever asked has left
	}))
	d := &dashboard{policy: rig.File(t, "goodput.yaml", fmt.Sprintf(watched, append([]any{upstream}, strangers...)...)), admin: rig.FreeAddr(t)}
	d.start(t)
	return d
}

func (d *dashboard) start(t *testing.T) {
	t.Helper()
	d.Proxy = rig.Serve(t, "serve", "--config", d.policy, "--admin", d.admin, "--log-format", "json")
}

// load offers three times the capacity of /search, and a little from strangers, until it is
// stopped, or for 20 s.
func (d *dashboard) load() (stop func()) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	var all sync.WaitGroup
	all.Go(func() {
		openloop.Run(ctx, openloop.Plan{URL: d.URL() + "/search", Rate: 600, Duration: 20 * time.Second, Judged: time.Second, Seed: 1})
	})
	for _, tenant := range strangers {
		all.Go(func() {
			for ctx.Err() == nil {
				req, err := http.NewRequest("GET", d.URL()+"/search", nil)
				if err != nil {
					panic(err) // a fixed URL
				}
				req.Header.Set("X-Tenant", tenant.(string))
				if res, err := http.DefaultClient.Do(req); err == nil {
					io.Copy(io.Discard, res.Body) //nolint:errcheck // it is load
					res.Body.Close()              //nolint:errcheck // it is load
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// visit opens a page of a server in a view. script runs before those of the page.
func visit(t *testing.T, browser context.Context, url string, v view, before ...chromedp.Action[chromedp.Void]) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx, original: url}
	if err := chromedp.Listen(ctx, p.heard); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.EmulateViewport(v.width, v.height), prefers(v.scheme))
	p.do(before...)
	p.do(chromedp.Navigate(url))
	return p
}

// until waits for a condition in the page, which a tick may bring about.
func (p *tab) until(within time.Duration, js string) {
	p.t.Helper()
	for end := time.Now().Add(within); !eval[bool](p, js); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("after %v still not: %s; the console: %q", within, js, p.said)
		}
	}
}

// tick is the number of the tick that is shown, 0 before the first.
const tick = `Number(document.body.dataset.tick ?? 0)`

// ticks waits until so many more have been shown.
func (p *tab) ticks(n int) {
	p.t.Helper()
	p.until(time.Duration(n+5)*time.Second, fmt.Sprintf("%s >= %d", tick, eval[int](p, tick)+n))
}

// snap keeps a picture of the whole page if E2E_SHOTS names a folder.
func (p *tab) snap(name string, v view) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(v.width, v.height), prefers(v.scheme))
	p.settle()
	if wide := eval[int64](p, `document.documentElement.scrollWidth`); wide > v.width {
		p.t.Errorf("%s: the page is %d wide on a screen of %d", name, wide, v.width)
	}
	dir := os.Getenv("E2E_SHOTS")
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

// shots are snaps on the narrowest screen, and, for those who look at them, on others.
func (p *tab) shots(name string) {
	p.t.Helper()
	p.snap(name+"-phone", narrow)
	if os.Getenv("E2E_SHOTS") != "" {
		p.snap(name+"-dark", dark)
		p.snap(name+"-tablet", view{"tablet", 960, 800, "light"})
	}
	p.snap(name+"-light", light)
}

// alone checks that the page complained of nothing, and asked its own listener and nobody else.
func (p *tab) alone() {
	p.t.Helper()
	if own, asked := p.complaints(func(u string) bool { return strings.HasPrefix(u, p.original) }); own < 5 {
		p.t.Errorf("it asked for %q only: the count of requests is not to be trusted", asked)
	}
}

func TestDashboard(t *testing.T) {
	rig.Need(t, "chromium")
	browser := chromium(t)
	t.Run("live", func(t *testing.T) { liveDashboard(t, browser) })
	t.Run("many", func(t *testing.T) { manyClasses(fed(t, browser, narrow)) })
	t.Run("words", func(t *testing.T) { saysWhatItKnows(fed(t, browser, light)) })
	t.Run("numbers", func(t *testing.T) { everyNumber(fed(t, browser, light)) })
	t.Run("heard", func(t *testing.T) { everyControl(fed(t, browser, light)) })
	t.Run("warnings", func(t *testing.T) { warnings(fed(t, browser, light)) })
	t.Run("panel", func(t *testing.T) { demoNumbers(fed(t, browser, light)) })
	t.Run("demo", func(t *testing.T) { demoPanel(fed(t, browser, light)) })
}

// liveDashboard watches goodput serve before a service that is asked for three times what it can
// do: the numbers, in light, dark and on a phone; then at rest, each against /api/v1/state; then
// across a restart.
func liveDashboard(t *testing.T, browser context.Context) {
	t.Helper()
	d := serveWatched(t)
	stop := d.load()
	p := visit(t, browser, "http://"+d.admin+"/", light)
	p.ticks(3)
	p.until(3*time.Second, `!/^(idle|busy)/.test(document.getElementById("state").textContent) && document.querySelectorAll("#refused li").length > 0`)
	p.snap("dashboard-light", light)
	p.drawn(7)
	p.snap("dashboard-dark", dark)
	p.snap("dashboard-phone", narrow)
	strange(p)
	stop()
	switched(p, d)
	p.do(chromedp.EmulateViewport(light.width, light.height), prefers("light"))
	keyboard(p)
	atRest(p, d)
	p.alone()
	lives(p, d)
}

// strange checks that names of strangers are text.
func strange(p *tab) {
	p.t.Helper()
	ids := eval[[]string](p, `[...document.querySelectorAll("#tenants th")].map(e => e.textContent)`)
	seen := 0
	for _, id := range ids {
		for _, s := range strangers {
			if id == s {
				seen++
			}
		}
	}
	if seen != len(strangers) {
		p.t.Errorf("tenants are %q, want %q among them", ids, strangers)
	}
	if n := eval[int](p, `document.querySelectorAll("main img, main script").length`); n > 0 {
		p.t.Errorf("%d elements came out of a name", n)
	}
}

// keyboard goes through the page with the tabulator: each control is reached, and seen to be.
func keyboard(p *tab) {
	p.t.Helper()
	const at = `(() => {
		const e = document.activeElement, style = getComputedStyle(e);
		const box = e.closest("section[aria-labelledby]")?.getAttribute("aria-labelledby") ?? "";
		return { name: (e.id || e.className || e.tagName) + " " + e.textContent.trim().slice(0, 20) + " in " + box, seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 };
	})()`
	type stop struct {
		Name string
		Seen bool
	}
	eval[bool](p, `(document.activeElement.blur(), scrollTo(0, 0), true)`)
	var order []string
	for range 30 {
		p.do(chromedp.KeyEvent(kb.Tab))
		s := eval[stop](p, at)
		order = append(order, s.Name)
		if !s.Seen {
			p.t.Errorf("the focus on %q is not to be seen", s.Name)
		}
		if strings.HasPrefix(s.Name, "observe") {
			break
		}
	}
	all, from := strings.Join(order, "\n"), 0
	for _, want := range []string{"skip", "classes-scroll", "search", "rest", "plot", "refused", "observe"} {
		i := strings.Index(all[from:], want)
		if i < 0 {
			p.t.Errorf("the tabulator does not reach %s in this order:\n%s", want, all)
			return
		}
		from += i
	}
	// A class is chosen with the Enter key, and the address says so.
	eval[bool](p, `([...document.querySelectorAll("#classes a")].find(a => a.textContent === "rest").focus(), true)`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(3*time.Second, `document.getElementById("class-name").textContent === "rest" && location.hash === "#class=rest"`)
	p.do(chromedp.NavigateBack())
	p.until(3*time.Second, `document.getElementById("class-name").textContent === "search"`)
	// The way past the table leads to the class, and leaves it the one that is shown.
	eval[bool](p, `(document.getElementById("skip").focus(), true)`)
	p.do(chromedp.KeyEvent(kb.Enter))
	if at := eval[string](p, `document.activeElement.id + location.hash`); at != "detail" {
		p.t.Errorf("the way past the table leads to %q", at)
	}
	// A chart is read point by point.
	eval[bool](p, `(document.querySelector("#flow .plot").focus(), true)`)
	p.do(chromedp.KeyEvent(kb.End))
	if said := eval[string](p, `document.getElementById("status").textContent`); !strings.Contains(said, ": goodput ") || !strings.Contains(said, ", offered ") {
		p.t.Errorf("the last point of the chart reads %q", said)
	}
}

// switched turns observe mode on, and leaves it to the policy again, by the buttons.
func switched(p *tab, d *dashboard) {
	p.t.Helper()
	for _, step := range []struct {
		button string
		on     bool
	}{{"observe", true}, {"observe-policy", false}} {
		eval[bool](p, fmt.Sprintf(`(document.getElementById(%q).click(), document.getElementById("confirm-yes").click(), true)`, step.button))
		p.until(3*time.Second, fmt.Sprintf(`/Observe mode is on/.test(document.getElementById("observe-now").textContent) === %v && document.getElementById("observe-policy").hidden === %v`, step.on, !step.on))
		if is := d.state(p.t)["observe"]; is != step.on {
			p.t.Errorf("after %q the state says observe %v: %s", step.button, is, p.text("#observe-said"))
		}
	}
}

// A state is /api/v1/state as any JSON.
type state map[string]any

func (d *dashboard) state(t *testing.T) state {
	t.Helper()
	_, text, err := d.Ask("/api/v1/state")
	if err != nil {
		t.Fatal(err)
	}
	var s state
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s["limiters"].([]any)[0].(map[string]any)
}

// number is the one at a path of keys.
func (s state) number(path ...string) float64 {
	at := map[string]any(s)
	for _, k := range path[:len(path)-1] {
		at = at[k].(map[string]any)
	}
	return at[path[len(path)-1]].(float64)
}

// atRest compares what is shown with /api/v1/state once nothing happens any more: all that is the
// same before and after a tick has to be in it.
func atRest(p *tab, d *dashboard) {
	p.t.Helper()
	p.until(10*time.Second, `document.querySelector('#now [data-key="in_use"]').textContent === "0 by 0 requests"`)
	before := d.state(p.t)
	p.ticks(2)
	shown := eval[map[string]string](p, `Object.fromEntries([...document.querySelectorAll("#detail [data-key]")].map(e => [e.closest("[id]").id + "." + e.dataset.key, e.textContent]))`)
	after := d.state(p.t)

	if arrivals := after.number("counts", "arrivals"); arrivals < 1000 {
		p.t.Errorf("%v arrivals: there was no load", arrivals)
	}
	compared := 0
	same := func(key string, scale float64, path ...string) {
		p.t.Helper()
		a, b := before.number(path...), after.number(path...)
		if a != b { // it fades, or moves
			return
		}
		compared++
		if got, ok := figureOf(shown[key]); !ok || !(got >= a*scale*0.994 && got <= a*scale*1.006) {
			p.t.Errorf("%s is shown as %q, and is %v", key, shown[key], a)
		}
	}
	for key, path := range map[string][]string{
		"counts.arrivals": {"counts", "arrivals"}, "counts.immediate": {"counts", "admitted_immediately"}, "counts.dequeued": {"counts", "admitted_after_waiting"},
		"now.limit": {"limit"}, "now.in_use": {"in_use"}, "now.waiting": {"waiting"}, "now.depth": {"depth"}, "now.derived": {"derivation", "depth"},
		"now.capacity": {"derivation", "capacity_per_second"}, "now.mean": {"derivation", "mean_seconds"}, "now.service": {"derivation", "service_seconds"},
		"now.objective": {"derivation", "objective_seconds"}, "now.age": {"age_seconds"}, "tiles.demand": {"demand_ratio"}, "now.retry": {"retry_after_seconds"},
	} {
		same(key, 1, path...)
	}
	if compared < 11 {
		p.t.Errorf("%d numbers were the same for two ticks, want at least the 11 that do not move at rest", compared)
	}
	// Three digits are not enough for a count: these are equal to the last one.
	for _, e := range after["counts"].(map[string]any)["ends"].([]any) {
		e := state(e.(map[string]any))
		key := "counts.end." + e["outcome"].(string)
		if reason, _ := e["reason"].(string); reason != "" {
			key += "." + reason
		}
		text, is := shown[key]
		if n := e.number("count"); is != (n > 0) || is && ungrouped(text) != strconv.FormatFloat(n, 'f', 0, 64) {
			p.t.Errorf("%s is shown as %q, and is %v", key, text, n)
		}
	}
	if got, want := ungrouped(shown["counts.arrivals"]), strconv.FormatFloat(after.number("counts", "arrivals"), 'f', 0, 64); got != want {
		p.t.Errorf("arrivals are shown as %q, and are %s", got, want)
	}
	if words := eval[string](p, `document.getElementById("state").textContent`); words != after["state"] {
		p.t.Errorf("the state is shown as %q, and is %q", words, after["state"])
	}
	if shown := eval[string](p, `document.getElementById("facts").textContent`); !strings.Contains(shown, after["derivation"].(map[string]any)["text"].(string)) {
		p.t.Errorf("the facts do not have the derivation: %s", shown)
	}
}

// ungrouped is a count without the blanks between its groups of digits.
func ungrouped(text string) string { return strings.ReplaceAll(text, "\u202f", "") }

// figureOf reads the first number of a text with its unit, in seconds or as it is.
func figureOf(text string) (float64, bool) {
	number, unit, _ := strings.Cut(ungrouped(text), " ")
	unit, _, _ = strings.Cut(unit, " ")
	x, err := strconv.ParseFloat(strings.TrimRight(number, "/s×,"), 64)
	switch strings.Trim(unit, ",") {
	case "ms":
		x /= 1e3
	case "µs":
		x /= 1e6
	}
	return x, err == nil
}

// lives ends goodput without a word and starts it again: the page says since when it knows
// nothing, then takes the new past for the old one.
func lives(p *tab, d *dashboard) {
	p.t.Helper()
	d.Kill()
	p.until(8*time.Second, `/^Connection lost at \d\d:\d\d:\d\d; showing what was known then; trying again/.test(document.getElementById("lost").textContent)`)
	if !eval[bool](p, `!document.getElementById("lost").hidden && document.body.classList.contains("lost") && getComputedStyle(document.querySelector("main")).filter.includes("grayscale")`) {
		p.t.Error("what is not known any more does not look like it")
	}
	p.snap("dashboard-lost", light)
	d.start(p.t)
	p.until(10*time.Second, `document.getElementById("lost").hidden && !document.body.classList.contains("lost") && document.querySelector('#counts [data-key="arrivals"]').textContent === "0"`)
	p.ticks(1)
}
