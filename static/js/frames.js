// What the stream brings is shown once a frame, all of it together, so that the page costs the same however fast a run
// is. When more comes than a frame can show, the stream is not read on: the server then knows that this viewer is slow.
const stream = document.getElementById("stream");
const MOST = 30_000;
let waiting = [];
let size = 0;
let readOn = null;
let frame = 0;

// htmx finds every target of a text before it replaces the first: what is replaced twice must come in two texts.
const REPLACED = /<hx-partial hx-target="([^"]*)" hx-swap="outerHTML">/g;

function texts(messages) {
  const found = [];
  let replaced = new Set();
  for (const message of messages) {
    const targets = Array.from(message.matchAll(REPLACED), ([, target]) => target);
    if (!found.length || targets.some((target) => replaced.has(target))) {
      found.push("");
      replaced = new Set();
    }
    found[found.length - 1] += message;
    for (const target of targets) replaced.add(target);
  }
  return found;
}

async function show() {
  const messages = waiting;
  [waiting, size] = [[], 0];
  for (const text of texts(messages)) await htmx.swap({ sourceElement: stream, target: stream, swap: "none", text });
  frame = waiting.length ? requestAnimationFrame(show) : 0;
  readOn?.();
}

stream?.addEventListener("htmx:sse:before:message", (event) => {
  const { message, waitUntil } = event.detail;
  if (message.event) return;
  event.detail.cancelled = true;
  waiting.push(message.data);
  size += message.data.length;
  frame ||= requestAnimationFrame(show);
  if (size > MOST) waitUntil(new Promise((done) => (readOn = done)));
});
