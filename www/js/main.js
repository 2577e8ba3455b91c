// main.js: puts the parts of the dashboard together.
//
//   server ─► source.js ─► hub.js ─► feed.js ─┬► store.js ─┬► view.js ─► table.js ─► row.js
//             (a worker, for all tabs)        │            └► panel.js ─► act.js ─► server
//                                             └► log.js, rates.js, health.js
//   server ─► history.js ─► tenures.js ─► timeline.js: story.js, of panel.js
// SPDX-License-Identifier: MIT

import {actions} from './act.js';
import {say} from './announce.js';
import {Feed} from './feed.js';
import {whole} from './format.js';
import {Health} from './health.js';
import {Log} from './log.js';
import {Panel} from './panel.js';
import {Rates} from './rates.js';
import {isOver, Store, totals} from './store.js';
import {Table} from './table.js';
import {bindTools} from './tools.js';
import {View} from './view.js';

const $ = (id) => document.getElementById(id);
const TICK_MS = 100;
const ACTS = ['grant', 'renew', 'release', 'revoke'];
const still = matchMedia('(prefers-reduced-motion: reduce)');

const view = new View();
const health = new Health();
const rates = new Rates($('rates'), $('spark'));
const store = new Store(onChange);
const table = new Table({scroller: $('scroller'), runway: $('runway'),
  grid: $('grid'), choose});
const log = new Log($('log'), {none: $('activity-none'), choose});
const feed = new Feed({
  delta: (delta) => store.apply(delta),
  news: (news) => {
    log.note(news);
    panel.happened(news.events);
  },
  rates: (message) => rates.show(message),
  state: (state) => {
    health.show(state);
    say(health.words);
    count();
    render();
  },
  status: (body) => {
    health.status(body);
    mayOnly(body.may);
  }});
const acts = actions({say, denied});
const panel = new Panel({store, choose, say,
  server: (at) => feed.server(at),
  act: (act, lease) => acts[act](lease),
  closed});
const tools = bindTools(view, {
  changed: () => {
    view.rebuild(store);
    table.top();
    render();
    say(`${whole(view.rows.length)} leases match.`);
  },
  grant: () => acts.grant()});

function denied(act) {
  document.body.classList.add(`may-not-${act}`);
}

// No buttons for what the server would refuse, as it stands now.
function mayOnly(may) {
  for (const act of Array.isArray(may) ? ACTS : []) {
    document.body.classList.toggle(`may-not-${act}`, !may.includes(act));
  }
}

function onChange(change) {
  if (change.first) view.rebuild(store);
  else view.update(store, change);
  render();
  panel.changed(change);
  if (change.added.length || change.removed.length) count();
  if (change.first && view.query.lease) panel.open(view.query.lease);
}

function render() {
  table.show(view.rows, panel.key);
  const empty = store.size === 0;
  const none = view.rows.length === 0;
  $('empty').hidden = !(empty && health.live);
  $('nomatch').hidden = empty || !none;
  $('grid').hidden = none;
  $('nomatch-text').textContent = store.size === 1 ?
    'One lease is active; the filter hides it.' :
    `${whole(store.size)} leases are active; the filter hides them all.`;
  tools.matches(view.rows.length, store.size);
}

function choose(key, focus = false) {
  const [resource, holder] = key.split('\0');
  view.set({lease: [resource, holder]});
  panel.open([resource, holder], focus);
  table.show(view.rows, key);
}

function closed(key) {
  view.set({lease: null});
  table.show(view.rows, null);
  table.focus(key);
}

function count() {
  const {leases, resources, holders} = totals(store);
  const known = health.name !== 'connecting';
  document.title = health.live ? `${whole(leases)} active · Leasehold` :
    `${health.name} · Leasehold`;
  $('count-leases').textContent = known ? whole(leases) : '–';
  $('count-resources').textContent = known ? whole(resources) : '–';
  $('word-resources').textContent = resources === 1 ? 'resource' : 'resources';
  $('count-holders').textContent = known ? whole(holders) : '–';
  $('word-holders').textContent = holders === 1 ? 'holder' : 'holders';
}

function tick() {
  const now = performance.now();
  store.expire(health.live);
  table.tick(now, health.live);
  panel.tick(now, health.live);
}

setInterval(tick, still.matches ? 1000 : TICK_MS);
setInterval(() => log.draw(), 500);
setInterval(count, 1000);

document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.target.value ||
      document.querySelector('dialog[open]')) return;
  panel.close();
  document.body.classList.remove('with-log');
});
