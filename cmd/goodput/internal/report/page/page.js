// Draws the charts of the report from the JSON in it. Everything that is said here
// is also in a table: of the page, or under its chart. Names come from files of
// strangers and are set as text only.
(() => {
"use strict";

const doc = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
const status = document.getElementById("status");
const palette = 8; // --p0 to --p7 of the style sheet
const dashes = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
const markDashes = [[3, 4], [1, 3]];
const charts = []; // all that are drawn
const hidden = new Set(); // policies that are not shown, by place

// ---------------------------------------------------------------- small things

function make(parent, name, props = {}, text) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(props)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  parent.append(e);
  return e;
}

function makeSVG(parent, name, props) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [k, v] of Object.entries(props)) e.setAttribute(k, v);
  parent.append(e);
  return e;
}

const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
const policyColour = (i) => "--p" + (i % palette);
const policyDash = (i) => dashes[Math.floor(i / palette) % dashes.length];

const round = (v) => String(Math.abs(v) >= 100 ? Math.round(v) : Number(v.toPrecision(3)));
function short(v) {
  if (v === null || v === undefined) return "–";
  if (Math.abs(v) >= 1e6) return round(v / 1e6) + " M";
  if (Math.abs(v) >= 1e4) return round(v / 1e3) + " k";
  return round(v);
}
function duration(s) {
  if (s === null || s === undefined) return "–";
  if (s < 0.001 && s > 0) return round(s * 1e6) + " µs";
  return s < 1 ? round(s * 1e3) + " ms" : short(s) + " s";
}
const percent = (v) => (v === null || v === undefined ? "–" : v.toFixed(1) + " %");
// clock is for a run of so many seconds: 90 s, or 1:30 in a longer one.
function clock(s, length) {
  if (length <= 180) return round(s) + " s";
  const two = (n) => String(Math.floor(n)).padStart(2, "0");
  return s < 3600 ? Math.floor(s / 60) + ":" + two(s % 60) : Math.floor(s / 3600) + ":" + two((s / 60) % 60) + ":" + two(s % 60);
}
// floored is v rounded down to one digit. A logarithmic axis must begin there: from
// 0.96 uPlot 1.6.32 steps to 1.1, which is no step that it knows, and for ever on.
function floored(v) {
  const step = 10 ** Math.floor(Math.log10(v));
  return Number((Math.floor(v / step) * step).toPrecision(1));
}
// decades leaves the lines of a logarithmic grid that have a number.
const decades = (u, splits) => splits.map((v) => (Number.isInteger(Number(Math.log10(v).toFixed(9))) ? v : null));
const clockSteps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

// ---------------------------------------------------------------- what is drawn

// Counts of a bin become rates by the width of the bin, or of it and so many to both
// sides of it.
function rates(series, counts, reach = 0) {
  const ends = series.end_seconds;
  return ends.map((_, i) => {
    const from = Math.max(i - reach, 0), to = Math.min(i + reach, ends.length - 1);
    const width = ends[to] - (from > 0 ? ends[from - 1] : 0);
    return width > 0 ? counts.slice(from, to + 1).reduce((a, b) => a + b) / width : null;
  });
}
// Of three lines and more the noise of a bin hides each other: they are means of
// three bins, and the caption says of how long.
const reach = doc.policies.length > 2 ? 1 : 0;
function meanOver() {
  const ends = doc.policies[0].series.end_seconds, n = ends.length;
  return reach && n > 2 * reach ? ", mean over " + duration(((2 * reach + 1) * ends[n - 1]) / n) : "";
}
// The series are about the tier that requests come to first.
const tiers = doc.policies[0].runs[0].tiers;
const firstTier = tiers.length > 1 ? ` in ${tiers[0].name}, the first of ${tiers.length} tiers` : "";
const ofTier = tiers.length > 1 ? " of " + tiers[0].name : "";
// -1 is no bound: there is no line for it, and the legend says why.
function bounded(label, values, rest) {
  const none = values.every((v) => v < 0);
  return { label: none ? label + ": no bound" : label, values: values.map((v) => (v < 0 ? null : v)), dash: [], width: 1.5, ...rest };
}
const any = (values) => values.some((v) => v > 0);

// The choice of policies is the legend of all charts that have a line for each.
const shared = doc.policies.length > 1;

// Policies may have ended at different times: they are joined on the time.
function overlay(values) {
  const tables = doc.policies.map((p) => [p.series.end_seconds, values(p)]);
  const data = uPlot.join(tables);
  return { x: data[0], ys: data.slice(1) };
}

function perPolicy(ys) {
  return doc.policies.map((p, i) => ({
    label: p.name, values: ys[i], colour: policyColour(i), dash: policyDash(i), width: i === 0 ? 2.5 : 1.5, policy: i,
  }));
}

const objectives = () => {
  const seen = new Set();
  for (const p of doc.policies) for (const t of p.runs[0].tiers) if (t.limiter) seen.add(t.limiter.derivation.objective_seconds);
  return [...seen].filter((s) => s > 0).slice(0, 2);
};

function goodputChart() {
  const { x, ys } = overlay((p) => rates(p.series, p.series.in_time, reach));
  const capacity = doc.policies[0].runs[0].capacity_per_second;
  return {
    title: "Goodput", unit: "answers in time per second" + meanOver(), x, shared, time: true, format: short, series: perPolicy(ys),
    marks: capacity > 0 ? [{ y: capacity, label: "capacity " + short(capacity) }] : [],
  };
}

// Behind the first limiter a no is a failure: where there are any, both are one line.
function refusedChart() {
  const failed = doc.policies.some((p) => any(p.series.failed));
  const { x, ys } = overlay((p) => rates(p.series, failed ? p.series.refused.map((n, i) => n + p.series.failed[i]) : p.series.refused, reach));
  return {
    title: failed ? "Refused or failed" : "Refused", unit: (failed ? "requests" : "requests told no") + " per second" + meanOver(),
    x, shared, time: true, format: short, series: perPolicy(ys),
  };
}

// The ages of two policies differ by a factor of a hundred: the scale is
// logarithmic, and what is below a millisecond stands at its foot.
function ageChart() {
  const floor = 0.001;
  const { x, ys } = overlay((p) => p.series.age_seconds.map((v) => Math.max(v, floor)));
  return {
    title: "Queue age", unit: `of whoever has waited longest${firstTier}; 1 ms or less at the foot`, x, shared, time: true, log: "y", floor,
    format: duration, series: perPolicy(ys), marks: objectives().map((s) => ({ y: s, label: "objective " + duration(s) })),
  };
}

// The share of what got a slot that was answered within x: a quantile is where a
// line crosses its height.
function latencyChart() {
  // A logarithmic axis has no 0. Nobody waits for 10 µs: less is said to be that.
  const floor = 1e-5;
  const dists = doc.policies.map((p) => p.runs[0].total.latency);
  const bounds = dists.flatMap((d) => d.bounds_seconds.filter((b) => b !== null));
  const x = [...new Set(bounds.map((b) => Math.max(b, floor)))].sort((a, b) => a - b);
  const ys = dists.map((d) => {
    const at = new Map();
    d.bounds_seconds.forEach((b, i) => {
      const to = b === null ? null : Math.max(b, floor);
      at.set(to, (at.get(to) || 0) + d.counts[i]);
    });
    let n = 0;
    return x.map((b) => (d.count ? (100 * (n += at.get(b) || 0)) / d.count : null));
  });
  // What fewer than one in 500 reach, on both sides, is not worth the room.
  const first = x.findIndex((_, i) => ys.some((y) => y[i] > 0.2));
  const last = x.findIndex((_, i) => ys.every((y) => y[i] === null || y[i] > 99.8));
  const cut = (v) => v.slice(Math.max(first - 1, 0), last < 0 ? v.length : last + 1);
  return {
    title: "Latency", unit: "% of what got a slot, answered within" + (bounds.some((b) => b < floor) ? "; 10 µs or less at the left" : ""), x: cut(x), shared, log: "x", top: 100, format: percent, formatX: duration,
    series: perPolicy(ys.map(cut)), marks: objectives().map((s) => ({ x: s, label: "objective " + duration(s) })),
  };
}

function loadChart(p) {
  const s = p.series;
  const line = (label, counts, name, more) => ({ label, values: rates(s, counts), colour: name, dash: [], width: 1.5, ...more });
  return {
    title: "Load", unit: "requests per second", x: s.end_seconds, time: true, format: short,
    series: [
      line("goodput", s.in_time, "--p0", { width: 2.5, fill: true }),
      line("offered", s.arrivals, "--muted", { dash: [7, 4] }),
      line("refused", s.refused, "--p3"),
      ...(any(s.late) ? [line("late", s.late, "--p1")] : []),
      ...(any(s.failed) ? [line("failed", s.failed, "--p6", { dash: [2, 3] })] : []),
      ...(any(s.kept) ? [line("kept", s.kept, "--p7", { dash: [2, 3] })] : []),
      ...(s.attempts.some((n, i) => n !== s.arrivals[i]) ? [line("attempts", s.attempts, "--p4", { dash: [9, 3, 2, 3] })] : []),
    ],
  };
}

function queueChart(p) {
  const s = p.series;
  const line = (label, values, name, more) => ({ label, values, colour: name, dash: [], width: 1.5, ...more });
  return {
    title: "Queue" + ofTier, unit: "requests that wait; a depth is in units of cost", x: s.end_seconds, time: true, format: short,
    series: [
      line("waiting", s.waiting, "--p0", { width: 2.5, fill: true }),
      bounded("depth in force", s.depth, { colour: "--p1" }),
      ...(any(s.derived_depth) ? [line("derived depth", s.derived_depth, "--p2", { dash: [7, 4] })] : []),
      ...(any(s.behind) ? [line("behind the limiter", s.behind, "--p3", { dash: [2, 3] })] : []),
    ],
  };
}

function waitChart(p) {
  return {
    title: "Queue age" + ofTier, unit: "of whoever has waited longest", x: p.series.end_seconds, time: true, format: duration,
    series: [{ label: "age", values: p.series.age_seconds, colour: "--p0", dash: [], width: 2.5, fill: true }],
    marks: objectives().map((s) => ({ y: s, label: "objective " + duration(s) })),
  };
}

function limitChart(p) {
  const s = p.series;
  return {
    title: "Limit" + ofTier, unit: "in units of cost, of which a request that runs takes one or more", x: s.end_seconds, time: true, format: short,
    series: [
      bounded("limit", s.limit, { colour: "--p1", width: 2 }),
      { label: "running requests", values: s.running, colour: "--p0", dash: [], width: 1.5 },
    ],
  };
}

// ---------------------------------------------------------------- one chart

// A chart is a figure with a caption, a plot, a legend that follows the cursor, and
// its numbers as a table.
class Chart {
  constructor(parent, spec) {
    this.spec = spec;
    this.formatX = spec.formatX || ((s) => clock(s, spec.x[spec.x.length - 1]));
    const id = "chart" + charts.length;
    const figure = make(parent, "figure", { "aria-labelledby": id });
    const caption = make(figure, "figcaption", { id }, spec.title + " ");
    make(caption, "span", { class: "unit" }, spec.unit);
    const legend = make(figure, "ul", { class: "legend" });
    if (!spec.shared) this.entries = spec.series.map((s) => this.entry(legend, s));
    this.levels = (spec.marks || []).map((m, i) => this.entry(legend, { label: m.label, dash: markDashes[i % markDashes.length], width: 1 }));
    this.host = make(figure, "div", { class: "plot", tabindex: "0", role: "img", "aria-label": this.summary() });
    this.host.addEventListener("keydown", (e) => this.key(e));
    this.host.addEventListener("blur", () => this.point(null));
    if (spec.shared) {
      this.tip = make(this.host, "ul", { class: "legend tip", hidden: "", "aria-hidden": "true" });
      this.when = make(this.tip, "li", { class: "when" });
      this.entries = spec.series.map((s) => this.entry(this.tip, s));
    }
    this.table(figure);
    charts.push(this);
    this.draw();
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(this.host);
  }

  entry(legend, s) {
    const li = make(legend, "li");
    const svg = makeSVG(li, "svg", { class: "swatch", width: 22, height: 8, "aria-hidden": "true" });
    const stroke = makeSVG(svg, "line", { x1: 0, y1: 4, x2: 22, y2: 4, "stroke-width": Math.max(s.width, 2), "stroke-dasharray": s.dash.join(" ") });
    make(li, "span", { class: "label" }, s.label);
    const value = make(li, "span", { class: "value", "aria-hidden": "true" });
    return { li, stroke, value };
  }

  // summary is the chart for whoever does not see it.
  summary() {
    const lines = this.spec.series.map((s) => {
      const v = s.values.filter((x) => x !== null && x !== undefined);
      if (!v.length) return s.label;
      return `${s.label}: from ${this.spec.format(Math.min(...v))} to ${this.spec.format(Math.max(...v))}, at the end ${this.spec.format(v[v.length - 1])}`;
    });
    return `${this.spec.title}, ${this.spec.unit}. ${lines.join("; ")}. Arrow keys read the points.`;
  }

  size() {
    return { width: Math.max(this.host.clientWidth, 200), height: 240 };
  }

  // draw makes the plot anew: colours are part of it, so a change of theme does too.
  draw() {
    const spec = this.spec, n = spec.series.length;
    if (this.plot) this.plot.destroy();
    // The first is drawn last: on top of the others.
    const order = spec.series.map((_, i) => n - 1 - i);
    this.column = (i) => n - i; // of series i in the data of the plot
    const ink = colour("--muted"), grid = colour("--grid");
    const axis = (name) => {
      const lines = { stroke: grid, width: 1, ...(spec.log === name ? { filter: decades } : {}) };
      return { stroke: ink, font: "12px system-ui, sans-serif", grid: lines, ticks: { ...lines, size: 4 } };
    };
    this.plot = new uPlot({
      ...this.size(),
      legend: { show: false },
      cursor: { y: false, points: { size: 6 }, sync: spec.time ? { key: "time", setSeries: false } : undefined },
      scales: { x: { time: false, distr: spec.log === "x" ? 3 : 1, range: (_, min, max) => this.rangeX(min, max) }, y: this.scaleY() },
      axes: [
        { ...axis("x"), size: 32, space: 60, incs: spec.time ? clockSteps : undefined, filter: spec.log === "x" ? decades : (_, v) => v, values: (_, v) => v.map((x) => (x === null ? "" : this.formatX(x))) },
        { ...axis("y"), size: 58, space: 34, values: (_, v) => v.map((x) => (x === null ? "" : spec.top ? x + " %" : spec.format(x))) },
      ],
      series: [{}, ...order.map((i) => this.line(spec.series[i]))],
      hooks: { draw: [(u) => this.marks(u)], setCursor: [(u) => this.follow(u)] },
    }, [spec.x, ...order.map((i) => spec.series[i].values)], this.host);
    this.entries.forEach((e, i) => e.stroke.setAttribute("stroke", colour(spec.series[i].colour)));
    this.levels.forEach((e) => e.stroke.setAttribute("stroke", ink));
    this.show();
  }

  // rangeX is all of the data, or what was zoomed to. One point alone has a range too.
  rangeX(min, max) {
    if (this.spec.log !== "x") return [min, max];
    const low = floored(min);
    return [low, max > low ? max : 2 * low];
  }

  scaleY() {
    const spec = this.spec;
    if (spec.log === "y") {
      const most = Math.max(...spec.marks.map((m) => m.y), 0);
      return { distr: 3, range: (_, min, max) => [spec.floor, 1.6 * Math.max(max || 0, most, spec.floor * 10)] };
    }
    if (spec.top) return { range: [0, spec.top] };
    const most = Math.max(...(spec.marks || []).map((m) => m.y || 0), 0);
    return { range: (_, min, max) => [0, Math.max(max || 0, most) * 1.08 || 1] };
  }

  line(s) {
    const stroke = colour(s.colour);
    return {
      label: s.label, stroke, width: s.width, dash: s.dash, spanGaps: true, points: { show: false },
      fill: s.fill ? stroke + "22" : undefined, show: !hidden.has(s.policy),
    };
  }

  // marks are levels that matter: the objective, the capacity. Their names are in the
  // legend: in the plot they would lie on the lines, and on one another.
  marks(u) {
    const ctx = u.ctx, dpr = uPlot.pxRatio;
    const { left, top, width, height } = u.bbox;
    ctx.save();
    ctx.strokeStyle = colour("--muted");
    ctx.lineWidth = 1.5 * dpr;
    (this.spec.marks || []).forEach((m, i) => {
      const flat = m.y !== undefined;
      const at = flat ? u.valToPos(m.y, "y", true) : u.valToPos(m.x, "x", true);
      const from = flat ? top : left, to = flat ? top + height : left + width;
      if (at < from || at > to) return;
      ctx.setLineDash(markDashes[i % markDashes.length].map((n) => n * dpr));
      ctx.beginPath();
      ctx.moveTo(flat ? left : at, flat ? at : top);
      ctx.lineTo(flat ? left + width : at, flat ? at : top + height);
      ctx.stroke();
    });
    ctx.restore();
  }

  // follow writes the values under the cursor into the legend.
  follow(u) {
    const at = u.cursor.left >= 0 ? u.cursor.idx : null;
    this.entries.forEach((e, i) => {
      const v = at === null || at === undefined ? undefined : u.data[this.column(i)][at];
      e.value.textContent = v === undefined ? "" : this.spec.format(v);
    });
    if (!this.tip) return;
    this.tip.hidden = at === null || at === undefined;
    if (this.tip.hidden) return;
    this.when.textContent = (this.spec.time ? "" : "within ") + this.formatX(this.spec.x[at]);
    const left = u.cursor.left > u.over.clientWidth / 2;
    this.tip.classList.toggle("at-left", left);
    this.tip.classList.toggle("at-right", !left);
  }

  // key moves along the points, so that a chart is read without a mouse.
  key(e) {
    const last = this.spec.x.length - 1, at = this.at ?? -1;
    const step = e.shiftKey ? 10 : 1;
    const to = { ArrowRight: Math.min(at + step, last), ArrowLeft: Math.max(at - step, 0), Home: 0, End: last, Escape: null }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    this.point(to);
    if (to === null) return;
    const shown = this.spec.series.filter((s) => !hidden.has(s.policy));
    status.textContent = this.formatX(this.spec.x[to]) + ": " + shown.map((s) => s.label + " " + this.spec.format(s.values[to])).join(", ");
  }

  point(at) {
    this.at = at;
    const u = this.plot;
    u.setCursor(at === null ? { left: -10, top: -10 } : { left: u.valToPos(this.spec.x[at], "x"), top: u.over.clientHeight / 2 });
  }

  // show hides the lines of policies that are not asked for.
  show() {
    this.spec.series.forEach((s, i) => {
      if (s.policy === undefined) return;
      const on = !hidden.has(s.policy);
      this.entries[i].li.hidden = !on;
      if (this.plot.series[this.column(i)].show !== on) this.plot.setSeries(this.column(i), { show: on });
    });
  }

  // table is made when it is opened: there are thousands of cells.
  table(figure) {
    const details = make(figure, "details", { class: "data" });
    make(details, "summary", {}, "These numbers as a table");
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("table")) return;
      const scroll = make(details, "div", { class: "scroll", role: "group", tabindex: "0", "aria-label": this.spec.title + " as a table" });
      const table = make(scroll, "table");
      const head = make(make(table, "thead"), "tr");
      make(head, "th", { scope: "col" }, this.spec.time ? "until" : "within");
      for (const s of this.spec.series) make(head, "th", { scope: "col" }, s.label);
      const body = make(table, "tbody");
      this.spec.x.forEach((x, i) => {
        const row = make(body, "tr");
        make(row, "th", { scope: "row" }, this.formatX(x));
        for (const s of this.spec.series) make(row, "td", {}, this.spec.format(s.values[i]));
      });
    });
  }
}

// ---------------------------------------------------------------- the page

function choose() {
  const box = document.getElementById("choose");
  if (doc.policies.length < 2) {
    box.parentElement.hidden = true;
    return;
  }
  doc.policies.forEach((p, i) => {
    const label = make(box, "label");
    const input = make(label, "input", { type: "checkbox", checked: "" });
    const svg = makeSVG(label, "svg", { class: "swatch", width: 22, height: 8, "aria-hidden": "true" });
    makeSVG(svg, "line", { class: "s" + (i % palette), x1: 0, y1: 4, x2: 22, y2: 4, "stroke-width": 2.5, "stroke-dasharray": policyDash(i).join(" ") });
    make(label, "span", {}, p.name);
    input.addEventListener("change", () => {
      if (input.checked) hidden.delete(i);
      else hidden.add(i);
      charts.forEach((c) => c.show());
    });
  });
}

function details(d) {
  const host = d.querySelector(".charts"), p = doc.policies[d.dataset.policy];
  if (!d.open || host.childElementCount || !p.series.end_seconds.length) return;
  for (const spec of [loadChart(p), queueChart(p), waitChart(p), limitChart(p)]) new Chart(host, spec);
}

const overlays = document.getElementById("overlays");
const timed = doc.policies.some((p) => p.series.end_seconds.length > 1);
const answered = doc.policies.some((p) => p.runs[0].total.latency.count > 0);
if (timed || answered) {
  document.querySelector(".scripted").hidden = false;
  choose();
  if (timed) {
    new Chart(overlays, goodputChart());
    new Chart(overlays, refusedChart());
    new Chart(overlays, ageChart());
  }
  if (answered) new Chart(overlays, latencyChart());
}
for (const d of document.querySelectorAll("details.policy")) {
  d.addEventListener("toggle", () => details(d));
  details(d);
}

const redraw = () => charts.forEach((c) => c.draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
// Paper is white, whatever the screen is.
addEventListener("beforeprint", () => { root.classList.add("print"); redraw(); });
addEventListener("afterprint", () => { root.classList.remove("print"); redraw(); });
})();
