// form.js: a dialog with a form; errors stand beside the fields they are about.
//
//   open('d-renew', {about, values, check, send, done})
//     values   {name: text} put into the fields
//     check    (values) → {field: message}; nothing is sent while there are any
//     send     async (values) → reply; a thrown Problem is told in the form
//     done     (reply) after success, the dialog is closed
// SPDX-License-Identifier: MIT

const WAIT_MS = 15000;      // never leave a form dead

let used = 0;

function control(form, field) {
  return form.querySelector(`[data-field="${CSS.escape(field)}"] [name]`);
}

function clear(form) {
  for (const note of form.querySelectorAll('.field-error')) note.remove();
  for (const input of form.querySelectorAll('[aria-invalid]')) {
    input.removeAttribute('aria-invalid');
    input.removeAttribute('aria-describedby');
  }
  form.querySelector('.form-error').hidden = true;
}

function beside(form, field, message) {
  const input = control(form, field);
  const note = document.createElement('span');
  note.className = 'field-error';
  note.id = `field-error-${used += 1}`;
  note.textContent = message;
  input.closest('.field').append(note);
  input.setAttribute('aria-invalid', 'true');
  input.setAttribute('aria-describedby', note.id);
}

function below(form, message) {
  const error = form.querySelector('.form-error');
  error.textContent = message;
  error.hidden = false;
}

/** Tell each error where it belongs; the first wrong field gets the focus. */
export function tell(form, errors, message = '') {
  clear(form);
  const lost = [];
  for (const {field, msg} of errors) {
    if (control(form, field)) beside(form, field, msg);
    else lost.push(field ? `${field}: ${msg}` : msg);
  }
  if (!errors.length) lost.push(message);
  if (lost.length) below(form, lost.join(' '));
  form.querySelector('[aria-invalid]')?.focus();
}

function values(form) {
  return Object.fromEntries(new FormData(form));
}

async function submit(form, it) {
  const button = form.querySelector('[type=submit]');
  if (button.disabled) return;
  const given = values(form);
  const wrong = Object.entries(it.check?.(given) ?? {});
  if (wrong.length) {
    tell(form, wrong.map(([field, msg]) => ({field, msg})));
    return;
  }
  clear(form);
  if (it.ready && !it.ready(form)) return;
  button.disabled = true;
  const timer = setTimeout(() => { button.disabled = false; }, WAIT_MS);
  try {
    const reply = await it.send(given);
    form.closest('dialog').close();
    it.done?.(reply);
  } catch (problem) {
    tell(form, problem.errors ?? [], it.say?.(problem) ?? problem.message);
  } finally {
    clearTimeout(timer);
    button.disabled = false;
  }
}

/** Open a dialog; gives it back. */
export function open(id, it) {
  const dialog = document.getElementById(id);
  const form = dialog.querySelector('form');
  form.reset();
  clear(form);
  it.about?.(form.querySelector('.about'));
  for (const [name, value] of Object.entries(it.values ?? {})) {
    form.elements[name].value = value;
  }
  form.onsubmit = (event) => {
    event.preventDefault();
    submit(form, it);
  };
  form.querySelector('[data-cancel]').onclick = () => dialog.close();
  dialog.showModal();
  return form;
}
