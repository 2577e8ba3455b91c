// send.js: sends a request and gives back the answer as it came.
//
//   const answer = await send(request, signal, part);
//   answer.status, answer.words, answer.headers, answer.text,
//   answer.bytes, answer.ms
//
// part(text) is called while a stream of events comes in. Throws only when
// there was no answer at all.
// SPDX-License-Identifier: MIT

// A header goes out one byte a character; what is typed here is UTF-8, as it
// is from a shell.
function bytes(text) {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

const STREAM = 'text/event-stream';

// A stream of events has no end: each part is told as it comes, and what had
// come by the time it was cancelled is the answer.
async function listen(response, signal, part) {
  const chunks = [];
  const text = () => new Blob(chunks).text();
  try {
    for await (const chunk of chunksOf(response.body.getReader())) {
      chunks.push(chunk);
      part(await text());
    }
  } catch (error) {
    if (!signal.aborted || !chunks.length) throw error;
  }
  return new Blob(chunks).arrayBuffer();
}

async function* chunksOf(reader) {
  for (let it = await reader.read(); !it.done; it = await reader.read()) {
    yield it.value;
  }
}

export async function send({method, url, headers, body}, signal, part) {
  const sent = performance.now();
  const response = await fetch(new URL(url, location.origin), {
    method, body, signal, cache: 'no-store', redirect: 'manual',
    headers: headers.map(([name, value]) => [name, bytes(value)])});
  const type = response.headers.get('Content-Type') ?? '';
  const buffer = type.startsWith(STREAM) ?
    await listen(response, signal, part) : await response.arrayBuffer();
  return {
    ms: performance.now() - sent,
    status: response.status,
    words: response.statusText,
    headers: [...response.headers],
    bytes: buffer.byteLength,
    text: new TextDecoder().decode(buffer)};
}
