// act.js: grant, renew, release and revoke from the page.
//
//   const acts = actions({say, denied});
//   acts.grant(), acts.renew(lease), acts.release(lease), acts.revoke(lease)
//     say(text)        told to those who cannot see it
//     denied(act)      the server does not let us: its button goes
// SPDX-License-Identifier: MIT

import {post} from './api.js';
import {duration} from './format.js';
import {open} from './form.js';
import {put} from './names.js';

const SURE_MS = 400;        // a double click is not a second answer

// Text that is no number goes as it is: the server says what it wants.
function number(text) {
  const clean = text.trim();
  return clean !== '' && Number.isFinite(Number(clean)) ? Number(clean) : clean;
}

function describe(lease) {
  return (element) => {
    const [resource, holder] = ['bdi', 'bdi'].map((tag) =>
      document.createElement(tag));
    put(resource, lease.resource);
    put(holder, lease.holder);
    resource.dir = holder.dir = 'auto';
    element.replaceChildren(resource, ', held by ', holder);
  };
}

// What to do about a refusal, in words.
function say(problem) {
  const {code, status, body} = problem;
  if (code === 'held') {
    const left = Number(body.remaining) * 1000;
    return 'It is held already' +
        (left > 0 ? `; free in ${duration(left)} unless renewed.` : '.');
  }
  if (status === 401 || status === 403) return 'You may not do this here.';
  if (status === 404 || status === 410) {
    return `This lease is over${code ? ` (${code})` : ''}. Close this form.`;
  }
  if (status === 503) return `${problem.message} Try again in a moment.`;
  return problem.message;
}

export function actions({say: aloud, denied}) {
  const run = (act, path, resource) => async (body) => {
    try {
      return await post(path, {resource, ...body});
    } catch (problem) {
      if (problem.status === 401 || problem.status === 403) denied(act);
      throw problem;
    }
  };

  const done = (text) => () => aloud(text);

  function grant() {
    open('d-grant', {
      say,
      send: ({resource, holder, ttl, capacity, data}) =>
        run('grant', '/v1/grant', resource)({holder, ttl: number(ttl),
          capacity: number(capacity), data: data || undefined}),
      done: done('Lease granted.')});
  }

  function renew(lease) {
    const send = run('renew', '/v1/renew', lease.resource);
    open('d-renew', {
      say, about: describe(lease), values: {ttl: lease.ttl},
      send: ({ttl}) => send({token: lease.token, ttl: number(ttl)}),
      done: done('Lease renewed.')});
  }

  function release(lease) {
    const send = run('release', '/v1/release', lease.resource);
    open('d-release', {
      say, about: describe(lease),
      send: () => send({token: lease.token}),
      done: done('Lease released.')});
  }

  // Asked twice: first why, then whether really.
  function revoke(lease) {
    const send = run('revoke', '/v1/revoke', lease.resource);
    const asked = {at: Infinity};
    const form = open('d-revoke', {
      say, about: describe(lease),
      check: ({reason}) => reason.trim() ? {} :
        {reason: 'Say why: whoever held the lease will ask.'},
      ready: () => sure(form, asked),
      send: ({reason}) => send({holder: lease.holder, reason: reason.trim()}),
      done: done('Lease revoked.')});
    unsure(form);
    form.elements.reason.oninput = () => {
      asked.at = Infinity;
      unsure(form);
    };
  }

  return {grant, renew, release, revoke};
}

function unsure(form) {
  form.querySelector('.sure').hidden = true;
  form.querySelector('[type=submit]').textContent = 'Continue';
}

function sure(form, asked) {
  const now = performance.now();
  if (asked.at !== Infinity) return now - asked.at > SURE_MS;
  asked.at = now;
  const text = form.querySelector('.sure');
  text.textContent = 'Its holder is not told before it asks again, ' +
      'and the next one may start at once. Really take it away?';
  text.hidden = false;
  const button = form.querySelector('[type=submit]');
  button.textContent = 'Take it away';
  button.focus();
  return false;
}
