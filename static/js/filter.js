// Filters of a timeline that is whole: what was typed, a kind and a node; a row that does not fit all of them is hidden.
const list = document.getElementById("timeline");
const [text, kind, node] = ["filter", "filter-kind", "filter-node"].map((id) => document.getElementById(id));
const nodeOf = ({ dataset }) => decodeURIComponent(dataset.node?.split("/").pop() ?? "").split("#")[0];

function apply() {
  const wish = text.value.trim().toLowerCase();
  for (const row of list.children)
    row.hidden =
      (kind.value && row.dataset.kind !== kind.value) ||
      (node.value && nodeOf(row) !== node.value) ||
      !`${row.dataset.kind} ${row.textContent}`.toLowerCase().includes(wish);
  list.toggleAttribute("data-filtered", Boolean(wish || kind.value || node.value));
}

for (const field of [text, kind, node]) field.addEventListener("input", apply);
