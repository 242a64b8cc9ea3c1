//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/goodput/goodput/e2e/internal/rig"
)

// feed stands in the page for the stream and for what it posts to, so that a test says what the
// server says: send tells the page an event, posted is what the page asked for, and tick makes
// one with limiters of these names, each a little different from the one before.
const feed = `
window.posted = [];
window.fetch = (url, o) => { posted.push([String(url), o?.body ?? ""]); return Promise.resolve(new Response("{}")); };
window.EventSource = class {
	constructor(url) { window.opened = (window.opened ?? 0) + 1; this.url = url; this.on = {}; this.readyState = 1; window.source = this; }
	addEventListener(kind, f) { this.on[kind] = f; }
	close() { this.readyState = 2; }
};
Object.assign(window.EventSource, { OPEN: 1, CLOSED: 2 });
window.checks = []; // what the page looks at once a second
window.setInterval = (real => (f, ms) => { checks.push(f); return real(f, ms); })(window.setInterval);
window.said = [];
addEventListener("DOMContentLoaded", () => new MutationObserver(() => said.push(document.getElementById("status").textContent)).observe(document.getElementById("status"), { childList: true }));
window.send = (kind, what) => source.on[kind]({ data: JSON.stringify(what) });
window.frames2 = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(true)))));
window.tick = (number, names, more = {}) => ({
	version: 1, number, time: new Date(1.79e12 + 1000 * number).toISOString(), elapsed_seconds: 1,
	state: {
		version: 1, phase: "ready", uptime_seconds: 90061, connections: { open: 12345, upgraded: 0 }, servers: [],
		limiters: names.map((name, i) => ({
			name, observe: false, limit: 10 + i, limit_min: 4, limit_max: 64, in_use: 3, running: 3, waiting: 0, waiting_cost: 0, waiting_bytes: 0, waiting_bytes_limit: 1 << 26,
			age_seconds: 0, order: "fifo", depth: 20, overload: false, demand_ratio: 0.5, retry_after_seconds: 1, state: "busy: slots are free, nobody waits",
			derivation: { text: "words", depth: 20, capacity_per_second: 200, objective_seconds: 0.4, mean_seconds: 0.05, service_seconds: 0.1, percentile: 0.99 },
			counts: { arrivals: 1234567, admitted_immediately: 0, admitted_after_waiting: 0, exempt_admissions: 0, limit_changes: 0, ends: [] },
		})),
	},
	limiters: names.map((name, i) => ({
		name, window_seconds: 10, latency: null, wait: null, service: null, tenants: [],
		rates: { offered: 100 + i, admitted: 90, throughput: 90, goodput: 80, refused: 0, in_time: 0.8, outcomes: {}, reasons: {} },
		explanation: { limiter: name, state: "busy: slots are free, nobody waits", facts: [{ topic: "limit", text: name }], refused: [] },
		...more,
	})),
});
`

// fed opens the page of a goodput, whose stream is the feed.
func fed(t *testing.T, browser context.Context, v view) *tab {
	t.Helper()
	d := rig.Protect(t, "http://"+rig.Handle(t, http.NotFoundHandler()))
	p := visit(t, browser, "http://"+d.Admin+"/", v, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: feed})
		return err
	}))
	eval[bool](p, `(send("history", { times: [], limiters: {} }), true)`)
	return p
}

// text is what is in an element.
func (p *tab) text(selector string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf(`document.querySelector(%q).textContent`, selector))
}

// odd are names that a class could have as far as the page is concerned.
var odd = []string{"__proto__", "constructor", "a&b=c#d%41", `<script>alert(1)</script>`, `" onclick="alert(2)`, "", "\u202eright to left", strings.Repeat("long", 60)}

// manyClasses: a hundred, some with names that are attacks: all are shown under their names, each can
// be chosen, a tick in which nothing has changed changes nothing in the document, and what
// nobody sees is not drawn.
func manyClasses(p *tab) {
	t := p.t
	t.Helper()
	names := append([]string{}, odd...)
	for i := len(names); i < 100; i++ {
		names = append(names, fmt.Sprintf("class %d", i))
	}
	raw, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	eval[bool](p, fmt.Sprintf(`(window.names = %s, send("tick", tick(1, names)), send("tick", tick(2, names)), frames2())`, raw))
	p.snap("dashboard-many", narrow)
	shown := eval[[]string](p, `[...document.querySelectorAll("#classes tbody a")].map(a => a.textContent)`)
	for i, name := range names {
		if name == "" {
			name = "(no name)"
		}
		if i >= len(shown) || shown[i] != name {
			t.Fatalf("class %d of %d is not shown as %q: %q", i, len(shown), name, shown)
		}
	}
	for i := range odd {
		got := eval[map[string]string](p, fmt.Sprintf(`(document.querySelectorAll("#classes tbody a")[%d].click(), frames2().then(() => ({
			name: document.getElementById("class-name").textContent, fact: document.querySelector("#facts dd").textContent,
			offered: document.querySelector('#tiles [data-key="offered"]').textContent, column: document.querySelector("#flow .legend .value").textContent,
		})))`, i))
		want := fmt.Sprintf("%d/s", 100+i)
		if name := shown[i]; got["name"] != name || got["fact"] != odd[i] || got["offered"] != want || got["column"] != "80/s" {
			t.Errorf("chosen: %q; shown: %q", name, got)
		}
	}

	// Numbers of ticks and their times differ; nothing else does.
	changes := eval[[]string](p, `new Promise(async done => {
		const seen = [], watch = new MutationObserver(all => seen.push(...all.map(m => m.target.nodeName + " " + m.target.textContent.slice(0, 40))));
		watch.observe(document.body, { subtree: true, childList: true, characterData: true });
		send("tick", tick(3, names)); await frames2();
		send("tick", tick(4, names)); await frames2();
		watch.disconnect(); done(seen.filter(s => !s.startsWith("P ")));
	})`)
	for _, c := range changes {
		t.Errorf("nothing has changed, and this was written: %s", c)
	}

	found := eval[string](p, `(() => { const f = document.getElementById("find"); f.value = "CLASS 42"; f.dispatchEvent(new Event("input")); return frames2().then(() =>
		[...document.querySelectorAll("#classes tbody a")].map(a => a.textContent).join() + "; " + document.getElementById("found").textContent); })()`)
	if found != "class 42; 1 of 100 classes" {
		t.Errorf("looking for class 42: %q", found)
	}

	cost := eval[float64](p, `(() => {
		const real = requestAnimationFrame; window.requestAnimationFrame = f => f();
		const from = performance.now();
		for (let n = 5; n < 10; n++) send("tick", tick(n, names, { rates: { offered: n, admitted: n, throughput: n, goodput: n, refused: n, in_time: 0.8, outcomes: {}, reasons: { queue_full: n } } }));
		window.requestAnimationFrame = real;
		return (performance.now() - from) / 5;
	})()`)
	figure(t, "page", "a tick in which all of 100 classes change: %.1f ms of script", cost)

	// A hidden tab is given no frames: then nothing may be drawn, and not more than one asked for.
	frames := eval[[]int](p, `(() => {
		let asked = 0; const before = document.body.dataset.tick, real = requestAnimationFrame; window.requestAnimationFrame = () => asked++;
		for (let n = 10; n < 15; n++) send("tick", tick(n, names));
		window.requestAnimationFrame = real;
		return [asked, Number(document.body.dataset.tick) - Number(before)];
	})()`)
	if frames[0] != 1 || frames[1] != 0 {
		t.Errorf("5 ticks that nobody sees asked for %d frames and moved the page by %d ticks, want 1 and 0", frames[0], frames[1])
	}
	p.alone()
}

// saysWhatItKnows: what was not measured is not a number, what is beyond the histogram is said to be, a state is
// announced once it has come to stay, and a stream that goes quiet is not taken for a quiet day.
func saysWhatItKnows(p *tab) {
	t := p.t
	t.Helper()
	eval[bool](p, `(send("tick", tick(1, ["app"])), frames2())`)
	if got := p.text(`#tiles [data-key="p99"]`); got != "no data" {
		t.Errorf("the p99 of nothing is %q", got)
	}
	eval[bool](p, `(window.worse = { latency: { count: 9, p50: 0.1, p95: 1, p99: 2.1, over: true, target: 2.1, target_over: true }, explanation: { limiter: "app", state: "saturated: 9 wait", facts: null, refused_by: [
			{ ago_seconds: 0.5, since_seconds: 1.6, count: 32, outcome: "rejected", reason: "queue_full", text: "the sentence", knob: "objective", told: "told to come back in 1 to 2 s" }] } },
		send("tick", tick(2, ["app"], worse)), frames2())`)
	for selector, want := range map[string]string{
		`#tiles [data-key="p99"]`: "over 2.1 s", `#tiles [data-key="p99"] + .about`: "last 10 s; objective 400 ms: missed", "#state": "saturated: 9 wait",
		`#now [data-key="limit"]`: "10, of 4 to 64", "#refused b": "32 × queue full", "#refused .muted": "in the last 1.6 s, told to come back in 1 to 2 s", "#refused .knob": "decided by: objective", "#refused .sentence": "the sentence",
		`#counts [data-key="arrivals"]`: "1\u202f234\u202f567", `#process [data-key="uptime"]`: "1 d 1 h",
	} {
		if got := p.text(selector); got != want {
			t.Errorf("%s is %q, want %q", selector, got, want)
		}
	}
	// The state flaps, with other numbers each time; then it stays.
	said := eval[[]string](p, `(async () => {
		for (let n = 3; n < 20; n++) {
			worse.explanation.state = "saturated: " + n + " wait, " + (n % 3 ? n + "ms" : n / 7 + " µs");
			send("tick", n < 10 && n % 2 ? tick(n, ["app"]) : tick(n, ["app"], worse));
			await frames2();
		}
		return said;
	})()`)
	if len(said) != 1 || !strings.HasPrefix(said[0], "app: saturated: ") {
		t.Errorf("heard: %q, want the state that came to stay, once", said)
	}
	if eval[bool](p, `!document.getElementById("lost").hidden`) {
		t.Error("lost without a reason")
	}
	eval[bool](p, `(Date.now = (now => () => now() + 6000)(Date.now), true)`)
	p.until(4*time.Second, `document.getElementById("lost").textContent.startsWith("Connection lost at ")`)
	eval[bool](p, `(send("history", { times: [1], limiters: {} }), send("tick", tick(21, ["app"])), frames2())`)
	p.until(2*time.Second, `document.getElementById("lost").hidden`)
	unprotected(p)
	p.alone()
}

// unprotected: a class that observes refuses nothing, and that is no good news: what is not in time is an
// alarm, in words and with a mark, and what its tenants have is what they would have.
func unprotected(p *tab) {
	t := p.t
	t.Helper()
	const told = `(window.observing = (number, names, goodput) => {
		const all = tick(number, names, { observing_seconds: 300, rates: { offered: 1127, admitted: 1127, throughput: 900, goodput, refused: 0, in_time: goodput / 1127, outcomes: {}, reasons: {}, shadow: { queue_full: 700 } },
			tenants: [{ id: "a", served: 8 }] });
		for (const s of all.state.limiters) Object.assign(s, { observe: true, tenants: [{ id: "a", offered_per_second: 9, in_use: 7, waiting: 6, refused: 5 }] });
		return all;
	}, send("tick", observing(%d, %s, %d)), frames2())`
	eval[bool](p, fmt.Sprintf(told, 22, `["app"]`, 0))
	p.shots("dashboard-alarm")
	since := eval[string](p, `(d => [d.getHours(), d.getMinutes(), d.getSeconds()].map(n => String(n).padStart(2, "0")).join(":"))(new Date(1.79e12 + 22000 - 300000))`)
	for selector, want := range map[string]string{
		"#alarm-words": "Alarm: 0 of 1127/s in time; protection is off since " + since + ".", "#alarms": "!Alarm: app: 0 of 1127/s in time; protection is off since " + since + ".",
		"#refusing-count": "It refuses nobody: protection is off since " + since + ".", "#tenants-head": "tenantaskswould getwould be in usewould waitwould be refused", "#tenants": "a9/s8/s765",
		`#classes .state`: "Alarm: 0 of 1127/s in time; protection is off since " + since + "; busy: slots are free, nobody waits",
	} {
		if got := p.text(selector); got != want {
			t.Errorf("%s is %q, want %q", selector, got, want)
		}
	}
	const red = `[...document.querySelectorAll("#alarm, #alarms b, #classes .state")].map(e => getComputedStyle(e).color).every((c, _, all) => c === all[0]) && !document.getElementById("alarm").hidden`
	if !eval[bool](p, red) {
		t.Error("an alarm does not look like one everywhere")
	}
	if legend := p.text("#flow .legend"); !strings.Contains(legend, "throughput: all that ended, in vain too") {
		t.Errorf("the legend is %q", legend)
	}
	eval[bool](p, fmt.Sprintf(told, 23, `["app"]`, 1127))
	if got := p.text("#refusing-count"); !strings.HasPrefix(got, "It refuses nobody: protection is off since ") || !eval[bool](p, `document.getElementById("alarm").hidden && document.getElementById("alarms").hidden`) {
		t.Errorf("while all is in time: %q, or an alarm", got)
	}
	eval[bool](p, fmt.Sprintf(told, 24, `["app", "other"]`, 1127))
	if got := p.text("#refusing-count"); got != "No class refuses anything now; of 2 of 2 protection is off." {
		t.Errorf("of two: %q", got)
	}
	eval[bool](p, `(send("tick", tick(25, ["app"])), frames2())`)
	if got := p.text("#refusing-count"); got != "It refuses nothing now." {
		t.Errorf("with protection: %q", got)
	}
}

// scene is what demo --web says, and what the page says of it in words.
const scene = `{ load: %v, protect: %v, capacity_per_second: 200, slots: 10, service_seconds: 0.05, deadline_seconds: 1, offered: %v, in_time: %v, late: 1, refused: %v, gone: 1, failed: 0, served: 199, waiting: %d, p50: 0.1, p99: 1, note: "" }`

// demoPanel: it says in a sentence what happens, and its controls work with the keyboard.
func demoPanel(p *tab) {
	t := p.t
	t.Helper()
	eval[bool](p, `(send("tick", tick(1, ["default"])), frames2())`)
	if eval[bool](p, `!document.getElementById("demo").hidden`) {
		t.Error("there is a panel without a demo")
	}
	for i, c := range []struct {
		load            float64
		protect         bool
		offered, inTime float64
		refused         float64
		waiting         int
		want            []string
	}{
		{0.8, true, 160, 159, 0, 0, []string{"0.8× what the service can do: 160/s where 200/s fit.", "It keeps up", "goodput 99 %"}},
		{3, false, 600, 8, 0, 570, []string{"3.0× what the service can do: 600/s where 200/s fit.", "570 requests are in its queue", "nobody waits for the answers any more", "goodput 4 %"}},
		{3, true, 598, 197, 400, 2, []string{"the rest, 400/s, is told no at once", "goodput 99 %"}},
		{3, true, 598, 100, 300, 2, []string{"100/s are answered in time", "goodput 50 %", "300/s are told no at once"}},
		{3, false, 600, 190, 0, 100, []string{"still absorbs it", "goodput 95 %"}},
		{0.5, false, 100, 2, 0, 300, []string{"would fit, but 300 requests are in its queue", "goodput 2 %"}},
		{0, true, 0, 0, 0, 0, []string{"Nobody asks for anything"}},
	} {
		eval[bool](p, fmt.Sprintf(`(send("tick", { ...tick(%d, ["default"]), demo: `+scene+` }), frames2())`, i+2, c.load, c.protect, c.offered, c.inTime, c.refused, c.waiting))
		if i == 1 || i == 2 {
			p.shots(fmt.Sprintf("dashboard-demo-protected-%v", c.protect))
		}
		words := p.text("#demo-words")
		for _, want := range c.want {
			if !strings.Contains(words, want) {
				t.Errorf("of %+v it says %q, want %q", c, words, want)
			}
		}
		// What to do is said until it has been done, and what goodput sees is folded while it sees nothing.
		done := i >= 2
		begins := map[bool]string{true: "Wait some seconds", false: "Move the load to 3×"}[c.load >= 2]
		if hint := p.text("#demo-hint"); !strings.HasPrefix(hint, begins) || !strings.HasSuffix(hint, "then switch the protection on.") {
			t.Errorf("of %+v what to do is %q", c, hint)
		}
		if eval[bool](p, `document.getElementById("demo-hint").hidden`) != done || eval[bool](p, `document.getElementById("part").open`) != c.protect || eval[bool](p, `document.getElementById("part-title").hidden`) != c.protect {
			t.Errorf("of %+v: the hint is to be gone %v, and the classes to be open %v", c, done, c.protect)
		}
		if eval[float64](p, `Number(document.getElementById("load").value)`) != c.load || p.text("#protect-value") == "on" != c.protect {
			t.Errorf("the controls do not show %+v", c)
		}
	}
	if first := eval[string](p, `document.querySelector("main > section:not([hidden])").id`); first != "demo" {
		t.Errorf("the first of the page is %q", first)
	}
	p.drawn(8)

	eval[bool](p, `(document.getElementById("load").focus(), true)`)
	for range 3 {
		p.do(chromedp.KeyEvent(kb.ArrowRight))
	}
	p.until(2*time.Second, `posted.length > 0 && posted.at(-1)[0] === "/api/v1/demo" && JSON.parse(posted.at(-1)[1]).load === 0.3`)
	if got := eval[string](p, `document.getElementById("load").getAttribute("aria-valuetext")`); got != "0.3 times what the service can do, 60 per second" {
		t.Errorf("the slider says %q", got)
	}
	p.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(" "))
	p.until(2*time.Second, `posted.at(-1)[1] === '{"protect":false}' && document.getElementById("protect").getAttribute("aria-checked") === "false"`)

	// Observe mode is asked twice, and no is the answer of who presses Enter without reading.
	n := eval[int](p, `posted.length`)
	eval[bool](p, `(document.getElementById("observe").focus(), true)`)
	p.do(chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Enter))
	if now := eval[int](p, `posted.length`); now != n || eval[bool](p, `document.getElementById("confirm").open`) {
		t.Errorf("%d requests, want none, and no dialog any more", now-n)
	}
	p.do(chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	p.until(2*time.Second, `posted.at(-1)[0] === "/api/v1/observe?limiter=default&mode=on" && /is on for default/.test(document.getElementById("observe-said").textContent)`)
	p.alone()
}
