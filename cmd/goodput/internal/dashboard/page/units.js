// Numbers for people: three digits and a unit. A number that is not there is said to be not
// there: 0 would be a measurement.

export const none = "no data";

const isNone = (v) => v === null || v === undefined || Number.isNaN(v);

const digits = (v) => String(Math.abs(v) >= 100 ? Math.round(v) : Number(v.toPrecision(3)));

export function number(v) {
  if (isNone(v)) return none;
  if (Math.abs(v) >= 1e6) return digits(v / 1e6) + " M";
  if (Math.abs(v) >= 1e4) return digits(v / 1e3) + " k";
  return digits(v);
}

export const perSecond = (v) => (isNone(v) ? none : number(v) + "/s");

// count is a whole number in groups of three digits, to the last one.
export const count = (v) => (isNone(v) ? none : String(v).replace(/\B(?=(\d{3})+$)/g, "\u202f"));

export const times = (v) => (isNone(v) ? none : v.toFixed(v < 10 ? 2 : 1) + "×");

// share is of 0 to 1.
export function share(v) {
  if (isNone(v)) return none;
  const p = 100 * v;
  // 99.96 is not all: what is rounded must not say so.
  if (p < 100 && p > 99.9) return "> 99.9 %";
  if (p > 0 && p < 0.1) return "< 0.1 %";
  return (p === 100 || p === 0 ? String(p) : p.toFixed(1)) + " %";
}

export function seconds(s) {
  if (isNone(s)) return none;
  if (s === 0) return "0 s";
  if (s < 0.001) return digits(s * 1e6) + " µs";
  if (s < 1) return digits(s * 1e3) + " ms";
  return s < 1000 ? digits(s) + " s" : span(s);
}

// span is a long time in its two largest units.
export function span(s) {
  if (isNone(s)) return none;
  const whole = Math.floor(s);
  if (whole < 60) return whole + " s";
  if (whole < 3600) return Math.floor(whole / 60) + " min " + (whole % 60) + " s";
  if (whole < 86400) return Math.floor(whole / 3600) + " h " + Math.floor((whole % 3600) / 60) + " min";
  return Math.floor(whole / 86400) + " d " + Math.floor((whole % 86400) / 3600) + " h";
}

export function bytes(n) {
  if (isNone(n)) return none;
  const names = ["B", "KiB", "MiB", "GiB", "TiB"];
  let k = 0;
  for (; n >= 1024 && k < names.length - 1; k++) n /= 1024;
  return digits(n) + " " + names[k];
}

// quantile is one of a window, "over" where the histogram ends below it.
export function quantile(of, name) {
  if (!of) return none;
  return (name === "p99" && of.over ? "over " : "") + seconds(of[name]);
}

// clock is the time of day of so many seconds since 1970, where the reader is.
export function clock(s) {
  const two = (n) => String(n).padStart(2, "0");
  const t = new Date(1000 * s);
  return two(t.getHours()) + ":" + two(t.getMinutes()) + ":" + two(t.getSeconds());
}

// reason is one of the reasons of a refusal as words: queue_full is "queue full".
export const reason = (name) => name.replaceAll("_", " ");
