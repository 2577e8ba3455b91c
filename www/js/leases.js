// leases.js: all active leases, from pages of the list and from events.
//
//   const leases = new Leases(clock);
//   leases.page(rows, newest)     rows of GET /v1/leases; newest: the number of
//                                 the newest event when they were read
//   leases.only(round)            what no page of this round had is gone
//   leases.event(event)           one event of the log, in order
//   leases.redate()               the clock has changed
//   leases.take()                 {up: [lease], gone: [key]} since the last take
//   leases.all()                  every lease
//
// A lease is the server's JSON plus `key` and `deadline`, when it is over on
// this context's performance.now().
//
// HOW IT WORKS. Each lease carries `known`, the number of the event up to
// which it is told. What is older than that is passed over, so pages and
// events may overlap and come in any order: an event that a page had in it
// already changes nothing.
// SPDX-License-Identifier: MIT

/** Names hold no control characters, so U+0000 keeps the two apart. */
export function keyOf(resource, holder) {
  return `${resource}\0${holder}`;
}

const ENDS = ['released', 'expired', 'revoked'];

export class Leases {
  #clock;
  #leases = new Map();
  #up = new Map();
  #gone = new Set();
  #round = 0;

  constructor(clock) {
    this.#clock = clock;
  }

  get size() {
    return this.#leases.size;
  }

  all() {
    return this.#leases.values();
  }

  begin() {
    this.#round += 1;
  }

  page(rows, newest) {
    for (const row of rows) {
      const key = keyOf(row.resource, row.holder);
      const was = this.#leases.get(key);
      if (was && was.known > newest) was.round = this.#round;
      else this.#put({...row, key, known: newest});
    }
  }

  /** What this round has not shown, and was known before it began, is gone. */
  only(newest, resource = null) {
    for (const lease of this.#leases.values()) {
      if (resource !== null && lease.resource !== resource) continue;
      if (lease.round !== this.#round && lease.known <= newest) {
        this.#drop(lease.key);
      }
    }
  }

  event(event) {
    const key = keyOf(event.resource, event.holder);
    const was = this.#leases.get(key);
    if (was && was.known >= event.token) return;
    if (event.event === 'granted') {
      this.#put({...event, key, known: event.token, granted_at: event.at,
        renewed_at: event.at});
    } else if (event.event === 'renewed' && was?.epoch === event.epoch) {
      this.#put({...was, known: event.token, token: event.token,
        ttl: event.ttl, renewed_at: event.at, expires_at: event.expires_at});
    } else if (ENDS.includes(event.event) && was?.epoch === event.epoch) {
      this.#drop(key);
    }
  }

  redate() {
    for (const lease of this.#leases.values()) this.#put({...lease});
  }

  take() {
    const taken = {up: [...this.#up.values()], gone: [...this.#gone]};
    this.#up.clear();
    this.#gone.clear();
    return taken;
  }

  #put(lease) {
    const was = this.#leases.get(lease.key);
    lease.deadline = this.#clock.local(Date.parse(lease.expires_at));
    lease.round = this.#round;
    this.#leases.set(lease.key, lease);
    if (was && was.token === lease.token &&
        Math.abs(was.deadline - lease.deadline) < 1) return;
    this.#up.set(lease.key, lease);
    this.#gone.delete(lease.key);
  }

  #drop(key) {
    this.#leases.delete(key);
    this.#up.delete(key);
    this.#gone.add(key);
  }
}
