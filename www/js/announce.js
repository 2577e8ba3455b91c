// announce.js: few words to those who listen to the page instead of seeing it.
//
//   say(text)          spoken when the reader is free, at most every 2 s; of
//                      what comes in between only the last
// SPDX-License-Identifier: MIT

const GAP_MS = 2000;

let waiting = null;
let free = -Infinity;
let timer = 0;

function speak() {
  timer = 0;
  free = performance.now() + GAP_MS;
  document.getElementById('announce').textContent = waiting;
  waiting = null;
}

export function say(text) {
  waiting = text;
  if (timer) return;
  timer = setTimeout(speak, Math.max(50, free - performance.now()));
}
