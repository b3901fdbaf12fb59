// A filter hides the rows of the list it names whose text or kind does not hold what was typed.
function apply(input) {
  const list = document.getElementById(input.dataset.filters);
  const wish = input.value.trim().toLowerCase();
  for (const row of list.children) row.hidden = wish !== "" && !`${row.dataset.kind} ${row.textContent}`.toLowerCase().includes(wish);
}

for (const input of document.querySelectorAll("[data-filters]")) {
  input.addEventListener("input", () => apply(input));
  document.addEventListener("longer", () => input.value && apply(input));
}
