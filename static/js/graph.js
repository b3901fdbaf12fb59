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
  for (const element of picture.querySelectorAll("[data-mark]")) elements.set(element.dataset.mark, { element });
  for (const text of document.querySelectorAll("[data-mark-text]")) {
    const known = elements.get(text.dataset.markText);
    if (known) known.text = text;
  }
  sprite = picture.querySelector(".node__icon")?.getAttribute("href").split("#")[0];
}

function apply({ id, state, wave: number }) {
  const { element, text } = elements.get(id) ?? {};
  if (!element) return;
  element.dataset.state = state;
  if (!element.classList.contains("node")) return;
  const said = (words[state] ?? state) + (number ? ` · ${wave.replace("{n}", number)}` : "");
  if (element.dataset.within) sum(element.dataset.within);
  element.setAttribute("aria-label", `${element.dataset.name}: ${said}`);
  element.querySelector(".node__icon").setAttribute("href", `${sprite}#state-${state}`);
  const line = element.querySelector(".node__words");
  if (line && !element.classList.contains("node--instance")) line.textContent = said;
  if (text) text.textContent = said;
}

// A template is in the loudest state of its instances.
function sum(id) {
  const states = [...picture.querySelectorAll(`[data-within="${CSS.escape(id)}"]`)].map((e) => e.dataset.state);
  apply({ id, state: picture.dataset.loudest.split(" ").find((state) => states.includes(state)) ?? "pending" });
}

const untouched = { node: "pending", lane: "absent", edge: "possible" };

function travel(at) {
  const rows = document.querySelectorAll("#timeline > li");
  if (!rows.length || at < Number(rows[0].dataset.at)) return; // older than what is here: the server paints it
  const now = new Map(JSON.parse(document.getElementById("earlier").dataset.base || "[]").map((m) => [m.id, m]));
  for (const row of rows) {
    if (Number(row.dataset.at) > at) break;
    for (const mark of JSON.parse(row.dataset.graph ?? "[]")) now.set(mark.id, mark);
  }
  for (const [id, { element }] of elements) apply(now.get(id) ?? { id, state: untouched[element.classList[0]] });
}

document.addEventListener("graph", (event) => following() && JSON.parse(event.detail.data).forEach(apply));
document.addEventListener("moment", (event) => travel(event.detail.at));
document.addEventListener("htmx:after:swap", () => {
  if (picture?.isConnected) return;
  look();
  if (!following()) travel(Number(document.getElementById("run").dataset.at));
});
look();
