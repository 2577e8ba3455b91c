// sse.js: Server-Sent Events out of the body of an answer.
//
//   for await (const events of batches(response.body)) …
//     events    [{id, event, data}], all that came at once; empty for a
//               comment. Ends when the stream does.
//
// Why not EventSource: it hides comments and what the server answered when it
// refuses a stream, and gives each event a task of its own.
// SPDX-License-Identifier: MIT

const BLOCK = /\r\n\r\n|\n\n|\r\r/;
const LINE = /\r\n|\n|\r/;

function parse(block) {
  const it = {id: null, event: 'message', data: ''};
  const data = [];
  for (const line of block.split(LINE)) {
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') data.push(value);
    else if (name === 'id') it.id = value;
    else if (name === 'event') it.event = value;
  }
  it.data = data.join('\n');
  return data.length ? it : null;
}

export async function* batches(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const {done, value} = await reader.read();
      if (done) return;
      const blocks = (rest + value).split(BLOCK);
      rest = blocks.pop();
      yield blocks.map(parse).filter((it) => it);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
