// row.js: one row of the table, and the bar that shrinks.
//
// The bar is one animation of `transform` that the compositor draws: it begins
// where the lease was renewed and ends at its deadline, both on the clock that
// performance.now() and document.timeline share. Nothing moves it in between,
// so a busy page or a tab in the background cannot make it wrong. Only while
// rows rush by, where nobody can watch a bar, it stands still between ticks:
// to begin many animations is too much work for one frame.
// SPDX-License-Identifier: MIT

import {duration, whole} from './format.js';
import {put} from './names.js';

const template = document.getElementById('t-row');
const FRESH_MS = 1500;
const still = matchMedia('(prefers-reduced-motion: reduce)');

/** How long the lease runs from its last grant or renewal, ms. */
export function spanOf(lease) {
  const span = Date.parse(lease.expires_at) - Date.parse(lease.renewed_at);
  return Math.max(span || lease.ttl * 1000, 1);
}

/** The same in words; that it lasts some milliseconds more says nothing. */
export function spanText(lease) {
  return duration(spanOf(lease) - 10);
}

/** Make `fill` shrink in time with the lease; gives its animation. */
export function shrink(fill, lease, animation = null) {
  const span = spanOf(lease);
  const steps = Math.min(Math.ceil(span / 1000), 86400);
  const timing = {duration: span, fill: 'both',
    easing: still.matches ? `steps(${steps})` : 'linear'};
  if (animation) animation.effect.updateTiming(timing);
  const shrinking = animation ?? fill.animate(
      [{transform: 'scaleX(1)'}, {transform: 'scaleX(0)'}], timing);
  shrinking.startTime = lease.deadline - span;
  return shrinking;
}

/** 'calm', 'soon' (a quarter left), 'last' (a tenth), 'over'. */
export function phase(lease, now) {
  const left = lease.deadline - now;
  const part = left / spanOf(lease);
  return left <= 0 ? 'over' : part <= 0.1 ? 'last' : part <= 0.25 ? 'soon' : 'calm';
}

export class Row {
  lease = null;
  // Imported, not cloned: animations of an element that still belongs to the
  // template's document are lost when it moves to this one.
  element = document.importNode(template.content.firstElementChild, true);
  #part = {};
  #animation = null;
  #moving = false;
  #told = NaN;

  constructor() {
    for (const name of ['resource', 'holder', 'token', 'bar', 'left']) {
      this.#part[name] = this.element.querySelector(`.c-${name}`);
    }
    const [resource, chip] = this.#part.resource.children;
    Object.assign(this.#part, {chip, resourceName: resource,
      holderName: this.#part.holder.firstElementChild,
      track: this.#part.bar.firstElementChild,
      fill: this.element.querySelector('.fill')});
  }

  /** Show this lease, or the same one again after a change. */
  show(lease, now, live, rushed) {
    if (lease === this.lease) {
      if (!rushed) this.move();
      return;
    }
    const part = this.#part;
    if (this.lease?.key !== lease.key) {
      put(part.resourceName, lease.resource);
      put(part.holderName, lease.holder);
      this.element.dataset.key = lease.key;
    }
    part.token.textContent = lease.token;
    part.chip.hidden = lease.capacity === 1;
    part.chip.textContent = `capacity ${whole(lease.capacity)}`;
    part.chip.title = `Shared: up to ${whole(lease.capacity)} holders at once`;
    part.track.setAttribute('aria-valuemax', Math.ceil(spanOf(lease) / 1000));
    this.element.classList.toggle('fresh', now - lease.begun < FRESH_MS &&
        lease.token === lease.epoch);
    this.lease = lease;
    this.#told = NaN;
    if (rushed) this.#stop();
    else this.move(true);
    this.tick(now, live);
  }

  /** The bar moves by itself from now on. */
  move(anew = false) {
    if (this.#moving && !anew) return;
    this.#moving = true;
    this.#animation = shrink(this.#part.fill, this.lease, this.#animation);
  }

  #stop() {
    if (this.#moving) this.#animation.cancel();
    this.#moving = false;
  }

  /** Text and colour at `now`; cheap when nothing changes. */
  tick(now, live) {
    const lease = this.lease;
    const left = lease.deadline - now;
    const is = phase(lease, now);
    if (this.element.dataset.phase !== is) this.element.dataset.phase = is;
    const over = live ? 'over' : 'not known';
    const text = is === 'over' ? over : duration(left);
    if (this.#part.left.textContent !== text) this.#part.left.textContent = text;
    if (!this.#moving) this.#stand(left);
    this.#tell(left, text);
  }

  #stand(left) {
    const part = Math.max(0, Math.min(1, left / spanOf(this.lease)));
    this.#part.fill.style.transform = `scaleX(${part})`;
  }

  // A screen reader hears ten steps of a bar, not every second of thirty bars.
  #tell(left, text) {
    const step = Math.ceil(10 * left / spanOf(this.lease));
    if (step === this.#told) return;
    this.#told = step;
    const {track} = this.#part;
    track.setAttribute('aria-valuenow', Math.max(0, Math.ceil(left / 1000)));
    track.setAttribute('aria-valuetext',
        left > 0 ? `${text} left of ${spanText(this.lease)}` : text);
  }

  place(index, top, selected) {
    const element = this.element;
    element.style.top = `${top}px`;
    element.setAttribute('aria-rowindex', index + 2);
    element.setAttribute('aria-selected', selected);
  }
}
