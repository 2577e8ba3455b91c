// hub.js: the worker that all tabs of a browser share. One source, many tabs.
//
// As a SharedWorker every tab has a port; where there is none (some phones)
// each tab starts it as a worker of its own. Parsing and comparing ten thousand
// leases happens here, so a page only hears what changed.
//
//   page → hub   {type: 'ping', asked, visible}   at once answered by 'pong';
//                                      newly visible: the whole state, then news
//                {type: 'wake'}        the computer may have slept
//   hub → page   {type: 'pong', asked, at}, {type: 'status', body},
//                {type: 'news', events, anew}    what is worth telling; anew:
//                                                forget what was told before
//                {type: 'rates', …}    once a second, see recent.js
//                and 'delta', 'alive', 'whole', 'trouble' of the source
//                (source.js); a delta with `reset: true` has all
// SPDX-License-Identifier: MIT

import {get} from './api.js';
import {Recent} from './recent.js';
import {Source} from './source.js';

const SILENT_MS = 8000;      // a tab that died says no goodbye
const STATUS_MS = 3000;
const RATES_MS = 1000;

const tabs = new Map();      // port → {visible, heard}
const source = new Source(hear);
const recent = new Recent();
let alive = null;            // the last 'alive' message
let status = null;           // the last 'status' message
let asked = -Infinity;       // when the status was asked for

function tell(message) {
  for (const [port, tab] of tabs) {
    if (tab.visible) port.postMessage(message);
  }
}

function hear(message) {
  if (message.type === 'news') {
    recent.note(message.events);
    tell({type: 'news', events: recent.last.slice(-message.events.length)
        .filter((event) => event.token >= message.events[0].token)});
  } else if (message.type === 'past') {
    recent.past(message);
    tell({type: 'news', anew: true, events: recent.last});
    tellRates();
  } else {
    tell(message);
  }
  if (message.type === 'alive') {
    const first = !alive;
    alive = message;
    if (first) tellRates();
    refreshStatus();
  }
}

async function refreshStatus() {
  const now = performance.now();
  if (now - asked < STATUS_MS) return;
  asked = now;
  try {
    status = {type: 'status', body: (await get('/v1/status')).body};
    tell(status);
  } catch {
    // The beat that follows tells of the trouble.
  }
}

function rates() {
  const server = alive.server + performance.now() - alive.at;
  return {type: 'rates', ...recent.rates(server, source.leases.size)};
}

// Only while they are known.
function tellRates() {
  if (alive && performance.now() - alive.at < 2 * RATES_MS) tell(rates());
}

function ping(port, tab, {asked: at, visible}) {
  port.postMessage({type: 'pong', asked: at, at: performance.now()});
  tab.heard = performance.now();
  if (visible && !tab.visible) welcome(port);
  tab.visible = visible;
  watch();
}

function welcome(port) {
  if (!alive) return;
  port.postMessage({type: 'delta', reset: true, gone: [],
    up: [...source.leases.all()]});
  port.postMessage({type: 'news', anew: true, events: recent.last});
  port.postMessage(alive);
  port.postMessage(rates());
  if (status) port.postMessage(status);
}

// The source works while somebody looks.
function watch() {
  const now = performance.now();
  for (const tab of tabs.values()) {
    if (now - tab.heard > SILENT_MS) tab.visible = false;
  }
  source.awake([...tabs.values()].some((tab) => tab.visible));
}

function open(port) {
  const tab = {visible: false, heard: performance.now()};
  tabs.set(port, tab);
  port.onmessage = ({data}) => {
    if (data.type === 'ping') ping(port, tab, data);
    else if (data.type === 'wake') source.wake();
  };
}

if ('onconnect' in self) {
  self.onconnect = (event) => open(event.ports[0]);
} else {
  open(self);
}
setInterval(watch, SILENT_MS / 4);
setInterval(tellRates, RATES_MS);
