// format.js: numbers and instants as people read them.
// SPDX-License-Identifier: MIT

const two = (n) => String(n).padStart(2, '0');

/**
 * Time left, rounded up so that it never reads 0 while a lease is active:
 * "4.2 s", "42 s", "3 m 05 s", "2 h 05 m", "3 d 4 h". Over: "0 s".
 */
export function duration(ms) {
  if (!(ms > 0)) return '0 s';
  if (ms <= 9950) return `${(Math.ceil(ms / 100) / 10).toFixed(1)} s`;
  const s = Math.ceil(ms / 1000);
  if (s < 100) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} m ${two(s % 60)} s`;
  const m = Math.ceil(s / 60);
  if (m < 24 * 60) return `${Math.floor(m / 60)} h ${two(m % 60)} m`;
  const h = Math.ceil(m / 60);
  return `${whole(Math.floor(h / 24))} d ${h % 24} h`;
}

/** A length asked for, in seconds: "30 s", "0.25 s", "1 h". */
export function seconds(s) {
  if (s >= 100 && Number.isInteger(s)) return duration(s * 1000);
  return `${Number(s)} s`;
}

const integers = new Intl.NumberFormat('en', {useGrouping: true});

/** "10,000" */
export function whole(n) {
  return integers.format(n);
}

const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23'});
const day = new Intl.DateTimeFormat(undefined, {
  year: 'numeric', month: 'short', day: 'numeric'});

/** "12:03:11" in the reader's time zone; ms since 1970. */
export function time(ms) {
  return Number.isFinite(ms) ? clock.format(ms) : '–';
}

/** The same with the day in front, unless that is the day of `today`. */
export function moment(ms, today) {
  if (!Number.isFinite(ms)) return '–';
  const date = day.format(ms);
  const same = Number.isFinite(today) && date === day.format(today);
  return same ? time(ms) : `${date}, ${time(ms)}`;
}

/** One string whose plain order is the natural one: shard/2, shard/10. */
export function natural(name) {
  return name.replace(/\d+/g, (digits) =>
    String.fromCharCode(48 + Math.min(digits.length, 999)) + digits);
}

/** JSON is laid out where that loses nothing, anything else left as it is. */
export function pretty(text) {
  try {
    const value = JSON.parse(text);
    const dense = text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1');
    // What a number here cannot hold, or a key that is given twice, stays seen.
    const whole = JSON.stringify(value) === dense;
    return whole && typeof value === 'object' ?
      JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}
