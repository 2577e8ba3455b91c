// json.js: JSON as it was sent, laid out and coloured.
//
//   pre.replaceChildren(...coloured(text))
//   laidOut(text)         the same as text
//   bodyText(value)       an example as it is sent
//
// Numbers keep their spelling. What is not JSON stays as it is.
// SPDX-License-Identifier: MIT

import {el} from './dom.js';

const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g;
const INLINE_MAX = 48;
const COLOUR_MAX = 300000;

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

// → {open, close, items: [{key, value}]} or a token. tokens is an iterator
// over valid JSON, from its first token or from `token` on.
function tree(tokens, token = tokens.next().value) {
  if (token !== '{' && token !== '[') return token;
  const items = [];
  const close = token === '{' ? '}' : ']';
  for (let next = tokens.next().value; next !== close;
    next = tokens.next().value) {
    if (next === ',') next = tokens.next().value;
    const key = token === '{' ? next : null;
    if (key) tokens.next();
    items.push({key, value: key ? tree(tokens) : tree(tokens, next)});
  }
  return {open: token, close, items};
}

function inline(node) {
  if (typeof node === 'string') return node;
  if (node.open === '{' && node.items.length > 2) return null;
  const parts = node.items.map(({key, value}) => {
    const text = inline(value);
    return text === null ? null : key ? `${key}: ${text}` : text;
  });
  if (parts.includes(null)) return null;
  const text = `${node.open}${parts.join(', ')}${node.close}`;
  return text.length <= INLINE_MAX ? text : null;
}

function* lay(node, indent, outer = true) {
  const short = !outer || node.items?.length === 0 ? inline(node) : null;
  if (typeof node === 'string') {
    yield {kind: kindOf(node), text: node};
  } else if (short !== null) {
    yield* layShort(node);
  } else {
    yield {text: `${node.open}\n`};
    for (const [i, {key, value}] of node.items.entries()) {
      yield {text: `${indent}  `};
      if (key) yield* [{kind: 'key', text: key}, {text: ': '}];
      yield* lay(value, `${indent}  `, false);
      yield {text: i + 1 < node.items.length ? ',\n' : '\n'};
    }
    yield {text: `${indent}${node.close}`};
  }
}

function* layShort(node) {
  if (typeof node === 'string') {
    yield {kind: kindOf(node), text: node};
    return;
  }
  yield {text: node.open};
  for (const [i, {key, value}] of node.items.entries()) {
    if (i) yield {text: ', '};
    if (key) yield* [{kind: 'key', text: key}, {text: ': '}];
    yield* layShort(value);
  }
  yield {text: node.close};
}

function kindOf(token) {
  if (token[0] === '"') return 'text';
  return /^[-\d]/.test(token) ? 'number' : 'word';
}

function pieces(text) {
  if (!isJson(text)) return [{text}];
  return [...lay(tree(text.match(TOKEN).values()), '')];
}

/** An example of a body as the text that is sent: JSON, or already text. */
export function bodyText(value) {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

export function laidOut(text) {
  return pieces(text).map((piece) => piece.text).join('');
}

export function coloured(text) {
  if (text.length > COLOUR_MAX) return [laidOut(text)];
  return pieces(text).map((piece) => piece.kind ?
    el('span', {class: `json-${piece.kind}`}, piece.text) : piece.text);
}
