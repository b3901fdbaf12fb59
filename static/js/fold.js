// What folds: in the grid the rows of called runs under the one that called, open at first; in the timeline the repeats of
// an event, closed at first. Both stay as the reader left them when they are painted anew.
const changed = new Set();
const isOpen = (name, first) => first !== changed.has(name);

function grid() {
  let within = Infinity;
  for (const row of document.querySelectorAll("#grid tbody tr")) {
    const depth = Number(row.dataset.depth);
    if (depth <= within) within = Infinity;
    row.hidden = depth > within;
    const button = row.querySelector("[data-fold]");
    if (!button) continue;
    button.setAttribute("aria-expanded", isOpen(button.dataset.fold, true));
    if (!row.hidden && !isOpen(button.dataset.fold, true)) within = depth;
  }
}

function timeline() {
  for (const row of document.querySelectorAll("#timeline > [data-repeats]")) {
    const open = isOpen(row.dataset.repeats, false);
    row.classList.toggle("is-open", open);
    row.querySelector("[data-unfold]").setAttribute("aria-expanded", open);
  }
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-fold], [data-unfold]");
  if (!button) return;
  const name = button.dataset.fold ?? button.closest("[data-repeats]").dataset.repeats;
  if (!changed.delete(name)) changed.add(name);
  button.dataset.fold ? grid() : timeline();
});
document.addEventListener("htmx:after:swap", () => changed.size && (grid(), timeline()));
