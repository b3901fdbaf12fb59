// What the stream brings is shown once a frame, all of it together, so that the page costs the same however fast a run
// is. When more comes than a frame can show, the stream is not read on: the server then knows that this viewer is slow.
const stream = document.getElementById("stream");
const MOST = 30_000;
let waiting = [];
let size = 0;
let readOn = null;
let frame = 0;

async function show() {
  const text = waiting.join("");
  [waiting, size] = [[], 0];
  await htmx.swap({ sourceElement: stream, target: stream, swap: "none", text });
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
