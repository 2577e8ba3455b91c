// api.js: requests to the service, with a time limit, errors as one kind.
//
//   const reply = await get('/v1/leases', {limit: 1000});
//   reply.body            the JSON of the answer
//   reply.sent            performance.now() just before the request left
//   reply.received        performance.now() when the answer was complete
//
// Anything but a 2xx answer throws a Problem. Runs in a page and in a worker.
// SPDX-License-Identifier: MIT

const TIMEOUT_MS = 5000;

/**
 * What went wrong. `status` is 0 when there was no answer at all; `errors`
 * lists the refused fields as {field, msg}; `body` is the whole answer.
 */
export class Problem extends Error {
  constructor(status, body, text) {
    super(body.detail || body.title || text);
    this.status = status;
    this.code = body.code || '';
    this.errors = (Array.isArray(body.errors) ? body.errors : []).map(
        (error) => ({field: fieldOf(error.loc), msg: String(error.msg)}));
    this.body = body;
  }
}

// A location is a name or a path such as ["body", "ttl"]; its end counts.
function fieldOf(loc) {
  return String(Array.isArray(loc) ? loc[loc.length - 1] : loc ?? '');
}

async function call(url, options, timeout) {
  const sent = performance.now();
  let response;
  let text;
  try {
    // Not from the page's own address: if that has a password, fetch() fails.
    response = await fetch(new URL(url, location.origin), {
      ...options, cache: 'no-store', redirect: 'error',
      signal: AbortSignal.timeout(timeout)});
    text = await response.text();
  } catch (error) {
    throw new Problem(0, {}, error.name === 'TimeoutError' ?
        'The server does not answer.' : 'The server cannot be reached.');
  }
  const received = performance.now();
  const body = parse(text);
  if (!response.ok || body === undefined) {
    throw new Problem(response.status, body ?? {},
        `The server answered ${response.status}.`);
  }
  return {body, sent, received};
}

function parse(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** GET path; parameters that are null or undefined are left out. */
export function get(path, params = {}, timeout = TIMEOUT_MS) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined) query.set(name, value);
  }
  const url = `${path}?${query}`.replace(/\?$/, '');
  return call(url, {headers: {Accept: 'application/json'}}, timeout);
}

/** POST a JSON object; members that are undefined are left out. */
export function post(path, body, timeout = TIMEOUT_MS) {
  return call(path, {
    method: 'POST',
    headers: {'Content-Type': 'application/json', 'Accept': 'application/json'},
    body: JSON.stringify(body)}, timeout);
}
