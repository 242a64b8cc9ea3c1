// Draws the charts of the report from the JSON in it. Everything that is said here is also in
// a table: of the page, or under its chart.
(() => {
"use strict";

const doc = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
const status = document.getElementById("status");
const capacity = doc.capacity.per_second;
const charts = []; // all that are drawn

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
const round = (v) => String(Math.abs(v) >= 100 ? Math.round(v) : Number(v.toPrecision(3)));
function short(v) {
  if (v === null || v === undefined) return "–";
  if (Math.abs(v) >= 1e6) return round(v / 1e6) + " M";
  if (Math.abs(v) >= 1e4) return round(v / 1e3) + " k";
  return round(v);
}
const perSecond = (v) => (v === null || v === undefined ? "–" : short(v) + "/s");
function duration(s) {
  if (s === null || s === undefined) return "–";
  if (s < 0.001 && s > 0) return round(s * 1e6) + " µs";
  return s < 1 ? round(s * 1e3) + " ms" : short(s) + " s";
}
const percent = (v) => (v === null || v === undefined ? "–" : v.toFixed(1) + " %");
const times = (v) => Number(v.toPrecision(4)) + "x";
// floored is v rounded down to one digit. A logarithmic axis must begin there: from 0.96
// uPlot 1.6.32 steps to 1.1, which is no step that it knows, and for ever on.
function floored(v) {
  const step = 10 ** Math.floor(Math.log10(v));
  return Number((Math.floor(v / step) * step).toPrecision(1));
}
// decades leaves the lines of a logarithmic grid that have a number.
const decades = (_, splits) => splits.map((v) => (Number.isInteger(Number(Math.log10(v).toFixed(9))) ? v : null));

// ---------------------------------------------------------------- what is drawn

const line = (label, values, name, more) => ({ label, values, colour: name, dash: [], width: 2, ...more });
const ideal = (label, values) => line(label, values, "--muted", { dash: [7, 4], width: 1.5 });
const there = (s) => s.values.some((v) => v !== null && v > 0);

// Loads are told apart by their ratio: the axis is the logarithm of the load, taken here, so
// that its marks are the loads themselves.
const steps = [...doc.steps].sort((a, b) => a.load - b.load);
const loads = steps.map((s) => s.load);
const figures = (key, scale = 1) => steps.map((s) => (s.figures[key] === null ? null : s.figures[key] * scale));
const byLoad = (spec) => ({
  ...spec, x: loads.map(Math.log10), splits: loads.map(Math.log10), points: true, first: "load",
  formatX: (x) => times(10 ** x),
});

function goodputChart() {
  return byLoad({
    title: "Goodput", unit: "answers in time per second, against the load", format: perSecond,
    series: [line("in time", figures("in_time_per_second"), "--intime", { width: 3 }), ideal("ideal", loads.map((x) => Math.min(x, 1) * capacity))],
    marks: [{ y: capacity, label: "capacity " + perSecond(capacity) }],
  });
}

function refusedChart() {
  const of = (...keys) => steps.map((s) => {
    const n = s.figures.offered_per_second;
    return n > 0 ? (100 * keys.reduce((sum, k) => sum + (s.figures[k] || 0), 0)) / n : null;
  });
  const all = [
    line("refused", of("refused_per_second"), "--refused", { width: 3 }),
    line("gave up or just late", of("gave_up_per_second", "late_per_second"), "--gaveup"),
    line("failed, foreign or lost", of("failed_per_second", "foreign_per_second", "connection_errors_per_second", "not_sent_per_second"), "--failed"),
  ];
  return byLoad({
    title: "Refused", unit: "% of those offered, against the load", format: percent, top: 100,
    series: [...all.filter((s, i) => i < 2 || there(s)), ideal("ideal: what cannot be served", loads.map((x) => 100 * Math.max(0, 1 - 1 / x)))],
  });
}

function latencyChart() {
  const all = [
    line("p50", figures("latency_p50_seconds"), "--p50"),
    line("p99", figures("latency_p99_seconds"), "--p99", { width: 3 }),
    line("p99.9", figures("latency_p999_seconds"), "--p999", { dash: [2, 3] }),
    line("p99 of refusals", figures("refusal_p99_seconds"), "--refusal", { dash: [9, 3, 2, 3] }),
  ].filter(there);
  const marks = [
    { y: doc.settings.objective_seconds, label: "objective " + duration(doc.settings.objective_seconds) },
    { y: doc.settings.deadline_seconds, label: "callers leave, " + duration(doc.settings.deadline_seconds) },
  ];
  // With the deadline for an objective there is one line, and it has both names.
  if (marks[0].y === marks[1].y) marks.splice(0, 2, { y: marks[0].y, label: "objective and deadline " + duration(marks[0].y) });
  const from = doc.settings.attempts > 1 ? "from due, or the last attempt," : "from due";
  return byLoad({ title: "Latency", unit: from + " to answer, against the load; logarithmic", format: duration, log: true, series: all, marks });
}

function probeChart() {
  const probes = [...doc.capacity.probes].sort((a, b) => a.rate_per_second - b.rate_per_second);
  const of = (key) => probes.map((p) => p.figures[key]);
  const x = of("offered_per_second").map((v, i) => (v === null ? probes[i].rate_per_second : v));
  const order = x.map((_, i) => i).sort((a, b) => x[a] - x[b]);
  const sorted = (v) => order.map((i) => v[i]);
  const offered = sorted(x);
  return {
    title: "The search for the capacity", unit: "per second, against what was offered", x: offered, points: true, first: "offered",
    format: perSecond, formatX: perSecond,
    series: [
      line("in time", sorted(of("in_time_per_second")), "--intime", { width: 3 }),
      line("refused", sorted(of("refused_per_second")), "--refused"),
      ...[line("gave up", sorted(of("gave_up_per_second")), "--gaveup")].filter(there),
      ideal("ideal", offered),
    ],
    marks: capacity > 0 ? [{ y: capacity, label: "capacity " + perSecond(capacity) }] : [],
  };
}

// enough is how many arrivals in time a bin should have: the standard error of 20 is a fifth.
// Of a slow service bins are joined, up to a second.
const enough = 20;
const joined = Math.min(Math.max(Math.ceil(enough / ((capacity || 1) * doc.bin_seconds)), 1), Math.round(1 / doc.bin_seconds));

// overTime is a step and the calm after it as one series of rates. A logarithmic scale has no
// 0: what is less than a fiftieth of the capacity, or nothing, stands at the foot.
function stepChart(s) {
  const foot = floored(Math.max(capacity / 50, 0.1));
  const parts = s.calm ? [s.series, s.calm] : [s.series];
  const x = [], rows = { offered: [], in_time: [], late: [], refused: [], gave_up: [], failed: [] };
  let from = 0;
  for (const part of parts) {
    for (let i = 0; i < part.offered.length; i += joined) {
      const to = Math.min(i + joined, part.offered.length);
      const width = (to - i) * doc.bin_seconds;
      x.push(from + to * doc.bin_seconds - width / 2);
      for (const key of Object.keys(rows)) {
        rows[key].push(part[key].slice(i, to).reduce((a, b) => a + b, 0) / width);
      }
    }
    from += part.duration_seconds;
  }
  const floor = (v) => v.map((y) => Math.max(y, foot));
  const raw = { ...rows };
  const of = (label, key, name, more) => line(label, floor(rows[key]), name, { raw: raw[key], ...more });
  const some = (key) => raw[key].some((v) => v > 0);
  const recovery = s.recovered === null ? "" : s.recovered ? ", recovered " + (s.figures.recovery_seconds > 0 ? "in " + duration(s.figures.recovery_seconds) : "at once") : ", not recovered";
  return {
    title: "Load " + times(s.load), unit: perSecond(s.figures.offered_per_second) + " offered" + recovery + "; means of " + duration(joined * doc.bin_seconds),
    x, time: true, log: true, floor: foot, format: perSecond, formatX: duration, first: "at",
    series: [
      of("offered", "offered", "--muted", { dash: [7, 4], width: 1.5 }),
      of("in time", "in_time", "--intime", { width: 2.5 }),
      ...(some("refused") ? [of("refused", "refused", "--refused")] : []),
      ...(some("late") ? [of("just late", "late", "--late")] : []),
      ...(some("gave_up") ? [of("gave up", "gave_up", "--gaveup")] : []),
      ...(some("failed") ? [of("failed, foreign or lost", "failed", "--failed", { dash: [2, 3] })] : []),
    ],
    marks: s.calm ? [{ x: s.series.duration_seconds, label: "half of the capacity from here on" }] : [],
  };
}

// ---------------------------------------------------------------- one chart

// A chart is a figure with a caption, a plot, a legend that follows the cursor, and its
// numbers as a table.
class Chart {
  constructor(parent, spec) {
    this.spec = { marks: [], ...spec };
    const id = "chart" + charts.length;
    const figure = make(parent, "figure", { "aria-labelledby": id });
    const caption = make(figure, "figcaption", { id }, spec.title + " ");
    make(caption, "span", { class: "unit" }, spec.unit);
    const legend = make(figure, "ul", { class: "legend" });
    this.entries = spec.series.map((s) => this.entry(legend, s));
    this.levels = this.spec.marks.map((m, i) => this.entry(legend, { label: m.label, dash: Chart.dashes[i], width: 1 }));
    this.host = make(figure, "div", { class: "plot", tabindex: "0", role: "img", "aria-label": this.summary() });
    this.host.addEventListener("keydown", (e) => this.key(e));
    this.host.addEventListener("blur", () => this.point(null));
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
    return { stroke, value: make(li, "span", { class: "value", "aria-hidden": "true" }) };
  }

  // values are those of a series as they are said, not as they are drawn.
  values(i) {
    return this.spec.series[i].raw || this.spec.series[i].values;
  }

  // summary is the chart for whoever does not see it.
  summary() {
    const lines = this.spec.series.map((s, i) => {
      const v = this.values(i).filter((x) => x !== null && x !== undefined);
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
    const ink = colour("--muted"), grid = colour("--grid");
    const axis = (log) => {
      const lines = { stroke: grid, width: 1, ...(log ? { filter: decades } : {}) };
      return { stroke: ink, font: "12px system-ui, sans-serif", grid: lines, ticks: { ...lines, size: 4 } };
    };
    const splits = spec.splits ? { splits: (u) => this.apart(u) } : {};
    this.plot = new uPlot({
      ...this.size(),
      legend: { show: false },
      cursor: { y: false, points: { size: 7 }, sync: spec.time ? { key: "time", setSeries: false } : undefined },
      scales: { x: { time: false, range: (_, min, max) => this.rangeX(min, max) }, y: this.scaleY() },
      axes: [
        { ...axis(false), size: 32, space: 60, ...splits, values: (_, v) => v.map((x) => spec.formatX(x)) },
        { ...axis(spec.log), size: 58, space: 34, values: (_, v) => v.map((x) => (x === null ? "" : spec.top ? x + " %" : spec.format(x))) },
      ],
      series: [{}, ...order.map((i) => this.line(spec.series[i]))],
      hooks: { draw: [(u) => this.marks(u)], setCursor: [(u) => this.follow(u)] },
    }, [spec.x, ...order.map((i) => spec.series[i].values)], this.host);
    this.entries.forEach((e, i) => e.stroke.setAttribute("stroke", colour(spec.series[i].colour)));
    this.levels.forEach((e) => e.stroke.setAttribute("stroke", ink));
  }

  // apart are the places of the axis that have room for their number.
  apart(u) {
    let last = -Infinity;
    const room = (32 * (u.scales.x.max - u.scales.x.min)) / Math.max(u.bbox.width / uPlot.pxRatio, 1);
    return this.spec.splits.filter((x) => x >= u.scales.x.min && x <= u.scales.x.max && x - last >= room && ((last = x), true));
  }

  // rangeX is all of the data, with room for the points at its ends; one point alone has a
  // range too.
  rangeX(min, max) {
    if (this.spec.time && max > min) return [min, max];
    const room = (max - min || 1) * 0.04;
    return [min - room, max + room];
  }

  scaleY() {
    const spec = this.spec;
    const most = Math.max(...spec.marks.map((m) => m.y || 0), 0);
    if (spec.log) {
      return {
        distr: 3,
        range: (_, min, max) => {
          const low = spec.floor || floored(Math.max(min || most / 10, 1e-5));
          return [low, 1.6 * Math.max(max || 0, most, low * 10)];
        },
      };
    }
    if (spec.top) return { range: [0, spec.top] };
    return { range: (_, min, max) => [0, Math.max(max || 0, most) * 1.08 || 1] };
  }

  line(s) {
    return {
      label: s.label, stroke: colour(s.colour), width: s.width, dash: s.dash, spanGaps: true,
      points: this.spec.points && !s.dash.length ? { show: true, size: 7, fill: colour(s.colour) } : { show: false },
    };
  }

  // marks are levels that matter: the objective, the capacity, the end of a load. Their names
  // are in the legend: in the plot they would lie on the lines, and on one another.
  marks(u) {
    const ctx = u.ctx, dpr = uPlot.pxRatio;
    const { left, top, width, height } = u.bbox;
    ctx.save();
    ctx.strokeStyle = colour("--muted");
    ctx.lineWidth = 1.5 * dpr;
    this.spec.marks.forEach((m, i) => {
      const flat = m.y !== undefined;
      const at = flat ? u.valToPos(m.y, "y", true) : u.valToPos(m.x, "x", true);
      const from = flat ? top : left, to = flat ? top + height : left + width;
      if (!(at >= from && at <= to)) return;
      ctx.setLineDash(Chart.dashes[i].map((n) => n * dpr));
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
      const v = at === null || at === undefined ? undefined : this.values(i)[at];
      e.value.textContent = v === undefined ? "" : this.spec.format(v);
    });
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
    status.textContent = this.spec.formatX(this.spec.x[to]) + ": " + this.spec.series.map((s, i) => s.label + " " + this.spec.format(this.values(i)[to])).join(", ");
  }

  point(at) {
    this.at = at;
    const u = this.plot;
    u.setCursor(at === null ? { left: -10, top: -10 } : { left: u.valToPos(this.spec.x[at], "x"), top: u.over.clientHeight / 2 });
  }

  // table is made when it is opened: there are hundreds of cells.
  table(figure) {
    const details = make(figure, "details", { class: "data" });
    make(details, "summary", {}, "These numbers as a table");
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("table")) return;
      const scroll = make(details, "div", { class: "scroll", role: "group", tabindex: "0", "aria-label": this.spec.title + " as a table" });
      const table = make(scroll, "table");
      const head = make(make(table, "thead"), "tr");
      make(head, "th", { scope: "col" }, this.spec.first);
      for (const s of this.spec.series) make(head, "th", { scope: "col" }, s.label);
      const body = make(table, "tbody");
      this.spec.x.forEach((x, k) => {
        const row = make(body, "tr");
        make(row, "th", { scope: "row" }, this.spec.formatX(x));
        this.spec.series.forEach((_, i) => make(row, "td", {}, this.spec.format(this.values(i)[k])));
      });
    });
  }
}
Chart.dashes = [[3, 4], [1, 3]];

// ---------------------------------------------------------------- the page

const byload = document.getElementById("byload");
if (byload && capacity > 0) for (const spec of [goodputChart(), refusedChart(), latencyChart()]) new Chart(byload, spec);
const timed = doc.steps.filter((s) => s.series.offered.length > 1);
if (timed.length && capacity > 0) {
  document.querySelector(".scripted").hidden = false;
  for (const s of timed) new Chart(document.getElementById("bystep"), stepChart(s));
}
const byprobe = document.getElementById("byprobe");
if (byprobe && doc.capacity.probes.length > 1) new Chart(byprobe, probeChart());

const redraw = () => charts.forEach((c) => c.draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
// Paper is white, whatever the screen is.
addEventListener("beforeprint", () => { root.classList.add("print"); redraw(); });
addEventListener("afterprint", () => { root.classList.remove("print"); redraw(); });
})();
