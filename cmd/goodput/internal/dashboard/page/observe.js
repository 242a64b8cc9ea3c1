// Observe mode is the switch for the worst case: nothing is refused any more, and nobody waits.
// It is asked twice, since what comes beyond the limit then reaches the service.

import { announce, byID, name, say } from "./dom.js";

export class Observe {
  constructor() {
    this.dialog = byID("confirm");
    this.button = byID("observe");
    this.button.addEventListener("click", () => this.ask());
    byID("confirm-yes").addEventListener("click", () => this.change());
    byID("confirm-no").addEventListener("click", () => this.dialog.close());
    this.said = byID("observe-said");
  }

  show({ view, state }) {
    if (this.limiter !== view.name) say(this.said, "");
    this.limiter = view.name;
    this.on = state.observe;
    say(byID("observe-now"), state.observe
      ? "Observe mode is on: requests are counted as they would be refused, and all of them run at once."
      : "The limit is enforced. In observe mode everything would run at once, and only be counted as it would be refused.");
    say(this.button, state.observe ? "Enforce the limit …" : "Only observe …");
  }

  ask() {
    this.asked = { limiter: this.limiter, mode: this.on ? "off" : "on" }; // what is asked about stays, whatever a tick says
    say(byID("confirm-what"), this.on
      ? `Enforce the limit of ${name(this.limiter)} again? What does not fit waits or is refused from now on.`
      : `Only observe ${name(this.limiter)}? Nothing is refused and nobody waits any more: what comes beyond the limit reaches the service.`);
    say(byID("confirm-yes"), this.on ? "Enforce" : "Only observe");
    this.dialog.showModal();
  }

  async change() {
    this.dialog.close();
    const { limiter, mode } = this.asked;
    try {
      const answer = await fetch("/api/v1/observe?" + new URLSearchParams({ limiter, mode }), { method: "POST" });
      const text = (await answer.text()).trim();
      this.tell(answer.ok ? `Observe mode is ${mode} for ${name(limiter)}.` : `Not done: ${text || answer.status}`);
    } catch {
      this.tell("Not done: the server could not be reached.");
    }
  }

  tell(text) {
    say(this.said, text);
    announce(text);
  }
}
