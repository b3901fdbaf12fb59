// The marks of the graph: which node and which edge is in which state. Live they come one by one; at another
// moment they are folded anew from the rows of the timeline up to there. Only attributes and texts change.
const following = () => document.getElementById("run")?.dataset.at === undefined;
let picture, elements, words, wave, sprite;

function look() {
  picture = document.querySelector("#graph svg");
  elements = new Map();
  if (!picture) return;
  words = JSON.parse(picture.dataset.words);
  wave = picture.dataset.wave;
  for (const element of picture.querySelectorAll("[data-mark]")) {
    const known = { element };
    for (const id of [element.dataset.mark, ...(element.dataset.also?.split(" ") ?? [])]) elements.set(id, known);
  }
  for (const text of document.querySelectorAll("[data-mark-text]")) {
    const known = elements.get(text.dataset.markText);
    if (known) known.text = text;
  }
  sprite = picture.querySelector(".node__icon")?.getAttribute("href").split("#")[0];
}

function apply({ id, state, wave: number, beat, at }) {
  const { element, text } = elements.get(id) ?? {};
  if (!element) return;
  element.dataset.state = state;
  element.dataset.beat = beat ?? 0;
  if (!element.classList.contains("node")) return;
  element.dataset.last = at ?? 0;
  const said = (words[state] ?? state) + (number ? ` · ${wave.replace("{n}", number)}` : "");
  if (element.dataset.within) sum(element.dataset.within);
  element.setAttribute("aria-label", `${element.dataset.name}: ${said}`);
  element.querySelector(".node__icon").setAttribute("href", `${sprite}#state-${state}`);
  const line = element.querySelector(".node__words");
  if (line) line.textContent = said;
  if (text) text.textContent = said;
}

// A template is in the loudest state of its instances.
function sum(id) {
  const inner = [...picture.querySelectorAll(`[data-within="${CSS.escape(id)}"]`)].map((element) => element.dataset);
  const state = picture.dataset.loudest.split(" ").find((loud) => inner.some(({ state }) => state === loud)) ?? "pending";
  const latest = (name) => Math.max(...inner.map((data) => data[name] ?? 0));
  apply({ id, state, beat: latest("beat"), at: latest("last") });
}

const untouched = { node: "pending", lane: "absent", edge: "possible" };
const rest = (element) => ({ id: element.dataset.mark, state: untouched[element.classList[0]] });

// A lane that a node uses again begins anew: what lies in it has not happened yet in this run.
function inside({ id, state }) {
  const lane = elements.get(id)?.element;
  if (state !== "running" || !lane?.classList.contains("lane")) return [];
  const run = lane.dataset.mark.slice("lane-".length);
  const marks = [...new Set([...elements.values()].map(({ element }) => element))];
  return marks.filter(({ dataset: { mark } }) => mark.startsWith(`${run}/`, 5) || mark.startsWith(`${run}~`, 5));
}

function travel(at) {
  const rows = document.querySelectorAll("#timeline > li");
  if (!rows.length || at < Number(rows[0].dataset.at)) return; // older than what is here: the server paints it
  const earlier = JSON.parse(document.getElementById("earlier").dataset.base || "[]");
  const shown = [...rows].filter((row) => Number(row.dataset.at) <= at);
  const now = new Map();
  for (const mark of [...earlier, ...shown.flatMap((row) => JSON.parse(row.dataset.graph ?? "[]"))]) {
    for (const element of inside(mark)) now.delete(element);
    const known = elements.get(mark.id);
    if (known) now.set(known.element, mark);
  }
  for (const { element } of new Set(elements.values())) apply(now.get(element) ?? rest(element));
}

function live(mark) {
  for (const element of inside(mark)) apply(rest(element));
  apply(mark);
}

document.addEventListener("graph", (event) => following() && JSON.parse(event.detail.data).forEach(live));
// The present is in the picture, which may be ahead of the rows; who was elsewhere comes back with the row it ends with.
let elsewhere = false;
document.addEventListener("moment", ({ detail: { at, live } }) => {
  if (!live || elsewhere) travel(at);
  elsewhere = !live || !document.getElementById(`ev-${at}`);
});
document.addEventListener("htmx:after:swap", () => {
  if (picture?.isConnected) return;
  look();
  if (!following()) travel(Number(document.getElementById("run").dataset.at));
});
look();
