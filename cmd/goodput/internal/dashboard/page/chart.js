// One chart: a figure with a caption, a plot, and a legend that has the latest values, or those
// under the cursor, as text. What the plot shows to eyes, the legend says to everybody else.

import { announce, make, makeSVG, say } from "./dom.js";
import { clock } from "./units.js";

const root = document.documentElement;
const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
const markDashes = [[3, 4], [1, 3]];
const shortest = 60; // seconds that the axis of time has at least
const all = [];

// Times of day, in the steps that people know.
const steps = [1, 5, 10, 15, 30, 60, 120, 300, 600];

// A scheme of colours is part of a plot: another one makes the plots anew.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => all.forEach((c) => c.plot && c.draw()));

// A Chart is made of
//   title, unit   what it shows, in words
//   series        [{ key, label, colour, dash, width, fill }], colour the name of a property
//   format        of a value
//   gap           [upper, lower]: keys of the two lines between which it is shaded
//   height        of the plot
// and show gives it the numbers.
export class Chart {
  constructor(parent, spec) {
    this.spec = spec;
    this.data = [[]];
    this.marks = [];
    const id = "chart" + all.length;
    this.figure = make(parent, "figure", { "aria-labelledby": id });
    const caption = make(this.figure, "figcaption", { id });
    make(caption, "b", {}, spec.title);
    caption.append(" ");
    make(caption, "span", { class: "unit" }, spec.unit);
    this.legend = make(this.figure, "ul", { class: "legend" });
    this.host = make(this.figure, "div", {
      class: "plot", tabindex: "0", role: "application", "aria-roledescription": "chart",
      "aria-label": `${spec.title}, ${spec.unit}, over the last five minutes. The latest values are in the list before. Arrow keys read the points.`,
    });
    this.host.addEventListener("keydown", (e) => this.key(e));
    this.host.addEventListener("blur", () => this.point(null));
    this.lines(spec.series);
    all.push(this);
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(this.host);
  }

  // lines says which there are; the plot is made anew if they have changed.
  lines(series) {
    const keys = series.map((s) => s.key).join();
    if (keys === this.keys) return;
    this.keys = keys;
    this.spec.series = series;
    this.entries = null;
    this.at = null;
    this.plot?.destroy();
    this.plot = null;
  }

  // show draws columns, by the key of their line, over times, and marks: levels that matter,
  // as [{ y, label }].
  show(times, column, marks = []) {
    this.marks = marks;
    this.data = [times, ...this.spec.series.map((s) => column(s.key))];
    const labels = marks.map((m) => m.label).join("\n");
    if (!this.entries || labels !== this.labels) {
      this.labels = labels;
      this.list();
    }
    if (!this.plot) this.draw();
    else this.plot.setData(this.data);
    this.follow();
  }

  list() {
    this.legend.replaceChildren();
    const fill = this.spec.gap ? [{ label: this.spec.gap.label, fill: true }] : [];
    this.entries = this.spec.series.map((s) => this.entry(s));
    fill.forEach((s) => this.entry(s));
    this.marks.forEach((m, i) => this.entry({ label: m.label, colour: "--muted", dash: markDashes[i % markDashes.length], width: 1.5 }));
  }

  entry(s) {
    const li = make(this.legend, "li");
    const svg = makeSVG(li, "svg", { class: "swatch", width: 24, height: 10, "aria-hidden": "true" });
    if (s.fill === true && !s.colour) makeSVG(svg, "rect", { class: "gap", width: 24, height: 10, rx: 2 });
    else makeSVG(svg, "line", { class: "stroke-" + s.colour.slice(2), x1: 0, y1: 5, x2: 24, y2: 5, "stroke-width": Math.max(s.width, 2), "stroke-dasharray": s.dash.join(" ") });
    make(li, "span", { class: "label" }, s.label);
    return make(li, "span", { class: "value" });
  }

  size() {
    return { width: Math.max(this.host.clientWidth, 120), height: this.spec.height };
  }

  draw() {
    this.plot?.destroy();
    const spec = this.spec, ink = colour("--muted"), grid = colour("--grid");
    const axis = { stroke: ink, font: "12px system-ui, sans-serif", grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1, size: 4 } };
    const place = (key) => 1 + spec.series.findIndex((s) => s.key === key);
    this.plot = new uPlot({
      ...this.size(),
      legend: { show: false },
      cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false }, sync: { key: "time", setSeries: false } },
      scales: {
        x: { time: false, range: (_, min, max) => [Math.min(min ?? 0, (max ?? 0) - shortest), max ?? 1] },
        y: { range: (_, min, max) => [0, Math.max(max ?? 0, ...this.marks.map((m) => m.y)) * 1.08 || 1] },
      },
      axes: [
        { ...axis, size: 30, space: 70, incs: steps, values: (_, v) => v.map(clock) },
        { ...axis, size: 62, space: 34, values: (_, v) => v.map((y) => spec.format(y)) },
      ],
      series: [{}, ...spec.series.map((s) => this.line(s))],
      bands: spec.gap ? [{ series: [place(spec.gap.upper), place(spec.gap.lower)], fill: colour("--gap") }] : [],
      hooks: { draw: [(u) => this.level(u)], setCursor: [() => this.follow()] },
    }, this.data, this.host);
  }

  line(s) {
    const stroke = colour(s.colour);
    return { label: s.label, stroke, width: s.width, dash: s.dash, points: { show: false }, fill: s.fill ? stroke + "1f" : undefined };
  }

  level(u) {
    const ctx = u.ctx, dpr = uPlot.pxRatio;
    ctx.save();
    ctx.strokeStyle = colour("--muted");
    ctx.lineWidth = 1.5 * dpr;
    this.marks.forEach((m, i) => {
      const at = u.valToPos(m.y, "y", true);
      ctx.setLineDash(markDashes[i % markDashes.length].map((n) => n * dpr));
      ctx.beginPath();
      ctx.moveTo(u.bbox.left, at);
      ctx.lineTo(u.bbox.left + u.bbox.width, at);
      ctx.stroke();
    });
    ctx.restore();
  }

  // follow writes values into the legend: those under the cursor, else the latest.
  follow() {
    if (!this.entries) return;
    const under = this.plot && this.plot.cursor.left >= 0 ? this.plot.cursor.idx : null;
    const at = under ?? this.data[0].length - 1;
    this.entries.forEach((e, i) => say(e, this.spec.format(this.data[i + 1][at])));
  }

  // key moves along the points.
  key(e) {
    const last = this.data[0].length - 1;
    const step = e.shiftKey ? 10 : 1, at = this.at ?? last + 1;
    const to = { ArrowRight: Math.min(at + step, last), ArrowLeft: Math.max(at - step, 0), Home: 0, End: last, Escape: null }[e.key];
    if (to === undefined || last < 0) return;
    e.preventDefault();
    this.point(to);
    if (to === null) return;
    announce(clock(this.data[0][to]) + ": " + this.spec.series.map((s, i) => s.label + " " + this.spec.format(this.data[i + 1][to])).join(", "));
  }

  point(at) {
    this.at = at;
    if (!this.plot) return;
    this.plot.setCursor(at === null ? { left: -10, top: -10 } : { left: this.plot.valToPos(this.data[0][at], "x"), top: 10 });
  }
}
