// The badge of the stream: connecting, live, reconnecting, offline, ended; and how much was caught up after a gap.
const badge = document.getElementById("connection");
const text = badge.querySelector("[data-text]");
const icon = badge.querySelector("use");
const sprite = icon.getAttribute("href").split("#")[0];
const icons = { reconnecting: "reconnecting", offline: "offline", ended: "check" };
let calm;

function show(state, words = badge.dataset[state]) {
  badge.dataset.state = state;
  text.textContent = words;
  icon.setAttribute("href", `${sprite}#${icons[state] ?? "live"}`);
}

const lost = () => show(navigator.onLine ? "reconnecting" : "offline");
document.addEventListener("htmx:sse:after:connection", () => show("live"));
document.addEventListener("htmx:sse:error", lost);
document.addEventListener("htmx:sse:before:connection", (event) => event.detail.connection.attempt > 0 && lost());
document.addEventListener("htmx:sse:close", (event) => event.detail.reason === "message" && show("ended"));
addEventListener("offline", () => badge.dataset.state !== "ended" && lost());
document.addEventListener("caught-up", (event) => {
  show("live", badge.dataset.caughtUp.replace("{n}", event.detail.data));
  clearTimeout(calm);
  calm = setTimeout(() => badge.dataset.state === "live" && show("live"), 6000);
});

const stream = document.getElementById("stream");
if (!stream) show("ended");

// The extension tries again only after a first success, so the first connection is ours to repeat.
let wait = 500;
let timer = 0;
for (const name of ["htmx:error", "htmx:response:error"]) {
  document.addEventListener(name, (event) => {
    if ((event.detail.ctx?.sourceElement ?? event.target) !== stream || timer) return;
    lost();
    timer = setTimeout(() => {
      timer = 0;
      stream.dispatchEvent(new Event("sse-retry"));
    }, wait);
    wait = Math.min(wait * 2, 10_000);
  });
}
