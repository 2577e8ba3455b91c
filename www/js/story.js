// story.js: the part of the details that is about the resource, not the lease:
// who waits, its fence, who held it when, and every event the log has of it.
//
//   const story = new Story({server});       server(at): the server's time, ms
//   story.open(resource), story.close()
//   story.changed()        something happened to this resource
//   story.tick(live)       time passes
// SPDX-License-Identifier: MIT

import {fact} from './fact.js';
import {duration, whole} from './format.js';
import {History} from './history.js';
import {item} from './log.js';
import {put} from './names.js';
import {tenures} from './tenures.js';
import {Timeline} from './timeline.js';

const $ = (id) => document.getElementById(id);
const SHOWN = 120;          // lines of the list
const FEW = 3;              // renewals in a row that are told one by one
const DRAW_MS = 1000;
const NAMED = 20;           // waiters
const ASK_MS = 2000;        // the fence and the waiters make no events

// Newest first; many renewals of one tenure in a row are one line.
function fold(events, every) {
  const lines = [];
  for (const event of events.toReversed()) {
    const last = lines.at(-1);
    if (!every && event.event === 'renewed' &&
        last?.event.event === 'renewed' && last.event.epoch === event.epoch) {
      last.rest.push(event);
    } else {
      lines.push({event, rest: []});
    }
  }
  return lines.flatMap(({event, rest}) => rest.length < FEW ?
    [event, ...rest].map((one) => ({event: one, times: 1})) :
    [{event, times: rest.length + 1}]);
}

function waiter({holder, waited}) {
  const li = document.createElement('li');
  const name = document.createElement('bdi');
  const since = document.createElement('small');
  name.dir = 'auto';
  put(name, holder);
  since.textContent = `for ${duration(waited * 1000)}`;
  li.append(name, ' ', since);
  return li;
}

export class Story {
  #it;
  #history = null;
  #timeline = new Timeline($('p-timeline'));
  #tenures = [];
  #every = false;           // renewals one by one
  #listed = '';             // what the list shows
  #drawn = 0;
  #asked = 0;

  constructor(it) {
    this.#it = it;
    $('p-every').addEventListener('click', () => {
      this.#every = !this.#every;
      this.#list();
    });
    new ResizeObserver(() => this.#draw()).observe($('p-timeline'));
  }

  open(resource) {
    this.close();
    const history = new History(resource, () => this.#show());
    this.#history = history;
    this.#every = false;
    this.#asked = performance.now();
    $('p-history-note').textContent = 'Reading the log…';
    this.#read(history, history.begin());
  }

  close() {
    this.#history?.end();
    this.#history = null;
    this.#tenures = [];
    this.#listed = '';
    $('p-log').replaceChildren();
    $('p-timeline-box').hidden = $('p-every').hidden =
      $('p-waiters-box').hidden = true;
    $('p-register').replaceChildren();
  }

  changed() {
    if (this.#history) this.#read(this.#history, this.#history.refresh());
  }

  tick(live) {
    const now = performance.now();
    if (!this.#history || !live) return;
    if (now - this.#drawn > DRAW_MS) this.#draw();
    if (now - this.#asked > ASK_MS) {
      this.#asked = now;
      this.changed();
    }
  }

  // What could not be read is asked for again with the next change.
  async #read(history, reading) {
    try {
      await reading;
    } catch (problem) {
      if (history === this.#history) {
        $('p-history-note').textContent = `Not all is known: ${problem.message}`;
      }
    }
  }

  #show() {
    this.#tenures = tenures(this.#history.events);
    $('p-timeline-box').hidden = !this.#tenures.length;
    this.#register();
    this.#draw();
    this.#list();
  }

  #register() {
    const {fence, waiting, waiters} = this.#history;
    $('p-register').replaceChildren(...fact('Fence',
        fence === null ? 'none' : `#${fence}`,
        fence === null ? 'no token was reported' : 'highest token seen'));
    $('p-waiters-box').hidden = waiting === 0;
    $('p-waiting').textContent = waiting === 0 ? '' : whole(waiting);
    $('p-waiters').replaceChildren(...waiters.slice(0, NAMED).map(waiter));
    const rest = waiting - Math.min(waiters.length, NAMED);
    if (rest > 0) {
      const li = document.createElement('li');
      li.className = 'soft';
      li.textContent = `and ${whole(rest)} more behind them`;
      $('p-waiters').append(li);
    }
  }

  #draw() {
    this.#drawn = performance.now();
    if (this.#history) {
      this.#timeline.draw(this.#tenures, this.#it.server(this.#drawn));
    }
  }

  #list() {
    const {events, whole: all} = this.#history;
    const listed = `${events.length} ${events.at(-1)?.token} ${all} ${this.#every}`;
    if (listed === this.#listed) return;
    this.#listed = listed;
    const lines = fold(events, this.#every);
    const folded = lines.some(({times}) => times > 1);
    $('p-every').hidden = !folded && !this.#every;
    $('p-every').textContent = this.#every ? 'Fold renewals' : 'Show every renewal';
    $('p-history-note').textContent = !events.length ? 'The log has nothing of it.' :
      lines.length > SHOWN ? `The newest ${SHOWN} of ${whole(lines.length)} lines.` :
        all ? '' : 'Older events are in the log.';
    $('p-log').replaceChildren(...lines.slice(0, SHOWN).map(
        ({event, times}) => item(event, true, times)));
  }
}
