// The table of all classes: which there are, which refuse, and which one the rest of the page
// is about. That one is in the address, so that it survives a reload and can be sent to
// somebody.

import { alarm, off } from "./alarm.js";
import { byID, fit, make, name, say, set } from "./dom.js";
import { number, perSecond, quantile, seconds, share, times } from "./units.js";

const many = 8; // rows from which on there is something to look for

// Each column has the smallest screen that has room for it.
const columns = [
  { key: "offered", label: "offered", of: (v) => perSecond(v.rates.offered) },
  { key: "goodput", label: "goodput", of: (v) => perSecond(v.rates.goodput) },
  { key: "in_time", label: "in time", of: (v) => share(v.rates.in_time), from: "tablet" },
  { key: "refused", label: "refused", of: (v) => perSecond(v.rates.refused) },
  { key: "p99", label: "p99", of: (v) => quantile(v.latency, "p99"), from: "desktop" },
  { key: "objective", label: "objective", of: (_, s) => seconds(s.derivation.objective_seconds), from: "desktop" },
  { key: "in_use", label: "in use", of: (_, s) => number(s.in_use) + " of " + number(s.limit), from: "desktop" },
  { key: "waiting", label: "waiting", of: (_, s) => number(s.waiting) + " of " + number(s.depth), from: "desktop" },
  { key: "demand", label: "demand", of: (_, s) => times(s.demand_ratio), from: "desktop" },
];

// tones are how much a condition is of interest, for the eye; the state says it in words.
const tones = new Map(Object.entries({
  slowed: "bad", unreachable: "bad", absent: "bad", paused: "bad", draining: "bad", drained: "bad",
  saturated: "shed", allowance: "shed", searching: "shed",
  burst: "full", boundary: "full", observing: "full",
  busy: "calm", idle: "calm",
}));

export const tone = (condition) => tones.get(condition) ?? "calm";

const hashOf = (limiter) => "#class=" + encodeURIComponent(limiter);

// chosen is the class in the address, or null.
export function chosen() {
  const found = /^#class=(.*)$/.exec(location.hash);
  if (!found) return null;
  try {
    return decodeURIComponent(found[1]);
  } catch {
    return null; // a hand-written % that is none
  }
}

export class Classes {
  constructor() {
    this.body = byID("classes").querySelector("tbody");
    const head = byID("classes").querySelector("thead tr");
    for (const c of columns) make(head, "th", { scope: "col", class: c.from ?? "" }, c.label);
    this.find = byID("find");
    this.find.addEventListener("input", () => this.last && this.show(...this.last));
  }

  // show lists items, { view, state } for each class; the one called current is marked, and at is
  // the time of the tick.
  show(items, current, at) {
    this.last = [items, current, at];
    const wanted = this.find.value.toLowerCase();
    byID("finder").hidden = items.length <= many;
    const found = items.length > many && wanted ? items.filter((i) => i.view.name.toLowerCase().includes(wanted)) : items;
    fit(this.body, found, row, (tr, item) => fill(tr, item, item.view.name === current, at));
    this.summary(items, at);
    alarms(items, at);
    say(byID("found"), found.length < items.length ? `${found.length} of ${items.length} classes` : `${items.length} classes`);
  }

  // summary names those that refuse: in a hundred rows nobody sees them.
  summary(items, at) {
    const refusing = items.filter((i) => i.view.rates.refused > 0).sort((a, b) => b.view.rates.refused - a.view.rates.refused);
    const shown = refusing.slice(0, 5);
    const n = refusing.length;
    const open = items.filter((i) => off(i.view, at));
    if (items.length === 1) say(byID("refusing-count"), n ? "It refuses now." : open.length ? `It refuses nobody: ${off(open[0].view, at)}.` : "It refuses nothing now.");
    else if (!n && open.length) say(byID("refusing-count"), `No class refuses anything now; of ${open.length} of ${items.length} protection is off.`);
    else say(byID("refusing-count"), n ? `${n} of ${items.length} classes ${n === 1 ? "refuses" : "refuse"} now${n > shown.length ? ", most of all" : ""}:` : "No class refuses anything now.");
    fit(byID("refusing"), items.length > 1 ? shown : [], (ul) => make(make(ul, "li"), "a", { dir: "auto" }).parentElement, (li, i) => {
      set(li.firstElementChild, "href", hashOf(i.view.name));
      say(li.firstElementChild, name(i.view.name));
    });
  }
}

// alarms are of classes that do not keep up though they refuse nothing.
function alarms(items, at) {
  const all = items.filter((i) => alarm(i.view, at));
  byID("alarms").hidden = all.length === 0;
  fit(byID("alarms"), all.slice(0, 5), (ul) => {
    const li = make(ul, "li");
    make(li, "span", { class: "icon", "aria-hidden": "true" }, "!");
    const text = make(li, "span");
    make(text, "b", {}, "Alarm: ");
    make(text, "a", { dir: "auto" });
    make(text, "span");
    return li;
  }, (li, i) => {
    const [, link, text] = li.lastElementChild.children;
    set(link, "href", hashOf(i.view.name));
    say(link, name(i.view.name));
    say(text, ": " + alarm(i.view, at) + ".");
  });
}

function row(body) {
  const tr = make(body, "tr");
  const th = make(tr, "th", { scope: "row" });
  make(th, "a", { dir: "auto" });
  make(th, "span", { class: "state" });
  for (const c of columns) make(tr, "td", { "data-key": c.key, class: c.from ?? "" });
  tr.addEventListener("click", (e) => {
    if (e.target.closest("a") || getSelection()?.toString()) return;
    th.firstElementChild.click();
  });
  return tr;
}

function fill(tr, { view, state }, current, at) {
  const [link, words] = tr.firstElementChild.children;
  say(link, name(view.name));
  set(link, "href", hashOf(view.name));
  set(link, "title", view.name);
  if (current) set(link, "aria-current", "true");
  else link.removeAttribute("aria-current");
  tr.classList.toggle("current", current);
  const wrong = alarm(view, at);
  say(words, (wrong ? `Alarm: ${wrong}; ` : "") + view.explanation.state);
  set(words, "class", "state " + (wrong ? "bad" : tone(view.explanation.condition)));
  columns.forEach((c, i) => say(tr.children[i + 1], c.of(view, state)));
}
