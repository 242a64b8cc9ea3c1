// The last five minutes as columns, from which the charts are drawn: first those that the
// server remembers, then each tick. All columns are as long as the times. Times are seconds
// since 1970.

const kept = 300; // ticks, one a second: what the server remembers as well

// gap is how much time between two ticks is a hole in the lines: two ticks were missed.
const gap = 3.5;

const quantiles = ["latency", "wait", "service"];

// valuesOf are what a tick says of one limiter, by the name of its column. Names of columns
// are those of History in package live.
function valuesOf(view, state) {
  const r = view.rates;
  const all = new Map([
    ["offered", r.offered], ["throughput", r.throughput], ["goodput", r.goodput], ["refused", r.refused],
    ["limit", state?.limit], ["in_use", state?.in_use], ["waiting", state?.waiting], ["depth", state?.depth],
    ["age_seconds", state?.age_seconds], ["derived_depth", state?.derivation.depth],
  ]);
  for (const [reason, v] of Object.entries(r.reasons ?? {})) all.set("reason." + reason, v);
  for (const name of quantiles) {
    all.set(name + "_p50", view[name]?.p50);
    all.set(name + "_p99", view[name]?.p99);
  }
  return all;
}

export const left = new Set(["client", "parent"]); // reasons of cancelled requests

const demoColumns = ["load", "protect", "offered", "in_time", "served", "refused"];

export class Past {
  constructor() {
    this.number = null; // of the last tick; those of a history are not known
    this.times = [];
    this.limiters = new Map(); // a name is any text, and "__proto__" is no place in a Map
    this.demo = new Map();
  }

  // take replaces everything: a server that was started again has another past.
  take(history) {
    this.times = [...(history.times ?? [])];
    const columns = (series) => new Map(Object.entries(series ?? {}).map(([k, v]) => [k, [...v]]));
    this.limiters = new Map(Object.entries(history.limiters ?? {}).map(([name, series]) => [name, columns(series)]));
    this.demo = columns(history.demo);
    this.number = null;
    this.cut();
  }

  add(tick) {
    const at = Date.parse(tick.time) / 1000;
    const back = this.number !== null && tick.number > this.number && at <= this.times.at(-1);
    this.number = tick.number;
    if (back) this.clear(); // the clock was set back, and the server begins anew as well
    const last = this.times.at(-1);
    if (last !== undefined && at <= last) return; // the history has it
    if (last !== undefined && at - last > gap) this.push((last + at) / 2, new Map(), new Map());
    const states = new Map((tick.state?.limiters ?? []).map((s) => [s.name, s]));
    const values = new Map(tick.limiters.map((v) => [v.name, valuesOf(v, states.get(v.name))]));
    const d = tick.demo;
    this.push(at, values, new Map(d ? demoColumns.map((k) => [k, Number(d[k])]) : []));
    this.cut();
  }

  clear() {
    this.times = [];
    this.limiters.clear();
    this.demo.clear();
  }

  push(at, values, demo) {
    const n = this.times.length;
    this.times.push(at);
    for (const name of values.keys()) if (!this.limiters.has(name)) this.limiters.set(name, new Map());
    for (const [name, columns] of this.limiters) append(columns, values.get(name) ?? new Map(), n);
    append(this.demo, demo, n);
  }

  cut() {
    const over = this.times.length - kept;
    if (over <= 0) return;
    this.times.splice(0, over);
    for (const columns of [...this.limiters.values(), this.demo]) for (const c of columns.values()) c.splice(0, over);
    // Of a class that went with a reload five minutes ago there is nothing any more.
    for (const [name, columns] of this.limiters) {
      if ([...columns.values()].every((c) => c.every((v) => v === null))) this.limiters.delete(name);
    }
  }

  // column is one of a limiter; null all along if there is none.
  column(limiter, name) {
    return this.limiters.get(limiter)?.get(name) ?? new Array(this.times.length).fill(null);
  }

  demoColumn(name) {
    return this.demo.get(name) ?? new Array(this.times.length).fill(null);
  }

  // reasons are those for which the limiter refused in the time that is kept, the most
  // frequent first. Who left by himself was not refused.
  reasons(limiter) {
    const sum = (c) => c.reduce((a, v) => a + (v ?? 0), 0);
    return [...(this.limiters.get(limiter) ?? [])]
      .filter(([name]) => name.startsWith("reason."))
      .map(([name, c]) => [name.slice("reason.".length), sum(c)])
      .filter(([name, n]) => n > 0 && !left.has(name))
      .sort((a, b) => b[1] - a[1])
      .map(([name]) => name);
  }
}

function append(columns, values, n) {
  for (const [name, v] of values) if (!columns.has(name) && v !== undefined && v !== null) columns.set(name, new Array(n).fill(null));
  for (const [name, c] of columns) c.push(values.get(name) ?? null);
}
