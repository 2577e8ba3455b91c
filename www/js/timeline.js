// timeline.js: a picture of who held a resource when: a lane for each holder, a
// bar for each tenure, ticks for renewals, hatching where nobody held it, and a
// line from one holder to the next where it was taken over.
//
//   const timeline = new Timeline(box);       an element, for svg and names
//   timeline.draw(tenures, now)               now: the server's time, ms
//
// The names are HTML, for SVG has no bidi isolation; the picture is one image
// to a screen reader, which finds the same in the list below it.
// SPDX-License-Identifier: MIT

import {duration, time} from './format.js';
import {put} from './names.js';
import {endOf, gaps} from './tenures.js';

const SVG = 'http://www.w3.org/2000/svg';
const SHOWN = 24;           // tenures
const LANES = 6;
const LANE = 36;
const BAR = {top: 20, height: 10};
const AXIS = 20;
const LEAST_MS = 4000;      // that the picture spans

function make(name, attributes, title) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, value);
  }
  if (title) {
    const text = document.createElementNS(SVG, 'title');
    text.textContent = title;
    element.append(text);
  }
  return element;
}

const r = (n) => Math.round(n * 10) / 10;

// Those shown, the lanes they stand in, and the time from left to right.
function frame(all, now, width) {
  const holders = [...new Set(all.toReversed().map((t) => t.holder))].slice(0, LANES);
  const shown = all.slice(-SHOWN).filter((t) => holders.includes(t.holder));
  const lanes = [...new Set(shown.map((t) => t.holder))];
  const begins = shown.map((t) => t.from ?? t.renewed[0] ?? t.to ?? now);
  const begin = Math.min(...begins, now - LEAST_MS);
  const spare = (now - begin) * 0.3;
  const end = Math.max(now, ...shown.filter((t) => !t.to).map((t) =>
    Math.min(t.until, now + spare)));
  const scale = width / (end - begin);
  return {shown, lanes, begin, end, now, width, height: lanes.length * LANE,
    hidden: new Set(all.map((t) => t.holder)).size - lanes.length,
    x: (at) => r(Math.max(0, Math.min(width, (at - begin) * scale)))};
}

function tellTenure(tenure, now) {
  const from = tenure.from === null ? 'before the log begins' : time(tenure.from);
  const to = endOf(tenure, now);
  return `${tenure.holder}\n${from} to ${tenure.to ? time(to) : 'now'}` +
    `${tenure.from === null ? '' : ` (${duration(to - tenure.from)})`}\n` +
    `granted as #${tenure.epoch}, renewed ${tenure.renewed.length} times, ` +
    `${tenure.end ?? `runs out at ${time(tenure.until)} unless renewed`}`;
}

function drawTenure({x, lanes, now, begin}, tenure) {
  const y = lanes.indexOf(tenure.holder) * LANE + BAR.top;
  const left = x(tenure.from ?? begin);
  const right = Math.max(left + 3, x(endOf(tenure, now)));
  const group = make('g', {class: 'tenure', 'data-end': tenure.end ?? 'active'},
      tellTenure(tenure, now));
  if (!tenure.to && tenure.until > now) {
    group.append(make('rect', {class: 'promise', x: right, y: y + 2,
      width: Math.max(0, x(tenure.until) - right), height: BAR.height - 4}));
  }
  group.append(make('rect', {class: 'held', x: left, y, rx: 2,
    width: r(right - left), height: BAR.height}));
  let last = left;
  for (const at of tenure.renewed) {
    if (x(at) - last < 4) continue;
    last = x(at);
    group.append(make('path', {class: 'renewal', d: `M${last} ${y + 2}v${BAR.height - 4}`}));
  }
  if (tenure.to) group.append(endMark(tenure.end, right, y + BAR.height / 2));
  return group;
}

function endMark(end, x, y) {
  const d = {expired: `M${x} ${y - 6}l5.5 6l-5.5 6l-5.5 -6z`,
    revoked: `M${x - 4.5} ${y - 4.5}l9 9m0 -9l-9 9`}[end];
  return d ? make('path', {class: `end end-${end}`, d}) :
    make('path', {class: 'end', d: `M${x} ${y - 7}v14`});
}

// From where one holder's time ended to where the next one's began.
function drawTakeOver({x, lanes, now}, was, is) {
  if (was.holder === is.holder || is.from === null || !was.to) return null;
  const y = (t) => lanes.indexOf(t.holder) * LANE + BAR.top + BAR.height / 2;
  return make('path', {class: 'take-over', d:
    `M${x(endOf(was, now))} ${y(was)}H${x(is.from)}V${y(is)}`});
}

function drawGap({x, height, now}, {from, to}) {
  const width = x(to) - x(from);
  return width < 1 ? null : make('rect', {class: 'gap', x: x(from), y: 0,
    width: r(width), height}, `Free for ${duration(to - from)}, ` +
    `${time(from)} to ${to === now ? 'now' : time(to)}`);
}

function hatching() {
  const pattern = make('pattern', {id: 'hatching', width: 6, height: 6,
    patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)'});
  pattern.append(make('path', {class: 'hatch', d: 'M0 0v6'}));
  const defs = make('defs', {});
  defs.append(pattern);
  return defs;
}

function axis({x, begin, end, now, width, height}) {
  const y = height + 15;
  const text = (at, anchor, words) => {
    const label = make('text', {class: 'axis', x: x(at), y, 'text-anchor': anchor});
    label.textContent = words;
    return label;
  };
  const parts = [make('path', {class: 'axis-line', d: `M0 ${height}H${width}`}),
    make('path', {class: 'now', d: `M${x(now)} 0V${height}`}),
    text(begin, 'start', time(begin)),
    text(now, x(now) > width - 14 ? 'end' : 'middle', 'now')];
  if (x(end) - x(now) > 76) parts.push(text(end, 'end', time(end)));
  const middle = (begin + now) / 2;
  if (x(middle) > 90) parts.push(text(middle, 'middle', time(middle)));
  return parts;
}

function summary({shown, lanes, begin}, now) {
  const held = shown.filter((t) => !t.to && t.until > now).length;
  return `Since ${time(begin)} held ${shown.length} times by ${lanes.length} ` +
    `holders; ${held ? 'held now' : 'free now'}. The list below tells each.`;
}

export class Timeline {
  #box;
  #names = document.createElement('div');
  #svg = make('svg', {class: 'timeline', role: 'img'});

  constructor(box) {
    this.#box = box;
    this.#names.ariaHidden = 'true';
    box.append(this.#svg, this.#names);
  }

  draw(all, now) {
    const width = this.#box.clientWidth;
    if (!width || !all.length || !Number.isFinite(now)) return;
    const it = frame(all, now, width);
    const taken = it.shown.slice(1).map((tenure, i) =>
      drawTakeOver(it, it.shown[i], tenure));
    this.#svg.setAttribute('width', width);
    this.#svg.setAttribute('height', it.height + AXIS);
    this.#svg.ariaLabel = summary(it, now);
    this.#svg.replaceChildren(hatching(),
        ...gaps(all, now).map((gap) => drawGap(it, gap)).filter((e) => e),
        ...axis(it), ...taken.filter((e) => e),
        ...it.shown.map((tenure) => drawTenure(it, tenure)));
    this.#lanes(it);
  }

  #lanes({lanes, hidden}) {
    const names = lanes.map((holder, i) => {
      const bdi = document.createElement('bdi');
      bdi.className = 'lane';
      bdi.dir = 'auto';
      bdi.style.top = `${i * LANE}px`;
      put(bdi, holder);
      return bdi;
    });
    if (hidden > 0) {
      const more = document.createElement('p');
      more.className = 'soft more';
      more.textContent = `and ${hidden} others before`;
      names.push(more);
    }
    this.#names.replaceChildren(...names);
  }
}
