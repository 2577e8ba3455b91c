// answer.js: the lower half of a try: an example of an answer, then the real
// one.
//
//   const answer = new Answer();
//   panel.append(answer.element);
//   answer.sample({status: '409', value})
//   answer.show(await send(request))
//   answer.fail('The server cannot be reached.')
// SPDX-License-Identifier: MIT

import {copyable} from './copy.js';
import {el} from './dom.js';
import {bodyText, coloured} from './json.js';

function size(bytes) {
  return bytes < 10000 ? `${bytes.toLocaleString('en')} bytes` :
    `${Math.round(bytes / 1024).toLocaleString('en')} KiB`;
}

function time(ms) {
  return ms < 10 ? `${ms.toFixed(1)} ms` :
    ms < 10000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** 2 for success, 4 for a refusal, 5 for a failure: for the colour. */
export function statusPill(status, words = '') {
  return el('span', {class: 'status', 'data-class': String(status)[0]},
      `${status} ${words}`.trim());
}

/** The members of an answer that is a JSON object; {} for any other. */
export function members(text) {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

/** The errors of a 422, [] for everything else. */
export function errorsOf(text) {
  const {errors} = members(text);
  return Array.isArray(errors) ? errors : [];
}

function placeOf({loc}) {
  return Array.isArray(loc) ? loc.join(' · ') : String(loc);
}

export class Answer {
  #head = el('div', {class: 'answer-head'});
  #errors = el('ul', {class: 'answer-errors', hidden: true});
  #headers = el('dl', {class: 'answer-headers'});
  #details = el('details', {class: 'answer-more', hidden: true},
      el('summary', {}, 'Headers'), this.#headers);
  #body = copyable('answer');
  element = el('section', {class: 'answer'},
      this.#head, this.#errors, this.#details, this.#body.element);

  #draw(kind, head, text) {
    this.element.dataset.kind = kind;
    this.#head.replaceChildren(...head);
    this.#errors.hidden = this.#details.hidden = true;
    this.#body.code.replaceChildren(...coloured(text));
    this.#body.element.hidden = text === '';
  }

  sample({status, value}) {
    this.#draw('sample', [el('h4', {}, 'Example of an answer'),
      statusPill(status)], bodyText(value));
  }

  /** Under way; text: what has come so far of an answer without end. */
  wait(text = '') {
    const words = text ? 'Listening…' : 'Waiting for the answer…';
    this.#draw('wait', [el('h4', {}, words)], text);
  }

  fail(text) {
    this.#draw('fail', [el('h4', {}, 'No answer')], '');
    this.#errors.replaceChildren(el('li', {}, text));
    this.#errors.hidden = false;
  }

  show({status, words, headers, text, ms, bytes}) {
    this.#draw('real', [el('h4', {}, 'Answer'), statusPill(status, words),
      el('span', {class: 'soft'}, `${time(ms)} · ${size(bytes)}`)], text);
    this.#headers.replaceChildren(...headers.flatMap(([name, value]) =>
      [el('dt', {}, name), el('dd', {}, value)]));
    this.#details.hidden = false;
    const errors = errorsOf(text);
    this.#errors.replaceChildren(...errors.map((error) => el('li', {},
        el('code', {}, placeOf(error)), ` ${error.msg}`)));
    this.#errors.hidden = errors.length === 0;
  }
}
