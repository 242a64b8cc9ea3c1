// The process: its policy, its servers, its connections.

import { byID, fit, make, say, set } from "./dom.js";
import { count, number, share, span } from "./units.js";

export function showProcess(state) {
  say(byID("phase"), ` · ${state.phase}, up ${span(state.uptime_seconds)}`);
  const policy = state.policy;
  const rows = [
    ["phase", "phase", state.phase],
    ["uptime", "up for", span(state.uptime_seconds)],
    ["policy", "policy", policy ? policy.source : "from flags: there is no file"],
  ];
  if (policy) rows.push(["sha", "its SHA-256", policy.sha256]);
  rows.push(
    ["open", "connections of clients", count(state.connections.open)],
    ["upgraded", "of them upgraded", count(state.connections.upgraded)],
  );
  fit(byID("process"), rows, (dl) => {
    const div = make(dl, "div");
    make(div, "dt");
    make(div, "dd");
    return div;
  }, (div, [key, term, text]) => {
    say(div.children[0], term);
    say(div.children[1], text);
    set(div.children[1], "data-key", key);
  });
  warn(policy);
  servers(state.servers ?? []);
}

// warn says what is not in force though somebody believes that it is.
function warn(policy) {
  let text = "";
  if (policy?.reload_failed) text = "The last reload of the policy failed; what was in force is. " + policy.reload_failed;
  else if (policy?.restart_needed) text = "Restart needed: the policy file has other listeners than those that are open.";
  say(byID("warning"), text);
  byID("warning").hidden = text === "";
}

function servers(all) {
  byID("servers-section").hidden = all.length === 0;
  fit(byID("servers"), all, (body) => {
    const tr = make(body, "tr");
    make(tr, "th", { scope: "row" });
    for (let i = 0; i < 3; i++) make(tr, "td");
    return tr;
  }, (tr, s) => {
    say(tr.children[0], s.server);
    set(tr.children[0], "title", s.server);
    say(tr.children[1], s.upstream);
    say(tr.children[2], number(s.in_flight) + (s.limit > 0 ? " of " + number(s.limit) : ""));
    let words = "well";
    if (!s.well) words = `out for ${span(s.since_seconds)}: ${s.why}`;
    else if (s.share < 1) words = `well, ${share(s.share)} of its room while it starts`;
    say(tr.children[3], words);
    tr.children[3].classList.toggle("bad", !s.well);
  });
}
