// Where the focus was stays the place for keys: when the element that has it is swapped out, its successor takes over:
// the same id, else the nearest part of the page around it that is still there.
let held;
let around = [];

document.addEventListener("focusin", ({ target }) => {
  held = target;
  around = [];
  for (let element = target; element; element = element.parentElement) if (element.id) around.push(element.id);
});
document.addEventListener("focusout", ({ target, relatedTarget }) => {
  if (!relatedTarget && target.isConnected && !target.disabled) held = undefined; // left on purpose
});

function keep() {
  if (!held || document.activeElement !== document.body) return;
  if (held.isConnected) return held.focus({ preventScroll: true });
  const next = around.map((id) => document.getElementById(id)).find((element) => element?.checkVisibility());
  if (!next) return;
  next.focus({ preventScroll: true });
  if (document.activeElement === next) return;
  next.tabIndex = -1;
  next.focus({ preventScroll: true });
}
for (const name of ["htmx:after:swap", "htmx:finally:request", "shown"]) document.addEventListener(name, keep);
