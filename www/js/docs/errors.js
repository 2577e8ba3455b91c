// errors.js: the closed list of problem codes, and the answers that any call
// may give.
//
//   main.append(errors(spec));
// SPDX-License-Identifier: MIT

import {statusPill} from './answer.js';
import {el} from './dom.js';
import {response, responseHead} from './operation.js';
import {spans} from './text.js';

// Which statuses a code comes with: by every response of the document.
function statuses(spec) {
  const found = new Map(spec.allCodes().map(([code]) => [code, new Set()]));
  const note = (it) => {
    for (const schema of it.schemas) {
      const status = schema.properties?.status?.const;
      for (const code of spec.codes({schemas: [schema]})) {
        if (status) found.get(code)?.add(status);
      }
    }
    for (const {value} of Object.values(it.examples)) {
      if (value?.code) found.get(value.code)?.add(value.status);
    }
  };
  for (const op of spec.operations()) op.responses.forEach(note);
  for (const it of Object.values(spec.doc.components.responses)) {
    note(spec.response(it));
  }
  return found;
}

function codeTable(spec) {
  const found = statuses(spec);
  const rows = spec.allCodes().map(([code, words]) => el('tr', {},
      el('th', {scope: 'row'}, el('code', {class: 'problem-code'}, code)),
      el('td', {}, [...found.get(code)].sort().map((status) =>
        statusPill(status))),
      el('td', {}, ...spans(words))));
  return el('table', {class: 'codes'},
      el('thead', {}, el('tr', {}, ['Code', 'Status', 'Meaning'].map((text) =>
        el('th', {scope: 'col'}, text)))),
      el('tbody', {}, rows));
}

function sharedResponse(spec, name, object) {
  const it = spec.response(object);
  const status = it.schemas[0]?.properties?.status?.const;
  return el('details', {class: 'response', id: name},
      responseHead(status ?? 'other', it.description,
          status ? spec.codes(it) : []),
      response(spec, it));
}

export function errors(spec) {
  return el('section', {class: 'group', id: 'errors',
    'aria-labelledby': 'errors-h'},
  el('h2', {id: 'errors-h'}, 'Errors'),
  el('p', {class: 'soft'}, 'Every code there is. Programs decide by it; title ',
      'and detail are for people.'),
  codeTable(spec),
  el('h3', {id: 'errors-shared'}, 'What any call may answer'),
  Object.entries(spec.doc.components.responses).map(([name, object]) =>
    sharedResponse(spec, name, object)));
}
