// The page: what came from the server is kept as it comes, and shown when the browser draws the
// next frame. A tab that nobody sees draws none, so it costs little more than the listening.

import { alarm } from "./alarm.js";
import { Classes, chosen } from "./classes.js";
import { Demo } from "./demo.js";
import { Detail } from "./detail.js";
import { announce, byID, name, say, Steady } from "./dom.js";
import { Observe } from "./observe.js";
import { Past } from "./past.js";
import { showProcess } from "./process.js";
import { Stream } from "./stream.js";
import { clock } from "./units.js";

const past = new Past();
const classes = new Classes(), detail = new Detail(), observe = new Observe(), demo = new Demo();
const heard = new Steady();
let tick = null; // the latest
let due = false; // a frame was asked for

function draw() {
  if (due || !tick) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    show();
  });
}

function show() {
  document.body.classList.remove("waiting");
  const states = new Map((tick.state.limiters ?? []).map((s) => [s.name, s]));
  const items = tick.limiters.filter((v) => states.has(v.name)).map((view) => ({ view, state: states.get(view.name) }));
  const wanted = chosen();
  const item = items.find((i) => i.view.name === wanted) ?? items[0];
  const missing = wanted !== null && item && item.view.name !== wanted;
  say(byID("missing"), missing ? `There is no class ${wanted}: it may have gone with a reload. This is ${name(item.view.name)}.` : "");
  byID("missing").hidden = !missing;
  byID("detail").hidden = !item;
  const at = Date.parse(tick.time) / 1000;
  demo.show(tick.demo, past);
  classes.show(items, item?.view.name, at);
  if (item) {
    detail.show(item, past, at);
    observe.show(item);
    const wrong = alarm(item.view, at);
    if (byID("part").open) heard.hear(item.view.name, `${name(item.view.name)}: ${wrong ? "Alarm: " + wrong : item.view.explanation.state}`);
  }
  showProcess(tick.state);
  // What a test waits for, and the answer to "how old is this".
  document.body.dataset.tick = tick.number;
}

const link = byID("link");

new Stream("/api/v1/events", {
  history(h) {
    past.take(h);
    draw();
  },
  tick(t) {
    tick = t;
    past.add(t);
    say(link, "live");
    draw();
  },
  lost(when) {
    const text = tick
      ? `Connection lost at ${clock(when)}; showing what was known then; trying again.`
      : "There is no connection yet; trying again.";
    say(byID("lost"), text);
    byID("lost").hidden = false;
    document.body.classList.add("lost");
    say(link, "not connected");
    announce(text);
  },
  back() {
    byID("lost").hidden = true;
    document.body.classList.remove("lost");
    announce("Connected again.");
  },
});

addEventListener("hashchange", () => {
  if (!tick) return;
  show();
  announce(`Showing ${byID("class-name").textContent}`);
  // On a small screen, or below a long table, what was chosen is not in sight.
  const title = byID("class-name"), { top } = title.getBoundingClientRect();
  if (top < 0 || top > 0.7 * innerHeight) title.scrollIntoView();
});

// The address is the class that is shown, and a jump within the page must not change it.
byID("skip").addEventListener("click", (e) => {
  e.preventDefault();
  byID("part").open = true;
  byID("detail").focus();
});
