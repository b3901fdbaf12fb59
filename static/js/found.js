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

// What was found is shown where the page is in time: at its end, or at the moment that was chosen.
document.addEventListener("htmx:after:swap", (event) => {
  if (event.target !== form) return;
  const at = Number(document.getElementById("at").value);
  const past = [...pane.querySelectorAll("li")].filter((row) => Number(row.dataset.at) <= at);
  past.at(-1)?.scrollIntoView({ block: "nearest" });
});

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
