// Time: one number, the event that the page shows. The range holds it, the address names it as #step=17, and
// everything else hears of it by the event "moment". At the last event the page follows what is live.
const run = document.getElementById("run");
const range = document.getElementById("at");
const where = document.querySelector(".scrubber__where");
const play = document.querySelector("[data-go=play]");
const speed = document.getElementById("speed");
let timer = 0;

const last = () => Number(range.max);
const current = () => Number(range.value);

function say() {
  const row = document.getElementById(`ev-${current()}`);
  const owner = row?.querySelector(".event__owner")?.textContent ?? "";
  const wave = row?.dataset.wave ? ` · ${owner} ${where.dataset.wave.replace("{n}", row.dataset.wave)}`.replace("  ", " ") : "";
  where.textContent = where.dataset.text.replace("{at}", current()).replace("{last}", last()) + wave;
  range.setAttribute("aria-valuetext", where.textContent);
  for (const field of document.querySelectorAll("dialog:not([open]) [data-follows-step]")) field.value = current();
}

function go(at, { quiet = false } = {}) {
  range.value = Math.min(Math.max(1, at), last());
  const live = current() === last();
  if (live) delete run.dataset.at;
  else run.dataset.at = current();
  if (!quiet) history.replaceState(null, "", live ? location.pathname + location.search : `#step=${current()}`);
  say();
  document.dispatchEvent(new CustomEvent("moment", { detail: { at: current(), live } }));
  range.dispatchEvent(new Event("travel"));
}

function stop() {
  clearInterval(timer);
  timer = 0;
  play.setAttribute("aria-pressed", "false");
}

function start() {
  if (current() === last()) go(1);
  timer = setInterval(() => (current() < last() ? go(current() + 1) : stop()), 700 / Number(speed.value));
  play.setAttribute("aria-pressed", "true");
}

const moves = {
  first: () => go(1),
  back: () => go(current() - 1),
  forward: () => go(current() + 1),
  last: () => go(last()),
  play: () => (timer ? stop() : start()),
};

document.addEventListener("click", (event) => {
  const name = event.target.closest("[data-go]")?.dataset.go;
  if (name && name !== "play") stop();
  moves[name]?.();
});
speed.addEventListener("change", () => timer && (stop(), start()));
range.addEventListener("input", () => (stop(), go(current())));
addEventListener("hashchange", fromAddress);

// A row that has arrived makes time longer; who was at its end stays there. Everything else hears of it once a frame.
const list = document.getElementById("timeline");
document.addEventListener("shown", () => {
  const newest = Number(list.lastElementChild?.dataset.at ?? 0);
  if (newest <= last()) return;
  range.max = newest;
  if (run.dataset.at === undefined) range.value = newest;
  say();
  document.dispatchEvent(new CustomEvent("longer", { detail: { last: newest } }));
  if (run.dataset.at === undefined) range.dispatchEvent(new Event("travel"));
});

function fromAddress() {
  const wish = Number(location.hash.match(/^#step=(\d+)/)?.[1] ?? 0);
  if (wish && wish !== current()) go(wish);
  if (wish > last()) where.textContent = `${where.dataset.beyond.replace("{n}", wish)} · ${where.textContent}`;
}
say();
fromAddress();
setTimeout(() => location.hash && range.dispatchEvent(new Event("travel"))); // by then htmx has begun
