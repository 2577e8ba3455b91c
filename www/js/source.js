// source.js: where the leases and the news come from: a list, continued by the
// stream of events. The one place that knows how news arrive.
//
//   const source = new Source(send);   send(message) is called with
//     {type: 'delta', up: [lease], gone: [key]}    what changed
//     {type: 'news', events}                       events, as they are told
//     {type: 'past', events, all}                  the last ones before those;
//                                                  all: none came before them
//     {type: 'alive', at, server}      what we have is how it was at `server`,
//                                      the server's time; `at` on our clock
//     {type: 'whole'}                  all is known, as of now
//     {type: 'trouble', text}          no good answer
//   source.awake(true | false)         somebody looks, or nobody
//   source.wake()                      we may have slept: begin anew
//   source.leases                      see leases.js
//
// HOW IT WORKS. Each page of the list says how far the log of events had come;
// the stream is asked for all behind the first page, so nothing falls between
// the two. Whoever comes back later goes on where the stream was left.
//
// Once a second a small question (the beat) tells the server's time and how far
// the log is. When all events up to there have come, what we show is how it was
// then: 'alive'. A stream that lags behind its beat, or is cut off without a
// word, is thus noticed and opened again. Where streams do not get through at
// all, pages of events are asked for instead.
// SPDX-License-Identifier: MIT

import {get, Problem} from './api.js';
import {ServerClock} from './clock.js';
import {Leases} from './leases.js';
import {batches} from './sse.js';

const PAGE = 1000;
const BEAT_MS = 1000;
const BEAT_TIMEOUT_MS = 3000;
const OPEN_MS = 3000;       // for a stream to begin
const RETRY_MS = 400;
const POLL_MS = 500;        // where there is no stream
const POLLING_MS = 60000;   // then a stream is tried again
const GATHER_MS = 30;       // what happens in so short a time goes together;
const BUSY_MS = 200;        // in so long when much happens
const MISSED_MAX = 5000;    // more events than that: the list is shorter
const DRIFT_MS = 80;        // a better guess of the server's clock

export class Source {
  #send;
  #clock = new ServerClock();
  leases = new Leases(this.#clock);
  #awake = false;
  #running = false;
  #told = false;            // that there is nothing, or something
  #position = null;         // all events up to this one are told
  #beats = [];              // answers that wait for their events
  #stuck = 0;               // streams in a row that did not get through
  #pollUntil = 0;
  #news = [];
  #gathering = 0;           // timer
  #flushed = 0;
  #dated = 0;               // what deadlines were reckoned with
  #stop = new AbortController();

  constructor(send) {
    this.#send = send;
  }

  awake(yes) {
    if (this.#awake && !yes) this.#stop.abort();
    this.#awake = yes;
    if (yes && !this.#running) this.#run();
  }

  wake() {
    this.#stop.abort();
  }

  async #run() {
    this.#running = true;
    while (this.#awake) {
      this.#stop = new AbortController();
      const {signal} = this.#stop;
      try {
        if (this.#position === null) await this.#list(signal);
        await this.#follow(signal);
      } catch (problem) {
        if (signal.aborted) continue;
        this.#send({type: 'trouble', text: problem.message});
        this.#stop.abort();
        await sleep(RETRY_MS * (1 + Math.random() / 2));
      }
    }
    this.#running = false;
  }

  // --- the list ---

  async #list(signal) {
    let after = null;
    let first = null;
    this.leases.begin();
    do {
      const {body} = await this.#ask({limit: PAGE, after});
      signal.throwIfAborted();
      first ??= body.newest_token;
      this.leases.page(body.leases, body.newest_token);
      after = body.next;
      if (after) this.#flush();
    } while (after);
    this.leases.only(first);
    this.#flush(true);
    await this.#past(first);
    this.#beats = [];
    this.#position = first;
    this.#send({type: 'whole'});
  }

  // What happened last before the list; the page can do without it.
  async #past(newest) {
    const events = [];
    let after = Math.max(0, newest - PAGE);
    let all = after === 0;
    try {
      while (after < newest) {
        const {body} = await get('/v1/events', {after, limit: PAGE});
        events.push(...body.events.filter((e) => e.token <= newest));
        after = body.next;
      }
    } catch (problem) {
      all = problem.code === 'trimmed';
    }
    this.#send({type: 'past', events, all});
  }

  async #ask(params, timeout) {
    const reply = await get('/v1/leases', params, timeout);
    const {now, leases, newest_token: newest} = reply.body;
    const server = Date.parse(now);
    if (!Number.isFinite(server) || !Array.isArray(leases) ||
        !Number.isInteger(newest)) {
      throw new Problem(200, {}, 'Something else than Leasehold answered.');
    }
    this.#clock.note(server, reply.sent, reply.received);
    if (Math.abs(this.#clock.ahead - this.#dated) > DRIFT_MS) {
      this.#dated = this.#clock.ahead;
      this.leases.redate();
    }
    reply.server = server;
    reply.at = Math.max(reply.sent, this.#clock.local(server));
    return reply;
  }

  // --- the events ---

  async #follow(signal) {
    await this.#beat();
    if (this.#position === null) return;
    const parts = [this.#beatOn(signal), performance.now() < this.#pollUntil ?
        this.#poll(signal) : this.#stream(signal)];
    for (const part of parts) part.catch(() => {});
    try {
      await Promise.race(parts);
    } finally {
      this.#stop.abort();
    }
  }

  async #beatOn(signal) {
    while (!signal.aborted && this.#position !== null) {
      const [waiting] = this.#beats;
      const before = this.#position;
      await sleep(BEAT_MS, signal);
      if (signal.aborted) return;
      if (waiting && waiting === this.#beats[0] && before === this.#position) {
        this.#lost('Events do not arrive.');
      }
      await this.#beat();
    }
  }

  async #beat() {
    const {body, at, server} = await this.#ask({limit: 1}, BEAT_TIMEOUT_MS);
    const newest = body.newest_token;
    if (newest < this.#position || newest > this.#position + MISSED_MAX) {
      this.#position = null;
      return;
    }
    this.#beats.push({newest, at, server});
    this.#confirm();
  }

  #confirm() {
    let beat = null;
    while (this.#beats[0]?.newest <= this.#position) beat = this.#beats.shift();
    if (!beat) return;
    this.#flush();
    this.#send({type: 'alive', at: beat.at, server: beat.server});
    this.#send({type: 'whole'});
  }

  // The first stream may be cut off by chance, the second is not.
  #lost(text) {
    this.#stuck += 1;
    if (this.#stuck > 1) this.#pollUntil = performance.now() + POLLING_MS;
    throw new Problem(0, {}, text);
  }

  async #stream(signal) {
    const response = await Promise.race([sleep(OPEN_MS, signal),
      fetch(`${location.origin}/v1/events?after=${this.#position}`, {
        headers: {Accept: 'text/event-stream'}, cache: 'no-store',
        redirect: 'error', signal}).catch(() => null)]);
    if (!response) this.#lost('The event stream does not begin.');
    const type = response.headers.get('Content-Type') ?? '';
    if (!response.ok || !type.startsWith('text/event-stream')) {
      this.#lost(`The server does not stream events (${response.status}).`);
    }
    for await (const events of batches(response.body)) {
      if (signal.aborted) return;
      for (const {event, data} of events) {
        if (event === 'reset') {
          this.#position = null;
          return;
        }
        this.#note(JSON.parse(data));
      }
      if (events.length) this.#stuck = 0;
      this.#confirm();
    }
    throw new Problem(0, {}, 'The server closed the stream.');
  }

  async #poll(signal) {
    while (!signal.aborted && performance.now() < this.#pollUntil) {
      const {body} = await get('/v1/events',
          {after: this.#position, limit: PAGE});
      if (signal.aborted) return;
      body.events.forEach((event) => this.#note(event));
      this.#position = body.next;
      this.#confirm();
      if (!body.events.length) await sleep(POLL_MS, signal);
    }
  }

  #note(event) {
    this.#position = event.token;
    this.#news.push(event);
    if (event.resource !== null) this.leases.event(event);
    const quiet = performance.now() - this.#flushed > BUSY_MS;
    this.#gathering ||=
      setTimeout(() => this.#flush(), quiet ? GATHER_MS : BUSY_MS);
  }

  #flush(first = false) {
    clearTimeout(this.#gathering);
    this.#gathering = 0;
    this.#flushed = performance.now();
    const {up, gone} = this.leases.take();
    if (up.length || gone.length || (first && !this.#told)) {
      this.#told = true;
      this.#send({type: 'delta', up, gone});
    }
    if (this.#news.length) this.#send({type: 'news', events: this.#news});
    this.#news = [];
  }
}

/** Ends early, without an error, when the signal says so. */
function sleep(ms, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      done();
    }, {once: true});
  });
}
