// clock.js: when does a server's instant come on a clock of this browser?
//
// Only performance.now() is used, so the browser's date and time zone do not
// matter. All numbers are milliseconds.
//
// HOW IT WORKS. A reply that says "it is N here" was written somewhere between
// sending the request and having the answer. So N came on our clock no earlier
// than `sent`, no later than `received`. Both clocks run at the same rate,
// hence each reply gives a lower and an upper bound for the one distance
// between them, and the highest lower bound of the last replies is the best
// that never lets a lease look alive when it is over. A busy moment makes one
// bound loose, not the clock. Bounds that contradict each other mean that the
// server's clock is another one now: start again.
// SPDX-License-Identifier: MIT

const SAMPLES = 64;
const SLACK_MS = 10;  // rounding of `now`, drift over the samples kept

/** Converts server instants to performance.now() of this context. */
export class ServerClock {
  #samples = [];
  #ahead = 0;  // local time = server time + #ahead, at the earliest

  /** A reply said `server`; the request took from `sent` to `received`. */
  note(server, sent, received) {
    const sample = {low: sent - server, high: received - server};
    this.#samples.push(sample);
    if (this.#samples.length > SAMPLES) this.#samples.shift();
    const low = Math.max(...this.#samples.map((s) => s.low));
    const high = Math.min(...this.#samples.map((s) => s.high));
    if (low > high + SLACK_MS) this.#samples = [sample];
    this.#ahead = low > high + SLACK_MS ? sample.low : Math.min(low, high);
  }

  /** How far the local clock is ahead, at the least; only to be compared. */
  get ahead() {
    return this.#ahead;
  }

  /** When `server` comes (or came) on the local clock, never too late. */
  local(server) {
    return server + this.#ahead;
  }
}

/**
 * The same for two contexts of one browser, a page and its worker: their
 * performance.now() begin at different moments. `add` converts a worker's
 * instant to the page's, never too late.
 */
export class WorkerClock {
  #ahead = -Infinity;

  /** Asked at `asked` (ours), the other side's clock read `there`. */
  note(asked, there) {
    this.#ahead = Math.max(this.#ahead, asked - there);
  }

  local(there) {
    return there + this.#ahead;
  }
}

/**
 * Notices sleep: performance.now() stands still while a computer sleeps, its
 * date does not. A date that was set looks the same and does no harm, for the
 * answer is only to ask the server again.
 */
export class SleepWatch {
  #skew = Date.now() - performance.now();

  /** True once after a sleep, or a step of the date, of over 1.5 s. */
  slept() {
    const skew = Date.now() - performance.now();
    const jumped = Math.abs(skew - this.#skew) > 1500;
    this.#skew = skew;
    return jumped;
  }
}
