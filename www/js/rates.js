// rates.js: how much happened in the last minutes: a row for each kind.
//
//   const rates = new Rates(tbody, line);      line: svg of the active leases
//   rates.show(message)                        see recent.js
// SPDX-License-Identifier: MIT

import {time, whole} from './format.js';
import {Bars, Line} from './spark.js';

const MINUTE_MS = 60000;
const sum = (values) => values.reduce((a, b) => a + b, 0);

function perSecond(n) {
  if (n === 0) return '0/s';
  return n < 0.05 ? `${(n * 60).toFixed(1)}/min` :
    n < 10 ? `${n.toFixed(1)}/s` : `${whole(Math.round(n))}/s`;
}

export class Rates {
  #rows = new Map();        // kind → {bars, total, rate}
  #line;

  constructor(body, line) {
    for (const row of body.rows) {
      this.#rows.set(row.dataset.event, {
        bars: new Bars(row.querySelector('svg')),
        total: row.querySelector('.rate-total'),
        rate: row.querySelector('.rate-now')});
    }
    this.#line = new Line(line);
  }

  // The step that still runs counts for the total, not for the rate.
  show({step, until, known, counts, active}) {
    this.#line.draw(active, known);
    const last = MINUTE_MS / step;
    for (const [kind, {bars, total, rate}] of this.#rows) {
      const values = counts[kind].fill(0, 0, known);
      bars.draw(values, known);
      total.textContent = whole(sum(values));
      const full = values.slice(known).slice(-1 - last, -1);
      rate.textContent = full.length ?
        perSecond(sum(full) * 1000 / (full.length * step)) : '–';
    }
    const begun = until - (active.length - known) * step;
    document.getElementById('rates-since').textContent =
      known ? `since ${time(begun)}` : '';
  }
}
