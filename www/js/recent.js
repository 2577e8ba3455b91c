// recent.js: what happened in the last minutes: the last events, and how many
// of each kind there were, for all tabs.
//
//   const recent = new Recent();
//   recent.past({events, all})     begin anew with these
//   recent.note(events)            news
//   recent.last                    up to LAST events worth telling, oldest first
//   recent.rates(server, active)   {step, until, known, counts, active}: by
//                                  steps of `step` ms up to the one that ends
//                                  at `until`: counts.granted and so on, and
//                                  how many leases were active at its end;
//                                  steps before the place `known` are not known
//
// Times are the server's. How many were active is reckoned back from now: each
// grant made one more, each end one less.
// SPDX-License-Identifier: MIT

const LAST = 100;
const STEP_MS = 5000;
const STEPS = 60;
export const KINDS = ['granted', 'renewed', 'released', 'expired', 'revoked'];

const stepOf = (at) => Math.floor(at / STEP_MS);
const told = (event) => event.event !== 'renewed' && event.resource !== null;

export class Recent {
  last = [];
  #steps = new Map();       // number of the step → {granted: 3, …}
  #since = Infinity;        // the first step that is whole

  past({events, all}) {
    this.last = [];
    this.#steps.clear();
    this.#since = all ? -Infinity :
      events.length ? stepOf(Date.parse(events[0].at)) + 1 : Infinity;
    this.note(events);
  }

  note(events) {
    for (const event of events) this.#count(event);
    this.last = [...this.last, ...events.filter(told)].slice(-LAST);
  }

  #count({at, event}) {
    const number = stepOf(Date.parse(at));
    let step = this.#steps.get(number);
    if (!step) this.#steps.set(number, step = {});
    step[event] = (step[event] ?? 0) + 1;
  }

  rates(server, active) {
    const end = stepOf(server);
    if (this.#since === Infinity) this.#since = end;
    for (const number of this.#steps.keys()) {
      if (number <= end - STEPS) this.#steps.delete(number);
    }
    const counts = Object.fromEntries(KINDS.map((kind) => [kind, []]));
    const actives = [];
    for (let number = end; number > end - STEPS; number -= 1) {
      const step = this.#steps.get(number) ?? {};
      for (const kind of KINDS) counts[kind].unshift(step[kind] ?? 0);
      actives.unshift(Math.max(0, active));
      active += (step.released ?? 0) + (step.expired ?? 0) +
        (step.revoked ?? 0) - (step.granted ?? 0);
    }
    const known = Math.max(0, STEPS - 1 - (end - this.#since));
    return {step: STEP_MS, until: (end + 1) * STEP_MS,
      known: Math.min(known, STEPS - 1), counts, active: actives};
  }
}
