// main.js: the API page: draws /openapi.json and lets each call be tried.
//
//   openapi.json ─► spec.js ─┬► operation.js, schema.js, errors.js   the text
//                            └► try.js ─► request.js ─► send.js ─► answer.js
//
// SPDX-License-Identifier: MIT

import {copyable} from './copy.js';
import {el} from './dom.js';
import {errors} from './errors.js';
import {draw as drawNav} from './nav.js';
import {operation} from './operation.js';
import {build, curl, inputsOf, valuesOf} from './request.js';
import {Spec} from './spec.js';
import {blocks} from './text.js';
import {Try} from './try.js';

const $ = (id) => document.getElementById(id);

async function load() {
  const response = await fetch(`${location.origin}/openapi.json`, {cache: 'no-cache'});
  if (!response.ok) throw new Error(`it answered ${response.status}`);
  return new Spec(await response.json());
}

// Take, keep, give back: the first example of each, as commands.
function shell(spec) {
  const commands = spec.operations().slice(0, 3).map((op) => {
    const inputs = inputsOf(spec, op);
    const [example] = Object.keys(op.examples);
    const request = build(op, inputs, valuesOf(inputs, op, example));
    return `# ${op.summary}\n${curl(request, location.origin)}`;
  });
  const code = copyable('commands');
  code.set(commands.join('\n\n'));
  return el('div', {class: 'intro-shell'},
      el('h2', {}, 'From a shell'), code.element);
}

function intro(spec) {
  const {info} = spec.doc;
  return el('section', {class: 'intro', id: 'intro', 'aria-labelledby': 'top'},
      el('h1', {id: 'top'}, `The ${info.title} API`),
      el('p', {class: 'lead'}, info.summary),
      el('div', {class: 'intro-both'},
          el('div', {class: 'intro-text'}, blocks(info.description, 'h2')),
          shell(spec)));
}

function draw(spec) {
  const benches = [];
  const got = (lease, from) => benches
      .filter((bench) => bench !== from)
      .forEach((bench) => bench.take(lease));
  const ops = spec.operations();
  const groups = spec.doc.tags.map(({name, description}) =>
    el('section', {class: 'group', 'aria-label': name},
        el('h2', {}, name), el('p', {class: 'soft'}, description),
        ops.filter((op) => op.tag === name).map((op) => {
          const bench = new Try(spec, op, {got});
          benches.push(bench);
          return operation(spec, op, bench.element);
        })));
  $('content').replaceChildren(intro(spec), ...groups, errors(spec));
  drawNav($('nav'), spec);
}

// A link to a folded answer opens it.
function open() {
  const target = $(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
  target?.scrollIntoView();
}

try {
  draw(await load());
  document.body.dataset.state = 'ready';
  addEventListener('hashchange', open);
  open();
} catch (error) {
  document.body.dataset.state = 'failed';
  $('wait').textContent = `openapi.json cannot be read: ${error.message}.`;
}
