// The filters of the timeline: the server finds what fits in the whole log; here it is shown in place of the rows.
const form = document.getElementById("filters");
const pane = document.getElementById("found-pane");
const rows = document.getElementById("timeline");
const nodeOf = ({ dataset }) => decodeURIComponent(dataset.node?.split("/").pop() ?? "").split("#")[0];
const wished = () => [...new FormData(form).values()].some(Boolean);
const near = () => pane.scrollHeight - pane.scrollTop - pane.clientHeight < 40;
let offered = 0;

form.addEventListener("reset", () => {
  form.elements.q.focus();
  setTimeout(() => form.dispatchEvent(new Event("input")));
});
form.addEventListener("keydown", (event) => event.key === "Escape" && form.reset());
document.addEventListener("htmx:after:swap", (event) => event.target === form && (pane.scrollTop = pane.scrollHeight));

// What a run brings that was not known when its page was made can be chosen as well.
function offer(select, name) {
  if (name && ![...select.options].some((option) => option.value === name)) select.add(new Option(name, name));
}

document.addEventListener("longer", ({ detail: { last } }) => {
  for (let row = rows.lastElementChild; row && Number(row.dataset.at) > offered; row = row.previousElementSibling)
    offer(form.elements.kind, row.dataset.kind), offer(form.elements.node, nodeOf(row));
  offered = last;
  if (wished() && near()) pane.dispatchEvent(new Event("stale"));
});
