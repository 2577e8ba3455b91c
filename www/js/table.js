// table.js: the rows that can be seen, out of any number.
//
//   const table = new Table({scroller, runway, grid, choose});
//     choose(key, byKeyboard)       a row was clicked, or Enter pressed on it
//   table.show(rows, selectedKey)   the leases in order
//   table.tick(now, live)           texts of the visible rows
//   table.top()                     to the first row
//   table.focus(key)                to that row, scrolling there; to the one in
//                                   its place when it is gone
//
// Only the rows in sight and a few around exist. A row keeps its element as
// long as its lease is in sight, so focus and animations survive updates. The
// lease at the top of the view stays there when others come and go above.
// SPDX-License-Identifier: MIT

import {Row} from './row.js';

const AROUND = 8;
const REST_MS = 150;        // scrolling has come to rest

export class Table {
  #scroller;
  #runway;
  #grid;
  #choose;
  #rows = [];
  #index = new Map();       // key → place, made when asked for
  #shown = new Map();       // key → Row
  #selected = null;
  #active = null;           // key of the row that Tab reaches
  #at = 0;                  // its place when it was reached
  #height = 44;
  #drawing = false;
  #resting = 0;             // timer
  #rushing = false;         // it is being scrolled
  #drawn = [0, 0];          // first place drawn, and the one after the last
  #live = true;

  constructor({scroller, runway, grid, choose}) {
    this.#scroller = scroller;
    this.#runway = runway;
    this.#grid = grid;
    this.#choose = choose;
    scroller.addEventListener('scroll', () => this.#scrolled(), {passive: true});
    const resized = new ResizeObserver(() => this.#measure());
    resized.observe(scroller);
    resized.observe(runway);
    runway.addEventListener('click', (event) => this.#click(event));
    runway.addEventListener('pointerover', (event) => this.#hint(event));
    runway.addEventListener('focusin', (event) => this.#focused(event));
    grid.addEventListener('keydown', (event) => this.#key(event));
  }

  top() {
    this.#scroller.scrollTop = 0;
  }

  show(rows, selected) {
    const anchor = this.#anchor();
    const lost = this.#lostFocus(rows);
    this.#rows = rows;
    this.#index = null;
    this.#selected = selected;
    this.#grid.setAttribute('aria-rowcount', rows.length + 1);
    this.#runway.style.height = `${rows.length * this.#height}px`;
    if (anchor && rows[anchor.first]?.key !== anchor.key) this.#restore(anchor);
    this.#draw(this.#rushing);
    if (lost !== null) this.#goto(Math.min(lost, rows.length - 1));
  }

  tick(now, live) {
    this.#live = live;
    for (const row of this.#shown.values()) row.tick(now, live);
  }

  focus(key) {
    const index = this.#place(key);
    const near = Math.min(this.#at, this.#rows.length - 1);
    this.#goto(index < 0 ? near : index);
  }

  #place(key) {
    if (!this.#index) {
      this.#index = new Map(this.#rows.map((lease, i) => [lease.key, i]));
    }
    return this.#index.get(key) ?? -1;
  }

  // The height of a row is the style sheet's; narrow pages have taller ones.
  #measure() {
    const style = getComputedStyle(this.#grid);
    this.#height = parseFloat(style.getPropertyValue('--row')) || 44;
    this.#runway.style.height = `${this.#rows.length * this.#height}px`;
    const gutter = this.#scroller.offsetWidth - this.#scroller.clientWidth;
    this.#grid.style.setProperty('--gutter', `${gutter}px`);
    this.#draw();
  }

  // The first row in sight and how far it is scrolled out, unless at the top.
  #anchor() {
    const top = this.#scroller.scrollTop;
    const first = Math.floor(top / this.#height);
    if (top < 1 || !this.#rows[first]) return null;
    return {rows: this.#rows, first, key: this.#rows[first].key,
      over: top - first * this.#height};
  }

  #restore({rows, first, over}) {
    for (let i = first; i < Math.min(first + 50, rows.length); i += 1) {
      const place = this.#place(rows[i].key);
      if (place < 0) continue;
      const top = place * this.#height + over - (i - first) * this.#height;
      if (Math.abs(top - this.#scroller.scrollTop) >= 1) {
        this.#scroller.scrollTop = top;
      }
      return;
    }
  }

  // The place of the row that has the focus and is not among the new rows.
  #lostFocus(rows) {
    const row = this.#runway.contains(document.activeElement) ?
        document.activeElement.closest('.row') : null;
    if (!row) return null;
    const key = row.dataset.key;
    if (rows.some((lease) => lease.key === key)) return null;
    return Math.max(this.#place(key), 0);
  }

  // Nothing is drawn before rows come into sight that are not there yet.
  #scrolled() {
    clearTimeout(this.#resting);
    this.#rushing = true;
    this.#resting = setTimeout(() => {
      this.#rushing = false;
      this.#draw();
    }, REST_MS);
    const [first, last] = this.#sight();
    const there = first >= this.#drawn[0] && last <= this.#drawn[1];
    if (there || this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => this.#draw(true));
  }

  #sight() {
    const {scrollTop, clientHeight} = this.#scroller;
    return [Math.floor(scrollTop / this.#height), Math.min(this.#rows.length,
        Math.ceil((scrollTop + clientHeight) / this.#height))];
  }

  #draw(rushed = false) {
    this.#drawing = false;
    const now = performance.now();
    const wanted = this.#wanted();
    const spare = this.#unwanted(wanted);
    const active = this.#reachable(wanted);
    for (const [key, index] of wanted) {
      const row = this.#shown.get(key) ?? spare.shift() ?? new Row();
      this.#shown.set(key, row);
      row.show(this.#rows[index], now, this.#live, rushed);
      row.place(index, index * this.#height, key === this.#selected);
      row.element.tabIndex = key === active ? 0 : -1;
    }
    for (const row of spare) row.element.remove();
    this.#settle([...wanted.keys()]);
  }

  // Rows whose lease is out of sight; they show others where they stand.
  #unwanted(wanted) {
    const spare = [];
    for (const [key, row] of this.#shown) {
      if (wanted.has(key)) continue;
      this.#shown.delete(key);
      if (row.element === document.activeElement) row.element.remove();
      else spare.push(row);
    }
    return spare;
  }

  // Readers of the document find the rows in the order that is seen.
  #settle(keys) {
    let next = this.#runway.firstChild;
    for (const key of keys) {
      const {element} = this.#shown.get(key);
      if (element === next) next = next.nextSibling;
      else if (element !== document.activeElement || !element.isConnected) {
        this.#runway.insertBefore(element, next);
      }
    }
  }

  // key → place of the rows in sight, those around, and the focused one.
  #wanted() {
    const sight = this.#sight();
    const first = Math.max(0, sight[0] - AROUND);
    const last = Math.min(this.#rows.length, sight[1] + AROUND);
    this.#drawn = [first, last];
    const wanted = new Map();
    for (let i = first; i < last; i += 1) wanted.set(this.#rows[i].key, i);
    const focused = this.#runway.contains(document.activeElement) ?
        this.#place(this.#active) : -1;
    if (focused < 0 || wanted.has(this.#active)) return wanted;
    const pinned = [this.#active, focused];
    return new Map(focused < first ? [pinned, ...wanted] : [...wanted, pinned]);
  }

  #reachable(wanted) {
    if (wanted.has(this.#active)) return this.#active;
    if (wanted.has(this.#selected)) return this.#selected;
    const first = Math.floor(this.#scroller.scrollTop / this.#height);
    return this.#rows[first]?.key;
  }

  #click(event) {
    const row = event.target.closest('.row');
    if (!row || String(getSelection()) !== '') return;
    this.#active = row.dataset.key;
    this.#at = this.#place(this.#active);
    this.#choose(this.#active);
  }

  // A name that is cut off is told in full where the pointer rests.
  #hint(event) {
    const name = event.target.closest('bdi');
    if (name) name.title = name.dataset.name;
  }

  #focused(event) {
    const row = event.target.closest('.row');
    if (!row) return;
    this.#active = row.dataset.key;
    this.#at = this.#place(this.#active);
  }

  #key(event) {
    if (!this.#runway.contains(event.target)) return;
    const at = this.#place(this.#active);
    const page = Math.max(1, Math.floor(this.#scroller.clientHeight / this.#height) - 1);
    const to = {ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page,
      PageUp: at - page, Home: 0, End: this.#rows.length - 1}[event.key];
    if (to !== undefined) {
      event.preventDefault();
      this.#goto(Math.max(0, Math.min(to, this.#rows.length - 1)));
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      this.#choose(this.#active, true);
    }
  }

  #goto(index) {
    const lease = this.#rows[index];
    if (!lease) return;
    const top = index * this.#height;
    const {scrollTop, clientHeight} = this.#scroller;
    if (top < scrollTop) this.#scroller.scrollTop = top;
    const bottom = top + this.#height - clientHeight;
    if (bottom > scrollTop) this.#scroller.scrollTop = bottom;
    this.#active = lease.key;
    this.#draw();
    this.#shown.get(lease.key)?.element.focus({preventScroll: true});
  }
}
