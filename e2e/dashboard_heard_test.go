//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"github.com/goodput/goodput"
)

// A thing is a node of the tree that a screen reader is given.
type thing struct {
	role, name, live string
	focusable        bool
}

// things are those that are not left out.
func (p *tab) things() (all []thing) {
	p.t.Helper()
	tree, err := chromedp.Run(p.ctx, func(ctx context.Context, target *chromedp.Target) (accessibility.GetFullAXTreeResult, error) {
		return cdp.Call(ctx, target, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	})
	if err != nil {
		p.t.Fatal(err)
	}
	text := func(v *accessibility.Value) string {
		if v == nil {
			return ""
		}
		var is any
		if err := json.Unmarshal(v.Value, &is); err != nil {
			p.t.Fatal(err)
		}
		return fmt.Sprint(is)
	}
	for _, n := range tree.Nodes {
		if n.Ignored {
			continue
		}
		is := thing{role: text(n.Role), name: strings.TrimSpace(text(n.Name))}
		for _, x := range n.Properties {
			switch x.Name {
			case "focusable":
				is.focusable = text(x.Value) == "true"
			case "live":
				is.live = text(x.Value)
			}
		}
		all = append(all, is)
	}
	return all
}

// everyControl: whatever has the focus has a name that says what it is, whether it is seen or heard;
// what happens is said by a region that is live; each chart says that it is one, and which.
func everyControl(p *tab) {
	t := p.t
	t.Helper()
	eval[bool](p, `(window.names = [...Array(9).keys()].map(i => "class " + i), location.hash = "#class=class%203", window.full = tick(1, names, { tenants: [{ id: "a", served: 1 }] }),
		full.state.limiters.forEach(s => Object.assign(s, { observe_switched: true, tenants: [{ id: "a", offered_per_second: 9, in_use: 7, waiting: 6, refused: 5 }] })),
		full.state.servers = [{ server: "one", upstream: "app", well: true, share: 1, in_flight: 1, limit: 2 }],
		send("tick", { ...full, demo: `+panel+` }), frames2())`)
	count := map[string]int{}
	for _, x := range p.things() {
		count[x.role+" "+x.name]++
		count[x.role]++
		if x.live == "polite" && x.role == "status" {
			count["live"]++
		}
		if x.focusable && x.name == "" {
			t.Errorf("a %s has the focus and no name", x.role)
		}
	}
	for what, n := range map[string]int{
		"slider Load": 1, "switch Protection by goodput": 1, "searchbox Find a class": 1, "link Skip to the class": 1, "button Only observe …": 1, "button As the policy says …": 1,
		"live": 1, "application": 8, "figure": 8, "figure Latency from arrival to end, of what got a slot": 1,
	} {
		if count[what] != n {
			t.Errorf("%d × %s, want %d", count[what], what, n)
		}
	}
	charts := eval[[]string](p, `[...document.querySelectorAll("figure")].map(f => [f.querySelector("figcaption b").textContent, f.querySelector(".plot").getAttribute("aria-label"), f.querySelector(".plot").getAttribute("aria-roledescription")].join("|"))`)
	for _, c := range charts {
		if title, label, _ := strings.Cut(c, "|"); !strings.HasPrefix(label, title+", ") || !strings.HasSuffix(label, "Arrow keys read the points.|chart") {
			t.Errorf("the chart of %q is said to be %q", title, label)
		}
	}
	if current := eval[string](p, `[...document.querySelectorAll("[aria-current]")].map(e => e.textContent + " " + e.getAttribute("aria-current")).join()`); current != "class 3 true" {
		t.Errorf("the class that is shown is said to be %q", current)
	}
	connection(p)
	p.alone()
}

// connection: that it is lost, and is back, is heard; and a stream that has something large to say is not cut
// off before the server would.
func connection(p *tab) {
	t := p.t
	t.Helper()
	wait := func(ms int) int {
		return eval[int](p, fmt.Sprintf(`(Date.now = (now => () => now() + %d)(Date.now), checks.forEach(f => f()), opened)`, ms))
	}
	eval[bool](p, `(said.length = 0, source.on.error({}), true)`)
	for _, c := range []struct{ ms, opened int }{{12_000, 1}, {20_000, 1}, {4_000, 2}} { // 36 s after it began
		if n := wait(c.ms); n != c.opened {
			t.Errorf("%d ms later: opened %d times, want %d", c.ms, n, c.opened)
		}
	}
	eval[bool](p, `(send("history", { times: [], limiters: {} }), frames2())`)
	for _, c := range []struct{ ms, opened int }{{8_000, 2}, {3_000, 3}} { // it has begun, and says nothing more
		if n := wait(c.ms); n != c.opened {
			t.Errorf("after a history, and %d ms: opened %d times, want %d", c.ms, n, c.opened)
		}
	}
	eval[bool](p, `(send("history", { times: [], limiters: {} }), send("tick", tick(2, names)), frames2())`)
	heard := eval[[]string](p, `said.filter(s => s.includes("onnect"))`)
	if len(heard) != 4 || !strings.HasPrefix(heard[0], "Connection lost at ") || heard[1] != "Connected again." || !strings.HasPrefix(heard[2], "Connection lost at ") || heard[3] != "Connected again." {
		t.Errorf("heard: %q, want twice that it is lost and back", heard)
	}
}

// warnings: what is not as somebody believes it to be is said.
func warnings(p *tab) {
	t := p.t
	t.Helper()
	eval[bool](p, `(window.warn = tick(1, ["a", "b", "c"]), warn.state.policy = { source: "goodput.yaml", sha256: "f00d", reload_failed: "line 3: limit is -1", restart_needed: true },
		warn.limiters[0].rates.refused = 3, warn.limiters[2].rates.refused = 5,
		warn.state.servers = [{ server: "one:80", upstream: "app", well: false, why: "connection refused", since_seconds: 62, share: 1, in_flight: 0, limit: 0 },
			{ server: "two:80", upstream: "app", well: true, share: 0.25, in_flight: 3, limit: 4 }, { server: "three:80", upstream: "app", well: true, share: 1, in_flight: 0, limit: 0 }],
		send("tick", warn), frames2())`)
	for selector, want := range map[string]string{
		"#warning":        "The last reload of the policy failed; what was in force is. line 3: limit is -1",
		"#refusing-count": "2 of 3 classes refuse now:", "#refusing": "ca",
		"#servers": "one:80app0out for 1 min 2 s: connection refusedtwo:80app3 of 4well, 25.0 % of its room while it startsthree:80app0well",
	} {
		if got := p.text(selector); got != want {
			t.Errorf("%s is %q, want %q", selector, got, want)
		}
	}
	seen := func() string {
		return eval[string](p, `[!document.getElementById("warning").hidden, !document.getElementById("servers-section").hidden, [...document.querySelectorAll("#servers .bad")].map(e => e.parentElement.firstChild.textContent)].join()`)
	}
	if got := seen(); got != "true,true,one:80" {
		t.Errorf("warned, servers, those that are out: %s", got)
	}
	eval[bool](p, `(warn.state.policy.reload_failed = "", warn.limiters.forEach(v => v.rates.refused = 1), send("tick", warn), frames2())`)
	if got := p.text("#warning") + p.text("#refusing-count"); got != "Restart needed: the policy file has other listeners than those that are open.3 of 3 classes refuse now:" {
		t.Errorf("restart: %q", got)
	}
	eval[bool](p, `(send("tick", tick(2, ["a"], { rates: { ...warn.limiters[0].rates } })), frames2())`)
	if got := p.text("#refusing-count") + " " + seen(); got != "It refuses now. false,false," {
		t.Errorf("one that refuses, and no policy: %q", got)
	}
	tones(p)
	notDone(p)
	p.alone()
}

// tones: how a state looks goes by its condition, whatever its sentence is.
func tones(p *tab) {
	p.t.Helper()
	want := map[string]string{
		"idle": "calm", "busy": "calm", "boundary": "full", "burst": "full", "observing": "full", "saturated": "shed", "allowance": "shed", "searching": "shed",
		"slowed": "bad", "unreachable": "bad", "absent": "bad", "paused": "bad", "draining": "bad", "drained": "bad",
	}
	for i, c := range goodput.Conditions() {
		got := eval[string](p, fmt.Sprintf(`(send("tick", tick(%d, ["a"], { explanation: { limiter: "a", condition: %q, state: "a sentence", facts: [] } })), frames2().then(() =>
			document.getElementById("state").className + ", " + document.querySelector("#classes .state").className))`, 10+i, c))
		if tone := want[c.String()]; tone == "" || got != "words "+tone+", state "+tone {
			p.t.Errorf("%s looks like %q, want %q", c, got, tone)
		}
	}
}

// notDone: a switch that was not turned is not said to be.
func notDone(p *tab) {
	p.t.Helper()
	for answer, want := range map[string]string{
		`Promise.resolve(new Response("there is no limiter a\n", { status: 404 }))`: "Not done: there is no limiter a",
		`Promise.resolve(new Response("", { status: 403 }))`:                        "Not done: 403",
		`Promise.reject(new TypeError("failed"))`:                                   "Not done: the server could not be reached.",
	} {
		eval[bool](p, fmt.Sprintf(`(window.fetch = () => %s, document.getElementById("observe").click(), document.getElementById("confirm-yes").click(), true)`, answer))
		p.until(2*time.Second, fmt.Sprintf(`document.getElementById("observe-said").textContent === %q && document.getElementById("status").textContent === %q`, want, want))
	}
}

// demoNumbers: each tile of the demo has its own number, what keeps it from doing what it should is
// said, and of two changes none overtakes the other.
func demoNumbers(p *tab) {
	t := p.t
	t.Helper()
	eval[bool](p, `(window.shows = more => (send("tick", { ...tick(1, ["default"]), demo: { ...`+panel+`, ...more } }), frames2()), shows({}))`)
	for selector, want := range map[string]string{
		"#demo-goodput": "61/s", "#demo-share": "97 % of 63/s possible", "#demo-served": "62/s", "#demo-refused": "66/s", "#demo-late": "69/s", "#demo-p99": "≥ 1.68 s", "#demo-note": "a busy machine", "#demo-problem": "",
		"#load-value": "3.0× · 192/s", "#demo-service": "The service: 10 slots, 50 ms of work each, so 64/s. Its clients wait for 1 s, then leave.",
	} {
		if got := p.text(selector); got != want {
			t.Errorf("%s is %q, want %q", selector, got, want)
		}
	}
	for more, want := range map[string]string{`{ p99: 0.99 }`: "990 ms", `{ p99: null }`: "no data"} {
		eval[bool](p, `shows(`+more+`)`)
		if got := p.text("#demo-p99"); got != want {
			t.Errorf("with %s the p99 is %q, want %q", more, got, want)
		}
	}
	eval[bool](p, `(window.fetch = (url, o) => { posted.push([String(url), o.body]); return new Promise(done => { window.answer = (text, status = 200) => done(new Response(text, { status })); }); },
		document.getElementById("protect").click(), document.getElementById("protect").click(), document.getElementById("load").value = 5, document.getElementById("load").dispatchEvent(new Event("input")), true)`)
	time.Sleep(300 * time.Millisecond) // wall clock: the page waits for 100 ms of the browser's before it sends what is dragged
	bodies := func() string { return eval[string](p, `posted.map(x => x[1]).join()`) }
	if got := bodies(); got != `{"protect":false}` {
		t.Errorf("while the first has no answer, these are sent: %s", got)
	}
	eval[bool](p, `(answer("load 5 is out of range\n", 400), true)`)
	p.until(2*time.Second, `posted.length === 2 && document.getElementById("status").textContent === "Not done: load 5 is out of range"`)
	if got := bodies() + " " + p.text("#demo-problem"); got != `{"protect":false},{"protect":true,"load":5} Not done: load 5 is out of range` {
		t.Errorf("after a refusal: %s", got)
	}
	eval[bool](p, `(answer("{}"), true)`)
	p.until(2*time.Second, `document.getElementById("demo-problem").textContent === ""`)
	eval[bool](p, `(window.fetch = () => Promise.reject(new TypeError("failed")), document.getElementById("protect").click(), true)`)
	p.until(2*time.Second, `document.getElementById("demo-problem").textContent === "Not done: the demo could not be reached."`)
	p.alone()
}
