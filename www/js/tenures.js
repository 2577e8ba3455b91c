// tenures.js: who held a resource from when to when, out of its events.
//
//   tenures(events)    [{holder, epoch, token, from, to, until, end, renewed}],
//                      in order of their begin
//     from, to         instants, ms; from null: before the events known; to
//                      null: in force when last told
//     until            when it runs out unless renewed
//     end              'released', 'expired', 'revoked' or null
//     renewed          instants
//   gaps(tenures, now) [{from, to}] when nobody held it, the last one up to now
// SPDX-License-Identifier: MIT

import {atOf} from './log.js';

export function tenures(events) {
  const all = new Map();    // epoch → tenure
  for (const event of events) {
    const at = atOf(event);
    let it = all.get(event.epoch);
    if (!it) {
      it = {holder: event.holder, epoch: event.epoch, from: null, to: null,
        end: null, renewed: []};
      all.set(event.epoch, it);
    }
    if (event.event === 'granted') it.from = at;
    else if (event.event === 'renewed') it.renewed.push(at);
    else Object.assign(it, {to: at, end: event.event});
    if (!it.end) Object.assign(it,
        {token: event.token, until: Date.parse(event.expires_at)});
  }
  return [...all.values()].sort((a, b) =>
    (a.from ?? -Infinity) - (b.from ?? -Infinity) || a.epoch - b.epoch);
}

/** Until when it holds, or held. */
export function endOf(tenure, now) {
  return tenure.to ?? Math.min(now, tenure.until);
}

export function gaps(list, now) {
  const free = [];
  let held = null;          // until when the ones so far held it
  for (const tenure of list) {
    if (held !== null && tenure.from > held) free.push({from: held, to: tenure.from});
    held = Math.max(held ?? -Infinity, endOf(tenure, now));
  }
  if (held !== null && held < now) free.push({from: held, to: now});
  return free;
}
