// What the stream brings is shown once a frame, and no longer than a part of it: so the page stays at hand however fast
// a run is. When more comes than can be shown, the stream is not read on; the server then knows that this viewer is slow.
const stream = document.getElementById("stream");
const MOST = 50;
const SPAN = 12;
const waiting = [];
const held = [];
let frame = 0;

// One after the other: each message may speak of what the one before has brought.
async function show() {
  const until = performance.now() + SPAN;
  try {
    do await htmx.swap({ sourceElement: stream, target: stream, swap: "none", text: waiting.shift() });
    while (waiting.length && performance.now() < until);
  } finally {
    frame = waiting.length ? requestAnimationFrame(show) : 0;
    document.dispatchEvent(new Event("shown"));
    if (!waiting.length) for (const readOn of held.splice(0)) readOn();
  }
}

stream?.addEventListener("htmx:sse:before:message", (event) => {
  const { message, waitUntil } = event.detail;
  const shown = () => waitUntil(new Promise((done) => held.push(done)));
  if (message.event === stream.getAttribute("hx-sse:close") && frame) shown();
  if (message.event) return;
  event.detail.cancelled = true;
  waiting.push(message.data);
  frame ||= requestAnimationFrame(show);
  if (waiting.length >= MOST) shown();
});
