// health.js: whether what is shown can be believed, said in words.
//
//   health.show({name, since, text})   from the feed (feed.js)
//   health.status(body)                GET /v1/status, for the foot of the page and
//                                      the dialog behind the pill
//   health.live, health.name, health.words
// SPDX-License-Identifier: MIT

import {fact} from './fact.js';
import {duration, time, whole} from './format.js';

const CLOCK_S = 2;           // less than that is nobody's business
const $ = (id) => document.getElementById(id);

export class Health {
  name = 'connecting';
  words = '';

  get live() {
    return this.name === 'live';
  }

  show({name, since, text}) {
    this.name = name;
    document.body.dataset.state = name;
    $('banner').hidden = this.live;
    if (this.live) {
      this.words = 'Live.';
      $('pill-text').textContent = 'Live';
      return;
    }
    const known = since !== null;
    this.words = known ? `Stale since ${time(since)}` : 'No connection';
    $('pill-text').textContent = this.words;
    $('banner-title').textContent = `${this.words}.`;
    $('banner-text').textContent = `${text || 'The server does not answer.'} ` +
        (known ? 'Below is what was known then; leases may have been renewed, ' +
          'released or taken since. ' : '') +
        'This page goes on trying.';
  }

  status(body) {
    $('foot-service').textContent = summary(body).join(' · ');
    $('foot-note').textContent = warnings(body).join(' · ');
    const waiting = body.parked?.grants ?? 0;
    $('total-waiting').hidden = waiting === 0;
    $('count-waiting').textContent = whole(waiting);
    $('s-warnings').textContent = warnings(body).map((w) => `${w}.`).join(' ');
    $('s-warnings').hidden = !warnings(body).length;
    $('s-facts').replaceChildren(...facts(body).filter(([, value]) => value)
        .flatMap(([term, value, note]) => fact(term, value, note)));
  }
}

function summary({version, uptime, durability, queue, checkpoint}) {
  const all = [];
  if (version) all.push(`Leasehold ${version}`);
  if (uptime >= 0) all.push(`up ${duration(uptime * 1000)}`);
  if (durability) all.push(`durability ${durability}`);
  if (queue) all.push(`queue ${whole(queue.waiting)}`);
  if (checkpoint) all.push(`WAL ${whole(checkpoint.wal_pages)} pages`);
  return all;
}

// Members that a server does not tell are left out.
function facts({durability, queue, checkpoint, clock, leases, parked, user,
  version, sqlite, uptime}) {
  return [
    ['Durability', durability, durability === 'full' ?
      'an answer comes when the disk has it' : ''],
    ['Queue', queue && `${whole(queue.waiting)} waiting`,
      queue && `of at most ${whole(queue.most)}`],
    ['Last commit', queue && `${(queue.commit * 1000).toFixed(1)} ms`,
      queue && `${whole(queue.operations)} operations in ` +
        `${whole(queue.batches)} transactions so far`],
    ['Writer', queue && (queue.write_error ? `error ${queue.write_error}` :
      queue.locked > 0 ? `waits for ${duration(queue.locked * 1000)}` : 'free'),
    queue?.locked > 0 ? 'another program holds the file' : ''],
    ['WAL', checkpoint && `${whole(checkpoint.wal_pages)} pages`,
      checkpoint && `checkpointed whole ${duration(checkpoint.since * 1000)} ago`],
    ['Lease clock', clock && lead(clock.lead), 'from the wall clock'],
    ['Event log', leases && `${whole(leases.events)} events`,
      leases && `newest #${leases.newest_token}`],
    ['Waiting grants', parked?.grants >= 0 && whole(parked.grants)],
    ['Event streams', parked && whole(parked.streams),
      parked && `and ${whole(parked.polls)} long polls`],
    ['You', user],
    ['Up', uptime >= 0 && duration(uptime * 1000)],
    ['Version', version && `Leasehold ${version}`, sqlite && `SQLite ${sqlite}`],
  ];
}

function lead(s) {
  const ms = Math.round(s * 1000);
  return Math.abs(ms) < 1000 ? `${ms > 0 ? '+' : ''}${ms} ms` :
    `${s > 0 ? '+' : '−'}${duration(Math.abs(ms))}`;
}

function warnings({clock, queue, checkpoint}) {
  const all = [];
  const away = clock?.lead ?? 0;
  if (Math.abs(away) >= CLOCK_S) {
    all.push(`The lease clock is ${duration(Math.abs(away) * 1000)} ` +
        `${away > 0 ? 'ahead of' : 'behind'} the wall clock`);
  }
  if (queue?.write_error) all.push('The last write failed');
  if (checkpoint?.blocked) all.push('Checkpoints are blocked');
  return all;
}
