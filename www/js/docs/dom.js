// dom.js: elements from code, text never taken for markup.
//
//   el('a', {href: '#grant', class: 'link'}, 'Take a lease')
//
// Attributes that are undefined, null or false are left out, true is an empty
// one; children that are undefined, null or false are left out, too.
// SPDX-License-Identifier: MIT

const isThere = (value) =>
  value !== undefined && value !== null && value !== false;

export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (isThere(value)) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter(isThere));
  return element;
}

let used = 0;

/** An id that no other element has. */
export function uniqueId(stem) {
  used += 1;
  return `${stem}-${used}`;
}
