// operation.js: one call of the service, described: what it takes, what it
// answers.
//
//   main.append(operation(spec, op, bench.element));
// SPDX-License-Identifier: MIT

import {statusPill} from './answer.js';
import {copyable} from './copy.js';
import {el} from './dom.js';
import {bodyText, coloured} from './json.js';
import {fields, parameters} from './schema.js';
import {blocks, spans} from './text.js';

// Every call has it; the page tells of it once, at its top.
const EVERYWHERE = 'X-Request-Id';

/** POST in full colour, what only reads in a lighter one. */
export function methodPill(method) {
  return el('span', {class: 'method', 'data-method': method}, method);
}

function takes(spec, op) {
  const query = op.parameters.filter((it) => it.in === 'query');
  const header = op.parameters.filter((it) =>
    it.in === 'header' && it.name !== EVERYWHERE);
  return [
    op.body && [el('h4', {}, 'Body'), fields(spec, op.body, {marked: true})],
    query.length > 0 && [el('h4', {}, 'Query'), parameters(spec, query)],
    header.length > 0 && [el('h4', {}, 'Headers'), parameters(spec, header)],
  ];
}

function example([name, {summary, value}]) {
  const block = copyable(`example ${name}`);
  block.code.replaceChildren(...coloured(bodyText(value)));
  return [el('p', {class: 'example-title'}, ...spans(summary ?? name)),
    block.element];
}

// The fields of a response; of a problem only those that not every one has.
function brings(spec, {schemas: [schema], isProblem}) {
  if (!isProblem) return schema;
  const every = spec.doc.components.schemas.Problem.properties;
  return {properties: Object.fromEntries(Object.entries(schema.properties)
      .filter(([name]) => !(name in every)))};
}

/** What a response brings: headers, fields, examples. */
export function response(spec, it) {
  const headers = it.headers.filter(({name}) => name !== EVERYWHERE);
  return el('div', {class: 'response-body'},
      headers.length > 0 && parameters(spec, headers),
      it.schemas.length > 0 && fields(spec, brings(spec, it)),
      Object.entries(it.examples).map(example));
}

/** The line that stands for a response while it is folded. */
export function responseHead(status, description, codes) {
  return el('summary', {}, statusPill(status),
      el('span', {class: 'response-words'}, ...spans(description),
          codes.map((code) => [' ',
            el('code', {class: 'problem-code'}, code)])));
}

function ownResponse(spec, it) {
  const codes = it.status < '4' ? [] : spec.codes(it);
  return el('details', {class: 'response'},
      responseHead(it.status, it.description, codes),
      response(spec, it));
}

function sharedResponses(list) {
  return el('p', {class: 'shared'}, 'Like every call: ',
      list.map(({status, shared}) => [el('a', {href: `#${shared}`,
        class: 'shared-status'}, status === 'default' ? 'others' : status),
      ' ']));
}

export function operation(spec, op, bench) {
  const own = op.responses.filter(({shared}) => !shared);
  const shared = op.responses.filter((it) => it.shared);
  return el('article', {class: 'op', id: op.id, 'aria-labelledby': `${op.id}-h`},
      el('div', {class: 'op-text'},
          el('h3', {id: `${op.id}-h`}, op.summary),
          el('p', {class: 'op-call'}, methodPill(op.method),
              el('code', {}, op.path)),
          blocks(op.description, 'h4'),
          takes(spec, op),
          el('h4', {}, 'Answers'),
          own.map((it) => ownResponse(spec, it)),
          shared.length > 0 && sharedResponses(shared)),
      el('div', {class: 'op-try'}, bench));
}
