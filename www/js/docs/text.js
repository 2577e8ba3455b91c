// text.js: the descriptions of the document, in the little Markdown that they
// use: paragraphs, ### headings, - lists, `code`, *emphasis*, **strong**.
//
//   section.append(...blocks(operation.description))
//   cell.append(...spans(schema.description))
// SPDX-License-Identifier: MIT

import {el} from './dom.js';

const SPAN = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*]+)\*/g;
const TAGS = ['code', 'strong', 'em'];

/** One line of text as nodes. */
export function spans(text = '') {
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(SPAN)) {
    nodes.push(text.slice(end, found.index));
    const kind = found.slice(1).findIndex(Boolean);
    nodes.push(el(TAGS[kind], {}, found[kind + 1]));
    end = found.index + found[0].length;
  }
  nodes.push(text.slice(end));
  return nodes.filter((node) => node !== '');
}

function block(text, heading) {
  if (text.startsWith('### ')) return el(heading, {}, ...spans(text.slice(4)));
  if (/^- /.test(text)) {
    return el('ul', {class: 'list'}, text.split(/\n(?=- )/).map((item) =>
      el('li', {}, ...spans(item.slice(2).replaceAll('\n', ' ')))));
  }
  return el('p', {}, ...spans(text.replaceAll('\n', ' ')));
}

/** A text of many lines as elements. */
export function blocks(text = '', heading = 'h3') {
  return text.trim().split(/\n\n+/).filter(Boolean)
      .map((part) => block(part, heading));
}
