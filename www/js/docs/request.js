// request.js: from what stands in a form to a request, and that as a curl line.
//
//   const inputs = inputsOf(spec, op);       what the form asks for
//   const values = valuesOf(inputs, op, 'held');   an example's texts
//   const request = build(op, inputs, values);
//   curl(request, location.origin)           to be pasted into a shell
//
// values is a Map from an input's key to a text; an empty text is left out.
// SPDX-License-Identifier: MIT

import {laidOut} from './json.js';

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const PLAIN = /^[\w@%+=:,./-]+$/;
const WIDTH = 46;
const INDENT = ' '.repeat('  -d \'{'.length);

function kindOf({type}) {
  const kinds = [type].flat();
  if (kinds.includes('number') || kinds.includes('integer')) return 'number';
  return kinds.includes('string') ? 'text' : 'json';
}

function input(spec, place, name, schema, more) {
  const it = spec.look(schema);
  return {place, name, schema: it, kind: kindOf(it), key: `${place}/${name}`,
    ...more};
}

/** Everything that a call can be given, in the order of the document. */
export function inputsOf(spec, op) {
  const body = Object.entries(op.body?.properties ?? {}).map(
      ([name, schema]) => input(spec, 'body', name, schema,
          {required: op.body.required?.includes(name)}));
  const rest = op.parameters.map((it) => input(spec, it.in, it.name, it.schema,
      {required: it.required, examples: it.examples}));
  return [...body, ...rest, ...acceptOf(op)];
}

// Where an answer comes in more than one form, the header that says which;
// the first one is what comes without it. OpenAPI has no parameter for it.
function acceptOf(op) {
  const {types = [], typeOf = {}} = op.responses.find(({status}) =>
    status === '200') ?? {};
  if (types.length < 2) return [];
  const choices = types.map((type, i) => [i ? type : '', type]);
  const examples = Object.entries(typeOf)
      .filter(([, type]) => type !== types[0])
      .map(([name, type]) => [name, {value: type}]);
  return [{place: 'header', name: 'Accept', key: 'header/Accept',
    kind: 'choice', schema: {}, choices,
    examples: Object.fromEntries(examples)}];
}

function textOf(value) {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : laidOut(JSON.stringify(value));
}

/** The texts of an example of the operation. */
export function valuesOf(inputs, op, example) {
  const body = op.examples[example]?.value ?? {};
  return new Map(inputs.map(({key, place, name, examples}) => [key,
    textOf(place === 'body' ? body[name] : examples?.[example]?.value)]));
}

/** The names of all examples, with what they show. */
export function examplesOf(op, inputs) {
  const named = new Map(Object.entries(op.examples)
      .map(([name, {summary}]) => [name, summary]));
  const add = (name, summary) =>
    named.has(name) || named.set(name, summary ?? name);
  for (const {examples} of inputs) {
    for (const name of Object.keys(examples ?? {})) add(name, titleOf(op, name));
  }
  if (!named.size) add(Object.keys(op.responses[0].examples)[0], 'As it is');
  return named;
}

function titleOf(op, name) {
  return op.responses.map(({examples}) => examples[name]?.summary)
      .find(Boolean);
}

function jsonOf(kind, text) {
  if (kind === 'json') return text;
  return kind === 'number' && NUMBER.test(text) ? text : JSON.stringify(text);
}

// Broken into lines where the next member would make one too long; they stand
// below each other in the curl command.
function joined(members) {
  let width = 0;
  return members.map((member, i) => {
    const fits = width + member.length < WIDTH;
    width = fits ? width + member.length + 2 : member.length;
    return i === 0 ? member : (fits ? ', ' : `,\n${INDENT}`) + member;
  }).join('');
}

/** The body that the fields make up. */
export function bodyOf(inputs, values) {
  const members = inputs
      .filter(({place, key}) => place === 'body' && values.get(key))
      .map(({name, kind, key}) =>
        `${JSON.stringify(name)}: ${jsonOf(kind, values.get(key))}`);
  return `{${joined(members)}}`;
}

/** Can the fields say what this example says? */
export function fits(inputs, values, value) {
  if (value === undefined) return true;
  try {
    return JSON.stringify(JSON.parse(bodyOf(inputs, values))) ===
      JSON.stringify(value);
  } catch {
    return false;
  }
}

/** A request. raw: a body to be sent in place of that of the fields. */
export function build(op, inputs, values, raw = null) {
  const given = (place) => inputs
      .filter((it) => it.place === place && values.get(it.key))
      .map(({name, key}) => [name, values.get(key)]);
  const query = new URLSearchParams(given('query')).toString();
  const headers = given('header');
  if (op.body) headers.unshift(['Content-Type', 'application/json']);
  return {
    method: op.method,
    url: op.path + (query && `?${query}`),
    headers,
    body: op.body ? raw ?? bodyOf(inputs, values) : undefined,
  };
}

function quoted(text) {
  return PLAIN.test(text) ? text : `'${text.replaceAll('\'', '\'\\\'\'')}'`;
}

/** The request as a command line of a POSIX shell. */
export function curl({method, url, headers, body}, origin) {
  // -N: show a stream as it comes.
  const show = headers.some(([, value]) => value === 'text/event-stream') ?
    '-iN' : '-i';
  const parts = [`curl ${show} ${quoted(origin + url)}`,
    ...headers.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`)];
  if (body !== undefined) {
    parts.push(`${body.startsWith('@') ? '--data-raw' : '-d'} ${quoted(body)}`);
  } else if (method !== 'GET') {
    parts[0] = parts[0].replace('curl -i', `curl -i -X ${method}`);
  }
  return parts.join(' \\\n  ');
}
