// What is wrong though nothing is refused: in observe mode everything runs at once, and a service
// that is asked for too much does nothing in time. "It refuses nothing" would sound like good news.

import { clock, number, perSecond, span } from "./units.js";

const fine = 0.9; // of what arrives is in time, or there is an alarm
const day = 12 * 3600; // from when on a time of day does not say which day

// off says since when protection is off, or nothing while it is on. at is the time of the tick.
export function off(view, at) {
  const seconds = view.observing_seconds;
  if (seconds === null || seconds === undefined) return "";
  return "protection is off " + (seconds < day ? "since " + clock(at - seconds) : "for " + span(seconds));
}

// alarm is what to say of a class that observes and does not keep up, or nothing.
export function alarm(view, at) {
  const { offered, goodput, in_time: share } = view.rates;
  if (!off(view, at) || !(offered >= 1) || share === null || share >= fine) return "";
  return `${number(goodput)} of ${perSecond(offered)} in time; ${off(view, at)}`;
}
