// One selection: whatever names an event of the run shows whether it is the chosen one, or still to come,
// or had begun and did not yet have the state that it has now.
const run = document.getElementById("run");
const all = () => document.querySelectorAll("#timeline > [data-at], #found [data-at], #grid [data-at], #waterfall [data-at]");
const nodeOf = (id) => document.querySelector(`#graph :is([data-mark="${CSS.escape(id)}"], [data-also~="${CSS.escape(id)}"])`);

function mark(at, live) {
  for (const element of all()) {
    const here = Number(element.dataset.at);
    element.classList.toggle("is-later", here > at);
    element.classList.toggle("is-unsettled", here <= at && Number(element.dataset.settled) > at);
    if (here === at && !live) element.setAttribute("aria-current", "step");
    else if (element.hasAttribute("aria-current")) element.removeAttribute("aria-current");
  }
}

document.addEventListener("moment", ({ detail: { at, live } }) => {
  mark(at, live);
  document.querySelector("#graph .is-chosen")?.classList.remove("is-chosen");
  const row = document.getElementById(`ev-${at}`);
  if (live || !row) return;
  row.scrollIntoView({ block: "nearest" });
  if (row.dataset.node) nodeOf(row.dataset.node)?.classList.add("is-chosen");
});

// What is painted anew while the page shows another moment shows that moment as well.
for (const name of ["shown", "htmx:after:swap"])
  document.addEventListener(name, () => run.dataset.at && mark(Number(run.dataset.at), false));

// Who ran when, and whose source it is, are fetched anew while someone looks at them.
const renew = (id) => document.querySelector(`#${id}:not([data-folded])`)?.dispatchEvent(new Event("stale"));
document.addEventListener("longer", () => renew("history-clock"));
document.addEventListener("moment", () => renew("inspect-source"));

// A node leads to the last event that speaks of it, at or before the moment shown; where its rows are not here, to the
// one that it has its state from.
function choose(node) {
  const limit = Number(run.dataset.at ?? Infinity);
  const ids = [node.dataset.mark, ...(node.dataset.also?.split(" ") ?? [])];
  const rows = [...document.querySelectorAll("#timeline > [data-node]")].filter((row) => ids.includes(row.dataset.node));
  const places = rows.map((row) => Number(row.dataset.at));
  const at = places.filter((place) => place <= limit).pop() ?? (Number(node.dataset.last) || places[0]);
  if (at) location.hash = `step=${at}`;
}

document.addEventListener("click", (event) => {
  const node = event.target.closest("#graph .node");
  if (node) choose(node);
});
document.addEventListener("keydown", (event) => {
  const node = event.target.closest?.("#graph .node");
  if (node && (event.key === "Enter" || event.key === " ")) event.preventDefault(), choose(node);
});
