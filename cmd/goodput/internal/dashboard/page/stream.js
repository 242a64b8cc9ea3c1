// The connection to the server. A browser opens a stream of events again by itself if it
// breaks, but not if the answer is an error, and it does not notice one that has gone quiet:
// both happen when a server goes away, and both are seen to here.

const quiet = 5000; // ms without a tick, which comes once a second, after which it is said to be lost
const renewed = 10000; // ms after which a stream that says nothing is opened anew
const begins = 35000; // ms in which it has to say something at first: the server has 30 s for a history, over a slow line, and 5 for a tick
const again = 1500; // ms before another try where the browser has given up

// A Stream calls heard.history and heard.tick with what came, heard.lost(when) with the time of
// the last word when there is none any more, and heard.back when there is again.
export class Stream {
  constructor(url, heard) {
    this.url = url;
    this.heard = heard;
    this.last = Date.now();
    this.connected = true; // until it is known better: a page that opens is not "lost"
    this.open();
    setInterval(() => this.check(), 1000);
  }

  open() {
    this.source?.close();
    this.opened = Date.now();
    this.begun = false; // it has said something
    const source = (this.source = new EventSource(this.url));
    source.addEventListener("history", (e) => this.take(source, e, this.heard.history));
    source.addEventListener("tick", (e) => this.take(source, e, this.heard.tick));
    source.addEventListener("error", () => {
      if (source !== this.source) return;
      this.opened = Date.now(); // the browser tries again
      this.begun = false;
      this.lose();
      if (source.readyState === EventSource.CLOSED) setTimeout(() => source === this.source && this.open(), again);
    });
  }

  take(source, event, use) {
    if (source !== this.source) return;
    const what = JSON.parse(event.data);
    this.last = Date.now();
    this.begun = true;
    if (!this.connected) {
      this.connected = true;
      this.heard.back();
    }
    use(what);
  }

  lose() {
    if (!this.connected) return;
    this.connected = false;
    this.heard.lost(this.last / 1000);
  }

  check() {
    const now = Date.now(), coming = !this.begun && this.source.readyState === EventSource.OPEN;
    if (now - this.last > quiet && !coming) this.lose();
    const patience = coming ? begins : renewed;
    if (now - this.last > patience && now - this.opened > patience) this.open();
  }
}
