// The panel of `goodput demo --web`: a slider for the load, a switch for the protection, and what
// clients get out of it. It is there only if a tick has a demo.

import { Chart } from "./chart.js";
import { announce, byID, say, set, Steady } from "./dom.js";
import { count, number, perSecond, seconds, share } from "./units.js";

const every = 100; // ms between two changes that are sent while the slider is dragged
const patience = 5000; // ms for an answer, after which the next change is sent
const trusted = 1500; // ms after a change in which a tick may still tell of the time before it

const percent = (part, whole) => (whole > 0 ? Math.round(100 * Math.min(part / whole, 1)) + " %" : "nothing");

// sentence says what happens now, from what was measured and not from what the switch says: a
// service takes time to fall and to get up.
export function sentence(s) {
  const most = Math.min(s.offered, s.capacity_per_second);
  const good = most > 0 ? s.in_time / most : 1;
  const rate = `${s.load.toFixed(1)}× what the service can do: ${perSecond(s.offered)} where ${perSecond(s.capacity_per_second)} fit.`;
  const goodput = `goodput ${percent(s.in_time, most)}`;
  if (s.offered < 1) return "Nobody asks for anything. Move the slider.";
  if (good >= 0.85 && s.load > 1.02) {
    return s.refused > 0.02 * s.offered
      ? `${rate} What can be answered in time is let in, and the rest, ${perSecond(s.refused)}, is told no at once: ${goodput}.`
      : `${rate} The queue still absorbs it: ${goodput}. Not for long.`;
  }
  if (good >= 0.85) return `${rate} It keeps up: ${goodput}, with protection and without.`;
  if (s.protect) return `${rate} Protected: ${perSecond(s.in_time)} are answered in time, ${goodput}, and ${perSecond(s.refused)} are told no at once.`;
  const queue = s.waiting > 0 ? ` ${count(s.waiting)} requests are in its queue, and` : "";
  if (s.load <= 1.02) return `${rate} That would fit, but${queue} it works through old ones that nobody waits for any more: ${goodput}.`;
  if (good > 0.5) return `${rate}${queue || " The queue grows, and"} answers come later and later: ${goodput} and falling.`;
  return `${rate}${queue} the service works as hard as ever, ${perSecond(s.served)}, but nobody waits for the answers any more: ${goodput}.`;
}

export class Demo {
  constructor() {
    this.section = byID("demo");
    this.part = byID("part");
    this.slider = byID("load");
    this.protect = byID("protect");
    this.heard = new Steady();
    this.changed = -Infinity; // when the viewer last set something
    this.slider.addEventListener("input", () => {
      this.changed = performance.now();
      this.label(Number(this.slider.value));
      this.send();
    });
    this.protect.addEventListener("click", () => {
      this.changed = performance.now();
      this.turn(this.protect.getAttribute("aria-checked") !== "true");
      this.post({ protect: this.protect.getAttribute("aria-checked") === "true" });
    });
  }

  show(scene, past) {
    this.section.hidden = !scene;
    if (!scene) return;
    this.capacity = scene.capacity_per_second;
    if (performance.now() - this.changed > trusted) {
      if (Number(this.slider.value) !== scene.load) this.slider.value = scene.load;
      this.turn(scene.protect);
    }
    this.label(Number(this.slider.value));
    const most = Math.min(scene.offered, scene.capacity_per_second);
    say(byID("demo-goodput"), perSecond(scene.in_time));
    say(byID("demo-share"), most > 0 ? `${percent(scene.in_time, most)} of ${perSecond(most)} possible` : "nothing is offered");
    say(byID("demo-served"), perSecond(scene.served));
    say(byID("demo-refused"), perSecond(scene.refused));
    say(byID("demo-late"), perSecond(scene.late + scene.gone));
    // Who left has waited for his deadline and not for an answer: that is a lower bound.
    say(byID("demo-p99"), (scene.p99 !== null && scene.p99 >= scene.deadline_seconds ? "≥ " : "") + seconds(scene.p99));
    const words = sentence(scene);
    say(byID("demo-words"), words);
    this.heard.hear("demo", words);
    say(byID("demo-service"), `The service: ${count(scene.slots)} slots, ${seconds(scene.service_seconds)} of work each, so ${perSecond(scene.capacity_per_second)}. Its clients wait for ${seconds(scene.deadline_seconds)}, then leave.`);
    say(byID("demo-note"), scene.note ?? "");
    const over = scene.load >= 2;
    this.done ||= scene.protect && over;
    say(byID("demo-hint"), over ? "Wait some seconds, then switch the protection on." : "Move the load to 3× and wait some seconds; then switch the protection on.");
    byID("demo-hint").hidden = this.done;
    this.fold(!scene.protect);
    this.draw(scene, past);
  }

  // fold closes what goodput says while it sees nothing, once: whoever opens it wants to look.
  fold(off) {
    if (off === this.folded) return;
    this.folded = off;
    this.part.open = !off;
    byID("part-title").hidden = !off;
  }

  draw(scene, past) {
    this.chart ??= new Chart(byID("demo-chart"), {
      title: "What the clients get", unit: "requests per second", format: perSecond, height: 300,
      gap: { upper: "offered", lower: "in_time", label: "asked for and not answered in time" },
      series: [
        { key: "in_time", label: "goodput: answered in time", colour: "--c0", dash: [], width: 3 },
        { key: "served", label: "throughput: all that was worked on, in vain too", colour: "--c2", dash: [2, 3], width: 2 },
        { key: "offered", label: "offered", colour: "--c1", dash: [7, 4], width: 2 },
      ],
    });
    this.chart.show(past.times, (key) => past.demoColumn(key), [{ y: scene.capacity_per_second, label: "what the service can do, " + perSecond(scene.capacity_per_second) }]);
  }

  label(load) {
    const rate = this.capacity === undefined ? "" : ` · ${perSecond(load * this.capacity)}`;
    say(byID("load-value"), load.toFixed(1) + "×" + rate);
    set(this.slider, "aria-valuetext", `${load.toFixed(1)} times what the service can do` + (this.capacity === undefined ? "" : `, ${number(load * this.capacity)} per second`));
    this.slider.style.setProperty("--at", (100 * load) / Number(this.slider.max) + "%");
  }

  turn(on) {
    set(this.protect, "aria-checked", String(on));
    say(byID("protect-value"), on ? "on" : "off");
  }

  // send posts the load at most every so many ms, and always the last one.
  send() {
    if (this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.post({ load: Number(this.slider.value) });
    }, every);
  }

  // post sends one change at a time, so that none overtakes another; what is wanted meanwhile goes
  // with the next one.
  async post(controls) {
    this.wanted = { ...this.wanted, ...controls };
    if (this.posting) return;
    this.posting = true;
    while (this.wanted) {
      const next = this.wanted;
      this.wanted = null;
      await this.change(next);
    }
    this.posting = false;
  }

  async change(controls) {
    let problem = "";
    try {
      const answer = await fetch("/api/v1/demo", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(controls), signal: AbortSignal.timeout(patience) });
      if (!answer.ok) problem = "Not done: " + ((await answer.text()).trim() || answer.status);
    } catch {
      problem = "Not done: the demo could not be reached.";
    }
    say(byID("demo-problem"), problem);
    if (problem) announce(problem);
  }
}
