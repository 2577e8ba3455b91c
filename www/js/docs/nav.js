// nav.js: the list of what is on the page; it marks where the reader is.
//
//   draw(nav, spec);       after the page itself has been drawn
// SPDX-License-Identifier: MIT

import {el} from './dom.js';
import {methodPill} from './operation.js';

const entry = (href, ...children) =>
  el('li', {}, el('a', {href}, ...children));

function group(title, entries) {
  return [el('h2', {}, title), el('ul', {}, entries)];
}

// The entry of the last part that begins in the upper half of the window, or
// above it, is current.
function follow(nav, ids) {
  const seen = new Set();
  const mark = () => {
    const current = ids.findLast((id) => seen.has(id));
    if (!current) return;
    for (const link of nav.querySelectorAll('a')) {
      if (link.hash === `#${current}`) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    }
  };
  const observer = new IntersectionObserver((entries) => {
    for (const {target, isIntersecting} of entries) {
      if (isIntersecting) seen.add(target.id);
      else seen.delete(target.id);
    }
    mark();
  }, {rootMargin: '-72px 0px -55% 0px'});
  for (const id of ids) observer.observe(document.getElementById(id));
}

export function draw(nav, spec) {
  const ops = spec.operations();
  nav.append(...group('Leasehold', [entry('#intro', 'Overview')]),
      ...spec.doc.tags.flatMap(({name}) => group(name, ops
          .filter((op) => op.tag === name)
          .map((op) => entry(`#${op.id}`, el('span', {}, op.path),
              methodPill(op.method))))),
      ...group('More', [entry('#errors', 'Errors')]));
  follow(nav, ['intro', ...ops.map(({id}) => id), 'errors']);
}
