// Observe mode is the switch for the worst case: nothing is refused any more, and nobody waits.
// It is asked twice, since what comes beyond the limit then reaches the service. What was switched
// here stays over a reload of the policy, until somebody says that the policy counts again.

import { announce, byID, name, say } from "./dom.js";

// modes are what may be asked for: the question, and the word on the button that says yes.
const modes = {
  on: {
    question: (who) => `Only observe ${who}? Nothing is refused and nobody waits any more: what comes beyond the limit reaches the service.`,
    yes: "Only observe",
  },
  off: {
    question: (who) => `Enforce the limit of ${who} again? What does not fit waits or is refused from now on.`,
    yes: "Enforce",
  },
  policy: {
    question: (who) => `Shall ${who} do what its policy says, and not what was switched here?`,
    yes: "Follow the policy",
  },
};

export class Observe {
  constructor() {
    this.dialog = byID("confirm");
    this.said = byID("observe-said");
    byID("observe").addEventListener("click", () => this.ask(this.on ? "off" : "on"));
    byID("observe-policy").addEventListener("click", () => this.ask("policy"));
    byID("confirm-yes").addEventListener("click", () => this.change());
    byID("confirm-no").addEventListener("click", () => this.dialog.close());
  }

  show({ view, state }) {
    if (this.limiter !== view.name) say(this.said, "");
    this.limiter = view.name;
    this.on = state.observe;
    const why = state.observe_switched ? " That was switched while it ran, whatever the policy says." : "";
    say(byID("observe-now"), (state.observe
      ? "Observe mode is on: requests are counted as they would be refused, and all of them run at once."
      : "The limit is enforced. In observe mode everything would run at once, and only be counted as it would be refused.") + why);
    say(byID("observe"), modes[state.observe ? "off" : "on"].yes + " …");
    byID("observe-policy").hidden = !state.observe_switched;
  }

  ask(mode) {
    this.asked = { limiter: this.limiter, mode }; // what is asked about stays, whatever a tick says
    say(byID("confirm-what"), modes[mode].question(name(this.limiter)));
    say(byID("confirm-yes"), modes[mode].yes);
    this.dialog.showModal();
  }

  async change() {
    this.dialog.close();
    const { limiter, mode } = this.asked;
    try {
      const answer = await fetch("/api/v1/observe?" + new URLSearchParams({ limiter, mode }), { method: "POST" });
      const text = (await answer.text()).trim();
      const done = mode === "policy" ? `${name(limiter)} does what its policy says.` : `Observe mode is ${mode} for ${name(limiter)}.`;
      this.tell(answer.ok ? done : `Not done: ${text || answer.status}`);
    } catch {
      this.tell("Not done: the server could not be reached.");
    }
  }

  tell(text) {
    say(this.said, text);
    announce(text);
  }
}
