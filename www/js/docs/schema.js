// schema.js: a JSON schema in words, its fields as a list.
//
//   typeWords(spec, schema)      'integer, 1 to 10,000'
//   fields(spec, schema)         <dl> of its properties
// SPDX-License-Identifier: MIT

import {el} from './dom.js';
import {spans} from './text.js';

const NAMES = {string: 'text', boolean: 'true or false', number: 'number',
  integer: 'integer', array: 'list', object: 'object', null: 'null'};

function whole(number) {
  return number === Number.MAX_SAFE_INTEGER ? '2⁵³ − 1' :
    number.toLocaleString('en');
}

function bounds({minimum, maximum}) {
  if (minimum !== undefined && maximum !== undefined) {
    return minimum === maximum ? `only ${whole(minimum)}` :
      `${whole(minimum)} to ${whole(maximum)}`;
  }
  return maximum !== undefined ? `at most ${whole(maximum)}` : '';
}

/** The kind of value, in words. */
export function typeWords(spec, schema) {
  const it = spec.look(schema);
  if ('const' in it) return JSON.stringify(it.const);
  if (it.enum) return it.enum.length > 8 ? 'one of a closed list' :
    it.enum.map((value) => JSON.stringify(value)).join(' or ');
  if (it.format === 'date-time') return 'instant';
  const kinds = [it.type].flat().filter(Boolean).map((type) => NAMES[type]);
  if (it.type === 'array' && it.items) {
    const item = spec.look(it.items);
    kinds[0] += ` of ${item.title ?? typeWords(spec, item)}`;
  }
  return [kinds.join(' or '), bounds(it)].filter(Boolean).join(', ');
}

// The fields inside an object or a list of objects, where they are not told
// elsewhere on the page.
function inner(spec, schema) {
  const it = spec.look(schema);
  const item = it.type === 'array' ? spec.look(it.items) : it;
  return item.properties ? fields(spec, item) : null;
}

function field(spec, name, schema, required) {
  const it = spec.look(schema);
  return [
    el('dt', {},
        el('code', {class: 'field-name'}, name),
        el('span', {class: 'field-type'}, typeWords(spec, schema)),
        required && el('span', {class: 'field-must'}, 'required'),
        it.default !== undefined &&
          el('span', {class: 'field-type'}, `default ${it.default}`)),
    el('dd', {},
        it.description && el('p', {}, ...spans(it.description)),
        inner(spec, it)),
  ];
}

/** The properties of an object; marked: say which ones are required. */
export function fields(spec, schema, {marked = false} = {}) {
  const it = spec.look(schema);
  return el('dl', {class: 'fields'},
      Object.entries(it.properties ?? {}).map(([name, property]) =>
        field(spec, name, property, marked && it.required?.includes(name))));
}

/** Parameters of an operation, those in the query or those in the header. */
export function parameters(spec, list) {
  return el('dl', {class: 'fields'}, list.map((it) =>
    field(spec, it.name, {...spec.look(it.schema),
      description: it.description}, it.required)));
}
