// store.js: every lease this page knows, by key, and what changed.
//
//   const store = new Store((change) => …);
//     change = {first, added: [lease], changed: [{was, is}], removed: [lease]}
//   store.apply(delta)        what the feed brought (feed.js)
//   store.expire(live)        takes out what has run out
//   store.get(key), store.all(), store.size
//   store.of(resource)        the leases of one resource
//
// A lease has `deadline` and `begun` (its grant) on performance.now(), and
// `sort`, its resource in natural order.
//
// HOW IT WORKS. While the server answers, a lease past its deadline is taken
// out a moment (OVER_MS) later unless the server confirms its end first, for a
// renewal of the last instant may be on its way; it counts as over in between
// (isOver). While the server is away nothing is taken out: the page shows it as
// over and not known.
// SPDX-License-Identifier: MIT

import {natural} from './format.js';

const OVER_MS = 1200;
const SAME_MS = 20;         // a clock is never known better

export function isOver(lease, now = performance.now()) {
  return now >= lease.deadline;
}

export class Store {
  #leases = new Map();
  #changed;
  #first = true;
  #next = Infinity;         // the first deadline

  constructor(changed) {
    this.#changed = changed;
  }

  get size() {
    return this.#leases.size;
  }

  get(key) {
    return this.#leases.get(key);
  }

  all() {
    return this.#leases.values();
  }

  of(resource) {
    return [...this.#leases.values()].filter((l) => l.resource === resource);
  }

  apply({reset, up, gone}) {
    const change =
        {first: this.#first, added: [], changed: [], removed: []};
    this.#first = false;
    const now = performance.now();
    for (const lease of up) this.#put(lease, now, change);
    const keep = reset ? new Set(up.map((lease) => lease.key)) : null;
    const lost = keep ? [...this.#leases.keys()].filter((k) => !keep.has(k)) : gone;
    for (const key of lost) this.#drop(key, change);
    this.#tell(change);
  }

  #put(lease, now, change) {
    const was = this.#leases.get(lease.key);
    if (was && was.token === lease.token &&
        Math.abs(was.deadline - lease.deadline) < SAME_MS) return;
    if (!was && isOver(lease, now)) return;
    lease.begun = lease.deadline -
        (Date.parse(lease.expires_at) - Date.parse(lease.granted_at));
    lease.sort = was ? was.sort : natural(lease.resource);
    this.#leases.set(lease.key, lease);
    this.#next = Math.min(this.#next, lease.deadline);
    if (was) change.changed.push({was, is: lease});
    else change.added.push(lease);
  }

  #drop(key, change) {
    const lease = this.#leases.get(key);
    if (!lease) return;
    this.#leases.delete(key);
    change.removed.push(lease);
  }

  /** Call often; does nothing before the first deadline. */
  expire(live) {
    const now = performance.now();
    if (!live || now < this.#next + OVER_MS) return;
    const change = {first: false, added: [], changed: [], removed: []};
    this.#next = Infinity;
    for (const lease of this.#leases.values()) {
      if (now >= lease.deadline + OVER_MS) this.#drop(lease.key, change);
      else this.#next = Math.min(this.#next, lease.deadline);
    }
    this.#tell(change);
  }

  #tell(change) {
    if (change.first || change.added.length || change.changed.length ||
        change.removed.length) this.#changed(change);
  }
}

/** Counts for the head of the page; what is over does not count. */
export function totals(store) {
  const now = performance.now();
  const resources = new Set();
  const holders = new Set();
  let leases = 0;
  for (const lease of store.all()) {
    if (isOver(lease, now)) continue;
    leases += 1;
    resources.add(lease.resource);
    holders.add(lease.holder);
  }
  return {leases, resources: resources.size, holders: holders.size};
}
