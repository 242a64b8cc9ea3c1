//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// told makes ticks in which each number is another one, so that what is shown in the place of
// something else is seen to be: by(n) has n added to what arrives. plots are the charts as they are
// asked for, each with the plot that was made of it.
const told = `
window.plots = [];
window.uPlot = new Proxy(uPlot, { construct(what, args) { const u = new what(...args); plots.push({ spec: args[0], u }); return u; } });
window.by = (number, more = 0) => {
	const q = n => ({ count: 9, p50: n + 0.1, p95: n + 0.2, p99: n + 0.3, over: false, target: n + 0.4, target_over: false });
	const all = tick(number, ["app", "other"], {
		window_seconds: 11, latency: q(1), wait: q(2), service: q(3),
		rates: { offered: 600 + more, admitted: 102, throughput: 403, goodput: 204, refused: 105, in_time: 0.106, outcomes: {}, reasons: { queue_full: 31, over_quota: 32, client: 77 } },
	});
	Object.assign(all.state.limiters[0], {
		limit: 121, limit_min: 120, limit_max: 140, in_use: 122, running: 139, waiting: 123, waiting_cost: 138, waiting_bytes: 137, waiting_bytes_limit: 136, depth: 124, age_seconds: 0.125, order: "edf",
		demand_ratio: 1.27, retry_after_seconds: 12, limit_from: 131, limit_moved_seconds: 33,
		derivation: { text: "words", depth: 126, capacity_per_second: 128, objective_seconds: 1.29, mean_seconds: 0.132, service_seconds: 0.133, percentile: 0.95 },
	});
	all.state.limiters[0].counts.limit_changes = 2;
	return all;
};
const columns = (from) => Object.fromEntries(["offered", "throughput", "goodput", "refused", "latency_p50", "latency_p99", "limit", "in_use"].map((k, i) => [k, [from + i, from + i]]));
send("history", { times: [1.79e9 - 2, 1.79e9 - 1], limiters: { app: columns(21), other: {} }, demo: { in_time: [41, 41], served: [42, 42], offered: [43, 43] } });
true`

// legends are the values of all charts, by title and label.
const legends = `Object.fromEntries([...document.querySelectorAll("figure")].flatMap(f => [...f.querySelectorAll(".legend li")].map(li =>
	[f.querySelector("figcaption b").textContent + "/" + li.querySelector(".label").textContent, li.querySelector(".value").textContent])))`

// differs says in what two maps differ.
func differs(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for k, w := range want {
		if g, is := got[k]; !is || g != w {
			t.Errorf("%s: %s is %q, want %q", what, k, g, w)
		}
	}
	for k, g := range got {
		if _, is := want[k]; !is {
			t.Errorf("%s: %s is %q, and is not to be there", what, k, g)
		}
	}
}

// everyNumber: each is where its name is, in the tiles, the table, the legends, and the list of what
// is so now; those of the past, too; and what is drawn has the same lines, told apart without
// colours, with a band where what was asked for was not done.
func everyNumber(p *tab) {
	t := p.t
	t.Helper()
	eval[bool](p, told)
	p.do(prefers("dark")) // before there is anything to draw
	p.settle()
	p.do(prefers("light"))
	eval[bool](p, `(send("tick", { ...by(1), demo: `+panel+` }), send("tick", { ...by(2), demo: `+panel+` }), frames2())`)
	keyed := func(selector string) map[string]string {
		return eval[map[string]string](p, fmt.Sprintf(`Object.fromEntries([...document.querySelectorAll(%q)].map(e => [e.dataset.key, e.textContent]))`, selector+" [data-key]"))
	}
	differs(t, "tiles", keyed("#tiles"), map[string]string{"offered": "600/s", "goodput": "204/s", "in_time": "10.6 %", "refused": "105/s", "p99": "1.3 s", "demand": "1.27×"})
	about := strings.Join(eval[[]string](p, `[...document.querySelectorAll("#tiles .about")].map(e => e.textContent)`), "\n")
	if want := "102/s got a slot\nanswered in time\nof what arrived\nmostly over quota\nlast 11 s; objective 1.29 s for 95.0 %: missed\nof what can be served"; about != want {
		t.Errorf("about the tiles: %q, want %q", about, want)
	}
	differs(t, "the table", keyed("#classes tbody tr:first-child"), map[string]string{
		"offered": "600/s", "goodput": "204/s", "in_time": "10.6 %", "refused": "105/s", "p99": "1.3 s", "objective": "1.29 s",
		"in_use": "122 of 121", "waiting": "123 of 124", "demand": "1.27×",
	})
	if head := eval[string](p, `[...document.querySelectorAll("#classes thead th")].map(e => e.textContent).join()`); head != "class,offered,goodput,in time,refused,p99,objective,in use,waiting,demand" {
		t.Errorf("the table begins with %q", head)
	}
	differs(t, "now", keyed("#now"), map[string]string{
		"limit": "121, of 120 to 140", "in_use": "122 by 139 requests", "waiting": "123, cost 138", "bytes": "137 B of 136 B", "age": "125 ms", "order": "edf",
		"depth": "124", "derived": "126", "capacity": "128/s", "mean": "132 ms", "service": "133 ms", "objective": "1.29 s for 95.0 %", "retry": "12 s", "moved": "33 s ago, from 131",
	})
	differs(t, "charts", eval[map[string]string](p, legends), map[string]string{
		"What the clients get/goodput: answered in time": "61/s", "What the clients get/throughput: all that was worked on, in vain too": "62/s", "What the clients get/offered": "63/s",
		"What the clients get/asked for and not answered in time": "", "What the clients get/what the service can do, 64/s": "",
		"Offered, throughput, goodput/goodput": "204/s", "Offered, throughput, goodput/throughput: all that ended, in vain too": "403/s", "Offered, throughput, goodput/offered": "600/s",
		"Offered, throughput, goodput/offered and not answered in time": "",
		"Refused, by reason/over quota":                                 "32/s", "Refused, by reason/queue full": "31/s",
		"Latency/p99": "1.3 s", "Latency/p50": "1.1 s", "Latency/objective 1.29 s": "",
		"Queue/waiting": "123", "Queue/depth in force": "124", "Queue/derived depth": "126",
		"Queue age/age": "125 ms", "Queue age/objective 1.29 s": "",
		"Limit/in use": "122", "Limit/limit": "121",
		"Wait and service/service p99": "3.3 s", "Wait and service/service p50": "3.1 s", "Wait and service/wait p99": "2.3 s", "Wait and service/wait p50": "2.1 s",
	})
	drawnAs(p)
	gap(p)

	// The first point is of the history.
	eval[bool](p, `(document.querySelector("#flow .plot").focus(), true)`)
	p.do(chromedp.KeyEvent(kb.Home))
	if said := p.text("#status"); !strings.HasSuffix(said, ": goodput 23/s, throughput: all that ended, in vain too 22/s, offered 21/s") {
		t.Errorf("the first point reads %q", said)
	}
	p.do(chromedp.KeyEvent(kb.Escape))
	// The clock is set back by an hour: there is one line of time, and it begins again.
	eval[bool](p, `(window.back = by(3, 7), back.time = new Date(Date.parse(back.time) - 3600e3).toISOString(), send("tick", back), frames2())`)
	if got := eval[map[string]string](p, legends)["Offered, throughput, goodput/offered"]; got != "607/s" {
		t.Errorf("after the clock was set back %q is offered", got)
	}
	if n := eval[int](p, `plots.findLast(x => document.querySelector("#flow").contains(x.u.root)).u.data[0].length`); n != 1 {
		t.Errorf("%d points since the clock was set back, want 1", n)
	}
	// A class that is gone is remembered for five minutes.
	left := eval[[]string](p, `import("/assets/past.js").then(({ Past }) => {
		const past = new Past(), seen = [];
		past.add(tick(1, ["app", "goes"]));
		for (let n = 2; n < 305; n++) { past.add(tick(n, ["app"])); if (n === 300 || n === 304) seen.push([...past.limiters.keys()].join()); }
		past.add(tick(304, ["app"])); // one that is known changes nothing
		return [...seen, String(past.times.length), String(past.column("app", "offered").every(v => v === 100))];
	})`)
	if got := strings.Join(left, "; "); got != "app,goes; app; 300; true" {
		t.Errorf("what is kept: %q", got)
	}
	p.alone()
}

// panel is a scene whose numbers differ.
const panel = `{ load: 3, protect: true, capacity_per_second: 64, slots: 10, service_seconds: 0.05, deadline_seconds: 1, offered: 63, in_time: 61, late: 65, refused: 66, gone: 4, failed: 0, served: 62, waiting: 67, p50: 0.1, p99: 1.68, note: "a busy machine" }`

// drawnAs checks that a plot has the lines of its legend, as they look there, and that those of
// one are told apart by their dashes.
func drawnAs(p *tab) {
	p.t.Helper()
	type line struct{ Label, Dash string }
	lines := eval[map[string][][]line](p, `Object.fromEntries([...document.querySelectorAll("figure")].map(f => [f.querySelector("figcaption b").textContent, [
		[...f.querySelectorAll(".legend li")].filter(li => li.querySelector("line")).map(li => ({ label: li.querySelector(".label").textContent, dash: li.querySelector("line").getAttribute("stroke-dasharray") })),
		plots.findLast(x => f.contains(x.u.root)).spec.series.slice(1).map(s => ({ label: s.label, dash: s.dash.join(" ") })),
	]]))`)
	if len(lines) != 8 {
		p.t.Errorf("%d charts, want 8", len(lines))
	}
	for title, both := range lines {
		dashes := map[string]bool{}
		for i, l := range both[0] { // the lines, then the levels
			dashes[l.Dash] = true
			if i < len(both[1]) && both[1][i] != l {
				p.t.Errorf("%s: the legend has %+v, and the plot %+v", title, l, both[1][i])
			}
		}
		if len(dashes) != len(both[0]) {
			p.t.Errorf("%s: %d lines in %d kinds: %+v", title, len(both[0]), len(dashes), both[0])
		}
	}
	if titles := slices.Sorted(maps.Keys(lines)); !slices.Contains(titles, "Limit") {
		p.t.Errorf("charts: %q", titles)
	}
}

// gap checks what is drawn beside lines: the level that matters, and that the band is between what was offered and goodput, and nowhere else: halfway between
// the last two points a pixel above goodput has its colour, and one below has none. So do those of the
// demo.
func gap(p *tab) {
	p.t.Helper()
	got := eval[map[string][]bool](p, `Object.fromEntries([["#flow", [250, 550], [150, 650], []], ["#demo-chart", [62], [50, 67], [64]]].map(([host, inside, outside, marks]) => {
		const { u } = plots.findLast(x => document.querySelector(host).contains(x.u.root)), x = u.data[0];
		const { width, height } = u.ctx.canvas;
		const pen = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d", { willReadFrequently: true });
		const pixel = (x, y) => [...pen.getImageData(Math.round(x), Math.round(y), 1, 1).data].join();
		pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--gap").trim();
		pen.fillRect(0, 0, 1, 1);
		const want = pixel(0, 0);
		pen.clearRect(0, 0, 1, 1);
		pen.drawImage(u.ctx.canvas, 0, 0);
		const near = (y) => { // beside a line of the grid
			const at = u.valToPos((x.at(-1) + 3 * x.at(-2)) / 4, "x", true), top = u.valToPos(y, "y", true);
			return [0, 1, 2, 3].some(d => pixel(at, top + d) === want);
		};
		// A level is drawn beside its line of the legend: over at least a tenth of the width, in its grey.
		const grey = [1, 3, 5].map(i => parseInt(getComputedStyle(document.documentElement).getPropertyValue("--muted").trim().slice(i, i + 2), 16));
		const level = (y) => [-1, 0, 1].some(d => {
			const row = pen.getImageData(u.bbox.left, Math.round(u.valToPos(y, "y", true)) + d, u.bbox.width, 1).data;
			let n = 0;
			for (let i = 0; i < row.length; i += 4) if (row[i + 3] > 128 && grey.every((g, k) => Math.abs(row[i + k] - g) < 24)) n++;
			return n > u.bbox.width / 10;
		});
		return [host, [...inside.map(near), ...outside.map(y => !near(y)), ...marks.map(level), !level(40)]];
	}))`)
	for host, all := range got {
		for i, ok := range all {
			if !ok {
				p.t.Errorf("%s: pixel %d is not as the band has it", host, i)
			}
		}
	}
}
