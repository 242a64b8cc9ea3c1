// The page: what came from the server is kept as it comes, and shown when the browser draws the
// next frame. A tab that nobody sees draws none, so it costs little more than the listening.

import { Classes, chosen } from "./classes.js";
import { Demo } from "./demo.js";
import { Detail } from "./detail.js";
import { announce, byID, name, say } from "./dom.js";
import { Observe } from "./observe.js";
import { Past } from "./past.js";
import { showProcess } from "./process.js";
import { Stream } from "./stream.js";
import { clock } from "./units.js";

const past = new Past();
const classes = new Classes(), detail = new Detail(), observe = new Observe(), demo = new Demo();
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
  demo.show(tick.demo, past);
  classes.show(items, item?.view.name);
  if (item) {
    detail.show(item, past);
    observe.show(item);
    listen(item.view);
  }
  showProcess(tick.state);
  // What a test waits for, and the answer to "how old is this".
  document.body.dataset.tick = tick.number;
}

// listen says a state that has come to stay to who does not see it: not each tick, and not the
// numbers in it. What changes twice a second is not said at all.
const steady = 3; // ticks
const heard = { limiter: "", state: "", at: 0, said: "" };
function listen(view) {
  const state = view.explanation.state.replace(/[\d.,]+/g, "#");
  if (heard.limiter !== view.name || heard.state !== state) Object.assign(heard, { limiter: view.name, state, at: tick.number });
  const whole = view.name + "\n" + state;
  if (tick.number - heard.at < steady || heard.said === whole) return;
  heard.said = whole;
  announce(`${name(view.name)}: ${view.explanation.state}`);
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
  // Whoever chose a class with the keyboard wants to read it next.
  announce(`Showing ${byID("class-name").textContent}`);
});
