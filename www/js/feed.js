// feed.js: a page's connection to the hub, and whether it can be believed.
//
//   const feed = new Feed({delta, news, rates, state, status});
//     delta({reset, up, gone})     leases, deadlines on this page's clock
//     news({events, anew})         what happened (hub.js)
//     rates(…)                     how much happened (recent.js)
//     state({name, since, text})   'connecting', 'live', 'stale'; since is the
//                                  server's time of the last good answer, ms
//     status(body)                 GET /v1/status, every few seconds
//   feed.server(at)                the server's time (ms) at performance.now()
//
// HOW IT WORKS. Data is live while the last good answer is at most STALE_MS
// old, and the oldest trouble that still goes on as well; nothing else counts,
// so a hung server, a dead worker and a pulled cable look alike and recover
// alike. A hidden page is told nothing; shown again, it gets everything anew.
// SPDX-License-Identifier: MIT

import {SleepWatch, WorkerClock} from './clock.js';

const STALE_MS = 2200;
const TICK_MS = 200;
const PING_TICKS = 10;
const GRACE_MS = 800;       // after being shown again
const DEAD_MS = 10000;      // a worker that says nothing for so long

// A browser may have no SharedWorker, or forbid it where cookies are off.
function connect() {
  const options = {type: 'module', name: 'leasehold-2'};
  const url = new URL('./hub.js', import.meta.url);
  try {
    return new SharedWorker(url, options).port;
  } catch {
    return new Worker(url, options);
  }
}

export class Feed {
  #hear;
  #port;
  #clock;
  #sleep = new SleepWatch();
  #pongs = 0;
  #heard = 0;               // last pong, on our clock
  #ticks = 0;
  #told = '';               // the state told last
  #text = '';               // why there was no good answer
  #trouble = Infinity;      // since when answers are missing
  #alive = -Infinity;       // the last good answer, on our clock
  #server = NaN;            // the server's time then
  #notBefore = -Infinity;   // answers from before do not count: we slept
  #patience = performance.now() + STALE_MS;

  constructor(hear) {
    this.#hear = hear;
    this.#open();
    setInterval(() => this.#tick(), TICK_MS);
    document.addEventListener('visibilitychange', () => this.#show());
    addEventListener('pageshow', () => this.#show());
    addEventListener('pagehide', () => this.#ping(false));
  }

  #open() {
    this.#port = connect();
    this.#port.onmessage = ({data}) => this.#message(data);
    this.#clock = new WorkerClock();
    this.#pongs = 0;
    this.#heard = performance.now();
    this.#ping();
  }

  server(at) {
    return this.#server + (at - this.#alive);
  }

  // Data is asked for (visible) only once the worker's clock is known.
  #ping(visible = document.visibilityState === 'visible') {
    this.#port.postMessage({type: 'ping', asked: performance.now(),
      visible: visible && this.#pongs > 1});
  }

  #show() {
    this.#patience = performance.now() + GRACE_MS;
    this.#trouble = Infinity;
    this.#ping();
  }

  #message(message) {
    if (message.type === 'pong') this.#pong(message);
    else if (message.type === 'alive') this.#isAlive(message);
    else if (message.type === 'delta') this.#delta(message);
    else if (message.type === 'news') this.#hear.news(message);
    else if (message.type === 'rates') this.#hear.rates(message);
    else if (message.type === 'status') this.#hear.status(message.body);
    else if (message.type === 'whole') this.#trouble = Infinity;
    else if (message.type === 'trouble') this.#inTrouble(message);
  }

  // The first answer includes the start of the worker, the second is tight.
  #pong({asked, at}) {
    this.#clock.note(asked, at);
    this.#heard = performance.now();
    this.#pongs += 1;
    if (this.#pongs <= 2) this.#ping();
  }

  #isAlive({at, server}) {
    this.#alive = this.#clock.local(at);
    this.#server = server;
    this.#judge();
  }

  #inTrouble({text}) {
    this.#text = text;
    this.#trouble = Math.min(this.#trouble, performance.now());
  }

  #delta(message) {
    for (const lease of message.up) {
      lease.deadline = this.#clock.local(lease.deadline);
    }
    this.#hear.delta(message);
  }

  #tick() {
    const now = performance.now();
    this.#ticks += 1;
    if (this.#ticks % PING_TICKS === 0) this.#ping();
    if (now - this.#heard > DEAD_MS && now > this.#patience &&
        document.visibilityState === 'visible') this.#open();
    if (this.#sleep.slept()) {
      this.#notBefore = now;
      this.#patience = now + TICK_MS;
      this.#port.postMessage({type: 'wake'});
    }
    this.#judge();
  }

  #judge() {
    const now = performance.now();
    const fresh = this.#alive >= this.#notBefore &&
        now - Math.min(this.#alive, this.#trouble) < STALE_MS;
    if (!fresh && now < this.#patience) return;
    if (fresh) this.#text = '';
    const state = fresh ? 'live' : `stale ${this.#text}`;
    if (state === this.#told) return;
    this.#told = state;
    this.#hear.state({name: fresh ? 'live' : 'stale', text: this.#text,
      since: this.#alive > -Infinity ? this.#server : null});
  }
}
