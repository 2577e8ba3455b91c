// log.js: what just happened, newest first.
//
//   const log = new Log(element, {none, choose});
//   log.note({events, anew})     news, see hub.js
//   log.draw()                   at most a few times a second
//   item(event, true)            one event as a list item, without the resource
// SPDX-License-Identifier: MIT

import {whole, time} from './format.js';
import {keyOf} from './leases.js';
import {put} from './names.js';

const SHOWN = 60;

function span(className, text) {
  const element = document.createElement('span');
  element.className = className;
  element.textContent = text;
  return element;
}

function name(className, text) {
  const element = document.createElement('bdi');
  element.className = className;
  element.dir = 'auto';
  put(element, text);
  return element;
}

/** When it was so: a lease ran out when its time was up, told or not. */
export function atOf({event, at, expires_at: end}) {
  return Date.parse(event === 'expired' ? end : at);
}

// Why and by whom, where that is known.
function remark({reason, actor}) {
  const note = document.createElement('span');
  note.className = 'remark';
  if (actor) note.append('by ', name('', actor), reason ? ': ' : '');
  if (reason) note.append(name('', reason));
  return note;
}

/** A list item that tells one event; `short` where the resource is known. */
export function item(event, short = false, times = 1) {
  const li = document.createElement('li');
  li.dataset.event = event.event;
  const what = document.createElement('span');
  what.className = 'what';
  what.append(span('event', event.event),
      times > 1 ? ` ${whole(times)} times ` : ' ', name('log-holder', event.holder));
  if (/granted|renewed/.test(event.event)) {
    what.append(' ', span('log-token', `#${event.token}`));
  }
  if (!short) li.append(name('log-resource', event.resource));
  li.append(span('log-time', time(atOf(event))), what);
  if (event.reason || event.actor) li.append(remark(event));
  return li;
}

export class Log {
  #element;
  #none;
  #events = [];             // oldest first
  #dirty = false;

  constructor(element, {none, choose}) {
    this.#element = element;
    this.#none = none;
    element.addEventListener('click', ({target}) => {
      const about = target.closest('li')?.about;
      if (about) choose(keyOf(about.resource, about.holder));
    });
  }

  note({events, anew}) {
    this.#events = [...(anew ? [] : this.#events), ...events].slice(-SHOWN);
    this.#dirty = true;
  }

  draw() {
    if (!this.#dirty) return;
    this.#dirty = false;
    this.#none.hidden = this.#events.length > 0;
    this.#element.replaceChildren(...this.#events.toReversed().map((event) =>
      Object.assign(item(event), {about: event})));
  }
}
