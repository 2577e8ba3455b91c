// try.js: the form beside an operation that sends it to this server.
//
//   const bench = new Try(spec, op, {got});
//   article.append(bench.element);
//     got(lease)          a lease was answered: others may want its token
//   bench.take(lease)     fill it in, unless somebody has typed here already
//
// An example can be one that the fields cannot say (an unknown field, a text
// where a number belongs): then, or when asked, the body is edited as JSON.
// SPDX-License-Identifier: MIT

import {say} from '../announce.js';
import {Answer, errorsOf, members} from './answer.js';
import {copyable} from './copy.js';
import {el, uniqueId} from './dom.js';
import {laidOut} from './json.js';
import {bodyOf, build, curl, examplesOf, fits, inputsOf, valuesOf}
  from './request.js';
import {typeWords} from './schema.js';
import {send} from './send.js';

function control({kind, schema, name, choices}, id) {
  if (kind === 'choice') {
    return el('select', {id}, choices.map(([value, text]) =>
      el('option', {value}, text)));
  }
  const common = {id, autocomplete: 'off', spellcheck: 'false', dir: 'auto',
    autocapitalize: 'off'};
  if (kind === 'json' || schema.maxLength > 1000) {
    return el('textarea', {...common, rows: 2});
  }
  return el('input', {...common, type: 'text', 'data-name': name,
    inputmode: kind === 'number' ? 'decimal' : undefined,
    placeholder: schema.default === undefined ? undefined :
      String(schema.default)});
}

export class Try {
  #spec;
  #op;
  #got;
  #inputs;
  #controls = new Map();
  #notes = new Map();
  #raw = null;              // the body as JSON is being edited
  #own = false;             // somebody typed here or chose an example
  #running = null;          // AbortController of the request under way
  #answer = new Answer();
  #curl = copyable('curl command');

  constructor(spec, op, {got}) {
    this.#spec = spec;
    this.#op = op;
    this.#got = got;
    this.#inputs = inputsOf(spec, op);
    this.examples = examplesOf(op, this.#inputs);
    this.#draw();
    this.#choose([...this.examples.keys()][0]);
  }

  // --- drawing ---

  #draw() {
    this.choice = el('select', {id: uniqueId('try')},
        [...this.examples].map(([name, summary]) =>
          el('option', {value: name}, summary)));
    this.mode = el('button', {type: 'button', class: 'try-mode',
      'aria-pressed': 'false'}, 'JSON');
    this.text = el('textarea', {class: 'try-text', spellcheck: 'false',
      autocomplete: 'off', rows: 8, 'aria-label': 'Body as JSON'});
    this.sender = el('button', {type: 'submit', class: 'button'}, 'Send');
    this.stopper = el('button', {type: 'button', class: 'button quiet',
      hidden: true}, 'Cancel');
    this.note = el('p', {class: 'try-note soft', hidden: true},
        'Filled in with the lease that you just got.');
    this.element = el('form', {class: 'try', novalidate: true,
      'aria-label': `Try: ${this.#op.summary}`},
    this.#head(),
    this.#group('body'), el('div', {class: 'try-raw', hidden: true}, this.text),
    this.#group('query'), this.#more(), this.note,
    el('div', {class: 'try-send'}, this.sender, this.stopper,
        el('span', {class: 'soft only-wide'}, this.#hint())),
    this.#curl.element, this.#answer.element);
    this.#listen();
  }

  #hint() {
    return this.#op.method === 'GET' ? 'Asks this server.' :
      'Asks this server, for real.';
  }

  #head() {
    return el('div', {class: 'try-head'},
        el('h4', {}, 'Try it'),
        this.examples.size > 1 && el('label', {class: 'try-choice'},
            el('span', {class: 'unseen'}, 'Example'), this.choice),
        this.#op.body && this.mode);
  }

  #group(place) {
    const inputs = this.#inputs.filter((it) => it.place === place);
    return el('div', {class: 'try-fields', 'data-place': place,
      hidden: inputs.length === 0}, inputs.map((it) => this.#field(it)));
  }

  // Headers are seldom needed: folded, unless the operation lives by them.
  #more() {
    const group = this.#group('header');
    if (group.hidden) return null;
    return el('details', {class: 'try-more'}, el('summary', {}, 'Headers'), group);
  }

  #field(input) {
    const id = uniqueId('field');
    const box = control(input, id);
    const error = el('span', {class: 'field-error', id: `${id}-error`,
      hidden: true});
    this.#controls.set(input.key, box);
    this.#notes.set(input.key, error);
    return el('div', {class: 'try-field'},
        el('label', {for: id}, el('code', {}, input.name),
            input.required && el('span', {class: 'field-must'}, 'required'),
            el('span', {class: 'field-type'}, typeWords(this.#spec, input.schema))),
        box, error);
  }

  #listen() {
    this.choice.addEventListener('change', () => {
      this.#own = true;
      this.#choose(this.choice.value);
    });
    this.mode.addEventListener('click', () =>
      this.#edit(this.#raw === null ? laidOut(this.#body()) : null));
    this.element.addEventListener('input', (event) => {
      if (event.target === this.choice) return;
      this.#own = true;
      if (event.target === this.text) this.#raw = this.text.value;
      this.#changed();
    });
    this.element.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#send();
    });
    this.element.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.#send();
      }
    });
    this.stopper.addEventListener('click', () => this.#running?.abort());
  }

  // --- what is asked ---

  #values() {
    return new Map([...this.#controls].map(([key, box]) => [key, box.value]));
  }

  #body() {
    return bodyOf(this.#inputs, this.#values());
  }

  #request() {
    return build(this.#op, this.#inputs, this.#values(), this.#raw);
  }

  #choose(name) {
    const values = valuesOf(this.#inputs, this.#op, name);
    for (const [key, box] of this.#controls) box.value = values.get(key);
    const value = this.#op.examples[name]?.value;
    this.#edit(fits(this.#inputs, values, value) ? null :
      laidOut(JSON.stringify(value)));
    const headed = this.#inputs.some(({place, key}) =>
      place === 'header' && values.get(key));
    const more = this.element.querySelector('.try-more');
    if (more && headed) more.open = true;
    this.#sample(name);
  }

  #sample(name) {
    for (const {status, examples} of this.#op.responses) {
      if (!(name in examples)) continue;
      this.#answer.sample({status, value: examples[name].value});
      return;
    }
  }

  // Edit the body as this text, or by its fields when it is null. Fields that
  // the text has keep their values.
  #edit(raw) {
    if (raw === null && this.#raw !== null) this.#refill();
    this.#raw = raw;
    this.text.value = raw ?? '';
    this.text.parentElement.hidden = raw === null;
    this.element.querySelector('[data-place=body]').hidden =
      raw !== null || !this.#op.body;
    this.mode.setAttribute('aria-pressed', String(raw !== null));
    this.#changed();
  }

  #refill() {
    let body;
    try {
      body = JSON.parse(this.#raw);
    } catch {
      return;
    }
    for (const {place, name, key} of this.#inputs) {
      if (place !== 'body') continue;
      const value = body?.[name];
      this.#controls.get(key).value = value === undefined || value === null ?
        '' : typeof value === 'string' ? value : JSON.stringify(value);
    }
  }

  #changed() {
    this.note.hidden = true;
    this.#curl.set(curl(this.#request(), location.origin));
  }

  take({resource, token}) {
    const boxes = ['body/resource', 'body/token'].map((key) =>
      this.#controls.get(key));
    if (this.#own || this.#raw !== null || boxes.includes(undefined)) return;
    [boxes[0].value, boxes[1].value] = [resource, String(token)];
    this.#changed();
    this.note.hidden = false;
  }

  // --- what is answered ---

  async #send() {
    if (this.#running) return;
    this.#running = new AbortController();
    this.#busy(true);
    this.#answer.wait();
    try {
      const answer = await send(this.#request(), this.#running.signal,
          (text) => this.#answer.wait(text));
      this.#answer.show(answer);
      this.#mark(errorsOf(answer.text));
      say(`Answered ${answer.status} ${answer.words}.`);
      this.#offer(answer);
    } catch (error) {
      const words = error.name === 'AbortError' ?
        'Cancelled. What was asked may have happened all the same.' :
        'The server cannot be reached.';
      this.#answer.fail(words);
      say(words);
    } finally {
      this.#running = null;
      this.#busy(false);
    }
  }

  #busy(yes) {
    this.sender.setAttribute('aria-disabled', String(yes));
    this.stopper.hidden = !yes;
    if (yes) this.#mark([]);
  }

  // Each error beside its field; those of no field stand above the answer.
  #mark(errors) {
    for (const [key, box] of this.#controls) {
      const error = errors.find(({loc}) => loc?.join('/') === key);
      const note = this.#notes.get(key);
      note.hidden = !error;
      note.textContent = error?.msg ?? '';
      box.toggleAttribute('aria-invalid', Boolean(error));
      if (error) box.setAttribute('aria-describedby', note.id);
      else box.removeAttribute('aria-describedby');
    }
  }

  #offer({status, text}) {
    const lease = members(text);
    if (status === 200 && Number.isInteger(lease.token) &&
        typeof lease.resource === 'string') {
      this.#got(lease, this);
    }
  }
}
