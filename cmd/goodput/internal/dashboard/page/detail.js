// One class: how it does in six numbers, over time, and why: the derivation in words, the
// refusals with what decided them, the tenants, and all counts.

import { alarm } from "./alarm.js";
import { Chart } from "./chart.js";
import { tone } from "./classes.js";
import { byID, fit, make, name, say, set } from "./dom.js";
import { left } from "./past.js";
import { bytes, count, number, perSecond, quantile, reason, seconds, share, span, times } from "./units.js";

const colours = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7"];
const dashes = [[], [7, 4], [2, 3], [9, 3, 2, 3], [1, 2], [12, 3], [5, 2, 1, 2], [9, 2, 2, 2, 2, 2]];

const line = (key, label, colour, dash = [], more = {}) => ({ key, label, colour, dash, width: 1.75, ...more });

const low = 210, high = 280; // of a plot, pixels

// tiles are the six numbers that are looked at first, each with what it is to be held against.
const tiles = [
  { key: "offered", label: "offered", of: (v) => perSecond(v.rates.offered), about: (v) => `${perSecond(v.rates.admitted)} got a slot` },
  { key: "goodput", label: "goodput", of: (v) => perSecond(v.rates.goodput), about: () => "answered in time" },
  { key: "in_time", label: "in-time share", of: (v) => share(v.rates.in_time), about: () => "of what arrived" },
  { key: "refused", label: "refused", of: (v) => perSecond(v.rates.refused), about: (v, s) => (s.observe ? instead(v.rates.shadow) : mostly(v.rates.reasons)) },
  { key: "p99", label: "p99 at goodput", of: (v) => quantile(v.latency, "p99"), about: against },
  { key: "demand", label: "demand", of: (_, s) => times(s.demand_ratio), about: () => "of what can be served" },
];

function mostly(reasons) {
  const [most, n] = Object.entries(reasons ?? {}).filter(([name]) => !left.has(name)).reduce((a, b) => (b[1] > a[1] ? b : a), ["", 0]);
  return n > 0 ? "mostly " + reason(most) : "nobody";
}

// instead is what observe mode would have refused.
function instead(shadow) {
  const would = Object.entries(shadow ?? {}).reduce((sum, [name, n]) => (left.has(name) ? sum : sum + n), 0);
  return `only observed: ${perSecond(would)} would be`;
}

// against holds the latency against the objective, at the percentile of that.
function against(v, s) {
  const { objective_seconds: objective, percentile } = s.derivation;
  const of = `last ${seconds(v.window_seconds)}; objective ${seconds(objective)}` + (percentile === 0.99 ? "" : ` for ${share(percentile)}`);
  if (!v.latency) return of;
  return v.latency.target <= objective && !v.latency.target_over ? of + ": met" : of + ": missed";
}

// now are the numbers of this moment, of which /api/v1/state has each.
const now = [
  { key: "limit", label: "limit", of: (s) => count(s.limit) + (s.limit_max > s.limit_min ? `, of ${count(s.limit_min)} to ${count(s.limit_max)}` : "") },
  { key: "in_use", label: "in use", of: (s) => `${count(s.in_use)} by ${count(s.running)} requests` },
  { key: "waiting", label: "waiting", of: (s) => `${count(s.waiting)}, cost ${count(s.waiting_cost)}` },
  { key: "bytes", label: "bytes that wait", of: (s) => `${bytes(s.waiting_bytes)} of ${bytes(s.waiting_bytes_limit)}` },
  { key: "age", label: "oldest has waited", of: (s) => seconds(s.age_seconds) },
  { key: "order", label: "order", of: (s) => s.order },
  { key: "depth", label: "depth in force", of: (s) => count(s.depth) },
  { key: "derived", label: "derived depth", of: (s) => count(s.derivation.depth) },
  { key: "capacity", label: "can be served", of: (s) => perSecond(s.derivation.capacity_per_second) },
  { key: "mean", label: "mean time in a slot", of: (s) => seconds(s.derivation.mean_seconds) },
  { key: "service", label: "service quantile", of: (s) => seconds(s.derivation.service_seconds) },
  { key: "objective", label: "objective", of: (s) => `${seconds(s.derivation.objective_seconds)} for ${share(s.derivation.percentile)}` },
  { key: "retry", label: "retry after", of: (s) => seconds(s.retry_after_seconds) },
  { key: "moved", label: "limit moved", of: (s) => (s.counts.limit_changes ? `${span(s.limit_moved_seconds)} ago, from ${count(s.limit_from)}` : "never") },
];

export class Detail {
  constructor() {
    fit(byID("tiles"), tiles, (dl) => {
      const div = make(dl, "div");
      make(div, "dt");
      make(div, "dd", { class: "figure" });
      make(div, "dd", { class: "about" });
      return div;
    }, (div, t) => {
      say(div.children[0], t.label);
      set(div.children[1], "data-key", t.key);
    });
    this.flow = new Chart(byID("flow"), {
      title: "Offered, throughput, goodput", unit: "requests per second", format: perSecond, height: high,
      gap: { upper: "offered", lower: "goodput", label: "offered and not answered in time" },
      series: [
        line("goodput", "goodput", "--c0", [], { width: 3 }), line("throughput", "throughput: all that ended, in vain too", "--c2", [2, 3]), line("offered", "offered", "--c1", [7, 4]),
      ],
    });
    const host = byID("charts");
    this.refusals = new Chart(host, { title: "Refused, by reason", unit: "requests per second", format: perSecond, height: low, series: [line("refused", "refused", "--c0")] });
    this.latency = new Chart(host, {
      title: "Latency", unit: "from arrival to end, of what got a slot", format: seconds, height: low,
      series: [line("latency_p99", "p99", "--c1", [], { width: 2.5 }), line("latency_p50", "p50", "--c0", [7, 4])],
    });
    this.queue = new Chart(host, {
      title: "Queue", unit: "requests that wait; a depth is in units of cost", format: number, height: low,
      series: [line("waiting", "waiting", "--c0", [], { width: 2.5, fill: true }), line("depth", "depth in force", "--c1", [2, 3]), line("derived_depth", "derived depth", "--c2", [7, 4])],
    });
    this.age = new Chart(host, {
      title: "Queue age", unit: "of whoever has waited longest", format: seconds, height: low,
      series: [line("age_seconds", "age", "--c0", [], { width: 2.5, fill: true })],
    });
    this.limit = new Chart(host, {
      title: "Limit", unit: "units of cost", format: number, height: low,
      series: [line("in_use", "in use", "--c0", [], { width: 2.5, fill: true }), line("limit", "limit", "--c1", [7, 4])],
    });
    this.parts = new Chart(host, {
      title: "Wait and service", unit: "of those that waited; of slot to end", format: seconds, height: low,
      series: [
        line("service_p99", "service p99", "--c1", [], { width: 2.5 }), line("service_p50", "service p50", "--c4", [7, 4]),
        line("wait_p99", "wait p99", "--c0", [2, 3], { width: 2.5 }), line("wait_p50", "wait p50", "--c5", [9, 3, 2, 3]),
      ],
    });
  }

  show({ view, state }, past, at) {
    say(byID("class-name"), name(view.name));
    const wrong = alarm(view, at);
    say(byID("alarm-words"), wrong ? `Alarm: ${wrong}.` : "");
    byID("alarm").hidden = !wrong;
    say(byID("state"), view.explanation.state);
    set(byID("state"), "class", "words " + tone(view.explanation.condition));
    tiles.forEach((t, i) => {
      const [, figure, about] = byID("tiles").children[i].children;
      say(figure, t.of(view, state));
      say(about, t.about(view, state));
    });
    this.draw(view.name, state, past);
    facts(view.explanation.facts ?? []);
    refused(view.explanation.refused_by ?? []);
    tenants(state.tenants ?? [], view.tenants ?? [], state.observe);
    pairs(byID("now"), now.map((n) => [n.key, n.label, n.of(state)]));
    counts(state);
  }

  draw(limiter, state, past) {
    const column = (key) => past.column(limiter, key);
    const reasons = past.reasons(limiter);
    this.refusals.lines(reasons.length
      ? reasons.map((r, i) => line("reason." + r, reason(r), colours[i % colours.length], dashes[i % dashes.length], { width: i ? 1.75 : 2.5 }))
      : [line("refused", "refused", "--c0")]);
    const objective = state.derivation.objective_seconds;
    const marks = objective > 0 ? [{ y: objective, label: "objective " + seconds(objective) }] : [];
    this.flow.show(past.times, column);
    this.refusals.show(past.times, column);
    this.latency.show(past.times, column, marks);
    this.queue.show(past.times, column);
    this.age.show(past.times, column, marks);
    this.limit.show(past.times, column);
    this.parts.show(past.times, column);
  }
}

function facts(all) {
  byID("why").hidden = all.length === 0;
  pairs(byID("facts"), all.map((f) => ["", f.topic, f.text]));
}

// pairs fills a list of terms with [key, term, text].
function pairs(dl, all) {
  fit(dl, all, (parent) => {
    const div = make(parent, "div");
    make(div, "dt");
    make(div, "dd");
    return div;
  }, (div, [key, term, text]) => {
    say(div.children[0], term);
    say(div.children[1], text);
    if (key) set(div.children[1], "data-key", key);
  });
}

// refused lists what decided lately, each with how many it refused.
function refused(all) {
  byID("nobody-refused").hidden = all.length > 0;
  fit(byID("refused"), all, (ol) => {
    const li = make(ol, "li");
    const p = make(li, "p", { class: "head" });
    make(p, "b");
    make(p, "span", { class: "muted" });
    make(p, "span", { class: "knob" });
    make(li, "p", { class: "sentence", dir: "auto" });
    return li;
  }, (li, r) => {
    const [what, when, knob] = li.firstElementChild.children;
    say(what, `${count(r.count)} × ${reason(r.reason || r.outcome)}`);
    say(when, `${lately(r)}, ${r.told}`);
    say(knob, r.knob ? "decided by: " + r.knob : "");
    say(li.lastElementChild, r.text);
  });
}

function lately({ ago_seconds: latest, since_seconds: first }) {
  if (!(first > latest)) return seconds(latest) + " ago";
  return latest < 1 ? `in the last ${seconds(first)}` : `${seconds(first)} to ${seconds(latest)} ago`;
}

// tenants have what they get in the tick and the rest in the state. In observe mode all runs, and
// what a tenant has is what it would have.
function tenants(all, gets, observe) {
  const served = new Map(gets.map((t) => [t.id, t.served]));
  byID("tenants-section").hidden = all.length === 0;
  const would = observe ? ["would get", "would be in use", "would wait", "would be refused"] : ["gets", "in use", "waits", "refused"];
  would.forEach((text, i) => say(byID("tenants-head").children[i + 2], text));
  fit(byID("tenants"), all, (body) => {
    const tr = make(body, "tr");
    make(tr, "th", { scope: "row", dir: "auto" });
    for (let i = 0; i < 5; i++) make(tr, "td");
    return tr;
  }, (tr, t) => {
    const texts = [t.id === "" ? "all others" : t.id, perSecond(t.offered_per_second), perSecond(served.get(t.id)), count(t.in_use), count(t.waiting), count(t.refused)];
    texts.forEach((text, i) => say(tr.children[i], text));
    set(tr.firstElementChild, "title", t.id || "all without a row of their own");
  });
}

// counts are all ends since the start, of which those that never occurred are left out.
function counts(state) {
  const c = state.counts;
  const rows = [
    ["arrivals", "arrivals", c.arrivals], ["immediate", "admitted at once", c.admitted_immediately],
    ["dequeued", "admitted after a wait", c.admitted_after_waiting], ["exempt", "exempt, not counted above", c.exempt_admissions],
  ];
  const end = (prefix, before, e) => [[prefix, e.outcome, e.reason].filter(Boolean).join("."), before + e.outcome + (e.reason ? ": " + reason(e.reason) : ""), e.count];
  for (const e of c.ends ?? []) if (e.count > 0) rows.push(end("end", "", e));
  for (const e of state.shadow ?? []) if (e.count > 0) rows.push(end("shadow", "would have been ", e));
  fit(byID("counts"), rows, (body) => {
    const tr = make(body, "tr");
    make(tr, "th", { scope: "row" });
    make(tr, "td");
    return tr;
  }, (tr, [key, label, n]) => {
    say(tr.children[0], label);
    say(tr.children[1], count(n));
    set(tr.children[1], "data-key", key);
  });
}
