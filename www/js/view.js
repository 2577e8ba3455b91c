// view.js: which leases are shown and in which order; kept in the URL.
//
//   const view = new View();
//   view.query                  {prefix, holder, sort, lease: [resource, holder]}
//   view.set({prefix: 'a/'})    changes it and the URL
//   view.update(store)          rows from the leases of the store
//   view.rows                   array of leases, in order
//
// sort is 'resource', 'holder', 'token' or 'left', with '-' for descending.
// SPDX-License-Identifier: MIT

const PLAIN = {prefix: '', holder: '', sort: 'resource'}; // not in the URL
const FIELDS = Object.keys(PLAIN);
const ORDERS = {
  resource: (a, b) => order(a.sort, b.sort) || order(a.holder, b.holder),
  holder: (a, b) => order(a.holder, b.holder) || order(a.sort, b.sort),
  token: (a, b) => a.token - b.token,
  left: (a, b) => a.deadline - b.deadline,
};

function order(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

function compare(sort) {
  const by = ORDERS[sort.replace('-', '')];
  return sort.startsWith('-') ? (a, b) => by(b, a) : by;
}

function read() {
  const params = new URLSearchParams(location.search);
  const query = {...PLAIN, lease: null};
  for (const name of FIELDS) query[name] = params.get(name) ?? query[name];
  if (!ORDERS[query.sort.replace('-', '')]) query.sort = 'resource';
  const lease = params.getAll('lease');
  if (lease.length === 2) query.lease = lease;
  return query;
}

function write(query) {
  const params = new URLSearchParams();
  for (const name of FIELDS) {
    if (query[name] !== PLAIN[name]) params.set(name, query[name]);
  }
  for (const part of query.lease ?? []) params.append('lease', part);
  const search = params.toString();
  history.replaceState(null, '', search ? `?${search}` : location.pathname);
}

export class View {
  query = read();
  rows = [];
  #writing = 0;             // browsers limit how often the URL may change

  get filtered() {
    return Boolean(this.query.prefix || this.query.holder);
  }

  set(part) {
    Object.assign(this.query, part);
    clearTimeout(this.#writing);
    this.#writing = setTimeout(() => write(this.query), 150);
  }

  #match() {
    const {prefix} = this.query;
    const holder = this.query.holder.toLowerCase();
    return (lease) => lease.resource.startsWith(prefix) &&
        (!holder || lease.holder.toLowerCase().includes(holder));
  }

  /** All anew: the filter or the order is another one, or at the start. */
  rebuild(store) {
    this.rows = [...store.all()].filter(this.#match());
    this.rows.sort(compare(this.query.sort));
  }

  /** After a change of the store; what is in order already stays cheap. */
  update(store, {added, changed, removed}) {
    const match = this.#match();
    const fresh = added.filter(match);
    let {rows} = this;
    if (changed.length || removed.length) {
      rows = rows.map((lease) => store.get(lease.key)).filter((lease) => lease);
    }
    this.rows = [...rows, ...fresh];  // the table still has the old ones
    const stays = /resource|holder/.test(this.query.sort) && !fresh.length;
    if (!stays) this.rows.sort(compare(this.query.sort));
  }
}
