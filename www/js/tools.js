// tools.js: filter fields, order, buttons of the page that belong to no lease.
//
//   const tools = bindTools(view, {changed, grant});
//   tools.matches(shown, all)     "12 of 10,000"
// SPDX-License-Identifier: MIT

import {whole} from './format.js';

const $ = (id) => document.getElementById(id);
const TYPING_MS = 80;

function bindFilter(view, changed) {
  let timer = 0;
  for (const name of ['prefix', 'holder']) {
    const input = $(`f-${name}`);
    input.value = view.query[name];
    input.addEventListener('input', () => {
      view.set({[name]: input.value});
      clearTimeout(timer);
      timer = setTimeout(changed, TYPING_MS);
    });
  }
  $('tools').addEventListener('submit', (event) => event.preventDefault());
  $('clear').addEventListener('click', () => {
    view.set({prefix: '', holder: ''});
    $('f-prefix').value = $('f-holder').value = '';
    changed();
    $('f-prefix').focus();
  });
}

function showOrder(sort) {
  $('f-sort').value = sort;
  for (const button of document.querySelectorAll('[data-sort]')) {
    const {sort: field} = button.dataset;
    const on = sort.replace('-', '') === field;
    button.parentElement.setAttribute('aria-sort', !on ? 'none' :
      sort.startsWith('-') ? 'descending' : 'ascending');
  }
}

function bindOrder(view, changed) {
  const set = (sort) => {
    view.set({sort});
    showOrder(sort);
    changed();
  };
  $('f-sort').addEventListener('change', () => set($('f-sort').value));
  for (const button of document.querySelectorAll('[data-sort]')) {
    const {sort} = button.dataset;
    button.addEventListener('click', () =>
      set(view.query.sort === sort ? `-${sort}` : sort));
  }
  showOrder(view.query.sort);
}

// The clipboard needs a secure context; where there is none, the text is
// selected, ready to be copied by hand.
async function copy() {
  try {
    await navigator.clipboard.writeText($('curl').textContent);
    $('copy').textContent = 'Copied';
  } catch {
    getSelection().selectAllChildren($('curl'));
    $('copy').textContent = 'Selected';
  }
  setTimeout(() => { $('copy').textContent = 'Copy'; }, 2000);
}

export function bindTools(view, {changed, grant}) {
  bindFilter(view, changed);
  bindOrder(view, changed);
  $('open-grant').addEventListener('click', grant);
  $('empty-grant').addEventListener('click', grant);
  $('copy').addEventListener('click', copy);
  $('pill').addEventListener('click', () => $('d-service').showModal());
  const log = (yes) => () => document.body.classList.toggle('with-log', yes);
  $('open-log').addEventListener('click', log(true));
  $('close-log').addEventListener('click', log(false));
  $('curl').textContent = `curl ${location.origin}/v1/grant \\
  -H 'Content-Type: application/json' \\
  -d '{"resource": "shard/0", "holder": "me", "ttl": 60}'`;
  return {
    matches(shown, all) {
      $('matches').textContent = view.filtered ?
        `${whole(shown)} of ${whole(all)}` : '';
    },
  };
}
