// Filters of the timeline: what was typed, a kind and a node; a row that does not fit all of them is hidden.
const list = document.getElementById("timeline");
const [text, kind, node] = ["filter", "filter-kind", "filter-node"].map((id) => document.getElementById(id));
const nodeOf = ({ dataset }) => decodeURIComponent(dataset.node?.split("/").pop() ?? "").split("#")[0];
const filtered = () => Boolean(text.value.trim() || kind.value || node.value);
let offered = 0;

function apply() {
  const wish = text.value.trim().toLowerCase();
  for (const row of list.children)
    row.hidden =
      (kind.value && row.dataset.kind !== kind.value) ||
      (node.value && nodeOf(row) !== node.value) ||
      !`${row.dataset.kind} ${row.textContent}`.toLowerCase().includes(wish);
  list.toggleAttribute("data-filtered", filtered());
}

// What a run brings that was not known when its page was made can be chosen as well.
function offer(select, name) {
  if (name && ![...select.options].some((option) => option.value === name)) select.add(new Option(name, name));
}

for (const field of [text, kind, node]) field.addEventListener("input", apply);
document.addEventListener("htmx:after:swap", () => filtered() && apply());
document.addEventListener("longer", (event) => {
  for (let row = list.lastElementChild; row && Number(row.dataset.at) > offered; row = row.previousElementSibling)
    offer(kind, row.dataset.kind), offer(node, nodeOf(row));
  offered = event.detail.last;
});
