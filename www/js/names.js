// names.js: names of others on the page, as text whatever they contain.
//
//   put(element, name)     the element then shows the name
//
// Right-to-left text keeps to its own element (bidi isolation by <bdi> or
// dir=auto). Characters that cannot be seen, or that turn the order of others
// around, are kept but shown as their number, U+202E, so that two names that
// differ never look the same and a name never looks empty.
// SPDX-License-Identifier: MIT

// Formatting characters and odd spaces; not the joiners inside emoji and
// scripts that need them.
const HIDDEN = new RegExp('(' + [
  '[\\u00A0\\u00AD\\u034F\\u061C\\u115F\\u1160\\u1680\\u17B4\\u17B5\\u180E]',
  '[\\u2000-\\u200B\\u200E\\u200F\\u2028-\\u202F\\u205F-\\u206F]',
  '[\\u2800\\u3000\\u3164\\uFEFF\\uFFA0\\uFFF9-\\uFFFB]',
  '[\\u{E0000}-\\u{E007F}]',
  '^[\\u200C\\u200D\\uFE00-\\uFE0F]+$',
  '^ | $| (?= )',
].join('|') + ')', 'u');

function mark(piece) {
  const span = document.createElement('span');
  span.className = 'code-point';
  span.dataset.code = [...piece].map((c) =>
    'U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')).join(' ');
  span.textContent = piece;
  return span;
}

/** Show `name` in `element`. Its textContent is the name, byte for byte. */
export function put(element, name) {
  if (element.dataset.name === name) return;
  element.dataset.name = name;
  if (!HIDDEN.test(name)) {
    element.textContent = name;
    return;
  }
  // split keeps what it splits at, in every second place
  const pieces = name.split(HIDDEN).map((piece, i) => i % 2 ? mark(piece) : piece);
  element.replaceChildren(...pieces.filter((piece) => piece));
}
