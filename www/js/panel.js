// panel.js: everything about one lease, beside the table.
//
//   const panel = new Panel({store, server, act, choose, closed, say});
//   panel.open([resource, holder])
//   panel.close()
//   panel.changed(change)        the store changed (store.js)
//   panel.happened(events)       news (hub.js)
//   panel.tick(now, live)        the time left
//
// The panel stays open when its lease ends and says so, and says who took the
// resource then.
// SPDX-License-Identifier: MIT

import {fact} from './fact.js';
import {duration, moment, pretty, seconds, whole} from './format.js';
import {keyOf} from './leases.js';
import {put} from './names.js';
import {phase, shrink, spanText} from './row.js';
import {isOver} from './store.js';
import {Story} from './story.js';

const $ = (id) => document.getElementById(id);

function named(name) {
  const bdi = document.createElement('bdi');
  bdi.dir = 'auto';
  put(bdi, name);
  return bdi;
}

export class Panel {
  #it;                      // what the page gave us
  #id = null;               // [resource, holder]
  #lease = null;            // as it was when last known
  #ended = false;
  #animation = null;
  #drawn = '';
  #story;

  constructor(it) {
    this.#it = it;
    this.#story = new Story(it);
    $('p-close').addEventListener('click', () => this.close());
    $('p-actions').addEventListener('click', (event) => {
      const {act} = event.target.dataset;
      if (act) it.act(act, this.#lease);
    });
    $('p-others').addEventListener('click', (event) => {
      const {holder} = event.target.dataset;
      if (holder !== undefined) it.choose(keyOf(this.#id[0], holder));
    });
  }

  get key() {
    return this.#id && keyOf(...this.#id);
  }

  get resource() {
    return this.#id?.[0];
  }

  open(id, focus = false) {
    const same = this.resource === id[0];
    this.#id = id;
    this.#lease = null;
    this.#ended = false;
    this.#drawn = '';
    document.body.classList.add('with-panel');
    $('panel').hidden = false;
    $('activity').hidden = true;
    put($('p-resource'), id[0]);
    $('p-resource').classList.toggle('long', id[0].length > 80);
    this.#look();
    if (!same) this.#story.open(id[0]);
    if (focus) $('p-resource').focus();
  }

  close() {
    if (!this.#id) return;
    const key = this.key;
    this.#id = null;
    this.#animation?.cancel();
    this.#story.close();
    document.body.classList.remove('with-panel');
    $('panel').hidden = true;
    $('activity').hidden = false;
    this.#it.closed(key);
  }

  changed({added, changed, removed}) {
    if (!this.#id) return;
    this.#look();
    const here = (lease) => lease.resource === this.resource;
    if (added.some(here) || removed.some(here) ||
        changed.some(({is}) => here(is))) this.#story.changed();
  }

  happened(events) {
    if (events.some((event) => event.resource === this.resource)) {
      this.#story.changed();
    }
  }

  #look() {
    const lease = this.#it.store.get(this.key);
    if (lease && lease !== this.#lease) this.#show(lease);
    this.#end(!lease);
    this.#others();
  }

  #show(lease) {
    this.#lease = lease;
    this.#animation = shrink($('p-fill'), lease, this.#animation);
    const today = this.#it.server(performance.now()) ||
        Date.parse(lease.renewed_at);
    const at = (instant) => moment(Date.parse(instant), today);
    $('p-of').textContent = `left of ${spanText(lease)}`;
    $('p-facts').replaceChildren(
        ...fact('Holder', named(lease.holder)),
        ...fact('Token', String(lease.token), 'newest'),
        ...fact('Epoch', String(lease.epoch), 'token of the grant'),
        ...fact('Granted', at(lease.granted_at)),
        ...fact('Renewed', lease.token === lease.epoch ? 'not yet' :
            at(lease.renewed_at)),
        ...fact('Runs out', at(lease.expires_at), 'unless renewed'),
        ...fact('Asked for', seconds(lease.ttl)),
        ...fact('Capacity', whole(lease.capacity),
            lease.capacity === 1 ? 'exclusive' : 'holders at once'));
    const data = lease.data ?? '';
    $('p-data-box').hidden = data === '';
    $('p-data').textContent =
        typeof data === 'string' ? pretty(data) : JSON.stringify(data, null, 2);
    this.tick(performance.now());
  }

  #end(ended) {
    if (ended && !this.#ended && this.#lease) this.#it.say('This lease is over.');
    this.#ended = ended;
    $('p-over').hidden = !ended;
    if (ended && $('p-actions').contains(document.activeElement)) {
      $('p-resource').focus();
    }
    $('p-time').hidden = ended;
    $('p-actions').hidden = ended;
    $('panel').classList.toggle('is-over', ended);
    if (!ended) return;
    $('p-over').textContent = this.#lease ?
        'This lease is over. What follows is how it was last known.' :
        'This lease is not active.';
    if (!this.#lease) {
      $('p-facts').replaceChildren(...fact('Holder', named(this.#id[1])));
      $('p-data-box').hidden = true;
    }
  }

  #others() {
    const others = this.#it.store.of(this.#id[0]).filter(
        (lease) => lease.key !== this.key && !isOver(lease));
    $('p-others-box').hidden = !others.length;
    const drawn = others.map((lease) => lease.key).join('\n');
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    $('p-others').replaceChildren(...others.slice(0, 50).map((lease) => {
      const li = document.createElement('li');
      const button = document.createElement('button');
      button.type = 'button';
      button.className = 'link';
      button.dir = 'auto';
      put(button, lease.holder);
      button.dataset.holder = lease.holder;
      li.append(button);
      return li;
    }));
  }

  tick(now, live = true) {
    this.#story.tick(live);
    if (!this.#id || this.#ended || !this.#lease) return;
    const left = this.#lease.deadline - now;
    $('panel').dataset.phase = phase(this.#lease, now);
    $('p-left').textContent = left > 0 ? duration(left) :
      live ? 'over' : 'not known';
  }
}
