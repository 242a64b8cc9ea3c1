// The few things that the page does to the document. Whatever comes from the server enters as
// text: there is no innerHTML anywhere, since a tenant may call itself <script>.

export const byID = (id) => document.getElementById(id);

export function make(parent, name, props = {}, text) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(props)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  parent?.append(e);
  return e;
}

export function makeSVG(parent, name, props) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [k, v] of Object.entries(props)) e.setAttribute(k, v);
  parent.append(e);
  return e;
}

// say writes only what has changed: a hundred rows are looked at each second, and few cells
// of them differ.
export function say(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

export function set(e, name, value) {
  if (e.getAttribute(name) !== value) e.setAttribute(name, value);
}

// fit gives parent one child for each item, made once and filled each time, so that neither
// the focus nor a selection of text is lost once a second.
export function fit(parent, items, create, fill) {
  while (parent.children.length > items.length) parent.lastElementChild.remove();
  items.forEach((item, i) => {
    const e = parent.children[i] ?? create(parent);
    fill(e, item);
  });
}

// name is how a name is shown: without one there is a word for it. A name may be written from
// right to left; <bdi> and dir="auto" keep it from turning what is around it.
export const name = (text) => (text === "" ? "(no name)" : text);

// announce tells who listens and does not see. The same text twice is heard once.
export function announce(text) {
  say(byID("status"), text);
}

// A Steady announces a text that has come to stay: not each tick, and not the numbers in it. What
// changes all the time is not said at all.
export class Steady {
  hear(subject, text) {
    const bare = subject + "\n" + text.replace(measured, "#");
    this.times = bare === this.bare ? this.times + 1 : 0;
    this.bare = bare;
    if (this.times < steady || bare === this.said) return;
    this.said = bare;
    announce(text);
  }
}
const measured = /[\d.,]+(?: ?(?:ns|µs|ms|s|m|h|k|M)(?![a-z]))*/g; // a number with its unit
const steady = 3; // ticks after the one that brought it
