// fact.js: a term and its value, for a list of facts.
// SPDX-License-Identifier: MIT

/** [dt, dd]; value is text or an element. */
export function fact(term, value, note) {
  const dt = document.createElement('dt');
  const dd = document.createElement('dd');
  dt.textContent = term;
  if (value instanceof Node) dd.append(value);
  else dd.textContent = value;
  if (note) {
    const small = document.createElement('small');
    small.textContent = note;
    dd.append(' ', small);
  }
  return [dt, dd];
}
