// copy.js: a piece of code with a button that copies it.
//
//   const {element, set} = copyable('curl');
//   set('curl -i …');
// SPDX-License-Identifier: MIT

import {say} from '../announce.js';
import {el} from './dom.js';

const SAID_MS = 2000;

// The clipboard needs a secure context; where there is none, the text is
// selected, ready to be copied by hand.
async function copy(code, button) {
  let done = 'Copied';
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    getSelection().selectAllChildren(code);
    done = 'Selected';
  }
  button.textContent = done;
  say(`${done}.`);
  setTimeout(() => { button.textContent = 'Copy'; }, SAID_MS);
}

export function copyable(what) {
  const code = el('code');
  const button = el('button', {type: 'button', class: 'copy',
    'aria-label': `Copy the ${what}`}, 'Copy');
  button.addEventListener('click', () => copy(code, button));
  return {
    element: el('div', {class: 'code'},
        el('pre', {class: 'code-text', tabindex: 0, role: 'group',
          'aria-label': what}, code), button),
    code,
    set(text) { code.textContent = text; },
  };
}
