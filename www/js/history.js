// history.js: what the log tells of one resource.
//
//   const history = new History(resource, changed);
//   await history.begin()      reads back from now; changed() as more is known
//   await history.refresh()    what came since
//   history.events             oldest first
//   history.whole              nothing came before those, as far as the log goes
//   history.fence              highest token seen by /v1/fence, null: none
//   history.waiters            [{holder, waited}], the first in turn
//   history.waiting            how many wait
//   history.end()              forget it; changed() is not called any more
//
// HOW IT WORKS. The log is in order of time, not of resources, and an answer
// tells what one of a few thousand events are of this resource. So it is read
// in windows, the newest first, each twice as wide as the one before.
// SPDX-License-Identifier: MIT

import {get} from './api.js';

const WINDOW = 5000;
const PAGE = 1000;
const ENOUGH = 400;         // events; who wants more asks the API

export class History {
  events = [];
  whole = false;
  fence = null;
  waiting = 0;
  waiters = [];
  #resource;
  #changed;
  #to = null;               // all up to this number is known
  #ended = false;
  #busy = false;
  #again = false;

  constructor(resource, changed) {
    this.#resource = resource;
    this.#changed = changed;
  }

  end() {
    this.#ended = true;
  }

  async begin() {
    const newest = await this.#register();
    this.#to = newest;
    let high = newest;
    for (let width = WINDOW; high > 0 && !this.#ended &&
        this.events.length < ENOUGH; width *= 2) {
      high = await this.#window(Math.max(0, high - width), high);
    }
    this.whole = high <= 0;
    this.#tell();
  }

  /** May be called as often as one likes. */
  async refresh() {
    if (this.#to === null) return;
    this.#again = true;
    if (this.#busy) return;
    this.#busy = true;
    try {
      while (this.#again && !this.#ended) {
        this.#again = false;
        const newest = await this.#register();
        const {events} = await this.#read(this.#to, newest);
        this.#to = Math.max(this.#to, newest);
        this.events.push(...events);
        this.#tell();
      }
    } finally {
      this.#busy = false;
    }
  }

  #tell() {
    if (!this.#ended) this.#changed();
  }

  // The number of the newest event, and what makes no events.
  async #register() {
    const resource = this.#resource;
    // Who waits is the writer's to tell, and it may have to wait itself.
    const line = get('/v1/waiters', {resource}).catch(() => null);
    const list = await get('/v1/leases', {resource, limit: 1});
    this.fence = list.body.fence;
    ({waiting: this.waiting, waiters: this.waiters} =
      (await line)?.body ?? {waiting: 0, waiters: []});
    return list.body.newest_token;
  }

  // Returns where the window begins; 0 at the beginning of the log.
  async #window(low, high) {
    const {events, trimmed} = await this.#read(low, high);
    this.events.unshift(...events);
    this.#tell();
    return trimmed ? 0 : low;
  }

  async #read(low, high) {
    const events = [];
    let after = low;
    let trimmed = false;
    while (after < high && !this.#ended) {
      try {
        const {body} = await get('/v1/events',
            {after, resource: this.#resource, limit: PAGE});
        events.push(...body.events.filter((event) => event.token <= high));
        if (body.next <= after) break;
        after = body.next;
      } catch (problem) {
        if (problem.code !== 'trimmed' || trimmed) throw problem;
        trimmed = true;
        after = problem.body.oldest - 1;
      }
    }
    return {events, trimmed};
  }
}
